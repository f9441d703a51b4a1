package screen

import (
	"fmt"
	"regexp"

	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/term"
	"agent/internal/sonny/screen/text"
)

// markCommands are of the cell at hand in a transcript (sonny.md 8.2, 12).
var markCommands = feature{
	actions: map[string]func(*App){
		"message_previous": func(a *App) { a.toMessage(false) },
		"message_next":     func(a *App) { a.toMessage(true) },
	},
}

// pointer is what is marked in a transcript: the cell at hand, what a search found, what
// is selected.
type pointer struct {
	cell *cells.Cell
	find *regexp.Regexp
	from *spot // the selection's ends; nil for none
	to   spot
}

// spot is a cell of a transcript's rows, counted from its top.
type spot struct{ row, col int }

func (p spot) before(q spot) bool { return p.row < q.row || p.row == q.row && p.col < q.col }

// toMessage goes to the person's message before, or after. Past the newest it follows
// the end again.
func (a *App) toMessage(after bool) {
	s := a.at()
	if s == nil || after && s.mark.cell == nil {
		return
	}
	next := s.tr.Near(s.mark.cell, after)
	switch {
	case next != nil && next.Kind == cells.Folded:
		s.story.Unfold(next, func() { a.toMessage(after) })
	case next != nil:
		s.mark.cell = next
		s.reveal(a, s.tr.Find(s.look, next), 1)
	case after:
		s.mark.cell, s.up = nil, 0
	default:
		s.reveal(a, 0, 1) // more of the history is loaded there
	}
}

// openMarked folds or unfolds the cell at hand. It reports whether there is one.
func (a *App) openMarked() bool {
	s := a.at()
	if s == nil || s.mark.cell == nil {
		return false
	}
	a.openCell(s, s.mark.cell)
	return true
}

// openCell folds or unfolds a cell; of a task's card the task comes beside.
func (a *App) openCell(s *session, c *cells.Cell) {
	if task := c.Task(); task != "" && a.world.Bot(task) != nil {
		a.goTo(task, true)
		return
	}
	c.Toggle(s.look)
}

// reveal brings a row into view, so many rows below the top.
func (s *session) reveal(a *App, row, below int) {
	h := max(1, s.height)
	total := s.tr.Height(s.look)
	s.top.cell = nil
	s.up = min(max(0, total-h-max(0, row-below)), max(0, total-h))
}

// held is the row at the top of a view, by its cell: whatever comes above or below it, is
// folded or wrapped anew, that row stays where it is.
type held struct {
	cell *cells.Cell
	off  int // rows below the cell's first
	up   int // how far above the end the view was
}

// anchor remembers the row at the top.
func (s *session) anchor(row int) {
	s.topRow = row
	cell, first := s.tr.CellAt(s.look, row)
	s.top = held{cell: cell, off: row - first, up: s.up}
}

// hold keeps the view where it was, but for what the person scrolled since.
func (s *session) hold(total, h int) {
	if t := s.top; s.up > 0 && t.up > 0 && t.cell != nil {
		if row := s.tr.Find(s.look, t.cell); row >= 0 {
			row += min(t.off, t.cell.Height(s.look)-1)
			s.up += total - h - row - t.up
		}
	}
	s.up = max(0, min(s.up, total-h))
}

// draw puts a row of the transcript on the canvas, marked as far as it is.
func (s *session) draw(c term.Canvas, y, gutter, row int, r cells.Row) {
	w, _ := c.Size()
	line := r.Line
	if s.mark.find != nil {
		line = highlight(line, s.mark.find)
	}
	if from, to, ok := s.mark.selected(row); ok {
		line = inverse(line, from, to)
	}
	c.Put(gutter, y, line, s.look.Width)
	if r.Cell != nil && r.Cell == s.mark.cell && w > 0 {
		c.Put(max(0, gutter-2), y, text.Of(text.Accent, "▎"), 1)
	}
}

// selected are the columns of a row that are in the selection.
func (m *pointer) selected(row int) (from, to int, ok bool) {
	if m.from == nil {
		return 0, 0, false
	}
	a, b := *m.from, m.to
	if b.before(a) {
		a, b = b, a
	}
	if row < a.row || row > b.row {
		return 0, 0, false
	}
	from, to = 0, 1<<20
	if row == a.row {
		from = a.col
	}
	if row == b.row {
		to = b.col + 1
	}
	return from, to, true
}

// highlight reverses what a search finds in a line.
func highlight(l text.Line, find *regexp.Regexp) text.Line {
	whole := l.String()
	for _, at := range find.FindAllStringIndex(whole, 50) {
		if at[1] > at[0] {
			l = inverse(l, text.Width(whole[:at[0]]), text.Width(whole[:at[1]]))
		}
	}
	return l
}

// inverse reverses the cells of a line from one column up to another, without its chrome.
func inverse(l text.Line, from, to int) text.Line {
	out := text.Line{End: l.End}
	col := 0
	for _, s := range l.Spans {
		for cluster, w := range text.Clusters(s.Text) {
			piece := s
			piece.Text = cluster
			if col >= from && col < to && !s.Chrome {
				piece.Attr |= text.Reverse
			}
			out.Spans = append(out.Spans, piece)
			col += w
		}
	}
	return out
}

// clip is the part of a line from one column up to another.
func clip(l text.Line, from, to int) text.Line {
	out := text.Line{End: l.End}
	col := 0
	for _, s := range l.Spans {
		for cluster, w := range text.Clusters(s.Text) {
			if col >= from && col < to {
				piece := s
				piece.Text = cluster
				out.Spans = append(out.Spans, piece)
			}
			col += w
		}
	}
	if to < col {
		out.End = text.Hard
	}
	return out
}

// selection is the text that is selected, as it is copied.
func (s *session) selection() string {
	m := &s.mark
	if m.from == nil {
		return ""
	}
	first, last := m.from.row, m.to.row
	if last < first {
		first, last = last, first
	}
	var lines []text.Line
	for i, r := range s.tr.Rows(s.look, first, last+1) {
		if from, to, ok := m.selected(first + i); ok {
			lines = append(lines, clip(r.Line, from, to))
		}
	}
	return text.Copied(lines)
}

// with are the rows from one up to another with those that are selected: they are there
// to be copied, however many they are.
func (m *pointer) with(from, to int) (first, last int) {
	if m.from == nil {
		return from, to
	}
	return min(from, m.from.row, m.to.row), max(to, m.from.row+1, m.to.row+1)
}

// below is the mark of a view that does not follow the end.
func (s *session) below(total int) string {
	if s.up == 0 {
		return ""
	}
	if n := total - s.left; n > 0 && s.left > 0 {
		return fmt.Sprintf(" ↓ %d new ", n)
	}
	return fmt.Sprintf(" ↓ %d more ", s.up)
}
