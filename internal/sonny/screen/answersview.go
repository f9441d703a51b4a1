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
	foot := p.choices(s, w, a.o.Now().Before(p.guard.until) && p.focused, true)
	out := []text.Line{titledRule(cells.OneLine(s.title), count, w)}
	room := max(1, h-leastTranscript-len(out)-len(foot))
	if p.whole {
		room = max(1, h-len(out)-len(foot))
	}
	out = append(out, p.window(s.body, room)...)
	return append(out, foot...)
}

// window is the part of the body that is in view.
func (p *answers) window(body []text.Line, room int) []text.Line {
	body = append(append([]text.Line{{}}, body...), text.Line{})
	if len(body) <= room {
		p.top = 0
		return body
	}
	p.top = min(p.top, len(body)-room)
	out := slices.Clone(body[p.top : p.top+room])
	if rest := len(body) - room - p.top; rest > 0 {
		out[len(out)-1] = text.Of(text.Dim, fmt.Sprintf("    +%d lines · PgUp PgDn", rest+1))
	}
	return out
}

// choices are the rows of the choices, or the text that is being written.
// They are dim for as long as no key is taken.
func (p *answers) choices(s sheet, w int, deaf, wraps bool) (out []text.Line) {
	if p.field != nil {
		line, _ := p.field.line("  "+p.field.label+"  ", w)
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
		out = append(out, text.Wrap(label, text.Frame{Width: max(10, w-1), First: []text.Span{head}, Rest: []text.Span{{Text: "     ", Chrome: true}}})...)
	}
	return append(out, text.Line{})
}

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
	_, x = p.field.line("  "+p.field.label+"  ", w)
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
