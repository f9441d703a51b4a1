package story

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/md"
	"agent/protocol"
)

// book is a history of turns of four items each: a message, a reply, a call and its result.
type book struct {
	items []json.RawMessage // of the nodes from 1
	reads int               // how often items were read back
	fails error             // what reading them back comes to
}

// turnItems are the items of a turn; a result says so many bytes.
func turnItems(t *testing.T, turn, bytes int) (list []json.RawMessage) {
	t.Helper()
	call := fmt.Sprint("call", turn)
	for _, item := range []any{
		map[string]any{"role": "user", "text": fmt.Sprintf("message %d\nwith a second line", turn)},
		map[string]any{"role": "assistant", "text": fmt.Sprintf("reply %d, with `code` and\n\n- a list\n- of two", turn)},
		map[string]any{"role": "assistant", "calls": []any{map[string]any{"id": call, "tool": "shell", "arguments": `{"command":"make"}`}}},
		map[string]any{"role": "tool", "id": call, "output": fmt.Sprintf(`{"exit_code":0,"output":"result %d\n%s"}`, turn, strings.Repeat("x", bytes))},
	} {
		data, err := json.Marshal(item)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, data)
	}
	return list
}

func turnOf(node int64) int64 { return (node-1)/4 + 1 }

func (b *book) Part(_ context.Context, from int64, most int) (*Part, error) {
	if from == 0 {
		from = int64(len(b.items))
	}
	p := &Part{items: map[int64]json.RawMessage{}, ends: map[int64]*protocol.Outcome{}}
	first := max(1, from-int64(most)+1)
	for n := first; n <= from; n++ {
		p.nodes = append(p.nodes, protocol.Node{Node: n, Turn: turnOf(n)})
		p.items[n] = b.items[n-1]
		if turn := turnOf(n); len(p.turns) == 0 || p.turns[len(p.turns)-1].Turn != turn {
			p.turns = append(p.turns, protocol.Turn{Turn: turn})
		}
	}
	if next := first - 1; next > 0 {
		p.next = &next
	}
	return p, nil
}

func (b *book) Items(_ context.Context, nodes []int64) (map[int64]json.RawMessage, error) {
	b.reads++
	items := map[int64]json.RawMessage{}
	for _, n := range nodes {
		items[n] = b.items[n-1]
	}
	return items, b.fails
}

// reader reads a story as a screen does, counted in rows above its end.
type reader struct {
	*Story
	t    *testing.T
	all  *cells.Transcript // the same story with all of it kept
	look cells.Look
	h    int
	up   int
}

// frame draws what is in view, and again when what that lacked is there. It must be what
// stands there in the whole story.
func (r *reader) frame() {
	r.t.Helper()
	var got []cells.Row
	for range 3 {
		total := r.tr.Height(r.look)
		r.up = max(0, min(r.up, total-r.h))
		from := max(0, total-r.up-r.h)
		got = r.tr.Rows(r.look, from, total-r.up)
		r.Around(r.look, from, total-r.up)
		if from == 0 {
			r.LoadOlder()
		}
	}
	whole := r.all.Height(r.look)
	for i, want := range r.all.Rows(r.look, max(0, whole-r.up-r.h), whole-r.up) {
		if i >= len(got) || got[i].Line.String() != want.Line.String() {
			r.t.Fatalf("%d rows above the end, row %d is %q, not %q", r.up, i, rowsOf(got), want.Line.String())
		}
	}
	if kept, bytes := r.tr.Kept(); kept > cells.MostCells || bytes > cells.MostBytes {
		r.t.Fatalf("%d rows above the end %d cells of %d bytes are kept", r.up, kept, bytes)
	}
}

func rowsOf(rows []cells.Row) (out []string) {
	for _, row := range rows {
		out = append(out, row.Line.String())
	}
	return out
}

// opens shows a history's end, beside the whole of it.
func opens(t *testing.T, b *book) *reader {
	t.Helper()
	s := &still{}
	r := &reader{Story: New(s, b, cells.New(md.Options{})), t: t, all: cells.New(md.Options{}), look: s.Look(), h: 40}
	whole, _ := b.Part(t.Context(), 0, len(b.items))
	whole.Show(r.all, func(int64) bool { return true })
	r.Load()
	r.frame()
	return r
}

// happens has turns come, with what tells of them.
func (r *reader) happens(b *book, from, to, bytes int) {
	r.t.Helper()
	for turn := from; turn <= to; turn++ {
		for i, item := range turnItems(r.t, turn, bytes) {
			b.items = append(b.items, item)
			node := len(b.items)
			kind := []string{protocol.KindAccepted, protocol.KindMessage, protocol.KindMessage, protocol.KindToolCompleted}[i]
			line := fmt.Sprintf(`{"event":%q,"cursor":%d,"bot":"ada","turn":%d,"data":{"node":%d,"call_id":"call%d"}}`, kind, node, turn, node, turn)
			e, err := protocol.ParseEvent([]byte(line))
			if err != nil {
				r.t.Fatal(err)
			}
			r.Event(e)
			r.all.Item(int64(node), int64(turn), item, cells.About{}, false)
			r.all.Event(e)
		}
	}
}

func TestWhatIsKeptOfALongStory(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		turns int // of which each has four items, and three cells
		bytes int // that a result says
	}{
		{"the cells are bounded", 700, 10},
		{"the bytes are bounded", 250, 48 << 10},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := &book{}
			for turn := range row.turns {
				b.items = append(b.items, turnItems(t, turn+1, row.bytes)...)
			}
			r := opens(t, b)
			top := r.all.Height(r.look) - r.h
			for r.up < top {
				r.up += 35
				r.frame()
			}
			if !r.IsWhole() || r.Items() != 4*row.turns {
				t.Fatalf("at the top %d items are known, whole %v", r.Items(), r.IsWhole())
			}
			up := b.reads
			r.happens(b, row.turns+1, row.turns+100, row.bytes)
			b.reads = 0
			r.up = r.all.Height(r.look) - r.h
			r.frame()
			for r.up > 0 {
				r.up -= 35
				r.frame()
			}
			most := 3*row.turns/100 + row.turns*row.bytes>>20 + 5
			if up > most || b.reads < 5 || b.reads > most {
				t.Errorf("items were read back %d times on the way up and %d times down, of at most %d", up, b.reads, most)
			}
			for _, leap := range []int{top, 0, top / 2, top / 3, 0} {
				r.up = leap
				r.frame()
			}
		})
	}
}

func TestAStoryThatGrowsIsBoundedWhereItIsFollowed(t *testing.T) {
	t.Parallel()
	b := &book{items: turnItems(t, 1, 10)}
	r := opens(t, b)
	for turn := 2; turn < 1000; turn += 10 {
		r.happens(b, turn, turn+9, 10)
		r.frame()
	}
	if !r.tr.Folds() || b.reads > 4*1000 {
		t.Errorf("nothing is folded, or %d reads", b.reads)
	}
	r.up = r.all.Height(r.look)
	r.frame()
	if first := r.tr.At(0); first.Kind != cells.User || !strings.Contains(first.Text, "message 1") {
		t.Errorf("at the top is %+v", first)
	}
}

func TestARangeThatCannotBeReadIsReadWhenTheViewMoves(t *testing.T) {
	t.Parallel()
	b := &book{}
	for turn := range 1000 {
		b.items = append(b.items, turnItems(t, turn+1, 10)...)
	}
	r := opens(t, b)
	for !r.IsWhole() {
		r.up += 1000
		r.frame()
	}
	r.up /= 2
	r.frame()
	b.fails, b.reads = protocol.Fail(protocol.StorageError, "it is not there"), 0
	total := r.tr.Height(r.look)
	for range 5 {
		r.Around(r.look, 0, r.h)
	}
	if b.reads != 1 {
		t.Errorf("it was read %d times while nothing changed", b.reads)
	}
	b.fails = nil
	r.Around(r.look, 1, r.h+1)
	if rows := rowsOf(r.tr.Rows(r.look, 0, r.h)); !slices.ContainsFunc(rows, func(s string) bool { return strings.Contains(s, "message 1") }) || r.tr.Height(r.look) != total {
		t.Errorf("after it moved there is %q", rows)
	}
}
