package screen

import (
	"fmt"
	"regexp"
	"strings"

	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/edit"
	"agent/internal/sonny/screen/term"
	"agent/internal/sonny/screen/text"
)

// readerCommands open the reader (sonny.md 8.2).
var readerCommands = feature{
	actions: map[string]func(*App){"reader": (*App).openReader},
}

// readerPanel is a pager over the whole transcript with everything unfolded.
type readerPanel struct {
	s      *session
	top    int
	placed bool        // top was set
	cell   *cells.Cell // at the top in the newest frame, and the row at which it began
	row    int
	h      int
	field  *edit.Field // what is searched for, being written; nil otherwise
	find   *regexp.Regexp
	words  string
}

func (a *App) openReader() {
	if s := a.at(); s != nil {
		a.panel = &readerPanel{s: s}
	}
}

func (p *readerPanel) hints() []string {
	if p.field != nil {
		return []string{"Enter finds it", "Esc leaves the search"}
	}
	return []string{"↑↓ PgUp PgDn", "g G ends", "/ search", "n N next", "q close"}
}

func (p *readerPanel) look(a *App, w int) cells.Look {
	return cells.Look{Width: max(10, w-4), Output: true, Thoughts: true, All: true, Colours: a.o.ToolColour, Fold: a.o.Fold}
}

func (p *readerPanel) view(a *App, c term.Canvas) {
	w, h := c.Size()
	p.h = max(1, h-1)
	l := p.look(a, w)
	total := p.s.tr.Height(l)
	if !p.placed {
		p.top, p.placed = total, true
	}
	p.hold(l, total)
	if p.top == 0 && !p.s.story.IsWhole() {
		p.s.story.LoadOlder()
	}
	p.s.story.Around(l, p.top, p.top+p.h)
	right := fmt.Sprintf("%d–%d of %d", min(p.top+1, total), min(p.top+p.h, total), total)
	c.Put(0, 0, text.Titled("reader  "+cells.OneLine(a.called(p.s)), right, w), w)
	for i, r := range p.s.tr.Rows(l, p.top, p.top+p.h) {
		line := r.Line
		if p.find != nil {
			line = highlight(line, p.find)
		}
		c.Put(2, 1+i, line, l.Width)
	}
	if p.field != nil {
		c.Fill(0, h-1, w, 1, text.Plain)
		line, x := p.field.Line("/ ", w-4)
		c.Put(2, h-1, line, w-2)
		c.SetCursor(2+x, h-1)
	}
}

// hold keeps the cell at the top where it was, whatever came before it, but for what the
// person scrolled since.
func (p *readerPanel) hold(l cells.Look, total int) {
	if p.cell != nil {
		if row := p.s.tr.Find(l, p.cell); row >= 0 {
			p.top += row - p.row
		}
	}
	p.top = max(0, min(p.top, total-p.h))
	p.cell, p.row = p.s.tr.CellAt(l, p.top)
}

func (p *readerPanel) key(a *App, k term.Key) bool {
	if p.field != nil {
		p.fieldKey(a, k)
		return false
	}
	switch k.Name {
	case "q", "esc":
		return true
	case "up", "k":
		p.top--
	case "down", "j", "enter":
		p.top++
	case "pgup", "b":
		p.top -= p.h
	case "pgdown", "space", "f":
		p.top += p.h
	case "home", "g":
		p.top = 0
	case "end", "G":
		p.top = 1 << 30
	case "/":
		p.field = &edit.Field{}
	case "n":
		p.next(a, 1)
	case "N":
		p.next(a, -1)
	}
	p.top = max(0, p.top)
	return false
}

func (p *readerPanel) fieldKey(a *App, k term.Key) {
	switch k.Name {
	case "esc":
		p.field = nil
	case "enter":
		p.words = strings.TrimSpace(p.field.Text())
		p.field, p.find = nil, nil
		if p.words != "" {
			p.find = regexp.MustCompile("(?i)" + regexp.QuoteMeta(p.words))
			p.top--
			p.next(a, 1)
		}
	default:
		p.field.Key(a.o.Keys, k.Name, k.Text)
	}
}

// nowhere says that words are not in what is here of a transcript.
func (s *session) nowhere(words string) string {
	if s.story.IsWhole() && !s.tr.Folds() {
		return "nowhere: " + cells.OneLine(words)
	}
	return "nowhere in what is loaded: " + cells.OneLine(words) + "; /search looks in all of it"
}

// next goes to the next row, or the one before, that holds what is searched for; past
// an end it begins at the other.
func (p *readerPanel) next(a *App, by int) {
	if p.find == nil {
		return
	}
	l := p.look(a, a.w)
	rows := p.s.tr.Rows(l, 0, p.s.tr.Height(l))
	for i := range rows {
		at := ((p.top+by*(i+1))%len(rows) + len(rows)) % len(rows)
		if p.find.MatchString(rows[at].Line.String()) {
			p.top = at
			return
		}
	}
	a.notes.say(p.s.nowhere(p.words))
}
