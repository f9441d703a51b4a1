// Package diff draws what a call did to files (sonny.md 8.6): from git's output, from
// the records of the tools edit, write and apply_patch, or from two texts.
//
// A File is what was done to one; Unified and Split lay it out. What is too long is
// cut, and the count of what is left is shown.
package diff

import (
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// Bounds of one file's diff (sonny.md 8.6).
const (
	MaxBytes = 1 << 20 // of the rows' text, and of each of two texts compared
	MaxRows  = 5000
	context  = 3 // rows around a change
)

// The kinds of rows.
const (
	Same    = ' '
	Removed = '-'
	Added   = '+'
)

// Row is a line of a diff.
type Row struct {
	Op   byte
	Text string // without newline
	Bare bool   // the file ends here without a newline
}

// Hunk is a change with what stands around it.
type Hunk struct {
	Old, New int    // numbers of the first line in the file before and after, 0 where nobody knows
	Section  string // the line that the hunk stands under
	Rows     []Row
}

// File is what was done to one file. It is not changed once it is made, and is then
// safe for concurrent use.
type File struct {
	Old, New string // its path before and after, "" where there was none or is none
	Hunks    []Hunk

	// Whole counts of lines, those that were cut among them.
	Added, Removed int

	Cut int // rows that are left out
	// Beyond is how many lines of the file, before and after, were not compared.
	Beyond int

	Binary  bool
	OldSize int64 // bytes of a binary file, -1 where nobody knows
	NewSize int64

	size int // bytes of the rows' text
	rows int
}

// Path is the name under which the file is listed.
func (f *File) Path() string {
	if f.New == "" {
		return f.Old
	}
	return f.New
}

// add takes a row into the last hunk, or counts it where the file has too many.
func (f *File) add(r Row) {
	switch r.Op {
	case Added:
		f.Added++
	case Removed:
		f.Removed++
	}
	if f.full() || f.size+len(r.Text) > MaxBytes {
		f.Cut++
		return
	}
	h := &f.Hunks[len(f.Hunks)-1]
	h.Rows = append(h.Rows, r)
	f.rows++
	f.size += len(r.Text)
}

func (f *File) full() bool { return f.rows >= MaxRows || f.Cut > 0 }

// open begins a hunk.
func (f *File) open(h Hunk) {
	if f.full() {
		return
	}
	f.Hunks = append(f.Hunks, h)
}

// Compare gives what makes after of before. Texts over MaxBytes are compared as far
// as that.
func Compare(path, before, after string) *File {
	f := &File{Old: path, New: path, OldSize: -1, NewSize: -1}
	if isBinary(before) || isBinary(after) {
		f.Binary, f.OldSize, f.NewSize = true, int64(len(before)), int64(len(after))
		return f
	}
	before = f.within(before)
	after = f.within(after)
	f.compare(linesOf(before), edits(before, after), 1)
	return f
}

// isBinary reports a text that holds a NUL, as git does.
func isBinary(s string) bool { return strings.IndexByte(s[:min(len(s), 8000)], 0) >= 0 }

// within is the beginning of a text, at most MaxBytes of whole lines.
func (f *File) within(s string) string {
	if len(s) <= MaxBytes {
		return s
	}
	cut := strings.LastIndexByte(s[:MaxBytes], '\n') + 1
	f.Beyond += len(linesOf(s[cut:]))
	return s[:cut]
}

// linesOf splits a text after its newlines.
func linesOf(s string) []string {
	lines := strings.SplitAfter(s, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// edit replaces lines from (0 the first) to to.
type edit struct {
	from, to int
	lines    []string
}

// edits are what makes after of before, whole lines.
func edits(before, after string) []edit {
	var out []edit
	at, line := 0, 0
	count := func(to int) int {
		line += strings.Count(before[at:to], "\n")
		at = to
		if to == len(before) && to > 0 && before[to-1] != '\n' {
			return line + 1
		}
		return line
	}
	for _, e := range udiff.Lines(before, after) {
		from := count(e.Start)
		out = append(out, edit{from, count(e.End), linesOf(e.New)})
	}
	return out
}

// compare makes hunks of edits. first is the number of the first line.
func (f *File) compare(lines []string, edits []edit, first int) {
	at, shift := 0, 0
	for i, e := range edits {
		if i == 0 || e.from-at > 2*context {
			if i > 0 {
				f.same(lines, at, at+context)
			}
			at = max(at, e.from-context)
			f.open(Hunk{Old: number(first, at), New: number(first, at+shift)})
		}
		f.same(lines, at, e.from)
		for _, l := range lines[e.from:e.to] {
			f.add(row(Removed, l))
		}
		for _, l := range e.lines {
			f.add(row(Added, l))
		}
		at = e.to
		shift += len(e.lines) - (e.to - e.from)
	}
	if len(edits) > 0 {
		f.same(lines, at, at+context)
	}
}

// number is a line's number, 0 when that of the first is not known.
func number(first, at int) int {
	if first == 0 {
		return 0
	}
	return first + at
}

func (f *File) same(lines []string, from, to int) {
	for _, l := range lines[from:min(to, len(lines))] {
		f.add(row(Same, l))
	}
}

// row is a line of a text as a row.
func row(op byte, line string) Row {
	text, ended := strings.CutSuffix(line, "\n")
	return Row{Op: op, Text: strings.TrimSuffix(text, "\r"), Bare: !ended}
}
