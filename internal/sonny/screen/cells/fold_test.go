package cells

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"agent/internal/sonny/screen/md"
)

// long is a transcript of so many turns of a message and a reply, with the item of each.
func long(t *testing.T, turns int) (tr *Transcript, items []json.RawMessage) {
	t.Helper()
	tr = New(md.Options{})
	for i := range 2 * turns {
		items = append(items, itemOf(t, map[string]any{"role": []string{"user", "assistant"}[i%2], "text": fmt.Sprintf("text %d", i+1)}))
		tr.Item(int64(i+1), int64(i/2+1), items[i], About{}, false)
	}
	return tr, items
}

func itemOf(t *testing.T, v any) json.RawMessage {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// reread is a range read again.
func reread(tr *Transcript, c *Cell, items []json.RawMessage) *Transcript {
	from, before, _ := c.Range()
	out := tr.Like()
	for n := from; n < before; n++ {
		out.Item(n, (n-1)/2+1, items[n-1], About{}, false)
	}
	return out
}

func shown(tr *Transcript, l Look) (out []string) {
	for _, r := range tr.Rows(l, 0, tr.Height(l)) {
		out = append(out, r.Line.String())
	}
	return out
}

func TestWhatIsFoldedIsThereAgainAsItWas(t *testing.T) {
	t.Parallel()
	look := Look{Width: 60, Fold: DefaultFold(), All: true}
	tr, items := long(t, 1000)
	tr.Used(5, "used 7 tokens")
	tr.cells = slices.Insert(tr.cells, 100, &Cell{Kind: Notice, Text: "a notice"})
	was, height := shown(tr, look), tr.Height(look)
	tr.Fold(look, height-40, height)
	if kept, _ := tr.Kept(); kept > MostCells || !tr.Folds() || tr.Height(look) != height {
		t.Fatalf("%d cells are kept in %d rows of %d", kept, tr.Height(look), height)
	}
	if !slices.Contains(shown(tr, look), "a notice") {
		t.Error("the notice, which cannot be read again, is gone")
	}
	if narrow := (Look{Width: 30, Fold: DefaultFold(), All: true}); tr.Height(narrow) < height {
		t.Errorf("narrower, it has %d rows, which were %d", tr.Height(narrow), height)
	}
	for c := tr.FoldedAt(3); c != nil; c = tr.Folded(look, 0, tr.Height(look)) {
		tr.Unfold(c, reread(tr, c, items))
	}
	if now := shown(tr, look); !slices.Equal(now, was) {
		t.Errorf("%d rows, which were %d; at the top are %q", len(now), len(was), now[:12])
	}
}

func TestWhatIsNeverFolded(t *testing.T) {
	t.Parallel()
	look := Look{Width: 60, Fold: DefaultFold()}
	tr := New(md.Options{})
	call := func(node int64, id, name string) json.RawMessage {
		return itemOf(t, map[string]any{"role": "assistant", "text": "before " + id, "calls": []any{map[string]any{"id": id, "tool": name, "arguments": "{}"}}})
	}
	result := func(id string) json.RawMessage {
		return itemOf(t, map[string]any{"role": "tool", "id": id, "output": "{}"})
	}
	tr.Item(1, 1, call(1, "done", "shell"), About{}, false)
	tr.Item(2, 1, result("done"), About{}, false)
	tr.Item(3, 1, call(3, "waits", "shell"), About{}, false)
	_, items := long(t, 1000)
	for i, item := range items {
		tr.Item(int64(10+i), 2, item, About{}, false)
	}
	height := tr.Height(look)
	tr.Fold(look, height-40, height)

	if tr.Call("done") != nil {
		t.Error("the call that has ended is kept")
	}
	if tr.Call("waits") == nil {
		t.Fatal("a call that has not ended is let go")
	}
	// Its item is that of the reply before it, too: of that nothing would be read again.
	if !slices.ContainsFunc(tr.cells, func(c *Cell) bool { return c.Kind == Reply && strings.Contains(c.Words(), "before waits") }) {
		t.Error("what its item says beside it is let go")
	}
	if c := tr.FoldedAt(2); c == nil || tr.FoldedAt(3) != nil {
		t.Errorf("ranges: %+v and %+v", c, tr.FoldedAt(3))
	}
}

func TestReadsThatJoinAreFoldedWithTheRunThatTheyAreIn(t *testing.T) {
	t.Parallel()
	look := Look{Width: 60, Fold: DefaultFold()}
	tr := New(md.Options{})
	for i, id := range []string{"one", "two"} {
		calls := []any{map[string]any{"id": id, "tool": "read", "arguments": `{"path":"` + id + `"}`}}
		if id == "two" { // the item of a read that joins has a call of another kind
			calls = append(calls, map[string]any{"id": "other", "tool": "shell", "arguments": "{}"})
		}
		tr.Item(int64(2*i+1), 1, itemOf(t, map[string]any{"role": "assistant", "calls": calls}), About{}, false)
		tr.Item(int64(2*i+2), 1, itemOf(t, map[string]any{"role": "tool", "id": id, "output": "{}"}), About{}, false)
	}
	_, items := long(t, 1000)
	for i, item := range items {
		tr.Item(int64(10+i), 2, item, About{}, false)
	}
	height := tr.Height(look)
	tr.Fold(look, height-40, height) // the call of the other kind has not ended: it stays
	if tr.Call("other") == nil || tr.Call("one") == nil || tr.Call("two") == nil {
		t.Error("a part of an item is folded, and the rest is not")
	}
}

func TestWhatIsPrintedIsFoldedWhenItWasTaken(t *testing.T) {
	t.Parallel()
	look := Look{Width: 60, Fold: DefaultFold()}
	tr, _ := long(t, 2000)
	over := func(turn int64) bool { return turn <= 1900 }
	tr.Take(over)
	tr.FoldTaken(look)
	if kept, _ := tr.Kept(); kept > MostCells {
		t.Errorf("%d cells are kept", kept)
	}
	if more := tr.Take(over); len(more) != 0 {
		t.Errorf("%d pieces are given twice", len(more))
	}
	tr.Item(9001, 3000, itemOf(t, map[string]any{"role": "assistant", "calls": []any{map[string]any{"id": "waits", "tool": "shell", "arguments": "{}"}}}), About{}, false)
	for n := range int64(1500) {
		tr.Item(9003+n, 3000, itemOf(t, map[string]any{"role": "user", "text": "behind it"}), About{}, false)
	}
	tr.FoldTaken(look)
	tr.Fold(look, 0, 40) // the reader, at its top
	tr.Item(9002, 3000, itemOf(t, map[string]any{"role": "tool", "id": "waits", "output": "{}"}), About{}, false)
	if more := tr.Take(over); len(more) != 1501 {
		t.Errorf("of 1501 pieces %d are given later", len(more))
	}
}
