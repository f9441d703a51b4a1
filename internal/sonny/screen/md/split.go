package md

import (
	"bytes"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/util"
)

// Bounds of one block. What is longer is cut there and goes on as another.
const (
	maxLines      = 500
	maxBytes      = 64 << 10
	maxTableLines = maxCells + 2
	maxTableBytes = 1 << 20
	maxRuns       = 2000 // of inline marks: the parser's work grows with their square
	maxAsked      = 32   // questions to goldmark about one block
	batch         = 256  // lines of plain text in a block
)

// piece is a block that has ended, as the splitter hands it on.
type piece struct {
	start
	src    string // without blank lines around it
	blanks int    // lines before it
	raw    bool   // shown as it is, not parsed
	nth    int    // of a list item: its number in its list
}

// splitter tells where the blocks of a text that streams in end. It decides line by
// line, so the pieces in which text comes do not matter. What it cannot tell by
// looking at a line it asks goldmark, which then parses the open block.
//
// A block here is what stands on the top level, but that each item of a list is one
// of its own: no later item changes how an earlier one is drawn.
type splitter struct {
	tail []byte // from the blank lines before the open block on
	at   int    // in tail: where the line begins that has not ended
	seen int    // bytes of that line that hold no newline
	out  func(piece)

	plain bool // nothing is Markdown: lines go on by the batch

	opened bool
	start
	raw    bool
	from   int  // in tail: where the open block begins
	to     int  // where its last line that is not blank ends
	blanks int  // lines before it
	after  int  // blank lines since to
	lines  int  // of the open block
	lazy   bool // its last line continued a paragraph from outside of its container
	doubt  bool // only goldmark knows what goes on in it
	table  bool // it is a table: each cell is parsed by itself
	runs   int  // of inline marks in it
	asked  int  // how often goldmark was asked about it

	now   int // runs of inline marks in the line at hand
	marks int // and in all lines so far
	count int // lines so far

	last start // the block before, as far as a list may go on
	nth  int   // its number
}

// append takes the next piece of the text.
func (s *splitter) append(delta string) {
	s.tail = append(s.tail, delta...)
	for {
		n := bytes.IndexByte(s.tail[s.at+s.seen:], '\n')
		if n < 0 {
			s.seen = len(s.tail) - s.at
			return
		}
		n += s.seen
		s.seen = 0
		s.line(s.at, s.at+n+1)
	}
}

// probe is a splitter that goes on from here without any effect on this one.
func (s *splitter) probe(out func(piece)) splitter {
	p := *s
	p.out, p.tail = out, s.tail[:len(s.tail):len(s.tail)]
	return p
}

// finish ends the last line and the open block.
func (s *splitter) finish() {
	if s.at < len(s.tail) {
		s.line(s.at, len(s.tail))
	}
	s.end()
}

// line takes a line with its newline.
func (s *splitter) line(from, to int) {
	s.count++
	if s.plain {
		s.plainLine(from, to)
		return
	}
	line := s.tail[from:to]
	if util.IsBlank(line) {
		s.blank(to)
		return
	}
	if s.now = runsOfMarks(line); !s.literal() {
		s.marks += s.now
	}
	if s.opened && (s.full() || s.begins(from, to)) {
		moved := s.end()
		from, to = from-moved, to-moved
		line = s.tail[from:to]
	}
	if !s.opened {
		s.open(from, line)
	}
	s.lines += 1 + s.after
	s.after = 0
	s.runs += s.now
	s.to, s.at = to, to
	if s.endsWith(line) {
		s.end()
	}
}

// plainLine takes a line of a message that is shown as it was written.
func (s *splitter) plainLine(from, to int) {
	if !s.opened {
		s.opened, s.raw, s.from, s.lines = true, true, from, 0
	}
	s.lines++
	s.to, s.at = to, to
	if s.lines == batch {
		s.end()
	}
}

// literal reports whether the open block holds no Markdown.
func (s *splitter) literal() bool {
	return s.opened && (s.shape == fence || s.shape == indented || s.shape == html || s.raw)
}

func (s *splitter) blank(to int) {
	s.at = to
	switch {
	case !s.opened:
		s.blanks++
		return
	case s.doubt:
	case s.shape == fence || s.shape == html && htmlEnds[s.kind] != nil:
		// It may be the block's last line.
		s.lines += 1 + s.after
		s.after, s.to = 0, to
		return
	case s.shape == prose || s.shape == quote || s.shape == html:
		s.after++
		s.end()
		return
	}
	s.after++
}

// full reports whether the open block takes no more lines.
func (s *splitter) full() bool {
	switch {
	case s.literal():
		return false
	case s.table:
		return s.lines >= maxTableLines || s.to-s.from >= maxTableBytes
	}
	return s.lines >= maxLines || s.to-s.from >= maxBytes || s.runs+s.now > maxRuns
}

// open begins a block with the line at from.
func (s *splitter) open(from int, line []byte) {
	s.opened, s.from = true, from
	s.lines, s.asked, s.runs = 0, 0, 0
	s.lazy, s.doubt, s.table, s.raw = false, false, false, false
	if s.wild(line) {
		s.raw, s.start = true, start{shape: oneLine}
		return
	}
	s.start = begin(line)
	s.doubt = s.shape == item && bareItem(line)
}

// wild reports a line that is shown as it is: nobody wrote it as Markdown.
func (s *splitter) wild(line []byte) bool {
	return len(line) > maxBytes || s.now > maxRuns || nests(line) > tooDeep && !isRule(bytes.TrimLeft(line, " \t"))
}

// begins reports whether a line begins another block than the open one.
func (s *splitter) begins(from, to int) bool {
	line := s.tail[from:to]
	columns, _ := indentOf(line)
	switch {
	case s.shape == fence || s.shape == html:
		return false
	case s.shape == indented:
		return columns < 4
	case s.wild(line):
		return true
	case s.doubt:
		return columns < 4 && s.ask(from, to)
	case s.shape == quote:
		return s.leavesQuote(from, to)
	case s.shape == item:
		return s.leavesItem(from, to)
	}
	if s.interrupts(line) {
		return true
	}
	if mayDelimit(line) && !s.table {
		s.asked++
		s.table = s.asked <= maxAsked && lastKind(s.tail[s.from:to]) == east.KindTable
	}
	return false
}

// interrupts reports whether a line begins a block within a paragraph.
func (s *splitter) interrupts(line []byte) bool {
	if !special(line) || isSetext(line) {
		return false
	}
	switch st := begin(line); st.shape {
	case oneLine, fence, quote:
		return true
	case item:
		return !st.bare && (st.number == 1 || st.marker != '.' && st.marker != ')')
	case html:
		return st.kind != ast.HTMLBlockType7
	}
	return false
}

func (s *splitter) leavesQuote(from, to int) bool {
	line := s.tail[from:to]
	columns, at := indentOf(line)
	if columns < 4 && line[at] == '>' {
		s.lazy = false
		return false
	}
	return s.leavesLazily(from, to)
}

func (s *splitter) leavesItem(from, to int) bool {
	line := s.tail[from:to]
	columns, _ := indentOf(line)
	switch {
	case columns >= s.column:
		s.lazy = false
		s.doubt = bareItem(line)
		return false
	case s.after > 0 && columns < 4:
		return true
	case s.after > 0:
		s.doubt = true
		return false
	case columns < 4:
		if st := begin(line); st.shape == item && st.marker == s.marker {
			return true
		}
	}
	return s.leavesLazily(from, to)
}

// leavesLazily reports whether a line outside of a container begins a block, or
// continues a paragraph in it.
func (s *splitter) leavesLazily(from, to int) bool {
	if s.lazy && !special(s.tail[from:to]) {
		return false
	}
	if s.ask(from, to) {
		return true
	}
	s.lazy = true
	return false
}

// ask has goldmark tell whether a line begins a block. Who asks too often has one.
func (s *splitter) ask(from, to int) bool {
	s.asked++
	return s.asked > maxAsked || beginsBlock(s.tail[s.from:to], from-s.from)
}

// endsWith reports whether the open block ends with the line that it just took.
func (s *splitter) endsWith(line []byte) bool {
	switch {
	case s.shape == oneLine:
		return true
	case s.shape == fence:
		return s.lines > 1 && s.closes(line)
	case s.shape == html:
		return s.ends(line)
	case s.shape == prose && s.lines > 1 && !s.doubt && isSetext(line):
		kind := lastKind(s.tail[s.from:s.to])
		s.doubt = kind != ast.KindHeading && kind != ast.KindThematicBreak
		return !s.doubt
	}
	return false
}

// end hands the open block on. It gives how many bytes of tail went with it.
func (s *splitter) end() (moved int) {
	if !s.opened {
		return 0
	}
	s.out(s.piece())
	s.last, s.nth = s.start, s.ordinal()
	moved = s.to
	s.tail = s.tail[moved:]
	s.at -= moved
	s.opened = false
	s.blanks, s.after = s.after, 0
	return moved
}

// piece is the open block.
func (s *splitter) piece() piece {
	return piece{
		start: s.start, src: string(s.tail[s.from:s.to]), blanks: s.blanks, raw: s.raw, nth: s.ordinal(),
	}
}

// ordinal is the number of the open list item: the next one in a list that goes on.
func (s *splitter) ordinal() int {
	if s.shape == item && s.last.shape == item && s.last.marker == s.marker {
		return s.nth + 1
	}
	return s.number
}

// mayDelimit reports a line that may stand under the header of a table.
func mayDelimit(line []byte) bool {
	line = bytes.TrimRight(line, "\n")
	return bytes.IndexByte(line, '-') >= 0 && bytes.ContainsAny(line, "|:") && len(bytes.Trim(line, "-|: \t\r")) == 0
}

// runsOfMarks counts what may begin or end something within a line.
func runsOfMarks(line []byte) int {
	n, last := 0, byte(0)
	for _, c := range line {
		switch c {
		case '*', '_', '`', '~', '[', ']', '<':
			if c != last || c == '[' || c == '<' {
				n++
			}
		}
		last = c
	}
	return n
}
