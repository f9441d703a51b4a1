// Package lists is a list of rows that covers a panel's room (sonny.md 11): the row at
// hand, a filter, what of it is in view, and drawing it. It knows neither what the rows
// are of nor what is done with them.
package lists

import (
	"strings"

	"agent/internal/sonny/screen/edit"
	"agent/internal/sonny/screen/keys"
	"agent/internal/sonny/screen/term"
	"agent/internal/sonny/screen/text"
)

// List is where a person is in a list. The zero value is at the first row, without a
// filter. It belongs to one goroutine.
type List struct {
	At     string      // the id of the row at hand
	Filter *edit.Field // nil for none
	Typing bool        // the filter has the keyboard
	Top    int         // the first row in view
}

// Through are the rows that the filter lets through.
func (l *List) Through(all []Row) []Row {
	if l.Filter == nil || l.Filter.Empty() {
		return all
	}
	words := strings.Fields(strings.ToLower(l.Filter.Text()))
	var out []Row
	for _, r := range all {
		in := r.Match
		if in == "" {
			in = r.Line.String()
		}
		if r.ID != "" && HasAll(strings.ToLower(in), words) {
			out = append(out, r)
		}
	}
	return out
}

// Hand is the index of the row at hand; -1 for none.
func (l *List) Hand(rows []Row) int {
	first := -1
	for i, r := range rows {
		if r.ID == "" {
			continue
		}
		if r.ID == l.At {
			return i
		}
		if first < 0 {
			first = i
		}
	}
	return first
}

// page is how many rows PgUp and PgDn go.
const page = 10

// Move takes a key that moves the row at hand. It reports whether it was one.
func (l *List) Move(key string, rows []Row) bool {
	switch key {
	case "up", "ctrl+p":
		l.step(rows, -1)
	case "down", "ctrl+n":
		l.step(rows, 1)
	case "pgup":
		l.step(rows, -page)
	case "pgdown":
		l.step(rows, page)
	case "home":
		l.step(rows, -len(rows))
	case "end":
		l.step(rows, len(rows))
	default:
		return false
	}
	return true
}

// step moves the row at hand over headings.
func (l *List) step(rows []Row, by int) {
	at := l.Hand(rows)
	last := at
	for i := at + sign(by); i >= 0 && i < len(rows) && by != 0; i += sign(by) {
		if rows[i].ID == "" {
			continue
		}
		last = i
		by -= sign(by)
	}
	if last >= 0 && last < len(rows) {
		l.At = rows[last].ID
	}
}

// Search begins a filter, which has the keyboard.
func (l *List) Search() { l.Filter, l.Typing = &edit.Field{}, true }

// Leave gives the keyboard back to the rows. A filter without words is none.
func (l *List) Leave() {
	l.Typing = false
	if l.Filter.Empty() {
		l.Filter = nil
	}
}

// Write has the filter take a key; the first row is at hand then.
func (l *List) Write(m *keys.Map, k term.Key) {
	l.Filter.Key(m, k.Name, k.Text)
	l.At = ""
}

// About is what stands around a list's rows.
type About struct {
	Title, Right string
	Head         text.Line // above the rows; without spans: none
	Without      string    // what stands there when no row does
	// Asks draws what is asked before something is done, in place of the filter, from a
	// row of the canvas on, and returns the row below it. nil: nothing is asked.
	Asks func(c term.Canvas, y, w int) int
	// Detail is what is shown of the row at hand below the rows; nil for nothing.
	Detail func(r Row, w int) []text.Line
}

// Draw draws rows that were let through, with what is around them.
func (l *List) Draw(c term.Canvas, rows []Row, about *About) {
	w, h := c.Size()
	c.Put(0, 0, text.Titled(about.Title, about.Right, w), w)
	y := 2
	if about.Asks != nil {
		y = about.Asks(c, y, w)
	} else if l.Filter != nil {
		line, x := l.Filter.Line("/ ", w-4)
		c.Put(2, y, line, w-2)
		if l.Typing {
			c.SetCursor(2+x, y)
		}
		y += 2
	}
	if len(about.Head.Spans) > 0 {
		c.Put(2, y, about.Head, w-2)
		y++
	}
	at := l.Hand(rows)
	if at >= 0 {
		l.At = rows[at].ID
	}
	var detail []text.Line
	if about.Detail != nil && at >= 0 {
		detail = about.Detail(rows[at], w-4)
	}
	room := max(1, h-y-1)
	if n := len(detail); n > 0 {
		room = max(min(len(rows), room), room-n-1)
		room = min(room, max(1, h-y-n-1))
	}
	l.InView(at, room, len(rows))
	for i := l.Top; i < len(rows) && i < l.Top+room; i++ {
		drawRow(c, y, w, rows[i], i == at)
		y++
	}
	if len(rows) == 0 {
		c.Put(2, y, text.Of(text.Dim, about.Without), w-2)
		y++
	}
	for i, line := range detail {
		if y+1+i < h {
			c.Put(2, y+1+i, line.Cut(w-4), w-2)
		}
	}
}

// InView moves what is in view so that the row of index at, where there is one, is among the
// room rows of n that are shown.
func (l *List) InView(at, room, n int) {
	l.Top = min(l.Top, max(0, n-room))
	if at >= 0 && at < l.Top {
		l.Top = at
	}
	if at >= l.Top+room {
		l.Top = at - room + 1
	}
}

func drawRow(c term.Canvas, y, w int, r Row, hand bool) {
	if hand {
		c.Fill(0, y, w, 1, text.Select)
		c.Put(0, y, text.Of(text.Accent, "▎"), 1)
	}
	c.Put(2, y, r.Line.Cut(w-3), w-2)
	if r.Shown != nil {
		r.Shown()
	}
}
