package cells

import (
	"strings"

	"agent/internal/sonny/screen/md"
	"agent/internal/sonny/screen/text"
)

// doc is a reply: its text as it came, and what it looks like. A reply that is whole can
// sleep: then it is its text and its height alone, a tenth of what it is laid out.
type doc struct {
	o      md.Options
	md     *md.Doc // nil: asleep
	source strings.Builder
	whole  bool // nothing more comes

	width, rows int // the height that was asked for last, and at which width; 0: none was
}

func newDoc(o md.Options) *doc { return &doc{o: o} }

// wholeDoc is a reply that is whole. It sleeps until somebody wants to see it.
func wholeDoc(o md.Options, s string) *doc {
	d := &doc{o: o, whole: true}
	d.source.WriteString(s)
	return d
}

// styled is the same text, laid out otherwise.
func (d *doc) styled(o md.Options, whole bool) *doc {
	if whole {
		return wholeDoc(o, d.source.String())
	}
	again := newDoc(o)
	again.append(d.source.String())
	return again
}

// Restyle lays all replies out by other options, where they are others.
func (t *Transcript) Restyle(o md.Options) {
	if o == t.o {
		return
	}
	t.o = o
	for i := range t.Len() {
		if c := t.At(i); c.Kind == Reply {
			c.doc = c.doc.styled(o, !c.Live)
			c.Changed()
		}
	}
}

func (d *doc) append(s string) {
	d.awake().Append(s)
	d.source.WriteString(s)
}

// awake is the reply's Markdown.
func (d *doc) awake() *md.Doc {
	if d.md == nil {
		d.md = md.New(d.o)
		d.md.Append(d.source.String())
		if d.whole {
			d.md.Finish()
		}
	}
	return d.md
}

// sleepMost bounds a reply that may sleep, in bytes: to wake a longer one would hold up
// the frame that needs it.
const sleepMost = 64 << 10

// sleep lets go of what the reply looks like.
func (d *doc) sleep() {
	if d.whole && d.source.Len() <= sleepMost {
		d.md = nil
	}
}

// least is the narrowest that Markdown is laid out for, in cells.
const least = 8

func (d *doc) height(width int) int {
	width = max(width, least)
	if d.md != nil || d.width != width {
		d.width, d.rows = width, d.awake().Lines(width)
	}
	return d.rows
}

func (d *doc) slice(width, from, to int) []text.Line {
	return d.awake().Slice(max(width, least), from, to)
}
