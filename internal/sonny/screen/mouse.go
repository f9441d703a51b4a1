package screen

import (
	"strings"
	"time"

	"agent/internal/sonny/screen/term"
	"agent/internal/sonny/screen/text"
)

// MouseUse are the mouse's settings (sonny.md 12).
type MouseUse struct {
	Click, Select bool
	Copy          bool // what is selected is copied when the button is let go
	WheelRows     int  // 0: 3
}

// mouse is what the mouse did last.
type mouse struct {
	in     *session // whose rows are dragged over; nil for none
	moved  bool
	at     time.Time // of the last press
	x, y   int
	clicks int
	off    bool // by /mouse
}

// doubleClick is how soon the next press counts as one of several.
const doubleClick = 400 * time.Millisecond

// mouseCommands switch the mouse (sonny.md 12).
var mouseCommands = feature{
	commands: []slashCommand{{"mouse", "", "leave the mouse to the terminal, or take it again", func(a *App, _ string) error {
		a.mouseState.off = !a.mouseState.off
		words := "the mouse is Sonny's again"
		if a.mouseState.off {
			words = "clicks and drags do nothing here now; Shift-drag selects by the terminal in most"
		}
		a.notes.say(words)
		return nil
	}}},
}

// mouse takes an act of the mouse.
func (a *App) mouse(e term.Mouse) {
	switch e.Kind {
	case term.WheelUp:
		a.wheel(e, 1)
	case term.WheelDown:
		a.wheel(e, -1)
	case term.Press:
		if e.Button == term.Left && !a.mouseState.off {
			a.press(e)
		}
	case term.Drag:
		if e.Button == term.Left && !a.mouseState.off {
			a.drag(e)
		}
	case term.Release:
		a.release()
	}
}

// wheel scrolls the question where that has the keyboard, else the pane under the
// pointer, one step at a time.
func (a *App) wheel(e term.Mouse, by int) {
	rows := a.o.Mouse.WheelRows
	if rows == 0 {
		rows = wheelRows
	}
	if a.railWheel(e.X, e.Y, by*rows) {
		return
	}
	if a.panel != nil && !a.railHas() {
		name := "down"
		if by > 0 {
			name = "up"
		}
		for range rows {
			a.key(term.Key{Name: name})
		}
		return
	}
	if a.answers.scroll(-by * rows) {
		return
	}
	if s, _ := a.under(e.X, e.Y); s != nil {
		s.up = max(0, s.up+by*rows)
	}
}

// under is the pane at a place, and the place in its rows, counted from its top; nil
// outside the transcripts.
func (a *App) under(x, y int) (*session, spot) {
	for _, s := range []*session{a.side, a.session} {
		if s == nil || s.height == 0 {
			continue
		}
		if x >= s.left0 && x < s.left0+s.width && y >= s.top0 && y < s.top0+s.height {
			return s, spot{row: s.topRow + y - s.top0, col: max(0, x-s.left0-s.gutter)}
		}
	}
	return nil, spot{}
}

// press focuses a pane and begins a selection; a second one takes a word, a third a line.
func (a *App) press(e term.Mouse) {
	m := &a.mouseState
	now := a.o.Now()
	if now.Sub(m.at) < doubleClick && m.x == e.X && m.y == e.Y {
		m.clicks++
	} else {
		m.clicks = 1
	}
	m.at, m.x, m.y, m.moved = now, e.X, e.Y, false
	for _, s := range []*session{a.session, a.side} {
		if s != nil {
			s.mark.from = nil
		}
	}
	if a.railPress(e.X, e.Y) || a.panel != nil {
		m.in = nil
		return
	}
	s, at := a.under(e.X, e.Y)
	m.in = s
	if s == nil {
		return
	}
	if a.o.Mouse.Click && a.side != nil {
		a.inSide = s == a.side
	}
	if a.o.Mouse.Select && m.clicks > 1 {
		m.moved = true
		s.selectPart(at, m.clicks)
	}
}

// selectPart selects the word at a place, or its whole line, wrapped rows and all.
func (s *session) selectPart(at spot, clicks int) {
	from, to := at, at
	rows := s.tr.Rows(s.look, at.row, at.row+1)
	if len(rows) == 0 {
		return
	}
	if clicks == 2 {
		from.col, to.col = wordAt(rows[0].Line.String(), at.col)
	} else {
		from.col, to.col = 0, 1<<20
		for from.row > 0 {
			before := s.tr.Rows(s.look, from.row-1, from.row)
			if len(before) == 0 || before[0].Line.End == text.Hard {
				break
			}
			from.row--
		}
		for {
			row := s.tr.Rows(s.look, to.row, to.row+1)
			if len(row) == 0 || row[0].Line.End == text.Hard {
				break
			}
			to.row++
		}
	}
	s.mark.from, s.mark.to = &from, to
}

// wordAt are the first and the last column of the word at one.
func wordAt(s string, col int) (from, to int) {
	at := 0
	from, to = col, col
	start := 0
	for cluster, w := range text.Clusters(s) {
		if strings.TrimSpace(cluster) == "" {
			if at > col {
				return start, at - 1
			}
			start = at + w
		}
		at += w
	}
	return min(start, col), max(col, at-1)
}

// drag selects by text within the pane in which it began.
func (a *App) drag(e term.Mouse) {
	m := &a.mouseState
	s := m.in
	if s == nil || !a.o.Mouse.Select {
		return
	}
	y := max(s.top0, min(e.Y, s.top0+s.height-1))
	to := spot{row: s.topRow + y - s.top0, col: max(0, e.X-s.left0-s.gutter)}
	if !m.moved {
		from := spot{row: s.topRow + m.y - s.top0, col: max(0, m.x-s.left0-s.gutter)}
		s.mark.from, m.moved = &from, true
	}
	s.mark.to = to
}

// release ends a selection, or is a click: it toggles the cell that was clicked.
func (a *App) release() {
	m := &a.mouseState
	s := m.in
	m.in = nil
	switch {
	case s == nil:
	case m.moved && a.o.Mouse.Copy:
		a.copy(s.selection())
	case !m.moved && a.o.Mouse.Click:
		at := s.topRow + m.y - s.top0
		if rows := s.tr.Rows(s.look, at, at+1); len(rows) == 1 && rows[0].Cell != nil {
			a.openCell(s, rows[0].Cell)
		}
	}
}

// selected takes a key while something is selected: y and alt+w copy it, any other
// drops the selection and acts as usual. It reports whether the key is done with.
func (a *App) selected(k term.Key) bool {
	if a.panel != nil {
		return false
	}
	for _, s := range []*session{a.session, a.side} {
		if s == nil || s.mark.from == nil {
			continue
		}
		words := s.selection()
		s.mark.from = nil
		if k.Name == "y" || k.Name == "alt+w" {
			a.copy(words)
			return true
		}
	}
	return false
}
