package edit

import (
	"slices"
	"strings"

	"agent/client/termsafe"
	"agent/internal/sonny/screen/text"
)

// layout is a line's rows for a width: the byte each begins at.
type layout struct {
	width  int
	starts []int
}

// viewport is the part of the text that is seen.
type viewport struct {
	top   place
	width int
}

// place is a row of a line.
type place struct{ line, row int }

// View is what is seen of the text.
type View struct {
	Rows     []text.Line
	Row, Col int  // of the caret among Rows, in cells
	Above    bool // there is more above
	Below    bool // and below
}

// shown is how one piece of a line stands on screen, and its cells.
func (e *Editor) shown(piece string, width int) (text.Span, int) {
	r := []rune(piece)[0]
	if c, ok := e.chips[r]; ok {
		label := text.Cut(termsafe.OneLine(c.Label), width, "…")
		return text.Span{Text: label, Role: text.Accent}, text.Width(label)
	}
	if r == '\t' {
		n := min(4, width)
		return text.Span{Text: strings.Repeat(" ", n), Role: text.User}, n
	}
	s := termsafe.Prose.Text(piece)
	return text.Span{Text: s, Role: text.User}, text.Width(s)
}

// rows are the starts of a line's rows for a width. They break after spaces where they
// can. A line whose last row is full has another, empty one, for the caret.
func (e *Editor) rows(n, width int) []int {
	l := &e.lines[n]
	if l.laid.width == width && l.laid.starts != nil {
		return l.laid.starts
	}
	starts, used, brk, after := []int{0}, 0, -1, 0
	for from, to := range pieces(l.text) {
		_, w := e.shown(l.text[from:to], width)
		if used+w > width && from > starts[len(starts)-1] {
			if brk > starts[len(starts)-1] {
				starts, used = append(starts, brk), after
			}
			if used+w > width && from > starts[len(starts)-1] {
				starts, used = append(starts, from), 0
			}
			brk = -1
		}
		used += w
		after += w
		if l.text[from:to] == " " {
			brk, after = to, 0
		}
	}
	if used >= width && len(l.text) > 0 {
		starts = append(starts, len(l.text))
	}
	l.laid = layout{width, starts}
	return starts
}

// rowOf is the row of a place in its line, and its column in cells.
func (e *Editor) rowOf(p Pos, width int) (row, col int) {
	starts := e.rows(p.Line, width)
	row, ok := slices.BinarySearch(starts, p.Byte)
	if !ok {
		row--
	}
	s := e.lines[p.Line].text[starts[row]:p.Byte]
	for from, to := range pieces(s) {
		_, w := e.shown(s[from:to], width)
		col += w
	}
	return row, col
}

// span is the bytes of a row.
func (e *Editor) span(p place, width int) (from, to int) {
	starts := e.rows(p.line, width)
	if p.row+1 < len(starts) {
		return starts[p.row], starts[p.row+1]
	}
	return starts[p.row], len(e.lines[p.line].text)
}

// above is the row above another, false at the first.
func (e *Editor) above(p place, width int) (place, bool) {
	switch {
	case p.row > 0:
		return place{p.line, p.row - 1}, true
	case p.line > 0:
		return place{p.line - 1, len(e.rows(p.line-1, width)) - 1}, true
	}
	return p, false
}

// below is the row below another, false at the last.
func (e *Editor) below(p place, width int) (place, bool) {
	switch {
	case p.row+1 < len(e.rows(p.line, width)):
		return place{p.line, p.row + 1}, true
	case p.line+1 < len(e.lines):
		return place{p.line + 1, 0}, true
	}
	return p, false
}

// View is at most height rows of width cells with the caret among them. Rows are as few
// as the text has. It looks only at lines in view.
func (e *Editor) View(width, height int) View {
	width, height = max(width, 1), max(height, 1)
	row, col := e.rowOf(e.caret, width)
	at := place{e.caret.Line, row}
	e.scroll(at, width, height)
	v := View{Col: min(col, width-1)}
	_, v.Above = e.above(e.view.top, width)
	p, more := e.view.top, true
	for more && len(v.Rows) < height {
		if p == at {
			v.Row = len(v.Rows)
		}
		v.Rows = append(v.Rows, e.line(p, width))
		p, more = e.below(p, width)
	}
	v.Below = more
	return v
}

// scroll moves the view no further than it must for the caret to be in it, and so that
// it is full where there is enough.
func (e *Editor) scroll(at place, width, height int) {
	top := e.view.top
	if e.view.width != width || top.line >= len(e.lines) || top.row >= len(e.rows(top.line, width)) {
		top = at
	}
	if at.line < top.line || at.line == top.line && at.row < top.row {
		top = at
	}
	lowest := at // the highest top with the caret in the last row
	for range height - 1 {
		up, ok := e.above(lowest, width)
		if !ok {
			break
		}
		lowest = up
	}
	if top.line < lowest.line || top.line == lowest.line && top.row < lowest.row {
		top = lowest
	}
	seen := 1
	for p, ok := e.below(top, width); ok && seen < height; p, ok = e.below(p, width) {
		seen++
	}
	for ; seen < height; seen++ {
		up, ok := e.above(top, width)
		if !ok {
			break
		}
		top = up
	}
	e.view = viewport{top, width}
}

func (e *Editor) line(p place, width int) text.Line {
	from, to := e.span(p, width)
	s := e.lines[p.line].text[from:to]
	l := text.Line{}
	for a, b := range pieces(s) {
		span, _ := e.shown(s[a:b], width)
		if n := len(l.Spans); n > 0 && span.Role == text.User && l.Spans[n-1].Role == text.User {
			l.Spans[n-1].Text += span.Text
			continue
		}
		l.Spans = append(l.Spans, span)
	}
	if p.row+1 < len(e.rows(p.line, width)) {
		l.End = text.Glue
	}
	return l
}

// Up moves the caret a row up, keeping its column. It reports false on the first row,
// where the history begins.
func (e *Editor) Up(width int) bool { return e.vertical(width, e.above) }

// Down moves the caret a row down. It reports false on the last row.
func (e *Editor) Down(width int) bool { return e.vertical(width, e.below) }

func (e *Editor) vertical(width int, step func(place, int) (place, bool)) bool {
	width = max(width, 1)
	row, col := e.rowOf(e.caret, width)
	to, ok := step(place{e.caret.Line, row}, width)
	if !ok {
		return false
	}
	if e.goal >= 0 {
		col = e.goal
	}
	e.goTo(e.at(to, col, width))
	e.goal = col
	return true
}

// at is the place in a row nearest to a column.
func (e *Editor) at(p place, col, width int) Pos {
	from, to := e.span(p, width)
	last := p.row+1 == len(e.rows(p.line, width))
	s, used := e.lines[p.line].text[from:to], 0
	for a, b := range pieces(s) {
		_, w := e.shown(s[a:b], width)
		if used+w > col || !last && from+b == to {
			return Pos{p.line, from + a}
		}
		used += w
	}
	return Pos{p.line, to}
}

// Click puts the caret at a row and column of the newest View.
func (e *Editor) Click(row, col int) {
	p := e.view.top
	for range row {
		next, ok := e.below(p, e.view.width)
		if !ok {
			break
		}
		p = next
	}
	e.goTo(e.at(p, max(col, 0), e.view.width))
}
