package screen

import (
	"regexp"
	"strings"
	"unicode"

	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/edit"
	"agent/internal/sonny/screen/keys"
	"agent/internal/sonny/screen/term"
	"agent/internal/sonny/screen/text"
)

// copyModeCommands open the mode of copying by keyboard (sonny.md 12).
var copyModeCommands = feature{actions: map[string]func(*App){"copy_mode": (*App).openCopyMode}}

// copyPanel is a caret in the transcript.
type copyPanel struct {
	s     *session
	at    spot
	field *edit.Field // what is searched for, being written
}

func (a *App) openCopyMode() {
	s := a.at()
	if s == nil || s.tr.Len() == 0 {
		return
	}
	p := &copyPanel{s: s, at: spot{row: s.topRow + max(0, s.height-1)}}
	p.at.row = min(p.at.row, max(0, s.tr.Height(s.look)-1))
	s.mark.from = nil
	a.panel = p
}

func (p *copyPanel) hints() []string {
	switch {
	case p.field != nil:
		return []string{"Enter finds it", "Esc leaves the search"}
	case p.s.mark.from != nil:
		return []string{"h j k l w b 0 $ g G { } move", "y copy", "Esc leave"}
	}
	return []string{"h j k l w b 0 $ g G { } move", "v mark", "Enter fold", "/ search", "Esc leave"}
}

func (p *copyPanel) view(a *App, c term.Canvas) {
	w, h := c.Size()
	l := a.place(a.w, a.h)
	gutter := l.gutter
	if a.inSide {
		gutter = 1
	}
	l.gutter = gutter
	p.s.view(a, c, l)
	c.SetCursor(p.s.gutter+p.at.col, p.at.row-p.s.topRow)
	if p.field != nil {
		c.Fill(0, h-1, w, 1, text.Plain)
		line, x := p.field.Line("/ ", w-4)
		c.Put(2, h-1, line, w-2)
		c.SetCursor(2+x, h-1)
	}
}

// row is a line of the transcript.
func (p *copyPanel) row(i int) (text.Line, *cells.Cell) {
	if rows := p.s.tr.Rows(p.s.look, i, i+1); len(rows) == 1 {
		return rows[0].Line, rows[0].Cell
	}
	return text.Line{}, nil
}

func (p *copyPanel) key(a *App, k term.Key) bool {
	if p.field != nil {
		p.searchKey(a, k)
		return false
	}
	switch k.Name {
	case "esc":
		p.s.mark.from = nil
		return true
	case "enter":
		if _, c := p.row(p.at.row); c != nil {
			a.openCell(p.s, c)
		}
		return false
	}
	for _, name := range a.o.Keys.Find(k.Name, keys.State{}, keys.Copy) {
		if p.act(a, name) {
			return true
		}
	}
	p.settle(a)
	return false
}

// act does one of the actions of the mode. It reports whether the mode ends.
func (p *copyPanel) act(a *App, name string) (ends bool) {
	line, _ := p.row(p.at.row)
	last := max(0, line.Width()-1)
	switch name {
	case "copy_left":
		p.at.col--
	case "copy_right":
		p.at.col = min(p.at.col+1, last)
	case "copy_up":
		p.at.row--
	case "copy_down":
		p.at.row++
	case "copy_word_right":
		p.at.col = min(wordFrom(line.String(), p.at.col, 1), last)
	case "copy_word_left":
		p.at.col = wordFrom(line.String(), p.at.col, -1)
	case "copy_line_start":
		p.at.col = 0
	case "copy_line_end":
		p.at.col = last
	case "copy_top":
		p.at = spot{}
	case "copy_bottom":
		p.at = spot{row: p.s.tr.Height(p.s.look) - 1}
	case "copy_block_up":
		p.block(-1)
	case "copy_block_down":
		p.block(1)
	case "copy_mark":
		if p.s.mark.from == nil {
			from := p.at
			p.s.mark.from = &from
		} else {
			p.s.mark.from = nil
		}
	case "copy_take":
		p.settle(a)
		a.copy(p.s.selection())
		p.s.mark.from = nil
		return true
	case "copy_search":
		p.field = &edit.Field{}
	}
	return false
}

// settle keeps the caret within the transcript and in view, and the selection at it.
func (p *copyPanel) settle(a *App) {
	s := p.s
	p.at.row = max(0, min(p.at.row, s.tr.Height(s.look)-1))
	line, _ := p.row(p.at.row)
	p.at.col = max(0, min(p.at.col, line.Width()-1))
	s.mark.to = p.at
	if p.at.row < s.topRow {
		s.reveal(a, p.at.row, 0)
	} else if p.at.row >= s.topRow+s.height {
		s.reveal(a, p.at.row, s.height-1)
	}
}

// block goes to the next empty row, up or down.
func (p *copyPanel) block(by int) {
	n := p.s.tr.Height(p.s.look)
	for row := p.at.row + by; row >= 0 && row < n; row += by {
		if line, _ := p.row(row); strings.TrimSpace(line.String()) == "" {
			p.at = spot{row: row}
			return
		}
	}
	p.at = spot{row: max(0, by*n)}
}

// wordFrom is the column of the word after, or before, one.
func wordFrom(s string, col, by int) int {
	starts := []int{}
	at, in := 0, false
	for cluster, w := range text.Clusters(s) {
		space := strings.TrimFunc(cluster, unicode.IsSpace) == ""
		if !space && !in {
			starts = append(starts, at)
		}
		in = !space
		at += w
	}
	found := 0
	if by > 0 {
		found = at
	}
	for _, start := range starts {
		if by > 0 && start > col {
			return start
		}
		if by < 0 && start < col {
			found = start
		}
	}
	return found
}

func (p *copyPanel) searchKey(a *App, k term.Key) {
	switch k.Name {
	case "esc":
		p.field = nil
	case "enter":
		words := strings.TrimSpace(p.field.Text())
		p.field = nil
		if words == "" {
			return
		}
		find := regexp.MustCompile("(?i)" + regexp.QuoteMeta(words))
		rows := p.s.tr.Rows(p.s.look, 0, p.s.tr.Height(p.s.look))
		for i := range rows {
			at := (p.at.row + len(rows) - 1 - i) % len(rows)
			whole := rows[at].Line.String()
			if m := find.FindStringIndex(whole); m != nil {
				p.at = spot{row: at, col: text.Width(whole[:m[0]])}
				p.settle(a)
				return
			}
		}
		a.notes.say(p.s.nowhere(words))
	default:
		p.field.Key(a.o.Keys, k.Name, k.Text)
	}
}
