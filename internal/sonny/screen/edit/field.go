package edit

import (
	"agent/internal/sonny/screen/keys"
	"agent/internal/sonny/screen/text"
)

// Field is a text that is being written: a message, a filter, a reason. The zero value
// is empty. It belongs to one goroutine.
type Field struct{ ed *Editor }

// Editor is the text itself, for what moves in it and changes it. It is made at first use.
func (f *Field) Editor() *Editor {
	if f.ed == nil {
		f.ed = New()
	}
	return f.ed
}

// Empty reports whether nothing is written.
func (f *Field) Empty() bool { return f.ed == nil || f.ed.Empty() }

// Text is the text as it is sent, pastes in full.
func (f *Field) Text() string {
	if f.ed == nil {
		return ""
	}
	text, _ := f.ed.Message()
	return text
}

// Set puts a text there that was not typed.
func (f *Field) Set(s string) { f.Editor().SetText(s) }

// Clear takes away what is written; that can be undone.
func (f *Field) Clear() { f.Editor().Clear() }

// Key edits a field that is one line by a key's name and the text that it types. What
// does not edit and types nothing is not the field's: it reports whether it took the key.
func (f *Field) Key(m *keys.Map, name, typed string) bool {
	for _, action := range m.Find(name, keys.State{Empty: f.Empty()}, keys.Composer) {
		if do := Actions[action]; do != nil && action != "newline" {
			do(f.Editor())
			return true
		}
	}
	if typed == "" {
		return false
	}
	f.Editor().Type(typed)
	return true
}

// Rows lays the text out for a width in cells: at most height lines with the caret among
// them, and the caret's column and row.
func (f *Field) Rows(width, height int) (lines []text.Line, x, y int) {
	v := f.Editor().View(width, height)
	return v.Rows, v.Col, v.Row
}

// Line is the text after a head as one row of a width in cells, and the caret's column.
func (f *Field) Line(head string, width int) (l text.Line, x int) {
	lines, x, _ := f.Rows(max(1, width-text.Width(head)), 1)
	return text.Line{Spans: append([]text.Span{{Text: head, Role: text.Dim}}, lines[0].Spans...)}, x + text.Width(head)
}

// Actions are the keys of a readline prompt by the names of sonny.md 15.
var Actions = map[string]func(*Editor){
	"newline":         func(e *Editor) { e.Type("\n") },
	"undo":            func(e *Editor) { e.Undo() },
	"redo":            func(e *Editor) { e.Redo() },
	"delete_forward":  (*Editor).DeleteForward,
	"delete_back":     (*Editor).DeleteBack,
	"char_left":       (*Editor).Left,
	"char_right":      (*Editor).Right,
	"line_start":      (*Editor).LineStart,
	"line_end":        (*Editor).LineEnd,
	"word_left":       (*Editor).WordLeft,
	"word_right":      (*Editor).WordRight,
	"kill_to_end":     (*Editor).KillToEnd,
	"kill_to_start":   (*Editor).KillToStart,
	"kill_word_back":  (*Editor).KillWordBack,
	"kill_word_left":  (*Editor).KillWordLeft,
	"kill_word_right": (*Editor).KillWordRight,
	"yank":            (*Editor).Yank,
	"yank_pop":        (*Editor).YankPop,
	"transpose":       (*Editor).Transpose,
}
