package term

import "agent/internal/sonny/screen/theme"

// Event is something that the terminal reports: one of the types below.
type Event interface{ event() }

// Key is a key that was pressed.
type Key struct {
	// Name is the chord as key maps spell it: "a", "A", "?", "space", "enter",
	// "ctrl+k", "alt+shift+a", "shift+tab", "pgup".
	Name string
	// Text is what the key types, "" for a chord and a key that types nothing.
	Text string
}

// Paste is text that was pasted, as the terminal sent it: line ends and control
// characters are the reader's to judge.
type Paste struct {
	Text string
	Cut  bool // it was longer than MaxPaste, and the rest was dropped
}

// Resize says that the terminal has another size, in cells.
type Resize struct{ W, H int }

// Focus says that the terminal got or lost the focus.
type Focus struct{ In bool }

// Background says that the terminal's background changed, or what it is.
type Background struct {
	Dark  bool
	Color theme.Color // not set where the terminal said only whether it is dark
}

// Clipboard is the terminal's answer to a question for its clipboard.
type Clipboard struct{ Text string }

// Closed is the last event: the terminal went away, or Close was called (Err is nil).
type Closed struct{ Err error }

// MouseKind is what the mouse did.
type MouseKind uint8

// The kinds. The wheel's are one step each.
const (
	Press MouseKind = iota
	Release
	Drag
	WheelUp
	WheelDown
	WheelLeft
	WheelRight
)

// Button is which button it was.
type Button uint8

// The buttons.
const (
	NoButton Button = iota
	Left
	Middle
	Right
)

// Mouse is an act of the mouse. X and Y count cells from the upper left, from 0.
type Mouse struct {
	X, Y             int
	Kind             MouseKind
	Button           Button
	Shift, Alt, Ctrl bool
}

func (Key) event()        {}
func (Paste) event()      {}
func (Resize) event()     {}
func (Focus) event()      {}
func (Background) event() {}
func (Clipboard) event()  {}
func (Closed) event()     {}
func (Mouse) event()      {}
