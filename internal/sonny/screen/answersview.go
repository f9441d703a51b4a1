package screen

import (
	"fmt"
	"slices"

	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/text"
)

// leastTranscript is how many rows of the transcript stay above the panel.
const leastTranscript = 2

// rows draws the panel into at most h rows: its choices always, as much of what is
// asked as there is room for.
func (p *answers) rows(a *App, w, h int) []text.Line {
	q := p.current(a)
	if q == nil {
		return nil
	}
	s := q.sheet(a, w, p.whole)
	list := p.visible(a)
	count := ""
	if len(list) > 1 {
		at := slices.IndexFunc(list, func(x asking) bool { return x.id() == q.id() })
		count = fmt.Sprintf("%d of %d", at+1, len(list))
	}
	deaf := a.o.Now().Before(p.guard.until) && p.focused
	foot := p.choices(s, w, deaf, true)
	out := []text.Line{text.Titled(cells.OneLine(s.title), count, w)}
	room := h - leastTranscript - len(out) - len(foot)
	if p.whole || room < leastBody { // the question is what the person needs to read now
		foot = p.choices(s, w, deaf, room >= leastBody)
		room = h - len(out) - len(foot)
	}
	out = append(out, p.window(s.body, max(1, room))...)
	return append(out, foot...)
}

// leastBody is how many rows of what is asked are enough to decide on it. With fewer in
// view, all of it has to have been in view, a part after the other.
const leastBody = 6

// reading keeps which rows of a question have been in view.
type reading struct {
	of   string // the question's id
	to   int    // all rows before this one have been
	page int    // how many are in view
	hard bool   // too few are in view, and not all have been
}

// hide is of a screen on which nothing of the question is.
func (p *answers) hide() { p.read = reading{of: p.shown, hard: true} }

// saw notes the rows of a body that are in view.
func (r *reading) saw(id string, from, to, all int) {
	if r.of != id {
		*r = reading{of: id}
	}
	if from <= r.to {
		r.to = max(r.to, to)
	}
	r.page = to - from
	r.hard = r.page < min(leastBody, all) && r.to < all
}

// window is the part of the body that is in view.
func (p *answers) window(body []text.Line, room int) []text.Line {
	if room >= leastBody {
		body = append(append([]text.Line{{}}, body...), text.Line{})
	}
	if len(body) <= room {
		p.top = 0
		p.read.saw(p.shown, 0, len(body), len(body))
		return body
	}
	p.top = min(p.top, len(body)-room)
	out := slices.Clone(body[p.top : p.top+room])
	seen := p.top + room
	if rest := len(body) - seen; rest > 0 && room > 1 {
		out[len(out)-1] = text.Of(text.Dim, fmt.Sprintf("    +%d lines · PgUp PgDn", rest+1))
		seen--
	}
	p.read.saw(p.shown, p.top, seen, len(body))
	return out
}

// choices are the rows of the choices, or the text that is being written.
// They are dim for as long as no key is taken.
func (p *answers) choices(s sheet, w int, deaf, wraps bool) (out []text.Line) {
	if p.field != nil {
		line, _ := p.field.Line("  "+p.field.label+"  ", w)
		out = append(out, line)
		if p.field.wrong != "" {
			out = append(out, wrapped(cells.OneLine(p.field.wrong), text.Fail, w)...)
		}
		return append(out, text.Line{})
	}
	for _, c := range s.choices {
		head := text.Span{Text: fmt.Sprintf("  %d  ", c.n), Role: text.Accent}
		if deaf {
			head.Role = text.Dim
		}
		label := slices.Clone(c.label.Spans)
		if p.choice == c.n {
			head.Text = fmt.Sprintf("▎ %d  ", c.n)
			for i := range label {
				label[i].Attr |= text.Bold
			}
		}
		if !wraps {
			out = append(out, oneRow(head, label, w))
			continue
		}
		out = append(out, text.Wrap(label, text.Frame{Width: max(10, w-1), First: []text.Span{head}, Rest: choiceGoesOn})...)
	}
	return append(out, text.Line{})
}

// choiceGoesOn begins the further rows of a choice: they can be taken for no other one.
var choiceGoesOn = []text.Span{{Text: "   │ ", Role: text.Dim, Chrome: true}}

// oneRow is a choice where there is no room for more: what it is about gives way, so that
// what it does stays to be read.
func oneRow(head text.Span, label []text.Span, w int) text.Line {
	line := text.Line{Spans: append([]text.Span{head}, label...)}
	over := line.Width() - w
	for i := range line.Spans {
		if s := &line.Spans[i]; over > 0 && s.Role == text.Accent && i > 0 {
			s.Text = text.Of(s.Role, s.Text).Cut(max(4, text.Width(s.Text)-over)).String()
		}
	}
	return line.Cut(w)
}

// caret is where the text that is written in the panel takes the next key: its column,
// and its row counted from the panel's last.
func (p *answers) caret(w int) (x, up int, shown bool) {
	if !p.focused || p.field == nil {
		return 0, 0, false
	}
	_, x = p.field.Line("  "+p.field.label+"  ", w)
	up = 2
	if p.field.wrong != "" {
		up += len(wrapped(cells.OneLine(p.field.wrong), text.Fail, w))
	}
	return x, up, true
}

// scroll moves what is asked in its window. It reports whether the panel has the
// keyboard.
func (p *answers) scroll(by int) bool {
	if p.focused {
		p.top = max(0, p.top+by)
	}
	return p.focused
}

// click moves to the panel where that is what was pressed on.
func (p *answers) click(a *App, x, y int) {
	if a.panel == nil && p.at.holds(x, y) && !p.focused {
		p.focus(a)
	}
}

// hints are the keys that do something in the panel.
func (p *answers) hints(a *App) []string {
	switch q := p.current(a); {
	case p.field != nil:
		return []string{"Enter takes it", "Esc back to the choices"}
	case q == nil:
		return nil
	case a.o.Now().Before(p.guard.until):
		return []string{"no key is taken yet"}
	default:
		hints := q.sheet(a, a.w, false).hints
		if len(p.visible(a)) > 1 {
			hints = append(hints, "n next", "a all")
		}
		return append(hints, "Esc back")
	}
}
