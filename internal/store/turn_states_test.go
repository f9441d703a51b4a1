package store

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"agent/protocol"
)

// The table of runtime.md 4: what a turn may become, by state; "" is no turn.
var turnTable = map[string]string{
	"":            "running ready queued",
	"queued":      "ready running failed interrupted steered",
	"ready":       "running failed interrupted",
	"running":     "waiting paced completed failed interrupted",
	"waiting":     "running completed failed interrupted",
	"paced":       "running completed failed interrupted",
	"completed":   "",
	"failed":      "",
	"interrupted": "",
	"steered":     "",
}

// TestTurnStates tries every way a turn can be moved, from every state to every
// state, against the table.
func TestTurnStates(t *testing.T) {
	s := mustOpen(t, Options{Path: storePath(t)})
	newBots(t, s, "Ada")
	moves := map[string]func(tx *Tx, id int64, to string) error{
		"start":   func(tx *Tx, id int64, to string) error { return only(to, "running", tx.StartTurn(id, 1)) },
		"promote": func(tx *Tx, id int64, to string) error { return only(to, "ready", tx.PromoteTurn(id)) },
		"drop":    func(tx *Tx, id int64, to string) error { return tx.DropTurn(id, to, 1) },
		"absorb":  func(tx *Tx, id int64, to string) error { return only(to, "steered", tx.AbsorbTurn(id, 1, 1, 1)) },
		"park": func(tx *Tx, id int64, to string) error {
			return tx.ParkTurn(id, to, json.RawMessage(`{"kind":"wait"}`), 0, 0)
		},
		"resume": func(tx *Tx, id int64, to string) error { return only(to, "running", tx.ResumeTurn(id, 0)) },
		"end":    func(tx *Tx, id int64, to string) error { return tx.EndTurn(id, to, 1, 0, 0) },
	}
	for from, all := range turnTable {
		for to := range turnTable {
			if to == "" {
				continue
			}
			if from == "" {
				err := s.Do("test", func(tx *Tx) error {
					return tx.InsertTurn(&Turn{Bot: "Ada", RequestID: "new " + to, Status: to, Delivery: "queue"})
				})
				if allowed := slices.Contains(strings.Fields(all), to); (err == nil) != allowed {
					t.Errorf("a turn made %s: %v, in the table: %v", to, err, allowed)
				}
				continue
			}
			var did []string
			for name, move := range moves {
				if s.moves(t, move, from, to) {
					did = append(did, name)
				}
			}
			if allowed := slices.Contains(strings.Fields(all), to); allowed != (len(did) == 1) || len(did) > 1 {
				t.Errorf("%s to %s: by %v, in the table: %v", from, to, did, allowed)
			}
		}
	}
}

// only makes a move count for the one state that it leads to.
func only(to, leads string, err error) error {
	if to != leads {
		return fmt.Errorf("it leads to %s", leads)
	}
	return err
}

// moves reports whether a turn in one state comes into another by a move. What
// is refused leaves the turn as it was.
func (s *Store) moves(t *testing.T, move func(*Tx, int64, string) error, from, to string) bool {
	t.Helper()
	s.sql(t, `DELETE FROM turns WHERE id = 9000; INSERT INTO turns (id, bot, request_id, prompt, status, delivery)
		VALUES (9000, 'Ada', 'r', '', '`+from+`', 'queue');`)
	err := s.Do("test", func(tx *Tx) error { return move(tx, 9000, to) })
	turn, _, rerr := TurnByID(s.readers.free[0].conn, 9000)
	if rerr != nil {
		t.Fatal(rerr)
	}
	want := from
	if err == nil {
		want = to
	} else if code := protocol.CodeOf(err); code != "" && code != protocol.StoreRowInvalid {
		t.Errorf("%s to %s: %v", from, to, err)
	}
	if turn.Status != want {
		t.Errorf("%s to %s: %v, and the turn is %s", from, to, err, turn.Status)
	}
	return err == nil
}

// TestCallStates: a call runs once and is answered once.
func TestCallStates(t *testing.T) {
	s := mustOpen(t, Options{Path: storePath(t)})
	newBots(t, s, "Ada")
	for from, want := range map[string][2]bool{"planned": {true, true}, "executing": {false, true}, "completed": {false, false}} {
		for i, move := range []func(*Tx) error{
			func(tx *Tx) error { return tx.ExecuteCall(1, "c") },
			func(tx *Tx) error { return tx.AnswerCall(1, "c") },
		} {
			s.sql(t, `DELETE FROM tools; INSERT INTO tools (turn, call_id, name, seq, status) VALUES (1, 'c', 'echo', 0, '`+from+`');`)
			if err := s.Do("test", move); (err == nil) != want[i] {
				t.Errorf("move %d of a call that is %s: %v", i, from, err)
			}
		}
	}
}
