package store

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"agent/protocol"
)

func TestSpill(t *testing.T) {
	s := mustOpen(t, Options{Path: storePath(t)})
	dir := s.FilesDir()
	t.Run("a store that never spilled has nothing to sweep", func(t *testing.T) {
		if n, err := s.Sweep(context.Background()); n != 0 || err != nil {
			t.Fatal(n, err)
		}
	})
	t.Run("the sweep removes what no row names and nothing else", func(t *testing.T) {
		outside := filepath.Dir(s.Path()) + "/outside"
		os.MkdirAll(outside, 0o700)
		os.WriteFile(outside+"/keep", nil, 0o600)
		for _, bot := range []string{"1", "2"} {
			os.MkdirAll(dir+"/"+bot, 0o700)
		}
		for _, name := range []string{"1/named", "1/orphan", "2/orphan", "stray"} {
			os.WriteFile(dir+"/"+name, nil, 0o600)
		}
		os.Symlink(outside, dir+"/3")
		os.Symlink(outside, dir+"/1/link")
		err := s.Do("put", func(tx *Tx) error {
			name, err := s.SpillName(dir + "/1/named")
			if err != nil {
				return err
			}
			return exec(tx.Conn(), &query{"INSERT INTO artifacts (turn, call_id, stream, raw_bytes, file) VALUES (1, 'c', 'stdout', 1, ?)"}, name)
		})
		if err != nil {
			t.Fatal(err)
		}
		n, err := s.Sweep(context.Background())
		if n != 5 || err != nil {
			t.Fatal(n, err)
		}
		for path, want := range map[string]bool{
			dir + "/1/named": true, dir + "/1/orphan": false, dir + "/1/link": false, dir + "/2": false,
			dir + "/3": false, dir + "/stray": false, outside + "/keep": true,
		} {
			if _, err := os.Lstat(path); (err == nil) != want {
				t.Errorf("%s there: %v", path, err == nil)
			}
		}
	})
	t.Run("names are kept below the folder", func(t *testing.T) {
		for _, path := range []string{"/etc/passwd", dir, dir + "/x", dir + "/1/../../x", dir + "/1/a/b", dir + "x/1/a"} {
			_, err := s.SpillName(path)
			wantCode(t, err, protocol.StoreRowInvalid)
		}
		for _, name := range []string{"", "x", "../x", "/1/x", "1/..", "1/x/", "1//x"} {
			_, err := s.SpillPath(name)
			wantCode(t, err, protocol.StoreRowInvalid)
		}
		if path, err := s.SpillPath("1/x"); err != nil || path != dir+"/1/x" {
			t.Error(path, err)
		}
	})
}
