package store

import (
	"fmt"
	"testing"
)

// A source of 300 turns with 10 items each, a fork at the 200th turn, and its
// own 100 turns. Pages of a lineage are found from turns near them.
func TestAboveIsNearItsPage(t *testing.T) {
	const perTurn = 10
	s := mustOpen(t, Options{Path: storePath(t)})
	newBots(t, s, "Ada", "Eve")
	lines := map[string][]int64{} // each bot's lineage, oldest first
	grow := func(tx *Tx, name string, turns int) error {
		bot, _, err := BotByName(tx.Conn(), name)
		if err != nil {
			return err
		}
		line := lines[name]
		for range turns {
			turn := &Turn{Bot: name, RequestID: fmt.Sprint("r", len(line)), Status: "queued", Delivery: "reject"}
			if err := tx.InsertTurn(turn); err != nil {
				return err
			}
			for i := range perTurn {
				n := NewNode{Item: []byte(`{"role":"user","text":"x"}`)}
				if i == 0 {
					n.Turn, n.TurnSeq = turn.ID, int64(len(line)/perTurn+1)
				}
				parent := int64(0)
				if len(line) > 0 {
					parent = line[len(line)-1]
				}
				node, err := tx.AppendNode(parent, n)
				if err != nil {
					return err
				}
				line = append(line, node)
			}
		}
		lines[name] = line
		return script(tx.Conn(), fmt.Sprintf("UPDATE bots SET head = %d WHERE id = %d", line[len(line)-1], bot.ID))
	}
	err := s.Do("test", func(tx *Tx) error {
		if err := grow(tx, "Ada", 200); err != nil {
			return err
		}
		point := lines["Ada"][len(lines["Ada"])-1]
		if err := tx.Inherit(2, 1, point); err != nil {
			return err
		}
		lines["Eve"] = append([]int64(nil), lines["Ada"]...)
		if err := grow(tx, "Eve", 100); err != nil {
			return err
		}
		return grow(tx, "Ada", 100)
	})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Read(t.Context(), "test", func(r *Reader) error {
		c := r.Conn()
		for name, line := range lines {
			bot, _, err := BotByName(c, name)
			if err != nil {
				return err
			}
			for _, at := range []int{0, 1, 555, 1990, 1999, 2000, 2001, 2400, len(line) - 50, len(line) - 1} {
				for _, count := range []int64{1, 9, 10, 400} {
					above, err := Above(c, &bot, line[at], count)
					if err != nil {
						return err
					}
					n, _, err := NodeByID(c, above)
					if err != nil {
						return err
					}
					far := n.Depth - 1 - int64(at)
					if above != bot.Head && (line[n.Depth-1] != above || far < count || far >= count+perTurn) {
						t.Errorf("%s: %d above item %d it found node %d, %d above", name, count, at, above, far)
					}
					if room := int64(len(line) - 1 - at); above == bot.Head && room >= count+perTurn {
						t.Errorf("%s: %d above item %d it found none though %d lie there", name, count, at, room)
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("a node of another's branch is on nobody else's lineage, an inherited one is", func(t *testing.T) {
		err := s.Read(t.Context(), "test", func(r *Reader) error {
			for name, line := range lines {
				bot, _, err := BotByName(r.Conn(), name)
				if err != nil {
					return err
				}
				own := map[int64]bool{}
				for _, node := range line {
					own[node] = true
				}
				for node := int64(1); node < 4010; node += 7 {
					if ok, err := OnLineage(t.Context(), r.Conn(), &bot, node); err != nil || ok != own[node] {
						t.Errorf("%s and node %d: %v %v", name, node, ok, err)
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
