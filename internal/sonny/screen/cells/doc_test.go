package cells

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"agent/internal/sonny/screen/md"
)

// replied is a transcript of so many replies, each of a few blocks.
func replied(replies int) *Transcript {
	tr := New(md.Options{Links: true, Colour: true})
	for n := range replies {
		words := fmt.Sprintf("Number %d of *them*.\n\n```go\nvar a = %d\n```\n\n- one\n- two [here](https://example.com/%d)\n", n, n, n)
		item, _ := json.Marshal(map[string]any{"role": "assistant", "text": words})
		tr.Item(int64(n+1), int64(n+1), item, About{}, false)
	}
	return tr
}

func textOf(rows []Row) string {
	var b strings.Builder
	for _, r := range rows {
		b.WriteString(r.Line.String() + "\n")
	}
	return b.String()
}

// awake counts the replies that are laid out.
func awake(tr *Transcript) (n int) {
	for _, c := range tr.cells {
		if c.Kind == Reply && c.doc.md != nil {
			n++
		}
	}
	return n
}

func TestRepliesFarFromTheViewSleep(t *testing.T) {
	t.Parallel()
	look := Look{Width: 60}
	tr, whole := replied(200), replied(200)
	tr.Measure(look)
	if n := awake(tr); n != 0 {
		t.Errorf("%d replies are laid out that were only measured", n)
	}
	total := tr.Height(look)
	if n := awake(tr); n != 0 {
		t.Errorf("%d replies were laid out again for a height that is known", n)
	}
	all := whole.Rows(look, 0, total)
	if len(all) != total {
		t.Fatalf("%d rows of %d", len(all), total)
	}
	for _, from := range []int{total - 40, total / 2, 0, total - 40} {
		got := tr.Rows(look, from, from+40)
		if want := textOf(all[from : from+40]); textOf(got) != want {
			t.Errorf("from row %d:\n%s\nwanted:\n%s", from, textOf(got), want)
		}
		if n := awake(tr); n == 0 || n > 2*nearRows/4 {
			t.Errorf("%d replies of %d are laid out", n, tr.Len())
		}
		if again := tr.Height(look); again != total {
			t.Errorf("%d rows, and %d before", again, total)
		}
	}
	narrow := Look{Width: 12}
	if got, want := tr.Height(narrow), replied(200).Height(narrow); got != want {
		t.Errorf("at another width %d rows, not %d", got, want)
	}
	if code := tr.Code(1); code != "var a = 199" && code != "var a = 199\n" {
		t.Errorf("the newest code is %q", code)
	}
}

func TestWhatDoesNotSleep(t *testing.T) {
	t.Parallel()
	look := Look{Width: 60}
	tr := replied(1)
	item, _ := json.Marshal(map[string]any{"role": "assistant", "text": strings.Repeat("A line of a long reply.\n\n", sleepMost/20)})
	tr.Item(2, 2, item, About{}, false)
	long := tr.At(1)
	tr.cells = append(tr.cells, replied(100).cells...)
	tr.Delta(200, false, "What streams\n\nis ")
	tr.Height(look)
	tr.Rows(look, 0, 10)
	if long.doc.md == nil {
		t.Error("a long reply sleeps: to wake it takes a while")
	}
	tr.Delta(200, false, "whole.\n")
	total := tr.Height(look)
	if got := textOf(tr.Rows(look, total-3, total)); !strings.Contains(got, "What streams") || !strings.Contains(got, "is whole.") {
		t.Errorf("%q", got)
	}
	if i := slices.IndexFunc(tr.cells, func(c *Cell) bool { return c.Live }); i < 0 || tr.cells[i].doc.md == nil {
		t.Error("what streams sleeps")
	}
}
