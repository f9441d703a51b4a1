package screen

import (
	"context"

	"agent/internal/sonny/fault"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/keys"
	"agent/internal/sonny/screen/md"
)

// Taste is what [tui], [usage] and [notifications] say of the screen. No bot is made by it,
// and a change of it holds at once (sonny.md 20).
type Taste struct {
	Bang         bool   // !COMMAND runs a command
	EnterNewline bool   // Enter is a newline, and Alt+Enter sends
	QueueFirst   bool   // while a turn runs Enter queues and Tab steers
	DoubleEsc    bool   // two Esc open the rewind picker
	Editor       string // of the draft; "": $VISUAL, else $EDITOR
	Mouse        MouseUse
	Fold         cells.Fold
	Thoughts     bool      // thoughts stand unfolded
	Diffs        string    // "unified", "split", or "auto" and "": by the width
	ToolColour   bool      // a command's output keeps its colours
	Title        bool      // the terminal's title says how things stand
	Motion       bool      // what is under way pulses
	Keys         *keys.Map // nil: the defaults
	Markdown     md.Options
	Usage        Usage
	Notify       Notify
	// Reopen is the way to draw where the terminal must be opened anew for what is set; ""
	// where it need not be.
	Reopen Mode
}

// tasteWatch reads the settings again with each message that is sent, and where one was
// changed here.
var tasteWatch = feature{sent: func(a *App, _ string) { a.readTaste(nil) }}

// readTaste takes a change of the settings. then hears that all that is said there is on
// screen; it may be nil. What cannot be read is said once, and what held before holds.
func (a *App) readTaste(then func()) {
	if a.o.Tastes == nil {
		return
	}
	do(a, func(context.Context) (func() (Taste, []string), error) { return a.o.Tastes() },
		func(take func() (Taste, []string), err error) {
			if words := wordsOf(err); words != a.tasteless {
				if a.tasteless = words; err != nil {
					a.notes.fail(err)
				}
			}
			if take != nil {
				t, notices := take()
				a.takeTaste(t)
				for _, n := range notices {
					a.notes.say(n)
				}
			}
			if err == nil && then != nil {
				then()
			}
		})
}

func wordsOf(err error) string {
	if err == nil {
		return ""
	}
	return fault.Screen.Words(err)
}

// takeTaste has what is on screen look as the settings say now.
func (a *App) takeTaste(t Taste) {
	thoughts := t.Thoughts != a.o.Thoughts
	if a.o.Taste = t; a.o.Keys == nil {
		a.o.Keys = keys.Default()
	}
	for _, s := range []*session{a.session, a.side} {
		if s == nil {
			continue
		}
		s.tr.Restyle(t.Markdown)
		s.look.Fold, s.look.Colours = t.Fold, t.ToolColour
		if thoughts {
			s.look.Thoughts = t.Thoughts
		}
	}
}

// look is how a transcript is laid out that comes on screen.
func (t *Taste) look() cells.Look {
	return cells.Look{Fold: t.Fold, Thoughts: t.Thoughts, Colours: t.ToolColour}
}
