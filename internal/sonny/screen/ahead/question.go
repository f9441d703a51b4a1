package ahead

import (
	"context"
	"fmt"
	"time"

	"agent/internal/sonny/screen/decide"
	"agent/internal/sonny/screen/term"
	"agent/internal/sonny/screen/text"
)

// question is a question about the folder that stands alone, before there is a daemon.
type question struct {
	t       Terminal
	title   string
	choices []answer
	words   func(say func(role text.Role, line string))

	w, h int
	hand int  // the highlighted choice; -1: none, and Enter takes none
	deaf bool // it was not on screen long enough to be read: no key is taken
}

// answer is one answer.
type answer struct {
	words   string
	verdict Verdict
}

// run shows the question until it is answered. What was typed ahead of it answers
// nothing: as in the panel of an approval, no key is taken for a moment, which each key
// begins anew, and nothing is highlighted before an arrow is pressed (sonny.md 9.2).
func (q *question) run(ctx context.Context) (Verdict, error) {
	var err error
	q.hand, q.deaf = -1, true
	quiet := time.NewTimer(decide.Swallowed)
	defer quiet.Stop()
	if q.w, q.h, err = q.t.Size(); err != nil {
		return Leave, err
	}
	for {
		q.draw()
		select {
		case <-ctx.Done():
			return Leave, ctx.Err()
		case <-quiet.C:
			q.deaf = false
		case e := <-q.t.Events():
			switch e := e.(type) {
			case term.Closed:
				return Leave, e.Err
			case term.Resize:
				q.w, q.h = e.W, e.H
			case term.Key:
				if q.deaf && e.Name != "ctrl+c" {
					quiet.Reset(decide.Swallowed)
					continue
				}
				if verdict, done := q.press(e); done {
					return verdict, nil
				}
			}
		}
	}
}

func (q *question) press(k term.Key) (Verdict, bool) {
	switch k.Name {
	case "up":
		q.hand = max(0, q.hand-1)
	case "down":
		q.hand = min(len(q.choices)-1, q.hand+1)
	case "enter":
		if q.hand >= 0 {
			return q.choices[q.hand].verdict, true
		}
	case "esc", "ctrl+c", "ctrl+d":
		return Leave, true
	}
	if len(k.Name) == 1 && k.Name[0] >= '1' && int(k.Name[0]-'1') < len(q.choices) {
		return q.choices[k.Name[0]-'1'].verdict, true
	}
	return Leave, false
}

func (q *question) draw() {
	f := term.NewFrame(q.w, q.h)
	w, h := f.Size()
	c := f.All()
	c.Put(0, 0, text.Join(text.Span{Text: " sonny", Attr: text.Bold}, text.Span{Text: "  " + q.title}).Cut(w), w)
	c.Put(0, 1, text.Across(w), w)
	y := 3
	q.words(func(role text.Role, line string) {
		for _, l := range text.Wrap([]text.Span{{Text: line, Role: role}}, text.Frame{Width: max(10, w-3), First: text.Indent(3), Rest: text.Indent(3)}) {
			c.Put(0, y, l, w)
			y++
		}
	})
	y++
	for i, r := range q.choices {
		mark := "   "
		if i == q.hand {
			mark = " ▎ "
		}
		c.Put(0, y, text.Join(text.Span{Text: mark, Role: text.Accent}, text.Span{Text: fmt.Sprintf("%d  ", i+1), Role: text.Accent}, text.Span{Text: r.words}), w)
		if i == q.hand {
			c.SetCursor(3, y)
		}
		y++
	}
	hint := fmt.Sprintf(" 1–%d or ↑↓ Enter  Esc leave", len(q.choices))
	if q.deaf {
		hint = " no key is taken yet"
	}
	c.Put(0, h-1, text.Of(text.Dim, hint), w)
	q.t.Draw(f)
}
