package edit

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of what can be undone: the oldest steps are forgotten.
const (
	stepsMost = 1000
	bytesMost = 8 << 20
)

// step is one change, as it is undone and done again.
type step struct {
	at       Pos
	old, new string
	caret    Pos  // before it
	mode     rune // before it
	kind     kind
}

// kind says which steps belong together.
type kind uint8

const (
	other    kind = iota // stands alone
	typing               // characters of a word, one after another
	spacing              // the space after it
	deleting             // characters, one after another
)

func kindOf(s string) kind {
	r, n := utf8.DecodeRuneInString(s)
	switch {
	case strings.Contains(s, "\n"):
		return other
	case n == len(s) && unicode.IsSpace(r):
		return spacing
	}
	return typing
}

// record keeps a step. Characters of a word, with the spaces after it, make one; so do
// deletions in a row.
func (e *Editor) record(k kind, s step) {
	e.ahead = nil
	s.kind = k
	if n := len(e.past); n > 0 && e.join != other && e.grow(&e.past[n-1], s) {
		e.join = k
		return
	}
	e.join = k
	e.past = append(e.past, s)
	e.forget()
}

// grow adds a step to the one before it, where they belong together.
func (e *Editor) grow(last *step, s step) bool {
	switch {
	case s.kind == deleting && e.join == deleting && s.new == "" && last.new == "" && s.at == last.at:
		last.old += s.old // forward
		return true
	case s.kind == deleting && e.join == deleting && last.new == "" && endOf(s.at, s.old) == last.at:
		last.at, last.old = s.at, s.old+last.old
		return true
	case s.kind == typing && e.join == typing, s.kind == spacing && (e.join == typing || e.join == spacing):
		if s.old == "" && endOf(last.at, last.new) == s.at {
			last.new += s.new
			return true
		}
	}
	return false
}

// endOf is where a text ends that begins at a place.
func endOf(at Pos, s string) Pos {
	n := strings.Count(s, "\n")
	if n == 0 {
		return Pos{at.Line, at.Byte + len(s)}
	}
	return Pos{at.Line + n, len(s) - strings.LastIndexByte(s, '\n') - 1}
}

func (e *Editor) forget() {
	size, keep := 0, len(e.past)
	for keep > 0 && len(e.past)-keep < stepsMost {
		s := e.past[keep-1]
		if size += len(s.old) + len(s.new); size > bytesMost && keep < len(e.past) {
			break
		}
		keep--
	}
	e.past = e.past[keep:]
}

// Undo takes the newest step back, and reports whether there was one.
func (e *Editor) Undo() bool {
	if len(e.past) == 0 {
		return false
	}
	s := e.past[len(e.past)-1]
	e.past = e.past[:len(e.past)-1]
	after := e.mode
	e.swap(s.at, endOf(s.at, s.new), s.old)
	e.settle(s.caret, s.mode)
	s.mode = after
	e.ahead = append(e.ahead, s)
	return true
}

// Redo does the newest undone step again, and reports whether there was one.
func (e *Editor) Redo() bool {
	if len(e.ahead) == 0 {
		return false
	}
	s := e.ahead[len(e.ahead)-1]
	e.ahead = e.ahead[:len(e.ahead)-1]
	before := e.mode
	end := e.swap(s.at, endOf(s.at, s.old), s.new)
	e.settle(end, s.mode)
	s.mode = before
	e.past = append(e.past, s)
	return true
}

func (e *Editor) settle(caret Pos, mode rune) {
	e.caret, e.mode, e.goal, e.join = caret, mode, -1, other
	e.kills.still()
}
