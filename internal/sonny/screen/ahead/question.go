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

	top, page int  // of the words: the first row in view, and how far a page goes
	whole     bool // their end was in view: what they say can be agreed to
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
	case "pgdown", "space":
		q.top += q.page
	case "pgup":
		q.top = max(0, q.top-q.page)
	case "enter":
		return q.take(q.hand)
	case "esc", "ctrl+c", "ctrl+d":
		return Leave, true
	}
	if len(k.Name) == 1 && k.Name[0] >= '1' {
		return q.take(int(k.Name[0] - '1'))
	}
	return Leave, false
}

// take takes a choice by its place. The first, which agrees, is none before the end of the
// words was in view.
func (q *question) take(i int) (Verdict, bool) {
	if i < 0 || i >= len(q.choices) || i == 0 && !q.whole {
		return Leave, false
	}
	return q.choices[i].verdict, true
}

func (q *question) draw() {
	f := term.NewFrame(q.w, q.h)
	w, h := f.Size()
	c := f.All()
	c.Put(0, 0, text.Join(text.Span{Text: " sonny", Attr: text.Bold}, text.Span{Text: "  " + q.title}).Cut(w), w)
	hint := fmt.Sprintf(" 1–%d or ↑↓ Enter  Esc leave", len(q.choices))
	body := c.Sub(0, 1, w, h-2)
	if h >= lowest {
		c.Put(0, 1, text.Across(w), w)
		body = c.Sub(0, 2, w, h-3)
	}
	left := q.drawBody(body, h < lowest)
	switch _, aloud := q.t.(*Aloud); {
	case q.deaf && aloud:
		hint = "" // it is read out when a line can be an answer
	case q.deaf:
		hint = " no key is taken yet"
	case left > 0:
		hint = fmt.Sprintf(" +%d lines · PgDn: read to the end", left)
	}
	c.Put(0, h-1, text.Of(text.Dim, hint).Cut(w), w)
	q.t.Draw(f)
}

// lowest is how many rows the choices stand below the words with, in view all the time; on
// fewer they are the words' last rows.
const lowest = 12

// drawBody draws the words and the choices, as much of them as there is room for, and gives
// how many rows are below.
func (q *question) drawBody(c term.Canvas, low bool) (left int) {
	w, h := c.Size()
	var rows, below []text.Line
	q.words(func(role text.Role, line string) {
		rows = append(rows, text.Wrap([]text.Span{{Text: line, Role: role}}, text.Frame{Width: max(10, w-3), First: text.Indent(3), Rest: text.Indent(3)})...)
	})
	below = append(below, text.Line{})
	for i, r := range q.choices {
		mark := "   "
		if i == q.hand {
			mark = " ▎ "
		}
		below = append(below, text.Join(text.Span{Text: mark, Role: text.Accent}, text.Span{Text: fmt.Sprintf("%d  ", i+1), Role: text.Accent}, text.Span{Text: r.words}))
	}
	y, first := 0, len(rows)+1 // the row of the first choice
	if low {
		rows, below = append(rows, below...), nil
	} else if len(rows)+1+len(below) <= h {
		y++ // a blank row above
	}
	room := max(1, h-y-len(below))
	q.page = room
	q.top = max(0, min(q.top, len(rows)-room))
	shown := append(rows[q.top:min(len(rows), q.top+room):min(len(rows), q.top+room)], below...)
	for i, l := range shown {
		c.Put(0, y+i, l.Cut(w), w)
	}
	if at := y + first - q.top; low && q.hand >= 0 && at+q.hand < h {
		c.SetCursor(3, at+q.hand)
	} else if !low && q.hand >= 0 {
		c.SetCursor(3, y+len(shown)-len(q.choices)+q.hand)
	}
	left = max(0, len(rows)-q.top-room)
	q.whole = q.whole || left == 0
	return left
}
