package screen

import (
	"fmt"
	"slices"

	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/decide"
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
	deaf := p.guard.Deaf(a.o.Now()) && p.focused
	foot := p.choices(s, w, deaf, true)
	out := []text.Line{text.Titled(cells.OneLine(s.Title), count, w)}
	room := h - leastTranscript - len(out) - len(foot)
	if p.whole || room < decide.LeastBody { // the question is what the person needs to read now
		foot = p.choices(s, w, deaf, room >= decide.LeastBody)
		room = h - len(out) - len(foot)
	}
	if room < decide.LeastBody && p.field == nil {
		foot = foot[:len(foot)-1] // the empty row
		if p.whole {
			foot = []text.Line{s.Row(w, p.choice, deaf)}
		}
		room = h - len(out) - len(foot)
	}
	out = append(out, p.view.Rows(p.shown, s.Body, max(1, room))...)
	if more := p.view.Below(); more > 0 && room <= 1 { // no row is left to say it
		out[0] = text.Titled(cells.OneLine(s.Title), fmt.Sprintf("+%d PgDn", more), w)
	}
	return append(out, foot...)
}

// choices are the rows of the choices, or the text that is being written.
// They are dim for as long as no key is taken.
func (p *answers) choices(s decide.Sheet, w int, deaf, wraps bool) (out []text.Line) {
	if p.field != nil {
		line, _ := p.field.Line("  "+p.field.label+"  ", w)
		out = append(out, line)
		if p.field.wrong != "" {
			out = append(out, decide.Said(cells.OneLine(p.field.wrong), text.Fail, w)...)
		}
		return append(out, text.Line{})
	}
	out = s.Rows(w, p.choice, deaf, wraps)
	return append(out, text.Line{})
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
		up += len(decide.Said(cells.OneLine(p.field.wrong), text.Fail, w))
	}
	return x, up, true
}

// scroll moves what is asked in its window. It reports whether the panel has the
// keyboard.
func (p *answers) scroll(by int) bool {
	if p.focused {
		p.view.Top = max(0, p.view.Top+by)
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
	case p.guard.Deaf(a.o.Now()):
		return []string{"no key is taken yet"}
	default:
		hints := q.sheet(a, a.w, false).Hints
		if len(p.visible(a)) > 1 {
			hints = append(hints, "n next", "a all")
		}
		return append(hints, "Esc back")
	}
}
