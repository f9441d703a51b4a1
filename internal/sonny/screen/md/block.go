package md

import (
	"strconv"
	"strings"

	"agent/internal/sonny/screen/text"
	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
)

// block is one block of a message and how it is laid out.
type block struct {
	piece
	first bool // of the message
	ended bool

	code  *listing   // of a block that is shown as it is
	known int        // references that stood before it, once it was parsed
	seen  bool       // it was parsed once
	codes []*listing // the blocks of code in it

	gap  bool // a blank row stands before it
	rows []text.Line
}

// literal reports whether a piece is shown as it is.
func (p piece) literal() bool {
	return p.raw || p.shape == fence || p.shape == indented || p.shape == html
}

func (b *block) rowCount() int {
	n := len(b.rows)
	if b.code != nil {
		n = b.code.partEnd
	}
	if b.gap {
		n++
	}
	return n
}

// slice is the rows from and to of the block.
func (b *block) slice(d *Doc, from, to int) []text.Line {
	var out []text.Line
	if b.gap {
		if from == 0 {
			out = append(out, text.Line{})
		}
		from, to = max(from-1, 0), to-1
	}
	if b.code != nil {
		return append(out, b.code.slice(d.paint, from, to)...)
	}
	return append(out, b.rows[from:to]...)
}

// layout lays the block out at the document's width. index is its number in the
// message.
func (b *block) layout(d *Doc, index int) {
	b.gap = !b.first && b.blanks > 0 && (b.code == nil || !b.code.labelled())
	if b.code != nil {
		b.layoutCode(d)
		return
	}
	known := d.refs.count
	if b.seen {
		known = b.known
	}
	src := []byte(b.src)
	root, refs := d.refs.parse(src, known)
	before := d.codes
	if b.ended && !b.seen {
		b.seen, b.known = true, known
		d.refs.add(refs)
	}
	p := &page{
		doc: d, src: src, width: d.width, glyphs: d.opt.glyphs(), nth: b.nth,
		index: index, ended: b.ended, spelled: map[string]bool{},
	}
	p.children(root)
	b.rows, b.codes = p.rows, p.codes
	if len(b.rows) == 0 {
		b.gap = false
	}
	if !b.ended {
		d.codes = before
	}
}

func (b *block) layoutCode(d *Doc) {
	if !b.seen {
		b.code.allow(d.codes)
		b.seen = b.ended
		b.code.whole = b.ended
		if b.code.style == asCode {
			b.codes = []*listing{b.code}
			if b.ended {
				b.code.paint = nil
				d.codes += b.code.size
			}
		}
	}
	b.code.count(d.width)
}

// glyphs are the marks that Markdown is drawn with.
type glyphs struct {
	bullets [2]string
	quote   string
	rule    string
	wrapped string
}

func (o *Options) glyphs() glyphs {
	if o.ASCII {
		return glyphs{[2]string{"*", "-"}, "|", "-", ">"}
	}
	return glyphs{[2]string{"•", "◦"}, "│", "─", "↪"}
}

// minRoom is how many cells text keeps, however deep it stands.
const minRoom = 4

// page is a block that is being laid out.
type page struct {
	doc     *Doc
	src     []byte
	width   int
	glyphs  glyphs
	nth     int // the number of the first item of a list on the top level
	index   int
	ended   bool
	spelled map[string]bool

	rows        []text.Line
	codes       []*listing
	first, rest []text.Span // before the next row, and before the others
	depth       int         // of lists
	bullets     int         // of lists without numbers
}

// put adds rows that were wrapped with the page's prefixes.
func (p *page) put(rows []text.Line) {
	p.rows = append(p.rows, rows...)
	p.first = p.rest
}

// flow wraps lines of spans.
func (p *page) flow(lines [][]text.Span) {
	for _, spans := range lines {
		p.put(text.Wrap(spans, p.frame()))
	}
}

func (p *page) frame() text.Frame {
	return text.Frame{Width: p.width, First: p.first, Rest: p.rest}
}

// room is how many cells a row has for text.
func (p *page) room() int { return p.width - text.Line{Spans: p.rest}.Width() }

// blank adds an empty row, with the gutters of quotes.
func (p *page) blank() {
	spans := p.rest
	for len(spans) > 0 && strings.TrimSpace(spans[len(spans)-1].Text) == "" {
		spans = spans[:len(spans)-1]
	}
	p.rows = append(p.rows, text.Line{Spans: spans})
}

// inside lays out what stands behind a prefix: first before its first row, rest
// before the others. Where that leaves no room it stands without.
func (p *page) inside(first, rest text.Span, within func()) {
	outer := p.rest
	if p.room()-text.Width(rest.Text) >= minRoom {
		p.first = append(p.first[:len(p.first):len(p.first)], first)
		p.rest = append(p.rest[:len(p.rest):len(p.rest)], rest)
	}
	before := len(p.rows)
	within()
	if len(p.rows) == before {
		p.put(text.Wrap(nil, p.frame()))
	}
	p.rest, p.first = outer, outer
}

// children lays out the blocks within a node.
func (p *page) children(n ast.Node) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if c.PreviousSibling() != nil && len(p.rows) > 0 && p.parted(c) {
			p.blank()
		}
		p.block(c)
	}
}

// parted reports whether a blank row stands before a block.
func (p *page) parted(n ast.Node) bool {
	if code, ok := n.(*ast.FencedCodeBlock); ok && len(code.Language(p.src)) > 0 {
		return false // the row with its language is as good as one
	}
	return n.HasBlankPreviousLines() && n.Kind() != ast.KindLinkReferenceDefinition
}

func (p *page) block(n ast.Node) {
	switch n := n.(type) {
	case *ast.Heading:
		p.flow(p.inline(n, headingLook(n.Level)))
	case *ast.Paragraph, *ast.TextBlock:
		p.flow(p.inline(n, text.Span{}))
	case *ast.ThematicBreak:
		p.rule()
	case *ast.Blockquote:
		bar := text.Span{Text: p.glyphs.quote + " ", Role: text.Rule, Chrome: true}
		p.inside(bar, bar, func() { p.children(n) })
	case *ast.List:
		p.list(n)
	case *ast.FencedCodeBlock:
		info := ""
		if n.Info != nil {
			info = string(n.Info.Segment.Value(p.src))
		}
		p.code(n, start{shape: fence, info: info})
	case *ast.CodeBlock:
		p.code(n, start{shape: indented})
	case *ast.HTMLBlock:
		p.written(n)
	case *east.Table:
		p.table(n)
	}
}

func headingLook(level int) text.Span {
	switch level {
	case 1:
		return text.Span{Role: text.Accent, Attr: text.Bold}
	case 2:
		return text.Span{Attr: text.Bold}
	}
	return text.Span{Attr: text.Bold | text.Italic}
}

func (p *page) rule() {
	n := max(p.room()/max(text.Width(p.glyphs.rule), 1), 1)
	p.flow([][]text.Span{{{Text: strings.Repeat(p.glyphs.rule, n), Role: text.Rule, Chrome: true}}})
}

func (p *page) list(n *ast.List) {
	number := n.Start
	if p.depth == 0 && p.nth > 0 {
		number, p.nth = p.nth, 0
	}
	p.depth++
	if !n.IsOrdered() {
		p.bullets++
		defer func() { p.bullets-- }()
	}
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		if item.PreviousSibling() != nil && item.HasBlankPreviousLines() {
			p.blank()
		}
		mark := p.mark(n, item, number)
		number++
		first := text.Span{Text: mark, Role: text.Accent}
		rest := text.Span{Text: strings.Repeat(" ", text.Width(mark)), Chrome: true}
		p.inside(first, rest, func() { p.children(item) })
	}
	p.depth--
}

// mark is what stands before a list item.
func (p *page) mark(n *ast.List, item ast.Node, number int) string {
	if n.IsOrdered() {
		return strconv.Itoa(number) + string(n.Marker) + " "
	}
	if box := checkBox(item); box != nil {
		return boxMark(box)
	}
	return p.glyphs.bullets[(p.bullets-1)%2] + " "
}

// checkBox is the box of a task in a list, nil for any other item.
func checkBox(item ast.Node) *east.TaskCheckBox {
	if item.FirstChild() == nil || item.FirstChild().FirstChild() == nil {
		return nil
	}
	box, _ := item.FirstChild().FirstChild().(*east.TaskCheckBox)
	return box
}

func boxMark(box *east.TaskCheckBox) string {
	if box.IsChecked {
		return "[x] "
	}
	return "[ ] "
}

// code lays out code that stands within another block.
func (p *page) code(n ast.Node, s start) {
	l := &listing{opt: &p.doc.opt, style: asCode, start: s, whole: p.ended}
	for i := range n.Lines().Len() {
		seg := n.Lines().At(i)
		line := strings.TrimRight(string(seg.Value(p.src)), "\r\n")
		l.lines = append(l.lines, line)
		l.size += len(line) + 1
	}
	for len(l.lines) > 0 && strings.TrimSpace(l.lines[len(l.lines)-1]) == "" {
		l.size -= len(l.lines[len(l.lines)-1]) + 1
		l.lines = l.lines[:len(l.lines)-1]
	}
	l.allow(p.doc.codes)
	p.doc.codes += l.size
	p.codes = append(p.codes, l)
	p.listing(l)
}

// written lays out lines as they are.
func (p *page) written(n ast.Node) {
	l := &listing{opt: &p.doc.opt}
	for i := range n.Lines().Len() {
		seg := n.Lines().At(i)
		l.lines = append(l.lines, strings.TrimRight(string(seg.Value(p.src)), "\r\n"))
	}
	if html, ok := n.(*ast.HTMLBlock); ok && html.HasClosure() {
		l.lines = append(l.lines, strings.TrimRight(string(html.ClosureLine.Value(p.src)), "\r\n"))
	}
	p.listing(l)
}

// listing puts a listing's rows behind the page's prefixes.
func (p *page) listing(l *listing) {
	rows := l.slice(p.doc.paint, 0, l.count(p.room()))
	for i := range rows {
		rows[i].Spans = append(p.first[:len(p.first):len(p.first)], rows[i].Spans...)
		p.first = p.rest
	}
	p.put(rows)
}
