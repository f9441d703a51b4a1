package diff

import (
	"fmt"
	"strconv"
	"strings"

	"agent/internal/sonny/screen/text"
)

// Options say how a diff is drawn. The zero value wraps long lines and marks no words.
type Options struct {
	Words bool // changed words are marked within a changed line; for a screen with colour
	Cut   bool // long lines are cut, not wrapped
	ASCII bool // marks are drawn in ASCII
}

// minSide is how many cells a side of a split diff has at least.
const minSide = 60

// CanSplit reports whether two columns fit.
func CanSplit(width int) bool { return side(width) >= minSide }

// side is how wide a column of a split diff is.
func side(width int) int { return (width - text.Width(bar(false))) / 2 }

func bar(ascii bool) string {
	if ascii {
		return " | "
	}
	return " │ "
}

// View is a diff laid out.
type View struct {
	Lines []text.Line
	Hunks []int   // the row where each hunk begins
	At    []Place // what each row shows
}

// Place is a line of the file before and one after, 0 for none. Rows that only part
// hunks have none; those of a line that was wrapped all have the same.
type Place struct {
	Old, New int
	Hunk     int // counted from 0; -1 for none
}

// layout is a view that is being made.
type layout struct {
	View
	file   *File
	opt    Options
	width  int
	digits int
	hunk   int
}

// Unified lays a diff out in one column.
func Unified(f *File, width int, o Options) View {
	l := newLayout(f, width, o)
	l.each(func(old, new []numbered) {
		l.pairs(old, new, func(n numbered, words []stretch) { l.put(l.fit(n, words, width, true), n.place(l.hunk)) })
	})
	return l.View
}

// Split lays a diff out in two columns, what was before at the left. It takes a width
// for which CanSplit holds; below it the columns are as narrow as they must be.
func Split(f *File, width int, o Options) View {
	l := newLayout(f, width, o)
	l.each(func(old, new []numbered) {
		if len(old) > 0 && old[0].Op == Same {
			new = old
		}
		for i := range max(len(old), len(new)) {
			l.beside(at(old, i), at(new, i))
		}
	})
	return l.View
}

func newLayout(f *File, width int, o Options) *layout {
	return &layout{file: f, opt: o, width: width, digits: f.digits()}
}

// digits is how many cells the greatest line number takes, 0 where none is known.
func (f *File) digits() int {
	top := 0
	for _, h := range f.Hunks {
		if h.Old > 0 || h.New > 0 {
			top = max(top, h.Old+len(h.Rows), h.New+len(h.Rows))
		}
	}
	if top == 0 {
		return 0
	}
	return max(len(strconv.Itoa(top)), 3)
}

// numbered is a row with its line numbers, 0 for none.
type numbered struct {
	Row
	old, new int
}

func (n numbered) place(hunk int) Place {
	p := Place{Old: n.old, New: n.new, Hunk: hunk}
	switch n.Op {
	case Removed:
		p.New = 0
	case Added:
		p.Old = 0
	}
	return p
}

// number is the one that stands beside the row on its side.
func (n numbered) number(right bool) int {
	if n.Op == Removed || n.Op == Same && !right {
		return n.old
	}
	return n.new
}

func at(rows []numbered, i int) *numbered {
	if i >= len(rows) {
		return nil
	}
	return &rows[i]
}

// each goes through the file: what stays comes as old alone, a change as both.
func (l *layout) each(put func(old, new []numbered)) {
	l.note(l.binary())
	for i, h := range l.file.Hunks {
		l.hunk = i
		l.parting(i, h)
		l.Hunks = append(l.Hunks, len(l.Lines))
		var old, new []numbered
		flush := func() {
			if len(old)+len(new) > 0 {
				put(old, new)
			}
			old, new = nil, nil
		}
		for _, n := range numbers(h) {
			switch {
			case n.Op == Same:
				flush()
				put([]numbered{n}, nil)
			case n.Op == Removed:
				if len(new) > 0 {
					flush()
				}
				old = append(old, n)
			default:
				new = append(new, n)
			}
		}
		flush()
	}
	l.note(l.left())
}

// Line is the text of a line of the hunk, by its number after the change or, where that
// is 0, before it; "" where the hunk has none such.
func (h Hunk) Line(old, new int) string {
	for _, n := range numbers(h) {
		if new > 0 && n.Op != Removed && n.new == new || new == 0 && old > 0 && n.Op != Added && n.old == old {
			return n.Text
		}
	}
	return ""
}

// numbers gives a hunk's rows their numbers.
func numbers(h Hunk) []numbered {
	out := make([]numbered, 0, len(h.Rows))
	old, new := h.Old, h.New
	next := func(n *int) int {
		if *n == 0 {
			return 0
		}
		*n++
		return *n - 1
	}
	for _, r := range h.Rows {
		n := numbered{Row: r}
		if r.Op != Added {
			n.old = next(&old)
		}
		if r.Op != Removed {
			n.new = next(&new)
		}
		out = append(out, n)
	}
	return out
}

// put adds rows that show one place.
func (l *layout) put(rows []text.Line, p Place) {
	for _, row := range rows {
		l.Lines = append(l.Lines, row)
		l.At = append(l.At, p)
	}
}

// note adds a row that says something about the diff.
func (l *layout) note(s string, role text.Role) {
	if s != "" {
		l.put([]text.Line{text.Join(text.Span{Text: text.Cut(s, l.width, "…"), Role: role, Chrome: true})}, Place{Hunk: -1})
	}
}

// parting is the row before a hunk: what it stands under, or that lines are left out.
func (l *layout) parting(i int, h Hunk) {
	if i == 0 && h.Section == "" {
		return
	}
	gap := "⋯"
	if l.opt.ASCII {
		gap = "~"
	}
	spans := []text.Span{{Text: l.blank() + gap, Role: text.Dim, Chrome: true}}
	if h.Section != "" {
		spans = append(spans, text.Span{Text: " ", Chrome: true})
		spans = append(spans, text.Outside(h.Section, text.Span{Role: text.Dim, Chrome: true})...)
	}
	l.put([]text.Line{text.Join(spans...).Cut(l.width)}, Place{Hunk: -1})
}

// blank is the room of a line number.
func (l *layout) blank() string {
	if l.digits == 0 {
		return ""
	}
	return strings.Repeat(" ", l.digits+1)
}

// pairs puts what went and then what came, each with the words that changed.
func (l *layout) pairs(old, new []numbered, put func(numbered, []stretch)) {
	was := make([][]stretch, len(old))
	is := make([][]stretch, len(new))
	for i := range min(len(old), len(new)) {
		was[i], is[i] = l.words(old[i], new[i])
	}
	for i, n := range old {
		put(n, was[i])
	}
	for i, n := range new {
		put(n, is[i])
	}
}

func (l *layout) words(old, new numbered) (was, is []stretch) {
	if !l.opt.Words {
		return nil, nil
	}
	return changedWords(old.Text, new.Text)
}

// fit is a row as lines of at most width cells, in the right column or not.
func (l *layout) fit(n numbered, words []stretch, width int, right bool) []text.Line {
	first := l.gutter(n, right)
	spans := n.spans(words)
	if n.Bare {
		spans = append(spans, text.Span{Text: " (no newline at the end)", Role: text.Dim, Chrome: true})
	}
	if l.opt.Cut {
		return []text.Line{text.Join(append(first, spans...)...).Cut(width)}
	}
	if text.Join(first...).Width() > width-4 {
		first = nil
	}
	return text.Wrap(spans, text.Frame{Width: width, First: first, Rest: l.again(first)})
}

// gutter is a row's number and sign.
func (l *layout) gutter(n numbered, right bool) []text.Span {
	sign := text.Span{Text: string(n.Op) + " ", Role: n.role(), Chrome: true}
	if l.digits == 0 {
		return []text.Span{sign}
	}
	num := strings.Repeat(" ", l.digits)
	if i := n.number(right); i > 0 {
		num = fmt.Sprintf("%*d", l.digits, i)
	}
	return []text.Span{{Text: num + " ", Role: text.Dim, Chrome: true}, sign}
}

// again is the gutter of a wrapped row's other lines.
func (l *layout) again(first []text.Span) []text.Span {
	if len(first) == 0 {
		return nil
	}
	mark := "↪ "
	if l.opt.ASCII {
		mark = "> "
	}
	room := text.Line{Spans: first}.Width() - text.Width(mark)
	return []text.Span{{Text: strings.Repeat(" ", max(room, 0)) + mark, Role: text.Dim, Chrome: true}}
}

func (r Row) role() text.Role {
	switch r.Op {
	case Added:
		return text.Add
	case Removed:
		return text.Del
	}
	return text.Plain
}

// spans is a row's text, the words that changed bold.
func (r Row) spans(words []stretch) []text.Span {
	like := text.Span{Role: r.role()}
	if words == nil {
		return text.Outside(r.Text, like)
	}
	var out []text.Span
	from := 0
	for _, w := range words {
		like.Attr = 0
		if w.changed {
			like.Attr = text.Bold
		}
		out = append(out, text.Outside(r.Text[from:w.end], like)...)
		from = w.end
	}
	return out
}

// beside puts a row of the left column and one of the right.
func (l *layout) beside(old, new *numbered) {
	var was, is []stretch
	if old != nil && new != nil && old.Op != Same {
		was, is = l.words(*old, *new)
	}
	w := side(l.width)
	var left, right []text.Line
	p := Place{Hunk: l.hunk}
	if old != nil {
		left = l.fit(*old, was, w, false)
		p.Old = old.old
	}
	if new != nil {
		right = l.fit(*new, is, w, true)
		p.New = new.new
	}
	l.put(l.joined(left, right, w), p)
}

// joined is the lines of two columns as rows. A copy takes the right one along, or
// the left where there is no right.
func (l *layout) joined(left, right []text.Line, w int) []text.Line {
	parted := text.Span{Text: bar(l.opt.ASCII), Role: text.Rule, Chrome: true}
	rows := make([]text.Line, max(len(left), len(right)))
	for i := range rows {
		row := &rows[i]
		if i < len(left) {
			row.Spans, row.End = append([]text.Span{}, left[i].Spans...), left[i].End
		}
		if len(right) > 0 {
			row.End = text.Glue
			for j := range row.Spans {
				row.Spans[j].Chrome = true
			}
		}
		pad := strings.Repeat(" ", max(w-row.Width(), 0))
		row.Spans = append(row.Spans, text.Span{Text: pad, Chrome: true}, parted)
		if i < len(right) {
			row.Spans = append(row.Spans, right[i].Spans...)
			if i < len(right)-1 {
				row.End = right[i].End
			}
		}
	}
	rows[len(rows)-1].End = text.Hard
	return rows
}

// binary says what became of a file that is no text.
func (l *layout) binary() (string, text.Role) {
	f := l.file
	if !f.Binary {
		return "", text.Plain
	}
	arrow := " → "
	if l.opt.ASCII {
		arrow = " -> "
	}
	switch {
	case f.OldSize < 0 && f.NewSize < 0:
		return "binary", text.Dim
	case f.OldSize < 0 || f.Old == "":
		return "binary  " + size(f.NewSize), text.Dim
	case f.NewSize < 0 || f.New == "":
		return "binary  " + size(f.OldSize) + arrow + "gone", text.Dim
	}
	return "binary  " + size(f.OldSize) + arrow + size(f.NewSize), text.Dim
}

// size is a number of bytes for a person.
func size(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// left says what is not shown.
func (l *layout) left() (string, text.Role) {
	f := l.file
	var parts []string
	if f.Cut > 0 {
		parts = append(parts, "+"+strconv.Itoa(f.Cut)+plural(f.Cut)+" of the diff")
	}
	if f.Beyond > 0 {
		parts = append(parts, "+"+strconv.Itoa(f.Beyond)+plural(f.Beyond)+" of the file past 1 MiB")
	}
	if parts == nil {
		return "", text.Plain
	}
	return strings.Join(parts, ", ") + "; e opens the file", text.Dim
}

// Counts is +n −m: the lines that came and those that went. Only one of them is there
// when there are none of the other, and neither when lines are not what is counted: of
// a binary file, and of one that was deleted by name.
func (f *File) Counts(ascii bool) []text.Span {
	if f.Binary || f.New == "" && f.Removed == 0 {
		return nil
	}
	minus := "−"
	if ascii {
		minus = "-"
	}
	var out []text.Span
	if f.Added > 0 || f.Removed == 0 {
		out = append(out, text.Span{Text: "+" + strconv.Itoa(f.Added), Role: text.Add})
	}
	if f.Removed > 0 {
		if out != nil {
			out = append(out, text.Span{Text: " "})
		}
		out = append(out, text.Span{Text: minus + strconv.Itoa(f.Removed), Role: text.Del})
	}
	return out
}

// Preview is a diff folded to so many rows, at least 2: changed lines alone, each one
// row, and in the last how many more there are.
func Preview(f *File, width, rows int, o Options) []text.Line {
	o.Cut = true
	l := newLayout(f, width, o)
	if f.Binary {
		l.note(l.binary())
		return l.Lines
	}
	total := f.Added + f.Removed
	shown := total
	if total > rows {
		shown = rows - 1
	}
	l.first(shown)
	if rest := total - len(l.Lines); rest > 0 {
		l.note("+"+strconv.Itoa(rest)+plural(rest), text.Dim)
	}
	return l.Lines
}

func plural(n int) string {
	if n == 1 {
		return " line"
	}
	return " lines"
}

// first puts the first changed rows, which are few.
func (l *layout) first(rows int) {
	for i, h := range l.file.Hunks {
		l.hunk = i
		for _, n := range numbers(h) {
			if len(l.Lines) >= rows {
				return
			}
			if n.Op != Same {
				l.put(l.fit(n, nil, l.width, true), n.place(i))
			}
		}
	}
}
