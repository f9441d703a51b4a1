// Package md draws a model's Markdown as lines for the screen while it streams in
// (sonny.md 8.3). A block that has ended is laid out once for a width and kept; only
// the open one is laid out again.
//
// The parser is goldmark, with tables, strikethrough and task lists. Footnotes, raw
// HTML and links of unsafe schemes are text, and nothing is ever fetched. A line
// break of the model's is kept.
package md

import (
	"sort"
	"strings"

	"agent/internal/sonny/screen/text"
)

// What is over these bounds is shown as it was written (sonny.md 8.3).
const (
	maxMessageLines = 50_000
	maxMarks        = 100_000 // runs of *, _, `, ~ and the like
	maxColumns      = 256     // of a table
	maxCells        = 10_000  // of a table
	maxColoured     = 64 << 10
	maxColouredAll  = 256 << 10
)

// Options say how a message is drawn. The zero value is a UTF-8 terminal without
// links and colours.
type Options struct {
	// Links marks links to http, https and mailto in Span.URL, for a terminal that
	// takes them. Without it their address follows in brackets, once a message.
	Links bool

	Unwrapped bool // lines of code are not wrapped: rows may be wider than asked
	ASCII     bool // marks are drawn in ASCII
	Colour    bool // code is coloured
}

// FileLink is what Span.URL begins with for a link to a file: the path follows, with
// :line and :column where they were given. It is for Sonny alone, never for a
// terminal.
const FileLink = "file:"

// Doc is one message. It is for one goroutine. The lines that it gives are shared:
// nobody changes them.
type Doc struct {
	opt    Options
	split  splitter
	blocks []*block // that have ended
	plain  bool     // the message is shown as it was written
	paint  *painter

	refs  references
	shown map[string]int // an address that was spelled out: in which block
	codes int            // bytes of code in blocks that are settled

	width int
	laid  int   // blocks that are laid out at width
	ends  []int // the row after each of them

	open    []*block // what the text after the ended blocks looks like now
	openAt  int      // bytes of the message when it was laid out, -1 when it must be again
	running *listing // the lines of an open block of code, grown as they come
	bytes   int
	ended   bool
}

// New begins a message.
func New(o Options) *Doc {
	d := &Doc{opt: o, openAt: -1, shown: map[string]int{}, paint: newPainter(o.Colour)}
	d.split.out = d.add
	return d
}

// Append takes what comes next of the message, before Finish. It costs the length of
// delta, and what ends by it is not laid out before Lines or Slice ask for it.
func (d *Doc) Append(delta string) {
	if d.ended || delta == "" {
		return
	}
	d.bytes += len(delta)
	d.split.append(delta)
	d.checkBounds()
}

// Finish says that nothing more comes.
func (d *Doc) Finish() {
	if d.ended {
		return
	}
	d.split.finish()
	d.checkBounds()
	d.ended, d.openAt = true, -1
}

// Plain reports whether the message is over a bound and shown as it was written.
func (d *Doc) Plain() bool { return d.plain }

// add takes a block that has ended.
func (d *Doc) add(p piece) {
	b := d.block(p)
	b.first, b.ended = len(d.blocks) == 0, true
	d.blocks = append(d.blocks, b)
	d.running = nil
}

func (d *Doc) block(p piece) *block {
	b := &block{piece: p}
	if b.literal() {
		b.code = listingOf(&d.opt, p)
	}
	return b
}

// checkBounds turns a message that is too much into plain text.
func (d *Doc) checkBounds() {
	if d.plain || d.split.count <= maxMessageLines && d.split.marks <= maxMarks {
		return
	}
	var all strings.Builder
	for _, b := range d.blocks {
		all.WriteString(strings.Repeat("\n", b.blanks))
		all.WriteString(b.src)
	}
	all.Write(d.split.tail)
	d.plain, d.blocks, d.running = true, nil, nil
	d.split = splitter{out: d.add, plain: true}
	d.split.append(all.String())
	d.forget()
}

// forget drops what was laid out.
func (d *Doc) forget() {
	d.laid, d.ends, d.openAt = 0, d.ends[:0], -1
}

// Lines is how many rows the message takes at a width, which is at least 8.
func (d *Doc) Lines(width int) int {
	d.layout(width)
	n := d.settled()
	for _, b := range d.open {
		n += b.rowCount()
	}
	return n
}

// Ended is how many of the rows belong to blocks that have ended. They stay as they
// are at this width, whatever else comes, but for a message that turns out too long
// for Markdown.
func (d *Doc) Ended(width int) int {
	d.layout(width)
	return d.settled()
}

// settled is how many rows the ended blocks take.
func (d *Doc) settled() int {
	if len(d.ends) == 0 {
		return 0
	}
	return d.ends[len(d.ends)-1]
}

// Slice is the rows from (0 the first) to to, as far as there are any.
func (d *Doc) Slice(width, from, to int) []text.Line {
	d.layout(width)
	var out []text.Line
	first := sort.SearchInts(d.ends, from+1)
	at := 0
	if first > 0 {
		at = d.ends[first-1]
	}
	take := func(b *block) bool {
		n := b.rowCount()
		lo, hi := max(from-at, 0), min(to-at, n)
		if lo < hi {
			out = append(out, b.slice(d, lo, hi)...)
		}
		at += n
		return at < to
	}
	for _, b := range d.blocks[first:] {
		if !take(b) {
			return out
		}
	}
	for _, b := range d.open {
		if !take(b) {
			return out
		}
	}
	return out
}

// Code is the source of a block of code, counted from 1; false when there are not so
// many. A block that still comes counts as far as it has come.
func (d *Doc) Code(n int) (string, bool) {
	d.layout(max(d.width, 8))
	for _, blocks := range [2][]*block{d.blocks, d.open} {
		for _, b := range blocks {
			if n <= len(b.codes) && n > 0 {
				return b.codes[n-1].source(), true
			}
			n -= len(b.codes)
		}
	}
	return "", false
}

// Codes is how many blocks of code there are, the one that still comes among them.
func (d *Doc) Codes() int {
	d.layout(max(d.width, 8))
	n := 0
	for _, blocks := range [2][]*block{d.blocks, d.open} {
		for _, b := range blocks {
			n += len(b.codes)
		}
	}
	return n
}

// layout lays out the blocks that have ended since, and the open one where it has
// grown.
func (d *Doc) layout(width int) {
	if width != d.width {
		d.width = width
		d.forget()
	}
	for _, b := range d.blocks[d.laid:] {
		b.layout(d, d.laid)
		d.ends = append(d.ends, d.settled()+b.rowCount())
		d.laid++
		d.openAt = -1
	}
	if d.openAt != d.bytes {
		d.openAt = d.bytes
		d.layoutOpen()
	}
}

// layoutOpen lays out what has not ended: the open block, or what it and the line
// that has not ended would be if that line ended here.
func (d *Doc) layoutOpen() {
	d.open = nil
	if d.ended {
		return
	}
	if d.split.literal() {
		d.open = []*block{d.literalBlock()}
	} else {
		probe := d.split.probe(func(p piece) { d.open = append(d.open, d.block(p)) })
		probe.finish()
	}
	codes := d.codes
	for i, b := range d.open {
		b.first = i == 0 && len(d.blocks) == 0
		b.layout(d, len(d.blocks)+i)
	}
	d.codes = codes
}

// literalBlock is the open block of code or HTML, its listing grown by the lines
// that have come.
func (d *Doc) literalBlock() *block {
	s := &d.split
	b := &block{piece: piece{start: s.start, blanks: s.blanks, raw: s.raw}}
	if d.running == nil {
		d.running = &listing{opt: &d.opt, style: styleOf(b.piece), start: s.start}
	}
	d.running.grow(s.tail[s.from:])
	b.code = d.running
	return b
}
