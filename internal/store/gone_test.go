package store

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agent/protocol"
)

// files are those of a store, by their ending, with what they hold.
func files(t *testing.T, path string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	names, err := filepath.Glob(path + "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "-shm") || strings.HasSuffix(name, ".owner-lock") {
			continue // the index of the log is made anew from it
		}
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimPrefix(name, path)] = b
	}
	return all
}

func same(t *testing.T, before, after map[string][]byte) {
	t.Helper()
	if len(before) != len(after) {
		t.Errorf("%d files before, %d after", len(before), len(after))
	}
	for name, b := range before {
		if !bytes.Equal(b, after[name]) {
			t.Errorf("%q was changed: %d bytes before, %d after", name, len(b), len(after[name]))
		}
	}
}

func TestDamagedStoreIsLeftAsItIs(t *testing.T) {
	t.Parallel()
	t.Run("RT-94 damage found while it runs: closing writes nothing", func(t *testing.T) {
		t.Parallel()
		faults := &Faults{}
		path := storePath(t)
		s := mustOpen(t, Options{Path: path, Faults: faults})
		if err := s.Do("put", put("a", 1)); err != nil {
			t.Fatal(err)
		}
		faults.At("wrote:bad", func() error { return FaultDamage })
		wantCode(t, s.Do("bad", put("b", 1)), protocol.StorageError)
		wantCode(t, <-s.Fatal(), protocol.StoreCorrupt)
		before := files(t, path)
		if len(before["-wal"]) == 0 {
			t.Fatal("there is no log to lose")
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		same(t, before, files(t, path))
	})
	t.Run("RT-94 damage found at the start: the log that may mend it stays", func(t *testing.T) {
		t.Parallel()
		path := storePath(t)
		mustClose(t, mustOpen(t, Options{Path: path}))
		edit(t, path, func(b []byte) []byte {
			for i := headerBytes + 12; i < 4096; i++ {
				b[i] = 0xff
			}
			return b
		})
		if err := os.WriteFile(path+"-wal", bytes.Repeat([]byte("what a person may still read "), 100), 0o600); err != nil {
			t.Fatal(err)
		}
		before := files(t, path)
		_, err := Open(Options{Path: path})
		wantCode(t, err, protocol.StoreCorrupt)
		same(t, before, files(t, path))
	})
}

func TestStoreThatIsGone(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		do   func(path string) error
		says string
	}{
		"the file is removed":     {os.Remove, "was removed"},
		"its log is removed":      {func(path string) error { return os.Remove(path + "-wal") }, "-wal was removed"},
		"another is in its place": {func(path string) error { return replace(path) }, "was replaced"},
		"so it is with its log":   {func(path string) error { return replace(path + "-wal") }, "-wal was replaced"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := storePath(t)
			s := mustOpen(t, Options{Path: path})
			if err := s.Do("put", put("a", 1)); err != nil {
				t.Fatal(err)
			}
			if err := row.do(path); err != nil {
				t.Fatal(err)
			}
			before := files(t, path)
			e := wantCode(t, s.Do("put", put("b", 1)), protocol.StorageError)
			if !strings.Contains(e.Detail, row.says) {
				t.Errorf("it says %s", e.Detail)
			}
			e = wantCode(t, <-s.Fatal(), protocol.StorageError)
			if !strings.Contains(e.Detail, path) || !strings.Contains(e.Detail, row.says) {
				t.Errorf("it says %s", e.Detail)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			same(t, before, files(t, path))
		})
	}
}

// replace puts another file at a path, as a restored copy is put there.
func replace(path string) error {
	if err := os.WriteFile(path+".new", []byte("another"), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
