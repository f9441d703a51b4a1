// Package edit is the composer's text (sonny.md 10.1): a caret that moves by what a
// person sees as a character, the editing keys of a readline prompt, undo, chips that
// stand for pastes and pictures, and rows for a width. It knows no terminal and no clock. A Field is such a text where it is one of a panel's.
package edit

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Pos is a place in the text: a line, and a byte of it between two characters.
type Pos struct{ Line, Byte int }

// before reports whether p comes before q.
func (p Pos) before(q Pos) bool { return p.Line < q.Line || p.Line == q.Line && p.Byte < q.Byte }

// Editor is a text that is being written. The zero value is not ready; New is. It is for
// one goroutine.
type Editor struct {
	lines []line
	caret Pos
	goal  int // the column that moving up and down keeps, -1 for the caret's own

	chips map[rune]Chip
	next  rune // of the next chip

	changes int // of the text, so far

	mode  rune // the first character, where it was typed into an empty composer
	past  []step
	ahead []step
	join  kind // what the newest step may grow by
	kills ring
	nav   navigation
	view  viewport
}

// line is a line without its newline, with the rows it was last laid out in.
type line struct {
	text string
	laid layout
}

// New is an empty editor.
func New() *Editor {
	return &Editor{lines: []line{{}}, goal: -1, chips: map[rune]Chip{}, next: firstChip}
}

// Empty reports whether nothing is written.
func (e *Editor) Empty() bool { return len(e.lines) == 1 && e.lines[0].text == "" }

// Caret is where the next character goes.
func (e *Editor) Caret() Pos { return e.caret }

// end is the place after everything.
func (e *Editor) end() Pos {
	last := len(e.lines) - 1
	return Pos{last, len(e.lines[last].text)}
}

// Changes counts what was changed in the text so far: while it stands, the text does.
func (e *Editor) Changes() int { return e.changes }

// slice is the text between two places, chips as their marks.
func (e *Editor) slice(from, to Pos) string {
	if from.Line == to.Line {
		return e.lines[from.Line].text[from.Byte:to.Byte]
	}
	var b strings.Builder
	b.WriteString(e.lines[from.Line].text[from.Byte:])
	for _, l := range e.lines[from.Line+1 : to.Line] {
		b.WriteByte('\n')
		b.WriteString(l.text)
	}
	b.WriteByte('\n')
	b.WriteString(e.lines[to.Line].text[:to.Byte])
	return b.String()
}

// swap puts a text in the place of another and returns where it ends.
func (e *Editor) swap(from, to Pos, with string) Pos {
	e.changes++
	head, tail := e.lines[from.Line].text[:from.Byte], e.lines[to.Line].text[to.Byte:]
	n := strings.Count(with, "\n")
	if n == 0 && from.Line == to.Line {
		e.lines[from.Line] = line{text: head + with + tail}
		return Pos{from.Line, from.Byte + len(with)}
	}
	fresh := make([]line, 0, n+1)
	for part := range strings.SplitSeq(with, "\n") {
		fresh = append(fresh, line{text: part})
	}
	at := Pos{from.Line + n, len(fresh[n].text)}
	if n == 0 {
		at.Byte += from.Byte
	}
	fresh[0].text = head + fresh[0].text
	fresh[n].text += tail
	e.lines = slices.Replace(e.lines, from.Line, to.Line+1, fresh...)
	return at
}

// change is swap as a step that can be undone. The caret goes to the end of what is new.
func (e *Editor) change(k kind, from, to Pos, with string) {
	old := e.slice(from, to)
	if old == "" && with == "" {
		return
	}
	s := step{at: from, old: old, new: with, caret: e.caret, mode: e.mode}
	end := e.swap(from, to, with)
	if from == (Pos{}) {
		e.mode = 0 // the first character is another one
	}
	e.caret, e.goal = end, -1
	e.record(k, s)
	e.kills.still()
}

// Type inserts what a key types, a newline among it.
func (e *Editor) Type(s string) {
	s = clean(s)
	first := e.Empty()
	e.change(kindOf(s), e.caret, e.caret, s)
	if r, n := utf8.DecodeRuneInString(s); first && n == len(s) && strings.ContainsRune(modes, r) {
		e.mode = r
	}
}

// modes are the characters that act at the beginning of an empty composer.
const modes = "!#&/"

// Mode is the character that decides what Enter does with the text, 0 for a plain
// message. It counts only where it was typed first into an empty composer: what came by
// paste, history, stash or an editor is plain text, and so are "//" and "# ".
func (e *Editor) Mode() rune {
	first := e.lines[0].text
	switch {
	case e.mode == 0 || !strings.HasPrefix(first, string(e.mode)):
		return 0
	case e.mode == '/' && strings.HasPrefix(first, "//"):
		return 0
	case e.mode == '#' && (strings.HasPrefix(first, "# ") || first == "#" && len(e.lines) > 1):
		return 0
	}
	return e.mode
}

// Backslash makes a newline of a backslash right before the caret, and reports whether
// there was one: "\" and Enter is a newline.
func (e *Editor) Backslash() bool {
	from := e.left(e.caret)
	if from == e.caret || e.slice(from, e.caret) != `\` {
		return false
	}
	e.change(other, from, e.caret, "\n")
	return true
}

// DeleteBack removes the character before the caret, a chip whole.
func (e *Editor) DeleteBack() { e.change(deleting, e.left(e.caret), e.caret, "") }

// DeleteForward removes the character after the caret, a chip whole.
func (e *Editor) DeleteForward() { e.change(deleting, e.caret, e.right(e.caret), "") }

// Clear empties the text and ends a walk through the history. It can be undone.
func (e *Editor) Clear() {
	e.change(other, Pos{}, e.end(), "")
	e.nav = navigation{}
}

// SetText replaces the text by one that was not typed here: of the history, an editor,
// a rewind. It can be undone.
func (e *Editor) SetText(s string) {
	e.change(other, Pos{}, e.end(), clean(s))
	e.mode = 0
}

// Insert puts a text at the caret that was not typed: a reference that was chosen.
func (e *Editor) Insert(s string) { e.change(other, e.caret, e.caret, clean(s)) }

// Word is what stands between the last blank of the line and the caret, for a menu that
// completes it. It is "" where a chip is in it.
func (e *Editor) Word() string {
	word := e.slice(e.wordStart(), e.caret)
	if chipIndex(word) >= 0 {
		return ""
	}
	return word
}

func (e *Editor) wordStart() Pos {
	before := e.lines[e.caret.Line].text[:e.caret.Byte]
	return Pos{e.caret.Line, strings.LastIndexAny(before, " \t") + 1}
}

// Complete puts a text in the place of Word. A command's slash that was typed still
// counts as typed.
func (e *Editor) Complete(s string) {
	mode := e.mode
	e.change(other, e.wordStart(), e.caret, clean(s))
	if mode != 0 && strings.HasPrefix(e.lines[0].text, string(mode)) {
		e.mode = mode
	}
}

// AtEnd reports whether the caret stands after everything.
func (e *Editor) AtEnd() bool { return e.caret == e.end() }

// Transpose swaps the characters around the caret, or at a line's end the two before it.
func (e *Editor) Transpose() {
	at := e.caret
	if at.Byte == len(e.lines[at.Line].text) {
		at = e.left(at)
	}
	from, to := e.left(at), e.right(at)
	if at.Line != e.caret.Line || from.Line != at.Line || to.Line != at.Line || from == at || at == to {
		return
	}
	e.change(other, from, to, e.slice(at, to)+e.slice(from, at))
}
