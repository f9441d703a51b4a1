package cells

import "strings"

// Words is the text of a cell that a search looks in: all that was said, folded or not.
func (c *Cell) Words() string {
	switch {
	case c.doc != nil:
		return clean(c.doc.source.String())
	case len(c.Calls) > 0:
		var b strings.Builder
		for _, call := range c.Calls {
			b.WriteString(call.Name + " " + clean(call.Arguments) + "\n" + clean(call.Result) + "\n")
		}
		return b.String()
	}
	return c.Text + "\n" + c.Detail
}

// Open unfolds the cell.
func (c *Cell) Open(l Look) {
	if !c.open(l) {
		c.Toggle(l)
	}
}

// CellAt is the cell of a row, counted from the top, and the cell's first row, which is
// later than the row where that stands between two cells; nil past the end.
func (t *Transcript) CellAt(l Look, row int) (*Cell, int) {
	at := 0
	for i, c := range t.cells {
		at += t.gap(i)
		h := c.Height(l)
		if row < at+h {
			return c, at
		}
		at += h
	}
	return nil, at
}

// Near is the person's message before a cell, or after it, or the range in which it may
// be; nil for none. Before a nil cell is the newest one.
func (t *Transcript) Near(cell *Cell, after bool) *Cell {
	at := len(t.cells)
	for i, c := range t.cells {
		if c == cell {
			at = i
		}
	}
	step := -1
	if after {
		step = 1
	}
	for i := at + step; i >= 0 && i < len(t.cells); i += step {
		if c := t.cells[i]; c.Kind == User && c.From == "" && c.Origin == "" || c.Kind == Folded {
			return c
		}
	}
	return nil
}
