package screen

import (
	"context"
	"fmt"

	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/term"
	"agent/internal/sonny/screen/text"
)

// Trust asks whether a folder's own files are to be used, before anything of it is shown
// or composed (sonny.md 3.5).
type Trust struct {
	Term   Terminal
	Folder string
	Files  []string // what it holds, as they are listed
	Setup  bool     // .agents/setup is among them

	w, h int
	hand int
}

// Verdict is what the person says of a folder's files.
type Verdict int

// The verdicts.
const (
	Leave Verdict = iota
	UseThem
	WithoutThem
)

// trustRows are the choices, in their order.
var trustRows = []struct {
	words   string
	verdict Verdict
}{
	{"use them", UseThem},
	{"open without them", WithoutThem},
	{"leave", Leave},
}

// maxListed is how many files are listed.
const maxListed = 10

// Ask shows the question until it is answered.
func (q *Trust) Ask(ctx context.Context) (Verdict, error) {
	var err error
	if q.w, q.h, err = q.Term.Size(); err != nil {
		return Leave, err
	}
	for {
		q.draw()
		select {
		case <-ctx.Done():
			return Leave, ctx.Err()
		case e := <-q.Term.Events():
			switch e := e.(type) {
			case term.Closed:
				return Leave, e.Err
			case term.Resize:
				q.w, q.h = e.W, e.H
			case term.Key:
				if verdict, done := q.press(e); done {
					return verdict, nil
				}
			}
		}
	}
}

func (q *Trust) press(k term.Key) (Verdict, bool) {
	switch k.Name {
	case "up":
		q.hand = max(0, q.hand-1)
	case "down":
		q.hand = min(len(trustRows)-1, q.hand+1)
	case "enter":
		return trustRows[q.hand].verdict, true
	case "1", "2", "3":
		return trustRows[k.Name[0]-'1'].verdict, true
	case "esc", "ctrl+c", "ctrl+d":
		return Leave, true
	}
	return Leave, false
}

func (q *Trust) draw() {
	f := term.NewFrame(q.w, q.h)
	w, h := f.Size()
	c := f.All()
	c.Put(0, 0, text.Join(text.Span{Text: " sonny", Attr: text.Bold}, text.Span{Text: "  a folder that is new to you"}).Cut(w), w)
	c.Put(0, 1, rule(w), w)
	y := 3
	say := func(role text.Role, line string) {
		for _, l := range text.Wrap([]text.Span{{Text: line, Role: role}}, text.Frame{Width: max(10, w-3), First: indent3, Rest: indent3}) {
			c.Put(0, y, l, w)
			y++
		}
	}
	say(text.Plain, cells.OneLine(tilde(q.Folder))+" brings files that agents read as instructions:")
	y++
	for i, name := range q.Files {
		if i == maxListed {
			say(text.Dim, fmt.Sprintf("+%d more", len(q.Files)-i))
			break
		}
		say(text.Accent, "  "+cells.OneLine(name))
	}
	y++
	say(text.Dim, "What they say counts as your standing orders, for the judge of their calls too.")
	if q.Setup {
		say(text.Warn, ".agents/setup runs as you, outside any sandbox, when a task starts, once that is approved.")
	}
	y++
	for i, r := range trustRows {
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
	c.Put(0, h-1, text.Of(text.Dim, " 1–3 or ↑↓ Enter  Esc leave"), w)
	q.Term.Draw(f)
}
