package screen

import (
	"fmt"
	"strings"

	"agent/internal/sonny/live"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/human"
	"agent/internal/sonny/screen/outbox"
	"agent/internal/sonny/screen/text"
)

// stripMost is how many rows stand above the composer at most.
const stripMost = 8

// strip is what stands above the composer: the menu while one is open, else the
// messages in line, what is put aside, and what the text would do.
func (a *App) strip(w int) []text.Line {
	if rows := a.menu.view(a, w); len(rows) > 0 {
		return rows
	}
	var out []text.Line
	if a.session != nil {
		out = a.session.strip(a, w)
	}
	if len(out) > 3 {
		rest := len(out) - 2
		out = append(out[:2:2], text.Of(text.Dim, fmt.Sprintf(" and %d more  Ctrl+X q", rest)))
	}
	c := a.main()
	if c.offer != nil {
		out = append(out, stripLine("output", "of "+c.offer.command, "Tab adds it", w))
	}
	if n := c.Stashed(); n > 0 {
		out = append(out, text.Of(text.Dim, fmt.Sprintf(" %d stashed", n)).Right(text.Of(text.Dim, "Ctrl+S "), w))
	}
	if line := a.intent(c); line != "" {
		out = append(out, text.Of(text.Accent, " "+cells.OneLine(line)))
	}
	return out
}

// strip are the person's messages in line, what is held, and how many others wait.
func (s *session) strip(a *App, w int) (out []text.Line) {
	b := a.botAt(s)
	line := s.compose.LineUp()
	changing, withheld := s.compose.Changing()
	n := 0
	for i, q := range line {
		head, right := "steering…", ""
		if !q.Steers() {
			n++
			head = fmt.Sprintf("queued %d", n)
		} else if len(b.Waits) > 0 {
			head = "steering… after the answer"
		}
		if !q.Steers() && i == len(line)-1 && changing == 0 {
			right = "Alt+↑ edit"
		}
		out = append(out, stripLine(head, q.Prompt(), right, w))
	}
	for i, prompt := range withheld {
		head, right := "withheld", ""
		if i == 0 {
			head, right = fmt.Sprintf("editing %d", changing), "Enter puts it back · Esc as it was"
		}
		out = append(out, stripLine(head, prompt, right, w))
	}
	held := s.compose.Held()
	for i, prompt := range held {
		right := ""
		if i == len(held)-1 {
			right = "Enter sends"
		}
		out = append(out, stripLine("held", prompt, right, w))
	}
	out = append(out, a.sendingRows(&s.compose, w)...)
	if others := othersInLine(b); others > 0 {
		out = append(out, text.Of(text.Dim, " "+human.Count(others, "other in line", "others in line")))
	}
	return out
}

// sendingRows are rows for those messages of a composer that take long.
func (a *App) sendingRows(c *composer, w int) (out []text.Line) {
	for _, prompt := range a.out.Sending(&c.Box) {
		out = append(out, stripLine("sending…", prompt, "", w))
	}
	return out
}

func othersInLine(b *live.Bot) (n int) {
	if b == nil {
		return 0
	}
	for _, t := range b.Queue {
		if !outbox.Own(t) {
			n++
		}
	}
	return n
}

func stripLine(head, prompt, right string, w int) text.Line {
	line, _, _ := strings.Cut(prompt, "\n")
	left := text.Join(text.Span{Text: " " + head, Role: text.Dim}, text.Span{Text: "  " + cells.OneLine(line)})
	return left.Cut(max(0, w-text.Width(right)-2)).Right(text.Of(text.Dim, right+" "), w)
}
