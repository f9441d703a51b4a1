package store

import (
	"fmt"
	"strings"
	"testing"

	"agent/protocol"
)

// sql runs statements in one job.
func (s *Store) sql(t *testing.T, text string) {
	t.Helper()
	if err := s.Do("test", func(tx *Tx) error { return script(tx.Conn(), text) }); err != nil {
		t.Fatal(err)
	}
}

func (s *Store) count(t *testing.T, table string) (n int64) {
	t.Helper()
	n, err := integer(s.readers.free[0].conn, &query{"SELECT count(*) FROM " + table})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (s *Store) counts(t *testing.T, tables ...string) (sum int64) {
	t.Helper()
	for _, table := range tables {
		sum += s.count(t, table)
	}
	return sum
}

// newBots makes idle bots, with ids from 1.
func newBots(t *testing.T, s *Store, names ...string) {
	t.Helper()
	err := s.Do("test", func(tx *Tx) error {
		for _, name := range names {
			if err := tx.InsertBot(&Bot{Name: name, Provider: "p", Family: "scripted", Model: "m", Tools: []string{}}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

const numbers = `CREATE TEMP TABLE n AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500) SELECT i FROM n;`

// bigTurn gives Ada one turn whose records take several pieces.
const bigTurn = numbers + `
INSERT INTO turns (id, bot, request_id, prompt, status, delivery) VALUES (1, 'Ada', 'r', '', 'completed', 'reject');
INSERT INTO retained_turns VALUES (1, 'Ada');
INSERT INTO events (bot, turn, kind, data) SELECT 'Ada', 1, 'message', '{}' FROM n;
INSERT INTO events (bot, kind, data) SELECT 'Ada', 'configured', '{}' FROM n WHERE i <= 1500;
INSERT INTO tools SELECT 1, 'c' || i, 'shell', i, 'completed', NULL, NULL, NULL FROM n WHERE i <= 1200;
INSERT INTO artifacts (turn, call_id, stream, raw_bytes, data) SELECT 1, 'c' || i, 'stdout', 1048576, zeroblob(1048576) FROM n WHERE i <= 40;
INSERT INTO artifacts (turn, call_id, stream, raw_bytes, file) VALUES (1, 'c', 'stdout', 2000000, '1/x');
INSERT INTO processes (bot_id, turn, call_id, status) SELECT 1, 1, 'c' || i, 'done' FROM n WHERE i <= 1100;
INSERT INTO seen_files SELECT 'Ada', '/f' || i, 1, 1, 1, i, x'00' FROM n WHERE i <= 1024;
DROP TABLE n;`

var recordTables = []string{"events", "tools", "artifacts", "processes"}

func TestPieces(t *testing.T) {
	t.Run("a turn larger than a piece takes several, each within its bounds", func(t *testing.T) {
		s := mustOpen(t, Options{Path: storePath(t)})
		newBots(t, s, "Ada")
		s.sql(t, bigTurn)
		own := s.count(t, "events") - 1500
		pieces, events, files := 0, int64(0), 0
		for more := true; more; pieces++ {
			before, kept := s.counts(t, recordTables...), s.count(t, "artifacts")
			err := s.Do("prune", func(tx *Tx) error {
				p, err := tx.PruneTurns("Ada", 0, 0)
				more, events, files = p.More, events+p.Events, files+len(p.Files)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if gone := before - s.counts(t, recordTables...); gone > 1000 || gone == 0 && more {
				t.Fatalf("piece %d removed %d rows", pieces, gone)
			}
			if gone := kept - s.count(t, "artifacts"); gone > 17 {
				t.Fatalf("piece %d removed %d artifacts", pieces, gone)
			}
		}
		if pieces < 6 || events != own || files != 1 || s.count(t, "retained_turns") != 0 || s.counts(t, recordTables...) != 1500 {
			t.Errorf("%d pieces, %d events, %d files, %d rows left", pieces, events, files, s.counts(t, recordTables...))
		}
	})
	t.Run("turns whose commands run are passed over, however many lead the line", func(t *testing.T) {
		s := mustOpen(t, Options{Path: storePath(t)})
		newBots(t, s, "Ada")
		s.sql(t, numbers+`
			INSERT INTO turns (id, bot, request_id, prompt, status, delivery) SELECT i, 'Ada', 'r' || i, '', 'completed', 'reject' FROM n WHERE i <= 9;
			INSERT INTO retained_turns SELECT id, bot FROM turns;
			INSERT INTO processes (bot_id, turn, call_id, status) SELECT 1, id, 'c', 'running' FROM turns WHERE id <= 6;
			DROP TABLE n;`)
		err := s.Do("prune", func(tx *Tx) error {
			p, err := tx.PruneTurns("Ada", 0, 0)
			if p.More {
				t.Error("more is left, it says")
			}
			return err
		})
		if err != nil || s.count(t, "retained_turns") != 6 {
			t.Errorf("%v, %d turns keep their records", err, s.count(t, "retained_turns"))
		}
	})
	t.Run("a deletion keeps to the same bounds and counts what went", func(t *testing.T) {
		s := mustOpen(t, Options{Path: storePath(t)})
		newBots(t, s, "Ada")
		s.sql(t, bigTurn)
		s.sql(t, numbers+`
			INSERT INTO nodes (id, parent, depth, total_bytes, item) SELECT i, nullif(i - 1, 0), i, i, x'7b7d' FROM n;
			INSERT INTO call_ids SELECT 1, 'c' || i, i FROM n;
			INSERT INTO notes SELECT i, nullif(i - 1, 0), 'x' FROM n;
			INSERT INTO checkpoints SELECT 'Ada', i FROM n WHERE i <= 1200;
			UPDATE bots SET head = 2500, note = 2500, context_start = 7;
			DROP TABLE n;`)
		all := append([]string{"nodes", "checkpoints", "seen_files", "turns"}, recordTables...)
		want := DeletedPiece{Turns: 1, Events: s.count(t, "events"), Nodes: 2500}
		if err := s.Do("delete", func(tx *Tx) error { return tx.BeginDelete(1) }); err != nil {
			t.Fatal(err)
		}
		var sum DeletedPiece
		for pieces := 0; !sum.Gone; pieces++ {
			before := s.counts(t, all...)
			err := s.Do("delete", func(tx *Tx) error {
				b, _, err := BotByID(tx.Conn(), 1)
				if err != nil {
					return err
				}
				d, err := tx.DeletePiece(&b)
				sum.Turns, sum.Events, sum.Nodes, sum.Gone = sum.Turns+d.Turns, sum.Events+d.Events, sum.Nodes+d.Nodes, d.Gone
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if gone := before - s.counts(t, all...); gone > 1000 || gone == 0 && !sum.Gone {
				t.Fatalf("piece %d removed %d rows", pieces, gone)
			}
		}
		if sum.Turns != want.Turns || sum.Events != want.Events || sum.Nodes != want.Nodes || s.counts(t, append(all, "bots", "call_ids", "notes")...) != 0 {
			t.Errorf("%+v, want %+v; %d rows left", sum, want, s.counts(t, append(all, "bots", "call_ids", "notes")...))
		}
		if n := s.count(t, "node_sequence WHERE last_id = 2500"); n != 1 {
			t.Error("the highest node id is forgotten")
		}
	})
	t.Run("pictures and nodes that another bot has stay", func(t *testing.T) {
		s := mustOpen(t, Options{Path: storePath(t)})
		newBots(t, s, "Ada", "Bob")
		s.sql(t, `
			INSERT INTO nodes (id, parent, depth, total_bytes, pictures, item) VALUES (1, NULL, 1, 1, 0, x'7b7d'), (2, 1, 2, 1, 1, x'7b7d'), (3, 2, 3, 1, 2, x'7b7d'), (4, 3, 4, 1, 0, x'7b7d');
			INSERT INTO pictures VALUES (x'01', 'image/png', 1, 1, x'00'), (x'02', 'image/png', 1, 1, x'00');
			INSERT INTO node_pictures (node, hash) VALUES (2, x'01'), (3, x'01'), (3, x'02');
			UPDATE bots SET head = 4 WHERE id = 1; UPDATE bots SET head = 2 WHERE id = 2;`)
		err := s.Do("delete", func(tx *Tx) error {
			if err := tx.BeginDelete(1); err != nil {
				return err
			}
			b, _, err := BotByID(tx.Conn(), 1)
			if err != nil {
				return err
			}
			d, err := tx.DeletePiece(&b)
			if !d.Gone || d.Nodes != 2 {
				t.Errorf("piece %+v", d)
			}
			return err
		})
		if err != nil || s.count(t, "nodes") != 2 || s.count(t, "pictures") != 1 || s.count(t, "node_pictures") != 1 {
			t.Errorf("%v: %d nodes, %d pictures", err, s.count(t, "nodes"), s.count(t, "pictures"))
		}
	})
}

func TestStretches(t *testing.T) {
	s := mustOpen(t, Options{Path: storePath(t)})
	newBots(t, s, "A", "B", "C", "D", "E")
	s.sql(t, numbers+`INSERT INTO nodes (id, parent, depth, total_bytes, item) SELECT i, nullif(i - 1, 0), i, i, x'7b7d' FROM n WHERE i <= 100;
		INSERT INTO call_ids SELECT 1, 'a' || i, i FROM n WHERE i <= 20;
		INSERT INTO call_ids SELECT 2, 'b' || i, i FROM n WHERE i BETWEEN 21 AND 30;
		INSERT INTO call_ids SELECT 3, 'c' || i, i FROM n WHERE i BETWEEN 31 AND 40;
		DROP TABLE n;`)
	// A wrote 1 to 20, of which B took 10 and went on with 21 to 30, of which C
	// took 25 and went on with 31 to 40.
	err := s.Do("test", func(tx *Tx) error {
		for _, f := range []struct{ fork, source, node int64 }{{2, 1, 10}, {3, 2, 25}, {4, 3, 25}, {5, 3, 7}} {
			if err := tx.Inherit(f.fork, f.source, f.node); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	c := s.readers.free[0].conn
	for _, row := range []struct {
		bot  int64
		has  string
		lack string
	}{
		{1, "a1 a20", "b21 c31"},
		{2, "a1 a10 b21 b30", "a11 c31"},
		{3, "a10 b21 b25 c31 c40", "a11 b26"},
		{4, "a10 b21 b25", "a11 b26 c31"},
		{5, "a1 a7", "a8 b21 c31"},
	} {
		for i, list := range []string{row.has, row.lack} {
			for _, id := range strings.Fields(list) {
				t.Run(fmt.Sprintf("bot %d has call %s: %v", row.bot, id, i == 0), func(t *testing.T) {
					taken, err := CallIDTaken(c, row.bot, id)
					if err != nil || taken != (i == 0) {
						t.Errorf("%v, %v", taken, err)
					}
				})
			}
		}
	}
	t.Run("a setting of the wrong form fails the operation that meets it", func(t *testing.T) {
		s.sql(t, `UPDATE bots SET settings = '[' WHERE id = 1`)
		_, _, err := BotByID(c, 1)
		wantCode(t, err, protocol.StoreRowInvalid)
	})
}
