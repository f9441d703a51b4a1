package cells

import (
	"strings"

	"agent/internal/sonny/screen/text"
)

// doc is a reply's text, laid out for one width at a time.
type doc struct {
	source strings.Builder
	width  int
	lines  []text.Line
	open   bool
}

func whole(s string) *doc {
	d := &doc{}
	d.source.WriteString(clean(s))
	return d
}

func streaming() *doc { return &doc{open: true} }

func (d *doc) append(s string) {
	d.source.WriteString(clean(s))
	d.width = 0
}

func (d *doc) text() string { return d.source.String() }

func (d *doc) layout(width int) {
	if d.width == width {
		return
	}
	d.width, d.lines = width, nil
	for _, line := range strings.Split(strings.TrimRight(d.source.String(), "\n"), "\n") {
		d.lines = append(d.lines, text.Wrap([]text.Span{{Text: line, Role: text.Bot}}, text.Frame{Width: width})...)
	}
}

func (d *doc) height(width int) int {
	d.layout(width)
	return len(d.lines)
}

func (d *doc) slice(width, from, to int) []text.Line {
	d.layout(width)
	return d.lines[from:to]
}
