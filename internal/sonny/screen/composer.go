package screen

import (
	"agent/internal/sonny/screen/edit"
	"agent/internal/sonny/screen/keys"
	"agent/internal/sonny/screen/term"
	"agent/internal/sonny/screen/text"
)

// composer is a text that is being written: a message, a filter, a reason. The zero
// value is empty.
type composer struct {
	ed *edit.Editor

	// What follows is of the composers of messages alone.
	stash   edit.Stash
	of      *session // nil on the start screen
	keptAs  string   // the key of what is kept
	file    string   // the same; "" until that was read
	mark    string   // of what is written on a start screen
	took    string   // the mark of the start screen whose text came here, while that has it too
	seen    [4]int   // the version that was looked at last
	unsaved bool
	then    func() // once, when what is kept is here; nil for nothing
	running bool   // it holds a command that runs now
	reading int    // pictures that are on their way into it
	offer   *shell // whose output goes with the next message, if the person wants it
}

// e is the editor, made at first use.
func (c *composer) e() *edit.Editor {
	if c.ed == nil {
		c.ed = edit.New()
	}
	return c.ed
}

func (c *composer) empty() bool { return c.ed == nil || c.ed.Empty() }

// text is the text as it is sent, pastes in full.
func (c *composer) text() string {
	if c.ed == nil {
		return ""
	}
	text, _ := c.ed.Message()
	return text
}

// set puts a text there that was not typed.
func (c *composer) set(s string) { c.e().SetText(s) }

func (c *composer) clear() { c.e().Clear() }

// editing are the keys of a readline prompt by the names of sonny.md 15.
var editing = map[string]func(*edit.Editor){
	"newline":         func(e *edit.Editor) { e.Type("\n") },
	"undo":            func(e *edit.Editor) { e.Undo() },
	"redo":            func(e *edit.Editor) { e.Redo() },
	"delete_forward":  (*edit.Editor).DeleteForward,
	"delete_back":     (*edit.Editor).DeleteBack,
	"char_left":       (*edit.Editor).Left,
	"char_right":      (*edit.Editor).Right,
	"line_start":      (*edit.Editor).LineStart,
	"line_end":        (*edit.Editor).LineEnd,
	"word_left":       (*edit.Editor).WordLeft,
	"word_right":      (*edit.Editor).WordRight,
	"kill_to_end":     (*edit.Editor).KillToEnd,
	"kill_to_start":   (*edit.Editor).KillToStart,
	"kill_word_back":  (*edit.Editor).KillWordBack,
	"kill_word_left":  (*edit.Editor).KillWordLeft,
	"kill_word_right": (*edit.Editor).KillWordRight,
	"yank":            (*edit.Editor).Yank,
	"yank_pop":        (*edit.Editor).YankPop,
	"transpose":       (*edit.Editor).Transpose,
}

// key edits a field that is one line: what does not edit and types nothing is not its.
func (c *composer) key(m *keys.Map, k term.Key) bool {
	for _, name := range m.Find(k.Name, keys.State{Empty: c.empty()}, keys.Composer) {
		if do := editing[name]; do != nil && name != "newline" {
			do(c.e())
			return true
		}
	}
	if k.Text == "" {
		return false
	}
	c.e().Type(k.Text)
	return true
}

// rows lays the text out for a width: at most height lines with the caret among them.
func (c *composer) rows(width, height int) (lines []text.Line, x, y int) {
	v := c.e().View(width, height)
	return v.Rows, v.Col, v.Row
}

// line is a field's text with its caret, for a row of a panel.
func (c *composer) line(head string, width int) (l text.Line, x int) {
	lines, x, _ := c.rows(max(1, width-text.Width(head)), 1)
	return text.Line{Spans: append([]text.Span{{Text: head, Role: text.Dim}}, lines[0].Spans...)}, x + text.Width(head)
}
