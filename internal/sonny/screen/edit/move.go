package edit

import (
	"unicode"
	"unicode/utf8"

	"agent/internal/sonny/screen/text"
)

// pieces yields what the caret moves over in a line: grapheme clusters, and chips alone.
func pieces(s string) func(yield func(from, to int) bool) {
	return func(yield func(from, to int) bool) {
		at := 0
		for at < len(s) {
			if r, n := utf8.DecodeRuneInString(s[at:]); isChip(r) {
				if !yield(at, at+n) {
					return
				}
				at += n
				continue
			}
			plain := s[at:]
			if i := chipIndex(plain); i >= 0 {
				plain = plain[:i]
			}
			for c := range text.Clusters(plain) {
				if !yield(at, at+len(c)) {
					return
				}
				at += len(c)
			}
		}
	}
}

// right is the place after the character at p.
func (e *Editor) right(p Pos) Pos {
	l := e.lines[p.Line].text
	if p.Byte == len(l) {
		if p.Line+1 < len(e.lines) {
			return Pos{p.Line + 1, 0}
		}
		return p
	}
	for from, to := range pieces(l) {
		if to > p.Byte && from <= p.Byte {
			return Pos{p.Line, to}
		}
	}
	return Pos{p.Line, len(l)}
}

// left is the place before the character before p.
func (e *Editor) left(p Pos) Pos {
	if p.Byte == 0 {
		if p.Line > 0 {
			return Pos{p.Line - 1, len(e.lines[p.Line-1].text)}
		}
		return p
	}
	for from, to := range pieces(e.lines[p.Line].text) {
		if to >= p.Byte {
			return Pos{p.Line, from}
		}
	}
	return Pos{p.Line, 0}
}

// goTo moves the caret without a change.
func (e *Editor) goTo(p Pos) {
	e.caret, e.goal, e.join = p, -1, other
	e.kills.still()
}

// Left and the others move the caret by one character.
func (e *Editor) Left() { e.goTo(e.left(e.caret)) }

// Right moves the caret a character on.
func (e *Editor) Right() { e.goTo(e.right(e.caret)) }

// LineStart moves to the start of the line.
func (e *Editor) LineStart() { e.goTo(Pos{e.caret.Line, 0}) }

// LineEnd moves to the end of the line.
func (e *Editor) LineEnd() { e.goTo(Pos{e.caret.Line, len(e.lines[e.caret.Line].text)}) }

// WordLeft moves to the start of the word, or of the one before.
func (e *Editor) WordLeft() { e.goTo(e.wordLeft(inWord)) }

// WordRight moves to the end of the word, or of the next.
func (e *Editor) WordRight() { e.goTo(e.wordRight()) }

// inWord and inBlack are the two notions of a word: of letters and digits, and of
// whatever is not blank.
func inWord(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || isChip(r)
}

func inBlack(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return s != "" && !unicode.IsSpace(r)
}

func (e *Editor) wordLeft(in func(string) bool) Pos {
	p := e.caret
	for found := false; ; {
		before := e.left(p)
		if before == p {
			return p
		}
		word := in(e.slice(before, p))
		if found && !word {
			return p
		}
		found, p = found || word, before
	}
}

func (e *Editor) wordRight() Pos {
	p := e.caret
	for found := false; ; {
		after := e.right(p)
		if after == p {
			return p
		}
		word := inWord(e.slice(p, after))
		if found && !word {
			return p
		}
		found, p = found || word, after
	}
}
