package md

import (
	"bytes"
	"sort"
	"strings"

	"agent/internal/sonny/screen/text"
	"github.com/yuin/goldmark/util"
)

// style is how the lines of a listing look.
type style uint8

const (
	asWritten style = iota // plain text
	asCode                 // indented, in the colours of its language
)

// listing is lines that are shown as they are: code, raw HTML, plain text. Its rows
// are counted once for a width and made when they come into view.
type listing struct {
	opt   *Options
	style style
	start
	lines   []string // that have ended, without newline and indentation
	partial string   // the line that has not
	read    int      // bytes of the source behind lines
	size    int      // bytes of lines

	width   int
	ends    []int         // the row after each line
	partEnd int           // the row after the partial line
	paint   [][]text.Span // lines that are coloured; nil for one that is not yet
	whole   bool          // all that may be is coloured, as one text
	colours int           // bytes from the beginning that may be coloured
}

func styleOf(p piece) style {
	if !p.raw && (p.shape == fence || p.shape == indented) {
		return asCode
	}
	return asWritten
}

// listingOf is the lines of a block that has ended.
func listingOf(opt *Options, p piece) *listing {
	l := &listing{opt: opt, style: styleOf(p), start: p.start}
	l.grow([]byte(p.src))
	l.finish()
	return l
}

// grow takes the source again, with what has come since.
func (l *listing) grow(src []byte) {
	for {
		n := bytes.IndexByte(src[l.read:], '\n')
		if n < 0 {
			break
		}
		l.add(src[l.read:l.read+n], l.read == 0)
		l.read += n + 1
	}
	rest := src[l.read:]
	if l.style == asCode && l.shape == fence && (l.read == 0 || l.half(rest)) {
		rest = nil // the fence itself
	}
	l.partial = l.strip(rest)
}

// half reports whether the line that comes may become the end of the fence.
func (l *listing) half(line []byte) bool {
	return len(bytes.Trim(line, " "+string(l.char))) == 0
}

// add takes a line. Those of the fence itself are no part of it.
func (l *listing) add(line []byte, opens bool) {
	if l.style == asCode && l.shape == fence && (opens || l.closes(line)) {
		return
	}
	s := l.strip(line)
	l.lines = append(l.lines, s)
	l.size += len(s) + 1
}

// finish makes a line of what is left.
func (l *listing) finish() {
	if l.partial == "" {
		return
	}
	l.lines = append(l.lines, l.partial)
	l.size += len(l.partial) + 1
	l.partial = ""
}

// strip takes a line's indentation away as far as the block's goes.
func (l *listing) strip(line []byte) string {
	line = bytes.TrimSuffix(line, []byte("\r"))
	if l.style != asCode {
		return string(line)
	}
	indent := l.indent
	if l.shape == indented {
		indent = 4
	}
	return withoutIndent(line, indent)
}

// withoutIndent takes as many columns of blanks from the beginning of a line.
func withoutIndent(line []byte, columns int) string {
	at := 0
	for at < len(line) && columns > 0 {
		switch line[at] {
		case ' ':
			columns--
		case '\t':
			if columns -= util.TabWidth(0); columns < 0 {
				return strings.Repeat(" ", -columns) + string(line[at+1:])
			}
		default:
			return string(line[at:])
		}
		at++
	}
	return string(line[at:])
}

// source is the code for copying.
func (l *listing) source() string {
	if len(l.lines) == 0 {
		return l.partial
	}
	return strings.Join(l.lines, "\n") + "\n" + l.partial
}

// lang is the language that a fence names, "" for none.
func (l *listing) lang() string {
	name, _, _ := strings.Cut(l.info, " ")
	name, _, _ = strings.Cut(name, ",")
	return strings.Trim(name, "{}.")
}

// labelled reports whether a row with the language stands above the lines.
func (l *listing) labelled() bool { return l.style == asCode && l.lang() != "" }

// frame is how a line stands within width.
func (l *listing) frame(width int) text.Frame {
	if l.style == asWritten {
		return text.Frame{Width: width}
	}
	indent := 4
	switch {
	case width < 10:
		indent = 0
	case width < 16:
		indent = 2
	}
	if l.opt.Unwrapped {
		width = 1 << 30
	}
	return text.Frame{
		Width: width,
		First: gutter(strings.Repeat(" ", indent), text.Plain),
		Rest:  gutter(rightOf(l.opt.glyphs().wrapped+" ", indent), text.Dim),
	}
}

// gutter is text beside a row that is no part of it.
func gutter(s string, role text.Role) []text.Span {
	if s == "" {
		return nil
	}
	return []text.Span{{Text: s, Role: role, Chrome: true}}
}

// rightOf is a text at the right of width cells, or blanks where it has no room.
func rightOf(s string, width int) string {
	w := text.Width(s)
	if w > width {
		return strings.Repeat(" ", width)
	}
	return strings.Repeat(" ", width-w) + s
}

// count counts rows for a width: of lines not counted yet, and of the partial one.
func (l *listing) count(width int) int {
	if width != l.width {
		l.width, l.ends = width, l.ends[:0]
	}
	at := 0
	if l.labelled() {
		at = 1
	}
	if n := len(l.ends); n > 0 {
		at = l.ends[n-1]
	}
	frame := l.frame(width)
	for _, line := range l.lines[len(l.ends):] {
		at += rowsOf(line, frame)
		l.ends = append(l.ends, at)
	}
	l.partEnd = at
	if l.partial != "" {
		l.partEnd += rowsOf(l.partial, frame)
	}
	return l.partEnd
}

// rowsOf is how many rows a line takes.
func rowsOf(line string, f text.Frame) int {
	if len(line) <= f.Width-len(prefixText(f.First)) && text.Printable(line) {
		return 1
	}
	return len(text.Wrap(text.Outside(line, text.Span{}), f))
}

func prefixText(spans []text.Span) string {
	if len(spans) == 0 {
		return ""
	}
	return spans[0].Text
}

// slice is the rows from and to of those that count counted.
func (l *listing) slice(p *painter, from, to int) []text.Line {
	var out []text.Line
	if l.labelled() && from == 0 {
		out = append(out, l.label())
		from = 1
	}
	frame := l.frame(l.width)
	i := sort.SearchInts(l.ends, from+1)
	skip := from
	switch {
	case i > 0:
		skip -= l.ends[i-1]
	case l.labelled():
		skip--
	}
	for at := from - skip; at < to; i++ {
		rows := l.wrapped(p, i, frame)
		if len(rows) == 0 {
			break
		}
		lo := max(from-at, 0)
		hi := min(to-at, len(rows))
		if lo < hi {
			out = append(out, rows[lo:hi]...)
		}
		at += len(rows)
	}
	return out
}

// wrapped is the rows of a line; of none when there is no such line.
func (l *listing) wrapped(p *painter, i int, f text.Frame) []text.Line {
	switch {
	case i < len(l.lines):
		return text.Wrap(l.spans(p, i), f)
	case i == len(l.lines) && l.partial != "":
		return text.Wrap(text.Outside(l.partial, l.look()), f)
	}
	return nil
}

func (l *listing) look() text.Span {
	if l.style == asCode {
		return text.Span{Role: text.Code}
	}
	return text.Span{}
}

// label is the row with the language, at the right.
func (l *listing) label() text.Line {
	name := text.Cut(spell(l.lang()), max(l.width-1, 1), "…")
	pad := strings.Repeat(" ", max(l.width-text.Width(name), 0))
	return text.Join(text.Span{Text: pad, Chrome: true}, text.Span{Text: name, Role: text.Dim, Chrome: true})
}

// spell is a short text from outside, as it is shown.
func spell(s string) string {
	var b strings.Builder
	for _, span := range text.Outside(s, text.Span{}) {
		b.WriteString(span.Text)
	}
	return b.String()
}

// spans is a line in its colours.
func (l *listing) spans(p *painter, i int) []text.Span {
	if l.style != asCode || l.colours == 0 || !p.knows(l.lang()) {
		return text.Outside(l.lines[i], l.look())
	}
	if l.whole && l.paint == nil {
		l.paint = p.whole(l.lang(), l.lines, l.colours)
	}
	for len(l.paint) < len(l.lines) {
		l.paint = append(l.paint, nil)
	}
	if l.paint[i] == nil && !l.whole {
		l.paint[i] = p.line(l.lang(), l.lines[i])
	}
	if l.paint[i] == nil {
		return text.Outside(l.lines[i], l.look())
	}
	return l.paint[i]
}

// allow says how many bytes of code the message had before this block.
func (l *listing) allow(before int) {
	l.colours = 0
	if l.size <= maxColoured {
		l.colours = max(0, maxColouredAll-before)
	}
}
