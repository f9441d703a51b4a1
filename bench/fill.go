package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// A store with a long past is made from a short one: the daemon itself runs
// two turns, and the second is then repeated row by row while no daemon runs.
// Only ids, ordinals, running sums and names that must differ are changed, so
// that the rows are what the product would have written, whatever columns it
// has. Events and the records of calls are not repeated, as after pruning to
// the sample's two turns.

// fillSpec says what a filled store holds: one bot named bot-0.
type fillSpec struct {
	turns  int // in all
	tools  []string
	prompt string
	model  []string // the model server's arguments
}

// filled gives the path of a store, made at the first call for a name.
func (b *bench) filled(ctx context.Context, name string, spec fillSpec) (string, error) {
	if path := b.stores[name]; path != "" {
		return path, nil
	}
	path := filepath.Join(b.dir, strings.ReplaceAll(name, " ", "-")+".sqlite")
	if err := b.sampleTurns(ctx, path, spec); err != nil {
		return "", fmt.Errorf("the sample for %s: %w", name, err)
	}
	if err := repeatTurns(path, spec.turns-2); err != nil {
		return "", fmt.Errorf("filling %s: %w", name, err)
	}
	b.stores[name] = path
	return path, nil
}

// sampleTurns lets the daemon run the two turns.
func (b *bench) sampleTurns(ctx context.Context, path string, spec fillSpec) error {
	s, err := b.stage(ctx, spec.model...)
	if err != nil {
		return err
	}
	err = s.daemon.create(ctx, botName(0), s.workspace, spec.tools...)
	for n := 0; n < 2 && err == nil; n++ {
		_, err = s.daemon.run(ctx, botName(0), fmt.Sprintf("sample-%d", n), spec.prompt)
	}
	_, end := s.close()
	if err := errors.Join(err, end); err != nil {
		return err
	}
	if info, err := os.Stat(s.store + "-wal"); err == nil && info.Size() > 0 {
		return errors.New("the daemon left a write-ahead log behind")
	}
	return copyFile(path, s.store)
}

// shape is the second sample turn, as the rows show it.
type shape struct {
	turn, nodes  int64 // its id; how many nodes it has
	bytes, depth int64 // what it adds to the running sums
	calls        []string
}

// repeatTurns adds more turns like the newest to a store's one bot.
func repeatTurns(path string, more int) (err error) {
	if more <= 0 {
		return nil
	}
	c, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	for _, fast := range []string{"PRAGMA synchronous = OFF", "PRAGMA cache_size = -65536"} {
		if err := sqlitex.ExecuteTransient(c, fast, nil); err != nil {
			return err
		}
	}
	defer sqlitex.Save(c)(&err)
	s, err := shapeOf(c)
	if err != nil {
		return err
	}
	for _, t := range s.tables() {
		if err := s.repeat(c, t, more); err != nil {
			return fmt.Errorf("the table %s: %w", t.name, err)
		}
	}
	return s.advance(c, more)
}

func shapeOf(c *sqlite.Conn) (*shape, error) {
	s := &shape{}
	err := query(c, `SELECT max(id), count(*) FROM turns`, func(r *sqlite.Stmt) error {
		if s.turn = r.ColumnInt64(0); s.turn != 2 || r.ColumnInt64(1) != 2 {
			return errors.New("the sample must be a store's first two turns")
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = query(c, `SELECT count(*), count(*), sum(length(item)), max(id) - min(id) + 1, sum(pictures)
		FROM nodes WHERE id >= (SELECT id FROM nodes WHERE turn = 2)`, func(r *sqlite.Stmt) error {
		s.nodes, s.depth, s.bytes = r.ColumnInt64(0), r.ColumnInt64(1), r.ColumnInt64(2)
		if s.nodes == 0 || r.ColumnInt64(3) != s.nodes || r.ColumnInt64(4) != 0 {
			return errors.New("the sample's nodes are not one row of plain items")
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = query(c, `SELECT call_id FROM tools WHERE turn = 2 ORDER BY seq`, func(r *sqlite.Stmt) error {
		s.calls = append(s.calls, r.ColumnText(0))
		return nil
	})
	return s, err
}

// table is how the rows of a table are repeated. Columns that are not named
// are copied; ?1 is which repetition it is.
type table struct {
	name, where string
	columns     map[string]string
}

func (s *shape) tables() []table {
	turn := func(column string) string { return column + " + ?1" }
	node := func(column string) string { return fmt.Sprintf("%s + ?1 * %d", column, s.nodes) }
	newest := "(SELECT id FROM nodes WHERE turn = 2)"
	all := []table{
		{"nodes", "id >= " + newest, map[string]string{
			"id": node("id"), "parent": node("parent"), "turn": turn("turn"), "turn_seq": turn("turn_seq"),
			"depth": fmt.Sprintf("depth + ?1 * %d", s.depth), "total_bytes": fmt.Sprintf("total_bytes + ?1 * %d", s.bytes),
			"item": "CAST(" + s.renamed("CAST(item AS TEXT)") + " AS BLOB)",
		}},
		{"turns", "id = 2", map[string]string{
			"id": turn("id"), "request_id": "'filled-' || ?1", "prompt_node": node("prompt_node"),
		}},
		{"checkpoints", "head >= " + newest, map[string]string{"head": node("head")}},
	}
	if len(s.calls) > 0 {
		all = append(all, table{
			"call_ids", "call_id IN (SELECT call_id FROM tools WHERE turn = 2)",
			map[string]string{"call_id": s.renamed("call_id")},
		})
	}
	return all
}

// renamed is an expression that gives each call of a repetition an id of its
// own, as long as the first.
func (s *shape) renamed(text string) string {
	for _, id := range s.calls {
		keep := max(len(id)-8, 0)
		text = fmt.Sprintf("replace(%s, '%s', '%s' || substr(printf('%%08x', ?1), %d))", text, id, id[:keep], 9-(len(id)-keep))
	}
	return text
}

func (s *shape) repeat(c *sqlite.Conn, t table, more int) error {
	var names, values []string
	err := query(c, "SELECT name FROM pragma_table_info('"+t.name+"')", func(r *sqlite.Stmt) error {
		name := r.ColumnText(0)
		value := t.columns[name]
		if value == "" {
			value = `"` + name + `"`
		}
		names, values = append(names, `"`+name+`"`), append(values, value)
		return nil
	})
	if err != nil {
		return err
	}
	for name := range t.columns {
		if !slices.Contains(names, `"`+name+`"`) {
			return fmt.Errorf("it has no column %s", name)
		}
	}
	sample := fmt.Sprintf("CREATE TEMP TABLE sample_%s AS SELECT * FROM %s WHERE %s", t.name, t.name, t.where)
	if err := sqlitex.ExecuteTransient(c, sample, nil); err != nil {
		return err
	}
	insert, err := c.Prepare(fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM sample_%s",
		t.name, strings.Join(names, ", "), strings.Join(values, ", "), t.name))
	if err != nil {
		return err
	}
	for k := 1; k <= more; k++ {
		insert.BindInt64(1, int64(k))
		if _, err := insert.Step(); err != nil {
			return err
		}
		if err := insert.Reset(); err != nil {
			return err
		}
	}
	return nil
}

// advance sets what names the newest of everything.
func (s *shape) advance(c *sqlite.Conn, more int) error {
	for _, text := range []string{
		fmt.Sprintf("UPDATE turn_sequence SET last_id = last_id + %d", more),
		fmt.Sprintf("UPDATE bots SET head = head + %d", int64(more)*s.nodes),
	} {
		if err := sqlitex.ExecuteTransient(c, text, nil); err != nil {
			return err
		}
	}
	return nil
}

func query(c *sqlite.Conn, text string, row func(*sqlite.Stmt) error) error {
	return sqlitex.ExecuteTransient(c, text, &sqlitex.ExecOptions{ResultFunc: row})
}

// copyFile copies a store that nobody has open.
func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
