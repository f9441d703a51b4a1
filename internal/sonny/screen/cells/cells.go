// Package cells is a transcript: a bot's durable history and what streams now, as cells
// that lay themselves out as lines (sonny.md 8). It does no I/O: whoever has the items
// and the events hands them in, in order.
package cells

import (
	"slices"
	"time"

	"agent/internal/sonny/screen/md"
	"agent/internal/sonny/screen/text"
)

// Look is how cells are laid out: what all of them share.
type Look struct {
	Width    int
	Output   bool // tool output and diffs are unfolded
	Thoughts bool // so are thoughts
	All      bool // everything is: the reader
	Colours  bool // those of a command's output are kept
	Fold     Fold
}

// Fold is how much stands folded (tui.fold, sonny.md 8.2).
type Fold struct {
	Output int    // lines of a call's result
	Diff   string // FoldPreview, FoldLine or FoldOpen
	Apart  bool   // each read of a run has a line of its own
}

// What of a diff stands folded.
const (
	FoldPreview = "preview" // its first lines
	FoldLine    = "line"    // how much it changed
	FoldOpen    = "open"    // all of it
)

// DefaultFold is what is folded where nobody says.
func DefaultFold() Fold { return Fold{Output: 2, Diff: FoldPreview} }

// Kind says what a cell is.
type Kind uint8

// The kinds.
const (
	User Kind = iota // the person's message, or another bot's, or a service's
	Thought
	Reply
	Call
	Reads // a run of reads and searches
	Notice
	Error
	Fault // something that Sonny needs does not work: an error in another colour
	Shell // a command of the person's own
	// Folded stands for cells that are not kept.
	Folded
)

// Cell is one entry of a transcript.
type Cell struct {
	Kind Kind
	Node int64 // the item it is of; 0 for what only streams, and for notices
	Turn int64

	From   string // of a message: another bot's name
	Origin string // of a message: the service that sent it
	Steer  bool   // of a message: it joined a running turn
	Text   string // of a message, a thought, a notice, an error
	Detail string // of a notice and an error: unfolded
	Took   time.Duration
	Used   string // of the message that began a turn: what that used, where all is shown
	How    string // of Shell: how it ended, "" for well

	began time.Time // of Shell

	Calls []*ToolCall // of Call: one; of Reads: all of them
	doc   *doc        // of Reply

	joined  int64    // of Reads: the newest item of which a call joined
	stretch *stretch // of Folded

	Live bool // more comes

	taken  bool // Take gave it as a whole
	told   bool // or some of it, or of what streamed before it
	blocks int  // of a reply: those that were given
	plain  bool // of a reply: it was given as it was written

	unfolded *bool // by the person's hand
	cache    []text.Line
	cached   Look
	fresh    bool
}

// Changed makes a cell be laid out anew.
func (c *Cell) Changed() { c.fresh = false }

// Toggle folds or unfolds this cell alone.
func (c *Cell) Toggle(l Look) {
	open := !c.open(l)
	c.unfolded = &open
	c.Changed()
}

// open reports whether the cell shows all that it has.
func (c *Cell) open(l Look) bool {
	switch {
	case l.All:
		return true
	case c.unfolded != nil:
		return *c.unfolded
	case c.Kind == Thought:
		return l.Thoughts
	}
	return l.Output
}

// Height is how many lines the cell has.
func (c *Cell) Height(l Look) int {
	switch c.Kind {
	case Reply:
		return c.doc.height(l.Width)
	case Folded:
		return c.stretch.height(l.Width)
	}
	return len(c.lines(l))
}

// Slice are the cell's lines from one up to another.
func (c *Cell) Slice(l Look, from, to int) []text.Line {
	switch c.Kind {
	case Reply:
		return c.doc.slice(l.Width, from, to)
	case Folded:
		return c.stretch.slice(from, to)
	}
	return c.lines(l)[from:to]
}

func (c *Cell) lines(l Look) []text.Line {
	if !c.fresh || c.cached != l || c.counts() {
		c.cache, c.cached, c.fresh = c.layout(l), l, true
	}
	return c.cache
}

// counts reports whether the cell shows what changes with time: for how long something
// waits, how a task does.
func (c *Cell) counts() bool { return slices.ContainsFunc(c.Calls, (*ToolCall).moves) }

// Transcript is the cells of one bot in order, the oldest first. It belongs to one
// goroutine.
type Transcript struct {
	// Now is the clock, for how long things took; nil: time.Now.
	Now func() time.Time

	// Card says how a task does; nil for one that is gone. Card may be nil: no task is shown.
	Card func(bot string) *Card
	// Process says how a background command does, by its handle; since is when it was seen to
	// start, zero where it was not. nil where nothing is known of it; Process may be nil too.
	Process func(handle string, since time.Time) *Card

	// Rule says whether a command rule let a script run outside that asked for it and was
	// put to nobody, and which. nil: no rule does.
	Rule func(script string) (rule string, by bool)

	o     md.Options
	cells []*Cell
	calls map[string]*ToolCall
	home  map[*ToolCall]*Cell

	thought *Cell // what streams now
	reply   *Cell
	since   time.Time // when the thinking began
	heirs   []*Cell   // what streamed, for the durable cells in its place

	prints bool // Take was called
}

// New is an empty transcript, whose replies are drawn as o says.
func New(o md.Options) *Transcript {
	return &Transcript{o: o, calls: map[string]*ToolCall{}, home: map[*ToolCall]*Cell{}}
}

// Like is an empty transcript whose replies are drawn as this one's.
func (t *Transcript) Like() *Transcript { return New(t.o) }

func (t *Transcript) now() time.Time {
	if t.Now != nil {
		return t.Now()
	}
	return time.Now()
}

// Len is how many cells there are, At the ith.
func (t *Transcript) Len() int       { return len(t.cells) }
func (t *Transcript) At(i int) *Cell { return t.cells[i] }

// Oldest is the node of the oldest item; 0 for none.
func (t *Transcript) Oldest() int64 {
	for _, c := range t.cells {
		if c.Node != 0 {
			return c.Node
		}
	}
	return 0
}

func (t *Transcript) add(c *Cell) *Cell {
	t.cells = append(t.cells, c)
	return c
}

// Call is a tool call by its id; nil for none.
func (t *Transcript) Call(id string) *ToolCall { return t.calls[id] }

// LastCall is the newest call that has ended; nil for none.
func (t *Transcript) LastCall() *ToolCall {
	for i := len(t.cells) - 1; i >= 0; i-- {
		for _, call := range slices.Backward(t.cells[i].Calls) {
			if call.done {
				return call
			}
		}
	}
	return nil
}

// Changed makes the cell of a call be laid out anew.
func (t *Transcript) Changed(call *ToolCall) {
	if c := t.home[call]; c != nil {
		c.Changed()
	}
}

// Source is the Markdown of the newest reply, and Code the nth block of code of the
// newest reply that has so many, counted from 1; "" for none.
func (t *Transcript) Source() string {
	for i := len(t.cells) - 1; i >= 0; i-- {
		if c := t.cells[i]; c.Kind == Reply {
			return c.doc.source.String()
		}
	}
	return ""
}

func (t *Transcript) Code(n int) string {
	for i := len(t.cells) - 1; i >= 0; i-- {
		if c := t.cells[i]; c.Kind == Reply {
			if code, ok := c.doc.awake().Code(n); ok {
				return code
			}
		}
	}
	return ""
}

// Replied reports whether the model has said or done anything.
func (t *Transcript) Replied() bool {
	return slices.ContainsFunc(t.cells, func(c *Cell) bool { return c.Kind == Reply || c.Kind == Call || c.Kind == Reads || c.Kind == Folded })
}

// Height is how many lines the whole transcript has.
func (t *Transcript) Height(l Look) int {
	total := 0
	for i, c := range t.cells {
		total += c.Height(l) + t.gap(i)
	}
	return total
}

// Measure finds the height of each cell, as Height does, for later. It keeps nothing else
// of what replies look like.
func (t *Transcript) Measure(l Look) {
	for _, c := range t.cells {
		if c.Height(l); c.Kind == Reply {
			c.doc.sleep()
		}
	}
}

// gap is how many empty lines stand before a cell.
func (t *Transcript) gap(i int) int {
	if i > 0 && t.cells[i].Kind == User {
		return 1
	}
	return 0
}

// Row is a line of the transcript, with the cell that it is of; nil for a gap.
type Row struct {
	Line text.Line
	Cell *Cell
}

// nearRows is how far from what is shown a reply stays laid out, in rows.
const nearRows = 200

// Rows are the lines from one up to another, counted from the top. Replies far from them
// keep their text and their height alone.
func (t *Transcript) Rows(l Look, from, to int) []Row {
	var out []Row
	at := 0
	for i, c := range t.cells {
		for range t.gap(i) {
			if at >= from && at < to {
				out = append(out, Row{})
			}
			at++
		}
		h := c.Height(l)
		if at+h > from && at < to {
			lo, hi := max(from-at, 0), min(to-at, h)
			for _, line := range c.Slice(l, lo, hi) {
				out = append(out, Row{line, c})
			}
		}
		if c.Kind == Reply && (at+h < from-nearRows || at > to+nearRows) {
			c.doc.sleep()
		}
		at += h
	}
	return out
}

// Find is the row at which a cell begins; -1 for a cell that is not here.
func (t *Transcript) Find(l Look, cell *Cell) int {
	at := 0
	for i, c := range t.cells {
		at += t.gap(i)
		if c == cell {
			return at
		}
		at += c.Height(l)
	}
	return -1
}
