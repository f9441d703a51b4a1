package cells

import (
	"slices"
	"strings"

	"agent/internal/sonny/screen/text"
)

// Piece is a part of a transcript that can no longer change: a cell, or some blocks of a
// reply that may go on.
type Piece struct {
	Cell     *Cell
	from, to int // of a reply: its blocks
}

// First reports whether the piece begins its cell.
func (p Piece) First() bool { return p.from == 0 }

// Lines are the piece's rows, as the transcript shows them.
func (p Piece) Lines(l Look) []text.Line {
	if p.Cell.Kind != Reply {
		return p.Cell.lines(l)
	}
	return p.Cell.doc.awake().Rows(max(l.Width, least), p.from, p.to)
}

// Blocks are what a reply's blocks say, each as the model wrote it; nil for another cell.
func (p Piece) Blocks() (out []string) {
	if p.Cell.Kind != Reply {
		return nil
	}
	for i := p.from; i < p.to; i++ {
		out = append(out, clean(p.Cell.doc.awake().Source(i)))
	}
	return out
}

// Take gives what has become final since it was asked last, each piece once and in
// order: for who prints and never takes back (sonny.md 14). over tells which turns have
// ended, with everything of them in the transcript.
func (t *Transcript) Take(over func(turn int64) bool) []Piece {
	t.prints = true
	var out []Piece
	for i := t.untaken(); i < len(t.cells); i++ {
		c := t.cells[i]
		if c.Kind == Reply {
			if p, some := c.takeBlocks(); some {
				out = append(out, p)
			}
		}
		if !t.final(i, over) {
			break
		}
		if c.Kind != Reply && !c.told {
			out = append(out, Piece{Cell: c})
		}
		c.taken = true
	}
	return out
}

// untaken is the first cell that was not taken as a whole. Those before it were.
func (t *Transcript) untaken() int {
	for i := len(t.cells); i > 0; i-- {
		if t.cells[i-1].taken {
			return i
		}
	}
	return 0
}

// final reports whether the ith cell stays as it is.
func (t *Transcript) final(i int, over func(turn int64) bool) bool {
	c, last := t.cells[i], i == len(t.cells)-1
	switch {
	case c.Live:
		return c.Kind == Thought && !last // what follows it ended it
	case c.Kind == Call, c.Kind == Reads && !last:
		return over(c.Turn) || !slices.ContainsFunc(c.Calls, func(call *ToolCall) bool { return !call.done })
	case c.Kind == Reads:
		return over(c.Turn) // until then another may join
	}
	return true
}

// takeBlocks gives the blocks of a reply that have ended since.
func (c *Cell) takeBlocks() (Piece, bool) {
	n := c.doc.awake().Blocks()
	if c.doc.awake().Plain() && !c.plain {
		c.plain, c.blocks = true, 0 // its blocks are other ones now
	}
	if c.blocks >= n {
		return Piece{}, false
	}
	p := Piece{Cell: c, from: c.blocks, to: n}
	c.blocks, c.told = n, true
	return p, true
}

// Rest are the rows of what may still change: those that Take has not given.
func (t *Transcript) Rest(l Look) (out []text.Line) {
	for _, c := range t.cells[t.untaken():] {
		switch {
		case c.Kind == Reply:
			width := max(l.Width, least)
			given := len(c.doc.awake().Rows(width, 0, c.blocks))
			out = append(out, c.doc.slice(l.Width, given, c.doc.height(l.Width))...)
		case !c.told:
			out = append(out, c.lines(l)...)
		}
	}
	return out
}

// given reports whether some of a cell was taken.
func (c *Cell) given() bool { return c.taken || c.told }

// drop takes away what streams, and says so where some of it was taken already.
func (t *Transcript) drop(says string) {
	turn, told := int64(0), false
	for _, c := range t.cells {
		if c.Live && c.given() {
			turn, told = c.Turn, true
		}
	}
	t.settle()
	t.heirs = nil
	if told {
		t.Notice(turn, says, "")
	}
}

// inherit has a durable cell go on where the streamed one stopped that it replaces.
func (t *Transcript) inherit(c *Cell) *Cell {
	i := slices.IndexFunc(t.heirs, func(was *Cell) bool { return was.Kind == c.Kind })
	if i < 0 {
		return c
	}
	was := t.heirs[i]
	t.heirs = slices.Delete(t.heirs, i, i+1)
	c.told, c.blocks, c.plain = was.given(), was.blocks, was.plain
	return c
}

// Said is what a call came to as the screen shows it unfolded, line by line; nil for
// nothing.
func (c *ToolCall) Said() []string {
	var out []string
	for _, line := range c.body(Look{Width: wide, Colours: true}) {
		out = append(out, strings.TrimRight(strings.TrimPrefix(line.String(), "  "), " "))
	}
	return out
}

// wide is a width at which nothing that is read aloud is wrapped, in cells.
const wide = 4000

// Taken is the newest item that Take has given, with all before it; 0 for none.
func (t *Transcript) Taken() (node int64) {
	for _, c := range t.cells[:t.untaken()] {
		node = max(node, c.Node)
	}
	return node
}
