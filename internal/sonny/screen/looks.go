package screen

import "agent/internal/sonny/screen/term"

// background follows the terminal to another one (sonny.md 13). A report of the scheme
// alone is followed by the question for the colour.
func (a *App) background(b term.Background) {
	if !b.Color.Set() {
		a.o.Term.AskBackground()
	}
	if a.o.Look == nil {
		return
	}
	if fault := a.o.Look(b, true); fault != nil {
		a.notes.fail(fault)
	}
}
