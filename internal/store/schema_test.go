package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"

	"agent/protocol"
)

func nothing(*sqlite.Conn) error { return nil }

// addColumn is a migration as a real one would be: it converts row by row and
// refuses what it cannot read.
func addColumn(c *sqlite.Conn) error {
	if err := script(c, "ALTER TABLE companions ADD COLUMN length INTEGER NOT NULL DEFAULT 0"); err != nil {
		return err
	}
	return each(c, &query{"SELECT name, command FROM companions ORDER BY name"}, func(r *sqlite.Stmt) error {
		name, command := r.ColumnText(0), r.ColumnText(1)
		if strings.Contains(command, "bad") {
			return fmt.Errorf("the command of companion %s is no list", name)
		}
		return exec(c, &query{"UPDATE companions SET length = ? WHERE name = ?"}, len(command), name)
	})
}

func TestMigration(t *testing.T) {
	two := &schema{sql: schemaSQL, steps: []step{addColumn}}
	seed := func(t *testing.T, command string) string {
		path := storePath(t)
		s := mustOpen(t, Options{Path: path})
		err := s.Do("put", func(tx *Tx) error {
			if err := exec(tx.Conn(), qTestPut, "good", 1, "fine"); err != nil {
				return err
			}
			return exec(tx.Conn(), qTestPut, "other", 2, command)
		})
		if err != nil {
			t.Fatal(err)
		}
		mustClose(t, s)
		return path
	}
	version := func(t *testing.T, path string) string {
		s := mustOpen(t, Options{Path: path})
		defer s.Close()
		got, err := pragma(s.readers.free[0].conn, "user_version")
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	t.Run("an older store is brought forward, step by step", func(t *testing.T) {
		path := seed(t, "fine, too")
		three := &schema{sql: schemaSQL, steps: []step{addColumn, func(c *sqlite.Conn) error {
			return script(c, "UPDATE companions SET length = length + 1000")
		}}}
		s := mustOpen(t, Options{Path: path, schema: three})
		n, err := integer(s.readers.free[0].conn, &query{"SELECT length FROM companions WHERE name = 'other'"})
		if err != nil || n != 1009 {
			t.Fatalf("length is %d, %v", n, err)
		}
		mustClose(t, s)
		_, err = Open(Options{Path: path})
		wantCode(t, err, protocol.StoreSchemaNewer)
	})
	t.Run("RT-90 a bad row leaves version and data as before, and after repair it succeeds", func(t *testing.T) {
		path := seed(t, "bad")
		_, err := Open(Options{Path: path, schema: two})
		e := wantCode(t, err, protocol.StoreMigrationFailed)
		if !strings.Contains(e.Detail, "companion other is no list") {
			t.Errorf("the detail does not name the row: %s", e.Detail)
		}
		if got := version(t, path); got != "1" {
			t.Fatalf("the version is %s", got)
		}
		s := mustOpen(t, Options{Path: path})
		if n, err := integer(s.readers.free[0].conn, &query{"SELECT count(*) FROM pragma_table_info('companions') WHERE name = 'length'"}); err != nil || n != 0 {
			t.Fatalf("the column stays: %d, %v", n, err)
		}
		if err := s.Do("repair", func(tx *Tx) error {
			return exec(tx.Conn(), &query{"UPDATE companions SET command = 'fine' WHERE name = 'other'"})
		}); err != nil {
			t.Fatal(err)
		}
		mustClose(t, s)
		mustClose(t, mustOpen(t, Options{Path: path, schema: two}))
	})
	t.Run("RT-90 a failure after the last step leaves the version, too", func(t *testing.T) {
		path := seed(t, "fine")
		faults := &Faults{}
		faults.At("migrate", func() error { return FaultFull })
		_, err := Open(Options{Path: path, schema: two, Faults: faults})
		wantCode(t, err, protocol.StorageError)
		if got := version(t, path); got != "1" {
			t.Fatalf("the version is %s", got)
		}
	})
	t.Run("a step that breaks a reference is refused", func(t *testing.T) {
		path := seed(t, "fine")
		breaks := &schema{sql: schemaSQL, steps: []step{func(c *sqlite.Conn) error {
			return script(c, "INSERT INTO call_ids VALUES (1, 'x', 7)")
		}}}
		_, err := Open(Options{Path: path, schema: breaks})
		e := wantCode(t, err, protocol.StoreMigrationFailed)
		if !strings.Contains(e.Detail, "call_ids") {
			t.Errorf("the detail is %s", e.Detail)
		}
		if got := version(t, path); got != "1" {
			t.Fatalf("the version is %s", got)
		}
	})
	t.Run("RT-93 a new store that cannot be finished leaves no file but its lock, and can be made later", func(t *testing.T) {
		path := storePath(t)
		faults := &Faults{}
		faults.At("migrate", func() error { return FaultFull })
		_, err := Open(Options{Path: path, Faults: faults})
		wantCode(t, err, protocol.StorageError)
		left, err := os.ReadDir(filepath.Dir(path))
		if err != nil || len(left) != 1 || left[0].Name() != filepath.Base(path)+".owner-lock" {
			t.Errorf("what is left: %v, %v", left, err)
		}
		mustClose(t, mustOpen(t, Options{Path: path}))
	})
	t.Run("what was there before a refused open stays: an empty store, a log without its store", func(t *testing.T) {
		path := storePath(t)
		faults := &Faults{}
		faults.At("migrate", func() error { return FaultFull })
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Open(Options{Path: path, Faults: faults})
		wantCode(t, err, protocol.StorageError)
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
		path = storePath(t)
		if err := os.WriteFile(path+"-wal", []byte("somebody's work"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err = Open(Options{Path: path})
		wantCode(t, err, protocol.StoreCorrupt)
		if kept, err := os.ReadFile(path + "-wal"); string(kept) != "somebody's work" {
			t.Errorf("the log holds %q, %v", kept, err)
		}
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the store that was refused: %v", err)
		}
	})
}

// columns of the tables of runtime.md 24, in the notation of its table: a type
// and ? for what may be null.
var normative = map[string]string{
	"store":           "identity I, created_ms I",
	"node_sequence":   "last_id I",
	"bot_sequence":    "last_id I",
	"turn_sequence":   "last_id I",
	"event_retention": "pruned_cursor I",
	"companions":      "name T, position I, command T",
	"pause":           "by T, by_id I?, turn I?, reason T?, since_ms I",
	"rules":           "digest T, files T",
	"bots": "name T, id I, head I?, status T, running_turn I?, closed I?, provider T, family T, model T, instructions T, " +
		"reasoning T?, tools T, allowed T?, client_tools T?, settings T?, denials T?, overturns T?, workspace T?, " +
		"budget_tokens I?, tokens_used I, input_tokens I, cached_input_tokens I, context_start I?, note I?, compaction I?, " +
		"elision I?, compaction_instructions T?, compaction_model T?, created_by T?, created_by_id I?, cache_bot I?, " +
		"fallbacks I, pruned_cursor I, prefix I?, below I, from I, to I, elided I, sandbox T?, rules T?, gates T?, " +
		"closed_to_bots I, creator_limits T?, bot_made I",
	"nodes": "id I, parent I?, turn I?, turn_seq I?, depth I, total_bytes I, elided I, total_elided I, thinking I, " +
		"pictures I, item B",
	"stubs":       "node I, item B",
	"notes":       "node I, previous I?, text T",
	"compactions": "node I, previous I?, cut I, pinned I?, summary T, prompts T, covered_from I, covered_to I",
	"elisions":    "node I, previous I?, through I, saved I",
	"checkpoints": "bot T, head I",
	"turns": "id I, bot T, request_id T, prompt T, prompt_node I?, from_bot T?, from_turn I?, origin T?, status T, " +
		"workspace T?, model T?, delivery T, expected_turn I?, waiting T?, model_rounds I, input_tokens I, " +
		"output_tokens I, cached_input_tokens I, retries I, paced_ms I, started_ms I?, finished_ms I?, external T?",
	"retained_turns": "turn I, bot T",
	"tools":          "turn I, call_id T, name T, seq I, status T, approval T?, served T?, steps T?",
	"call_ids":       "bot_id I, call_id T, node I",
	"inherited":      "bot_id I, through I, source I",
	"processes":      "id I, bot_id I, turn I, call_id T, status T, result T?, delivered I?",
	"artifacts":      "turn I, call_id T, stream T, data B?, raw_bytes I, file T?",
	"seen_files":     "bot T, path T, size I, mtime_ns I, inode I, used I, hash B",
	"pictures":       "hash B, media_type T, width I, height I, data B",
	"node_pictures":  "node I, hash B",
	"events":         "id I, bot T, turn I?, kind T, data T",
}

func TestSchema(t *testing.T) {
	s := mustOpen(t, Options{Path: storePath(t)})
	c := s.readers.free[0].conn
	for table, want := range normative {
		t.Run("table "+table+" has the columns of the specification", func(t *testing.T) {
			got := map[string]string{}
			err := each(c, &query{`SELECT name, type, "notnull", pk FROM pragma_table_info(?)`}, func(r *sqlite.Stmt) error {
				kind := r.ColumnText(1)[:1]
				if r.ColumnInt64(2) == 0 && r.ColumnInt64(3) == 0 {
					kind += "?"
				}
				got[r.ColumnText(0)] = kind
				return nil
			}, table)
			if err != nil {
				t.Fatal(err)
			}
			for _, column := range strings.Split(want, ", ") {
				name, kind, _ := strings.Cut(column, " ")
				if got[name] != kind {
					t.Errorf("%s.%s is %q, want %q", table, name, got[name], kind)
				}
			}
		})
	}
	t.Run("every table is strict", func(t *testing.T) {
		err := each(c, &query{"SELECT name FROM pragma_table_list WHERE schema = 'main' AND NOT strict AND name NOT LIKE 'sqlite_%'"},
			func(r *sqlite.Stmt) error {
				t.Errorf("%s is not", r.ColumnText(0))
				return nil
			})
		if err != nil {
			t.Fatal(err)
		}
	})
	t.Run("items and prompts are the last columns", func(t *testing.T) {
		for table, want := range map[string]string{"nodes": "item", "turns": "prompt", "artifacts": "data", "pictures": "data"} {
			last := ""
			if _, err := one(c, &query{"SELECT name FROM pragma_table_info(?) ORDER BY cid DESC LIMIT 1"},
				func(r *sqlite.Stmt) error { last = r.ColumnText(0); return nil }, table); err != nil {
				t.Fatal(err)
			}
			if last != want {
				t.Errorf("%s ends with %s", table, last)
			}
		}
	})
	t.Run("every foreign key's own columns are indexed, so that deleting scans nothing", func(t *testing.T) {
		type key struct{ table, column string }
		var keys []key
		err := each(c, &query{`SELECT m.name, f."from" FROM sqlite_schema m, pragma_foreign_key_list(m.name) f WHERE m.type = 'table'`},
			func(r *sqlite.Stmt) error {
				keys = append(keys, key{r.ColumnText(0), r.ColumnText(1)})
				return nil
			})
		if err != nil {
			t.Fatal(err)
		}
		if len(keys) < 25 {
			t.Fatalf("only %d foreign keys", len(keys))
		}
		for _, k := range keys {
			plan := planOf(t, c, fmt.Sprintf("SELECT 1 FROM %s WHERE %q = ?", k.table, k.column))
			if strings.Contains(plan, "SCAN") {
				t.Errorf("%s.%s: %s", k.table, k.column, plan)
			}
		}
	})
	t.Run("a sequence has one row and does not go below zero", func(t *testing.T) {
		for _, sql := range []string{
			"INSERT INTO node_sequence VALUES (2, 0)", "UPDATE bot_sequence SET last_id = -1",
			"INSERT INTO store VALUES (2, 1, 1)", "INSERT INTO turn_sequence (last_id) VALUES (7)",
		} {
			err := s.Do("test", func(tx *Tx) error { return exec(tx.Conn(), &query{sql}) })
			wantCode(t, err, protocol.StorageError)
		}
	})
	t.Run("a row that names a missing bot is refused", func(t *testing.T) {
		err := s.Do("test", func(tx *Tx) error { return exec(tx.Conn(), qTestEvent, "nobody", "x") })
		e := wantCode(t, err, protocol.StorageError)
		if e.Detail != "sqlite_primary=19 sqlite_extended=787" {
			t.Errorf("the detail is %s", e.Detail)
		}
		if !errors.Is(err, protocol.StorageError) {
			t.Error("errors.Is does not know it")
		}
	})
}

func planOf(t *testing.T, c *sqlite.Conn, sql string) string {
	t.Helper()
	var lines []string
	err := each(c, &query{"EXPLAIN QUERY PLAN " + sql}, func(r *sqlite.Stmt) error {
		lines = append(lines, r.ColumnText(3))
		return nil
	})
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return strings.Join(lines, "\n")
}
