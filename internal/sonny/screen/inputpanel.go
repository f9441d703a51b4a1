package screen

import (
	"strings"

	"agent/internal/sonny/screen/edit"
	"agent/internal/sonny/screen/term"
	"agent/internal/sonny/screen/text"
)

// inputPanel asks for one line of text.
type inputPanel struct {
	title string
	field edit.Field
	back  panel // what is shown again afterwards; nil for nothing
	take  func(a *App, line string)
}

func (p *inputPanel) hints() []string { return []string{"Enter take it", "Esc leave it"} }

func (p *inputPanel) view(a *App, c term.Canvas) {
	w, _ := c.Size()
	c.Put(0, 0, text.Titled(p.title, "", w), w)
	line, x := p.field.Line("› ", w-4)
	c.Put(2, 2, line, w-2)
	c.SetCursor(2+x, 2)
}

func (p *inputPanel) key(a *App, k term.Key) bool {
	switch k.Name {
	case "enter":
		if line := strings.TrimSpace(p.field.Text()); line != "" {
			p.take(a, line)
		}
	case "esc":
	default:
		p.field.Key(a.o.Keys, k.Name, k.Text)
		return false
	}
	a.panel = p.back
	return p.back == nil
}
