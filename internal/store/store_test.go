package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	"zombiezen.com/go/sqlite"

	"agent/internal/place"
	"agent/protocol"
)

// recorder is a sink that keeps what it is given.
type recorder struct {
	mu     sync.Mutex
	events []Event
	log    []string // cursors and what After did, in order
}

func (r *recorder) Publish(b Batch) {
	r.mu.Lock()
	for _, ev := range b.Events {
		r.events = append(r.events, ev)
		r.log = append(r.log, fmt.Sprint(ev.Cursor))
	}
	r.mu.Unlock()
	for _, f := range b.After {
		f()
	}
}

func (r *recorder) note(text string) {
	r.mu.Lock()
	r.log = append(r.log, text)
	r.mu.Unlock()
}

func storePath(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir + "/state.sqlite"
}

func mustOpen(t testing.TB, opt Options) *Store {
	t.Helper()
	s, err := Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func mustClose(t testing.TB, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func wantCode(t testing.TB, err error, code protocol.Code) *protocol.Error {
	t.Helper()
	var e *protocol.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Fatalf("error is %v, want %s", err, code)
	}
	return e
}

func mode(t testing.TB, path string) os.FileMode {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode().Perm()
}

// Statements of the tests. They are not registered: they are not the product's.
var (
	qTestBot   = &query{"INSERT INTO bots (id, name, status, provider, family, model, instructions, tools) VALUES (?, ?, 'idle', 'p', 'chat', 'm', '', '[]')"}
	qTestEvent = &query{"INSERT INTO events (bot, kind, data) VALUES (?, ?, '{}')"}
	qTestPut   = &query{"INSERT INTO companions (name, position, command) VALUES (?, ?, ?)"}
	qTestCount = &query{"SELECT count(*) FROM companions"}
	qTestHas   = &query{"SELECT 1 FROM companions WHERE name = ?"}
)

// put is a job that writes a row of a size.
func put(name string, bytes int) func(*Tx) error {
	return func(tx *Tx) error {
		return exec(tx.Conn(), qTestPut, name, 0, strings.Repeat("x", bytes))
	}
}

func has(t testing.TB, s *Store, name string) (found bool) {
	t.Helper()
	err := s.Read(context.Background(), "test", func(r *Reader) (err error) {
		found, err = one(r.Conn(), qTestHas, nil, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestModes(t *testing.T) {
	t.Run("RT-85 PO-100 with umask 000 the store and its sidecars are 0600 at every instant", func(t *testing.T) {
		old := unix.Umask(0)
		defer unix.Umask(old)
		path := storePath(t)
		stop := watch(path, path+"-wal", path+"-shm", path+"-journal", path+".owner-lock")
		s := mustOpen(t, Options{Path: path})
		if err := s.Do("put", put("a", 10)); err != nil {
			t.Fatal(err)
		}
		for _, suffix := range []string{"", "-wal", "-shm", ".owner-lock"} {
			if got := mode(t, path+suffix); got != 0o600 {
				t.Errorf("STORE%s has mode %#o", suffix, got)
			}
		}
		mustClose(t, s)
		if loosest := stop(); loosest&^0o600 != 0 {
			t.Errorf("a file was seen with mode %#o", loosest)
		}
	})
	t.Run("a umask that takes the owner's bits does not get in the way", func(t *testing.T) {
		old := unix.Umask(0o777)
		defer unix.Umask(old)
		path := storePathUnder(t)
		mustOpen(t, Options{Path: path})
		for _, suffix := range []string{"", "-wal", "-shm"} {
			if got := mode(t, path+suffix); got != 0o600 {
				t.Errorf("STORE%s has mode %#o", suffix, got)
			}
		}
	})
	t.Run("RT-86 PO-100 a looser store and its sidecars are tightened", func(t *testing.T) {
		path := storePath(t)
		leaveLog(t, path)
		for _, suffix := range []string{"", "-wal", "-shm"} {
			if err := os.Chmod(path+suffix, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		s := mustOpen(t, Options{Path: path})
		for _, suffix := range []string{"", "-wal", "-shm"} {
			if got := mode(t, path+suffix); got != 0o600 {
				t.Errorf("STORE%s has mode %#o", suffix, got)
			}
		}
		if !has(t, s, "kept") {
			t.Error("the row in the log is gone")
		}
	})
}

// storePathUnder makes the folder although the umask denies everything.
func storePathUnder(t *testing.T) string {
	old := unix.Umask(0o077)
	defer unix.Umask(old)
	return storePath(t)
}

// watch looks at names without pause until stop, which gives the bits that any
// of them ever had.
func watch(paths ...string) (stop func() os.FileMode) {
	quit := make(chan struct{})
	out := make(chan os.FileMode)
	begun := make(chan struct{})
	go func() {
		close(begun)
		var seen os.FileMode
		for {
			for _, p := range paths {
				if info, err := os.Lstat(p); err == nil {
					seen |= info.Mode().Perm()
				}
			}
			select {
			case <-quit:
				out <- seen
				return
			default:
			}
		}
	}()
	<-begun
	return func() os.FileMode { close(quit); return <-out }
}

// leaveLog leaves a store as a kill does: rows in the write-ahead log only.
func leaveLog(t *testing.T, path string) {
	t.Helper()
	leaveCopy(t, path, current)
}

// leaveCopy is leaveLog with a schema. It copies an open store's files, which a
// test may do where the daemon must not.
func leaveCopy(t *testing.T, path string, sch *schema) {
	t.Helper()
	from := storePath(t)
	mustClose(t, mustOpen(t, Options{Path: from}))
	s := mustOpen(t, Options{Path: from, schema: sch})
	if err := s.Do("put", put("kept", 100)); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		b, err := os.ReadFile(from + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path+suffix, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
}

func TestOwnership(t *testing.T) {
	t.Run("RT-87 PR-10 a second daemon through a symlink is refused and touches nothing", func(t *testing.T) {
		path := storePath(t)
		s := mustOpen(t, Options{Path: path})
		alias := filepath.Dir(path) + "/alias.sqlite"
		if err := os.Symlink(path, alias); err != nil {
			t.Fatal(err)
		}
		canonical, err := place.Canonical(alias)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Open(Options{Path: canonical})
		wantCode(t, err, protocol.StoreAlreadyOwned)
		if err := s.Do("put", put("a", 1)); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("it is told which lock it has before anything is touched, and an empty journal goes", func(t *testing.T) {
		path := storePath(t)
		mustClose(t, mustOpen(t, Options{Path: path}))
		for _, suffix := range []string{"-wal", "-shm", "-journal"} {
			if err := os.WriteFile(path+suffix, nil, 0o444); err != nil {
				t.Fatal(err)
			}
		}
		before := fingerprint(t, filepath.Dir(path))
		var told string
		s := mustOpen(t, Options{Path: path, Owned: func(lock string) {
			told = lock
			unchanged(t, before, filepath.Dir(path))
		}})
		if info, err := os.Stat(path + ".owner-lock"); err != nil || !strings.HasSuffix(told, fmt.Sprint(":", info.Sys().(*syscall.Stat_t).Ino)) {
			t.Errorf("told %q, %v", told, err)
		}
		if err := s.Do("put", put("a", 1)); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(path + "-journal"); runtime.GOOS == "linux" && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the journal: %v", err)
		}
		for _, suffix := range []string{"", "-wal", "-shm"} {
			if info, err := os.Stat(path + suffix); err != nil || info.Mode() != 0o600 {
				t.Errorf("%s: %v, %v", suffix, info, err)
			}
		}
	})
	t.Run("RT-88 a hard-linked store is refused", func(t *testing.T) {
		path := storePath(t)
		mustClose(t, mustOpen(t, Options{Path: path}))
		if err := os.Link(path, path+".2"); err != nil {
			t.Fatal(err)
		}
		before := fingerprint(t, filepath.Dir(path))
		_, err := Open(Options{Path: path})
		wantCode(t, err, protocol.StoreHardLinksUnsupported)
		unchanged(t, before, filepath.Dir(path))
	})
	t.Run("RT-121 a store on a network file system is refused and nothing is made there", func(t *testing.T) {
		path := storePath(t)
		_, err := Open(Options{Path: path, FileSystem: func(string) (string, bool, error) { return "nfs", true, nil }})
		e := wantCode(t, err, protocol.StoreOnNetworkFilesystem)
		for _, part := range []string{"nfs", path, "--store PATH", "AGENT_STORE"} {
			if !strings.Contains(e.Detail, part) {
				t.Errorf("the detail %q does not name %s", e.Detail, part)
			}
		}
		if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 0 {
			t.Errorf("made %v", left)
		}
	})
	t.Run("a missing folder is named", func(t *testing.T) {
		_, err := Open(Options{Path: filepath.Dir(storePath(t)) + "/gone/state.sqlite"})
		wantCode(t, err, protocol.InvalidStorePath)
	})
	t.Run("a path that is not canonical is refused", func(t *testing.T) {
		_, err := Open(Options{Path: "state.sqlite"})
		wantCode(t, err, protocol.InvalidStorePath)
		path := storePath(t)
		if err := os.Symlink(path+".target", path); err != nil {
			t.Fatal(err)
		}
		_, err = Open(Options{Path: path})
		wantCode(t, err, protocol.InvalidStorePath)
	})
	t.Run("a folder in the store's place is refused", func(t *testing.T) {
		_, err := Open(Options{Path: filepath.Dir(storePath(t))})
		wantCode(t, err, protocol.InvalidStorePath)
	})
	t.Run("closing gives the lock up and leaves one file of data", func(t *testing.T) {
		path := storePath(t)
		s := mustOpen(t, Options{Path: path})
		if err := s.Do("put", put("a", 1)); err != nil {
			t.Fatal(err)
		}
		mustClose(t, s)
		for _, suffix := range []string{"-wal", "-shm"} {
			if _, err := os.Lstat(path + suffix); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("STORE%s stays", suffix)
			}
		}
		if again := mustOpen(t, Options{Path: path}); !has(t, again, "a") {
			t.Error("the row is gone")
		}
	})
}

func TestIdentity(t *testing.T) {
	path := storePath(t)
	s := mustOpen(t, Options{Path: path})
	instance, lineage := s.Identity()
	if len(instance) != 32 || len(lineage) != 16 {
		t.Fatalf("identity is %q, %q", instance, lineage)
	}
	mustClose(t, s)
	t.Run("it survives a restart", func(t *testing.T) {
		s := mustOpen(t, Options{Path: path})
		defer s.Close()
		if i, l := s.Identity(); i != instance || l != lineage {
			t.Fatalf("identity is %q, %q", i, l)
		}
	})
	t.Run("a copy has another instance of the same lineage", func(t *testing.T) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		copied := path + ".copy"
		if err := os.WriteFile(copied, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if i, l := mustOpen(t, Options{Path: copied}).Identity(); i == instance || l != lineage {
			t.Fatalf("identity is %q, %q", i, l)
		}
	})
}

func TestSettings(t *testing.T) {
	s := mustOpen(t, Options{Path: storePath(t)})
	check := func(c *sqlite.Conn, name, want string) {
		t.Helper()
		if got, err := pragma(c, name); err != nil || got != want {
			t.Errorf("%s is %s (%v), want %s", name, got, err, want)
		}
	}
	for name, want := range map[string]string{
		"journal_mode": "wal", "synchronous": "2", "fullfsync": "1", "checkpoint_fullfsync": "1",
		"foreign_keys": "1", "temp_store": "2", "cache_size": cacheSize, "busy_timeout": "5000",
		"journal_size_limit": "8388608", "wal_autocheckpoint": "1000",
		"application_id": fmt.Sprint(applicationID), "user_version": fmt.Sprint(SchemaVersion()),
	} {
		err := s.Do("test", func(tx *Tx) error { check(tx.Conn(), name, want); return nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(s.readers.free) != 4 {
		t.Fatalf("%d readers", len(s.readers.free))
	}
	for _, r := range s.readers.free {
		for name, want := range map[string]string{
			"checkpoint_fullfsync": "1", "cache_size": cacheSize, "busy_timeout": "5000", "query_only": "1",
		} {
			check(r.conn, name, want)
		}
	}
}

// fingerprint is the content of every file of a folder.
func fingerprint(t *testing.T, dir string) map[string]string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, e := range list {
		if strings.HasSuffix(e.Name(), ".owner-lock") {
			continue
		}
		b, err := os.ReadFile(dir + "/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		out[e.Name()] = string(b)
	}
	return out
}

func unchanged(t *testing.T, before map[string]string, dir string) {
	t.Helper()
	after := fingerprint(t, dir)
	if len(after) != len(before) {
		t.Errorf("%d files instead of %d", len(after), len(before))
	}
	for name, content := range before {
		if after[name] != content {
			t.Errorf("%s changed", name)
		}
	}
}
