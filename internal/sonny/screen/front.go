package screen

import (
	"slices"
	"time"

	"agent/internal/sonny/live"
	"agent/internal/sonny/screen/term"
	"agent/protocol"
)

// Mode is how the screen is drawn (sonny.md 14).
type Mode string

// The modes.
const (
	Full   Mode = "full"   // the whole terminal, on its alternate screen
	Inline Mode = "inline" // finished cells go into the terminal's scrollback, the rest stands below
	Plain  Mode = "plain"  // lines of text alone
)

// Modes are their names, in the order of help.
var Modes = []Mode{Full, Inline, Plain}

// ParseMode reads a mode's name.
func ParseMode(name string) (Mode, error) {
	if m := Mode(name); slices.Contains(Modes, m) {
		return m, nil
	}
	return "", protocol.Fail(protocol.UsageError, name+" is no way to draw: full, inline or plain")
}

// front is a way to show the app and to take what the person does. The model and all
// that changes it are the same for each.
type front interface {
	draw(a *App)
	// input takes what the terminal reports. It reports whether the screen goes on.
	input(a *App, e term.Event) bool
	// due is when to draw though nothing happened; the zero time for never.
	due(a *App) time.Time
	// close is called once, when the screen is left.
	close(a *App)
}

// frontOf is that of a mode.
func frontOf(o *Options) front {
	switch o.Mode {
	case Inline:
		return &inlineFront{}
	case Plain:
		return newPlainFront(o)
	}
	return &fullFront{}
}

// fullFront draws frames on the whole terminal.
type fullFront struct{ title string }

func (f *fullFront) draw(a *App) {
	frame := term.NewFrame(a.w, a.h)
	a.view(frame)
	a.o.Term.Draw(frame)
	titled(a, &f.title)
}

func (f *fullFront) input(a *App, e term.Event) bool { return a.input(e) }
func (f *fullFront) due(a *App) time.Time            { return a.nextSecond() }
func (f *fullFront) close(*App)                      {}

// titled sets the terminal's title where it is another one than was, and the progress that
// it shows.
func titled(a *App, was *string) {
	now := ""
	if a.o.Title {
		now = a.title()
	}
	a.showProgress(a.session != nil && a.state() == live.Working)
	if now != *was {
		*was = now
		a.o.Term.Title(now)
	}
}

// nextSecond is when clocks on screen go on; the zero time while there are none.
func (a *App) nextSecond() time.Time {
	if !a.moving() {
		return time.Time{}
	}
	return a.o.Now().Add(time.Second)
}

// over tells which turns of a session have ended with everything of them on screen.
func (s *session) over(a *App) func(turn int64) bool {
	b := a.botAt(s)
	whole := s.story.IsSettled()
	return func(turn int64) bool { return whole && (b == nil || b.Turn != turn) }
}
