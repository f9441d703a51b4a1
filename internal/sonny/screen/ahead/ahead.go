// Package ahead is what is asked before the screen opens and before there is a daemon:
// the first run, which asks for a provider (sonny.md 19.1), and what is to be made of a
// folder's own files (3.4, 3.5). Each question stands alone on a terminal; a terminal on
// which screens are read out as lines is here as well.
package ahead

import "agent/internal/sonny/screen/term"

// Terminal is what the questions stand on: term.Terminal, Aloud, or a test's.
type Terminal interface {
	Events() <-chan term.Event
	Draw(*term.Frame)
	Write(string) // in the plain mode
	Size() (w, h int, err error)
	Suspend()
	Resume() error
	Copy(string) bool // to the clipboard; false where there is no way
}
