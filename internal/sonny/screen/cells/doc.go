package cells

import (
	"strings"

	"agent/internal/sonny/screen/md"
	"agent/internal/sonny/screen/text"
)

// doc is a reply: its Markdown, and its text as it came.
type doc struct {
	md     *md.Doc
	source strings.Builder
}

func newDoc(o md.Options) *doc { return &doc{md: md.New(o)} }

func wholeDoc(o md.Options, s string) *doc {
	d := newDoc(o)
	d.append(s)
	d.md.Finish()
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
	d.source.WriteString(s)
	d.md.Append(s)
}

// least is the narrowest that Markdown is laid out for, in cells.
const least = 8

func (d *doc) height(width int) int { return d.md.Lines(max(width, least)) }

func (d *doc) slice(width, from, to int) []text.Line {
	return d.md.Slice(max(width, least), from, to)
}
