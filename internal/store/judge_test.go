package store

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agent/protocol"
)

// edit changes bytes of a closed store's file.
func edit(t *testing.T, path string, change func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, change(b), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestJudgedFiles(t *testing.T) {
	put32 := func(at int, v uint32) func([]byte) []byte {
		return func(b []byte) []byte { binary.BigEndian.PutUint32(b[at:], v); return b }
	}
	for _, row := range []struct {
		name   string
		change func([]byte) []byte
		code   protocol.Code
	}{
		{"RT-89 a newer schema is refused", put32(offUserVersion, uint32(SchemaVersion()+1)), protocol.StoreSchemaNewer},
		{"another product's database is refused", put32(offApplication, 0x12345678), protocol.StoreSchemaUnsupported},
		{"tables without a version are refused", func(b []byte) []byte {
			return put32(offApplication, 0)(put32(offUserVersion, 0)(b))
		}, protocol.StoreSchemaUnsupported},
		{"a negative version is refused", put32(offUserVersion, 0xffffffff), protocol.StoreSchemaUnsupported},
		{"RT-94 a header cut short is corrupt", func(b []byte) []byte { return b[:60] }, protocol.StoreCorrupt},
		{"RT-94 a single byte is corrupt", func(b []byte) []byte { return b[:1] }, protocol.StoreCorrupt},
		{"a file cut inside its first page is corrupt", func(b []byte) []byte { return b[:2000] }, protocol.StoreCorrupt},
		{"text is corrupt", func([]byte) []byte { return []byte(strings.Repeat("no database\n", 1000)) }, protocol.StoreCorrupt},
		{"a damaged magic is corrupt", func(b []byte) []byte { b[3] ^= 1; return b }, protocol.StoreCorrupt},
		{"an impossible page size is corrupt", func(b []byte) []byte { b[offPageSize] = 3; return b }, protocol.StoreCorrupt},
		{"an unknown format is corrupt", func(b []byte) []byte { b[offReadVersion] = 9; return b }, protocol.StoreCorrupt},
		{"damaged fractions are corrupt", func(b []byte) []byte { b[offFractions] = 1; return b }, protocol.StoreCorrupt},
		{"a damaged first page is corrupt", func(b []byte) []byte { b[offTreeType] = 7; return b }, protocol.StoreCorrupt},
		{"a schema that does not read is corrupt", func(b []byte) []byte {
			for i := headerBytes + 12; i < 4096; i++ {
				b[i] = 0xff
			}
			return b
		}, protocol.StoreCorrupt},
	} {
		t.Run(row.name+", no file changed", func(t *testing.T) {
			path := storePath(t)
			mustClose(t, mustOpen(t, Options{Path: path}))
			edit(t, path, row.change)
			before := fingerprint(t, filepath.Dir(path))
			_, err := Open(Options{Path: path})
			e := wantCode(t, err, row.code)
			if strings.Contains(e.Detail, "SELECT") {
				t.Errorf("the detail holds SQL: %s", e.Detail)
			}
			unchanged(t, before, filepath.Dir(path))
			// What was refused is not locked either.
			_, err = Open(Options{Path: path})
			wantCode(t, err, row.code)
		})
	}
	t.Run("an empty file becomes a store", func(t *testing.T) {
		path := storePath(t)
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		s := mustOpen(t, Options{Path: path})
		if err := s.Do("put", put("a", 1)); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("an empty file beside a log that is not is corrupt, the log kept", func(t *testing.T) {
		path := storePath(t)
		leaveLog(t, path)
		if err := os.Truncate(path, 0); err != nil {
			t.Fatal(err)
		}
		before := fingerprint(t, filepath.Dir(path))
		_, err := Open(Options{Path: path})
		wantCode(t, err, protocol.StoreCorrupt)
		unchanged(t, before, filepath.Dir(path))
	})
	t.Run("a version that only the log holds is judged, too", func(t *testing.T) {
		path := storePath(t)
		newer := &schema{sql: schemaSQL, steps: []step{nothing}}
		leaveCopy(t, path, newer)
		_, err := Open(Options{Path: path})
		wantCode(t, err, protocol.StoreSchemaNewer)
		s := mustOpen(t, Options{Path: path, schema: newer})
		if !has(t, s, "kept") {
			t.Error("the row in the log is gone")
		}
	})
}

func FuzzJudgeHeader(f *testing.F) {
	path := storePath(f)
	s, err := Open(Options{Path: path})
	if err != nil {
		f.Fatal(err)
	}
	s.Close()
	good, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good[:judgedBytes], int64(len(good)))
	f.Add(good[:50], int64(50))
	f.Add([]byte{}, int64(0))
	f.Add([]byte(headerMagic), int64(16))
	for _, at := range []int{offPageSize, offReadVersion, offFractions, offUserVersion, offApplication, offTreeType, offTreeCells} {
		b := append([]byte(nil), good[:judgedBytes]...)
		b[at] ^= 0x55
		f.Add(b, int64(len(good)))
	}
	f.Fuzz(func(t *testing.T, head []byte, size int64) {
		if len(head) > judgedBytes {
			head = head[:judgedBytes]
		}
		err := judgeHeader(head, size, 1)
		if err == nil {
			if size != 0 && (len(head) < judgedBytes || string(head[:16]) != headerMagic) {
				t.Fatalf("accepted %x", head)
			}
			return
		}
		switch protocol.CodeOf(err) {
		case protocol.StoreCorrupt, protocol.StoreSchemaNewer, protocol.StoreSchemaUnsupported:
		default:
			t.Fatalf("error is %v", err)
		}
	})
}
