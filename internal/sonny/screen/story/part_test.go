package story

import (
	"encoding/json"
	"testing"

	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/md"
	"agent/protocol"
)

// The store counts the turns of all bots.
func TestTheTurnsOfABotAreItsOwn(t *testing.T) {
	t.Parallel()
	older := int64(3)
	for _, row := range []struct {
		part  *Part
		turns int
		whole bool
	}{
		{&Part{}, 0, true},
		{&Part{nodes: []protocol.Node{{Node: 9, Turn: 45}}, turns: []protocol.Turn{{Turn: 45}}}, 1, true},
		{&Part{nodes: []protocol.Node{{Node: 9, Turn: 45}}, turns: []protocol.Turn{{Turn: 45}, {Turn: 47}}, next: &older}, 2, false},
	} {
		s := New(&still{}, nil, cells.New(md.Options{}))
		s.Fill(row.part)
		if s.Turns() != row.turns || s.IsWhole() != row.whole || !s.IsLoaded() {
			t.Errorf("%+v: %d turns, whole %v", row.part, s.Turns(), s.IsWhole())
		}
	}
}

// A turn of which the newest items were loaded with the part before has its end there.
func TestATurnInTwoPartsEndsOnce(t *testing.T) {
	t.Parallel()
	p := &Part{items: map[int64]json.RawMessage{}, ends: map[int64]*protocol.Outcome{}}
	for n := range int64(4) {
		p.nodes = append(p.nodes, protocol.Node{Node: n + 1, Turn: n/2 + 1})
		p.items[n+1], _ = json.Marshal(map[string]any{"role": "assistant", "text": "words"})
	}
	for turn := range int64(2) {
		code, detail := protocol.Code("provider_http_500"), "it fails"
		p.ends[turn+1] = &protocol.Outcome{Turn: turn + 1, Status: protocol.StatusFailed, Error: &code, Detail: &detail}
	}
	tr := cells.New(md.Options{})
	p.Show(tr, func(turn int64) bool { return turn != 2 })
	var kinds []cells.Kind
	for i := range tr.Len() {
		kinds = append(kinds, tr.At(i).Kind)
	}
	want := []cells.Kind{cells.Reply, cells.Reply, cells.Error, cells.Reply, cells.Reply}
	if len(kinds) != len(want) || kinds[2] != cells.Error {
		t.Errorf("%v, wanted %v", kinds, want)
	}
}
