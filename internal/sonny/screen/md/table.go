package md

import (
	"sort"
	"strings"

	"agent/internal/sonny/screen/text"
	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
)

const (
	between   = 2 // cells between columns
	minColumn = 6 // cells; a table that would have less shows as records
)

// grid is a table's cells, the header's first.
type grid struct {
	rows  [][][]text.Span
	align []east.Alignment
}

func (p *page) table(t *east.Table) {
	cells, columns := 0, len(t.Alignments)
	for row := t.FirstChild(); row != nil; row = row.NextSibling() {
		cells += columns
	}
	if columns > maxColumns || cells > maxCells {
		p.tableSource(t)
		return
	}
	g := p.grid(t)
	widths := g.natural()
	if fit(widths, p.room()) {
		p.columns(g, widths)
		return
	}
	p.records(g)
}

// tableSource shows a table that is too much as it was written. It is the last thing
// in its block or is parted from what follows by a blank line.
func (p *page) tableSource(t *east.Table) {
	from := t.Pos()
	for from > 0 && p.src[from-1] != '\n' {
		from--
	}
	to := len(p.src)
	if next := t.NextSibling(); next != nil && next.Pos() > from {
		to = next.Pos()
	}
	l := &listing{opt: &p.doc.opt, lines: strings.Split(strings.TrimRight(string(p.src[from:to]), "\n"), "\n")}
	p.listing(l)
}

func (p *page) grid(t *east.Table) grid {
	g := grid{align: t.Alignments}
	for row := t.FirstChild(); row != nil; row = row.NextSibling() {
		look := text.Span{}
		if row.Kind() == east.KindTableHeader {
			look.Attr = text.Bold
		}
		cells := make([][]text.Span, 0, len(g.align))
		for c := ast.Node(row.FirstChild()); c != nil && len(cells) < len(g.align); c = c.NextSibling() {
			cells = append(cells, p.cell(c, look))
		}
		for len(cells) < len(g.align) {
			cells = append(cells, nil)
		}
		g.rows = append(g.rows, cells)
	}
	return g
}

// natural is how wide the columns are when nothing is wrapped.
func (g grid) natural() []int {
	widths := make([]int, len(g.align))
	for _, row := range g.rows {
		for i, cell := range row {
			widths[i] = max(widths[i], text.Line{Spans: cell}.Width(), 1)
		}
	}
	return widths
}

// fit shrinks the widest columns until all fit into room; false when one would fall
// under minColumn.
func fit(widths []int, room int) bool {
	room -= between * (len(widths) - 1)
	total := 0
	for _, w := range widths {
		total += w
	}
	if total <= room {
		return true
	}
	order := append([]int{}, widths...)
	sort.Ints(order)
	limit := 0
	for i, w := range order {
		limit = room / (len(order) - i)
		if w > limit {
			break
		}
		room -= w
	}
	if limit < minColumn {
		return false
	}
	for i := range widths {
		widths[i] = min(widths[i], limit)
	}
	return true
}

// columns draws the table as columns, a thin rule under the header.
func (p *page) columns(g grid, widths []int) {
	for i, row := range g.rows {
		p.tableRow(g, row, widths)
		if i == 0 {
			p.underline(widths)
		}
	}
}

func (p *page) underline(widths []int) {
	var spans []text.Span
	for i, w := range widths {
		if i > 0 {
			spans = append(spans, text.Span{Text: strings.Repeat(" ", between), Chrome: true})
		}
		n := max(w/max(text.Width(p.glyphs.rule), 1), 1)
		spans = append(spans, text.Span{Text: strings.Repeat(p.glyphs.rule, n), Role: text.Rule, Chrome: true})
	}
	p.row(spans)
}

// row puts one row that fits.
func (p *page) row(spans []text.Span) {
	p.put([]text.Line{{Spans: append(p.first[:len(p.first):len(p.first)], spans...)}})
}

// tableRow draws a row of the table, which is as many rows as its highest cell has.
func (p *page) tableRow(g grid, row [][]text.Span, widths []int) {
	cells := make([][]text.Line, len(row))
	height := 1
	for i, cell := range row {
		cells[i] = text.Wrap(cell, text.Frame{Width: widths[i]})
		height = max(height, len(cells[i]))
	}
	for y := range height {
		var spans []text.Span
		pad := 0
		for x := range cells {
			var line text.Line
			if y < len(cells[x]) {
				line = cells[x][y]
			}
			free := max(widths[x]-line.Width(), 0)
			left := leftOf(g.align[x], free)
			if pad += left; len(line.Spans) > 0 {
				spans = append(spans, blanks(pad)...)
				spans = append(spans, line.Spans...)
				pad = 0
			}
			pad += free - left + between
		}
		p.row(spans)
	}
}

// leftOf is how much of a cell's free room stands before its text.
func leftOf(a east.Alignment, free int) int {
	switch a {
	case east.AlignRight:
		return free
	case east.AlignCenter:
		return free / 2
	}
	return 0
}

// blanks are cells that are copied: they part the columns of a copy.
func blanks(n int) []text.Span {
	if n <= 0 {
		return nil
	}
	return []text.Span{{Text: strings.Repeat(" ", n)}}
}

// records draws each row of the table as lines of header and value.
func (p *page) records(g grid) {
	for i, row := range g.rows[1:] {
		if i > 0 {
			p.blank()
		}
		for x, cell := range row {
			p.field(g.rows[0][x], cell)
		}
	}
	if len(g.rows) == 1 {
		for _, header := range g.rows[0] {
			p.field(header, nil)
		}
	}
}

func (p *page) field(header, cell []text.Span) {
	spans := append(header[:len(header):len(header)], text.Span{Text: ": ", Attr: text.Bold})
	if len(cell) == 0 {
		spans[len(spans)-1].Text = ":"
	}
	f := p.frame()
	if p.room() >= minRoom+2 {
		f.Rest = append(f.Rest[:len(f.Rest):len(f.Rest)], text.Span{Text: "  ", Chrome: true})
	}
	p.put(text.Wrap(append(spans, cell...), f))
}
