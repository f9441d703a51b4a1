package store

import (
	"encoding/json"
	"strings"
	"testing"

	"agent/protocol"
)

// lineageOf makes a bot and a chain of nodes, every second with a stub.
func lineageOf(t *testing.T, s *Store, name string, n int) (bot int64, nodes []int64) {
	t.Helper()
	err := s.Do("lineage", func(tx *Tx) error {
		nodes = nil
		b := &Bot{Name: name, Provider: "p", Family: "chat", Model: "m", Tools: []string{}}
		if err := tx.InsertBot(b); err != nil {
			return err
		}
		bot = b.ID
		head := int64(0)
		for i := range n {
			node := NewNode{Item: []byte(`"` + strings.Repeat("x", 3000) + `"`)}
			if i%2 == 1 {
				node.Stub = func(int64) []byte { return []byte(`"short"`) }
			}
			id, err := tx.AppendNode(head, node)
			if err != nil {
				return err
			}
			head = id
			nodes = append(nodes, id)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return bot, nodes
}

func TestStubs(t *testing.T) {
	s := mustOpen(t, Options{Path: storePath(t)})
	_, nodes := lineageOf(t, s, "Ada", 6)
	err := s.Do("look", func(tx *Tx) error {
		c := tx.Conn()
		id, err := tx.AppendNode(nodes[5], NewNode{Item: []byte(`"` + strings.Repeat("y", 1020) + `"`), Stub: func(int64) []byte { return []byte(`"y"`) }})
		if err != nil {
			return err
		}
		last, _, err := NodeByID(c, id)
		if err != nil {
			return err
		}
		if _, ok, _ := StubOf(c, nil, id); ok || last.Elided != 0 || last.TotalElided != 3*2995 {
			t.Errorf("a stub that saves 1,019 bytes: kept %v, %+v", ok, last)
		}
		stub, ok, err := StubOf(c, nil, nodes[3])
		if n, _, _ := NodeByID(c, nodes[3]); !ok || string(stub) != `"short"` || n.Elided != 2995 || n.TotalElided != 2*2995 {
			t.Errorf("stub %s, node %+v", stub, n)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestVersions(t *testing.T) {
	s := mustOpen(t, Options{Path: storePath(t)})
	bot, nodes := lineageOf(t, s, "Ada", 6)
	other, _ := lineageOf(t, s, "Bob", 1)
	do := func(f func(tx *Tx) error) error { return s.Do("version", f) }
	move := func(bot, current, head, through int64) (previous int64, err error) {
		err = do(func(tx *Tx) (err error) { previous, err = tx.MoveFloor(bot, current, head, through, 100); return err })
		return previous, err
	}
	summarize := func(current, head, cut int64) (previous int64, err error) {
		k := &Compaction{Node: head, Cut: cut, CoveredFrom: 1, CoveredTo: 1, Summary: "s", Prompts: json.RawMessage(`[]`)}
		err = do(func(tx *Tx) (err error) { previous, err = tx.Compact(bot, current, cut, k); return err })
		return previous, err
	}
	for _, step := range []struct {
		name string
		run  func() (int64, error)
		want int64
		code protocol.Code
	}{
		{"the first floor has none before it", func() (int64, error) { return move(bot, 0, nodes[2], nodes[1]) }, 0, ""},
		{"a floor at another head is a version after it", func() (int64, error) { return move(bot, nodes[2], nodes[4], nodes[3]) }, nodes[2], ""},
		{"one at the same head extends it and keeps what came before", func() (int64, error) { return move(bot, nodes[4], nodes[4], nodes[4]) }, nodes[2], ""},
		{"the first summary has none before it", func() (int64, error) { return summarize(0, nodes[2], nodes[1]) }, 0, ""},
		{"a summary at another head is a version after it", func() (int64, error) { return summarize(nodes[2], nodes[4], nodes[2]) }, nodes[2], ""},
		{"one at the same head extends it", func() (int64, error) { return summarize(nodes[4], nodes[4], nodes[3]) }, nodes[2], ""},
		{"another bot comes to see both", func() (int64, error) {
			return 0, do(func(tx *Tx) error {
				return script(tx.Conn(), `UPDATE bots SET elision = (SELECT elision FROM bots WHERE name = 'Ada'),
					compaction = (SELECT compaction FROM bots WHERE name = 'Ada') WHERE name = 'Bob'`)
			})
		}, 0, ""},
		{"a floor another bot sees is not extended", func() (int64, error) { return move(bot, nodes[4], nodes[4], nodes[5]) }, 0, protocol.ElisionVersionShared},
		{"nor by that one", func() (int64, error) { return move(other, nodes[4], nodes[4], nodes[5]) }, 0, protocol.ElisionVersionShared},
		{"a summary another bot sees is not extended", func() (int64, error) { return summarize(nodes[4], nodes[4], nodes[4]) }, 0, protocol.CompactionVersionShared},
		{"but both go on at a new head", func() (int64, error) { return move(bot, nodes[4], nodes[5], nodes[5]) }, nodes[4], ""},
	} {
		got, err := step.run()
		if got != step.want || protocol.CodeOf(err) != step.code {
			t.Errorf("%s: previous %d, error %v", step.name, got, err)
		}
	}
	if err := do(func(tx *Tx) error {
		c := tx.Conn()
		e, err := ElisionByNode(c, nodes[4])
		if err != nil || e.Through != nodes[4] || e.Saved != 200 || e.Previous != nodes[2] {
			t.Errorf("elision %+v, %v", e, err)
		}
		k, err := CompactionByNode(c, nodes[4])
		if err != nil || k.Cut != nodes[3] || k.Summary != "" || k.Previous != nodes[2] {
			t.Errorf("compaction %+v, %v", k, err)
		}
		if err := k.Texts(c); err != nil || k.Summary != "s" || string(k.Prompts) != "[]" {
			t.Errorf("texts %+v, %v", k, err)
		}
		b, _, err := BotByID(c, bot)
		if b.ContextStart != nodes[3] || b.Compaction != nodes[4] || b.Elision != nodes[5] {
			t.Errorf("bot %+v", b)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

func TestThinkingWithout(t *testing.T) {
	th := Thinking{Below: 5, From: 8, To: 10}
	for node, want := range map[int64]bool{4: true, 5: false, 7: false, 8: true, 10: true, 11: false} {
		if got := th.Without(node); got != want {
			t.Errorf("node %d goes without its thinking: %v", node, got)
		}
	}
	if none := (Thinking{}); none.Without(1) {
		t.Error("nothing is bound and a node goes without")
	}
}
