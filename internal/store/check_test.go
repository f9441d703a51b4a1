package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agent/protocol"
)

func TestCheck(t *testing.T) {
	sound := soundStore(t)
	filled := func(t *testing.T) string {
		path := storePath(t)
		if err := os.WriteFile(path, sound, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	t.Run("a sound store has no problem and is not changed", func(t *testing.T) {
		path := filled(t)
		before := fingerprint(t, filepath.Dir(path))
		r, err := Check(path)
		if err != nil || !r.OK || len(r.Problems) != 0 || r.Schema != int64(SchemaVersion()) || r.Bytes == 0 {
			t.Fatalf("%+v, %v (%v)", r, err, errors.Unwrap(err))
		}
		if after := fingerprint(t, filepath.Dir(path)); after["state.sqlite"] != before["state.sqlite"] {
			t.Error("the store changed")
		}
	})
	t.Run("what only the log holds is looked at, too", func(t *testing.T) {
		path := storePath(t)
		leaveLog(t, path)
		before := fingerprint(t, filepath.Dir(path))
		r, err := Check(path)
		if err != nil || len(r.Problems) != 1 || !strings.Contains(r.Problems[0], "kept: command is not JSON") {
			t.Fatalf("%+v, %v (%v)", r, err, errors.Unwrap(err))
		}
		after := fingerprint(t, filepath.Dir(path))
		if after["state.sqlite"] != before["state.sqlite"] || after["state.sqlite-wal"] != before["state.sqlite-wal"] {
			t.Error("the store changed")
		}
	})
	for _, row := range []struct{ name, sql, want string }{
		{"a damaged JSON value is named", "UPDATE turns SET waiting = '{' WHERE id = 9", "turns 9: waiting is not JSON"},
		{"an item that is no JSON is named", "UPDATE nodes SET item = x'00' WHERE id = 9", "node 9: its item is not JSON"},
		{"a missing current turn is named", "UPDATE bots SET running_turn = 9999 WHERE id = 3", "bot bot3: its current turn is missing"},
		{"a broken depth is named", "UPDATE nodes SET depth = 7 WHERE id = 9", "node 9: its depth"},
		{"savings that do not add up are named", "UPDATE nodes SET total_elided = 1 WHERE id = 9", "node 9: what its lineage's stubs save"},
		{"a missing stub is named", "DELETE FROM stubs WHERE node = 8", "node 8: its stub is missing"},
		{"a sequence behind its ids is named", "UPDATE turn_sequence SET last_id = 399", "turn 400: its id is above the sequence"},
		{"a missing reference is named", "PRAGMA foreign_keys = OFF; DELETE FROM bots WHERE id = 3", "names a missing row of bots"},
	} {
		t.Run(row.name, func(t *testing.T) {
			path := filled(t)
			s := mustOpen(t, Options{Path: path})
			if err := script(s.writer, row.sql); err != nil {
				t.Fatal(err)
			}
			mustClose(t, s)
			r, err := Check(path)
			if err != nil || r.OK || !strings.Contains(strings.Join(r.Problems, "\n"), row.want) {
				t.Fatalf("%+v, %v (%v)", r, err, errors.Unwrap(err))
			}
		})
	}
	t.Run("a damaged page is a problem, not a failure", func(t *testing.T) {
		path := filled(t)
		edit(t, path, func(b []byte) []byte {
			for i := 3 * 4096; i < 40*4096; i++ {
				b[i] = 0xa5
			}
			return b
		})
		r, err := Check(path)
		if err != nil || r.OK || len(r.Problems) == 0 {
			t.Fatalf("%+v, %v (%v)", r, err, errors.Unwrap(err))
		}
	})
	t.Run("a damaged header is a problem, too", func(t *testing.T) {
		path := filled(t)
		edit(t, path, func(b []byte) []byte { b[0] = 0; return b })
		r, err := Check(path)
		if err != nil || r.OK || !strings.HasPrefix(r.Problems[0], "store_corrupt") {
			t.Fatalf("%+v, %v (%v)", r, err, errors.Unwrap(err))
		}
	})
	t.Run("an owned store is refused", func(t *testing.T) {
		path := storePath(t)
		mustOpen(t, Options{Path: path})
		_, err := Check(path)
		wantCode(t, err, protocol.StoreAlreadyOwned)
	})
	t.Run("a missing store is refused and not made", func(t *testing.T) {
		path := storePath(t)
		_, err := Check(path)
		wantCode(t, err, protocol.StoreNotFound)
		if left, _ := filepath.Glob(path + "*"); len(left) != 0 {
			t.Errorf("made %v", left)
		}
	})
}

// soundStore is the file of a filled store in which all is well.
func soundStore(t *testing.T) []byte {
	t.Helper()
	path := storePath(t)
	s := mustOpen(t, Options{Path: path})
	fill(t, s)
	err := s.Do("repair", func(tx *Tx) error {
		return script(tx.Conn(), `UPDATE bot_sequence SET last_id = 400; UPDATE turn_sequence SET last_id = 400;
			UPDATE stubs SET item = CAST('0' AS BLOB);
			UPDATE nodes SET item = CAST('{}' AS BLOB), elided = (id % 2 = 0), total_elided = id / 2;`)
	})
	if err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
