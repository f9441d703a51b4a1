package screen

import (
	"time"

	"agent/internal/sonny/screen/edit"
	"agent/internal/sonny/screen/keys"
	"agent/internal/sonny/screen/term"
)

// panel is what covers the body and has the keyboard.
type panel interface {
	view(a *App, c term.Canvas)
	// key takes a key, Esc too. It reports whether the panel is done with.
	key(a *App, k term.Key) (closed bool)
	hints() []string
}

const (
	leaveFor  = 2 * time.Second        // how long ctrl+c at rest waits for a second one
	doubleEsc = 600 * time.Millisecond // two presses within it are one chord (sonny.md 10.5)
	wheelRows = 3                      // how far one step of the wheel scrolls, without a setting
)

// input takes what the terminal reports. It reports whether the screen goes on.
func (a *App) input(e term.Event) bool {
	switch e := e.(type) {
	case term.Closed:
		return false
	case term.Key:
		a.key(e)
		a.complete()
		a.lastKey = a.o.Now()
	case term.Paste:
		if !a.answers.paste(a, e.Text) {
			a.paste(e)
		}
		a.lastKey = a.o.Now()
	case term.Focus:
		if a.telling.focus, a.telling.focusAt = &e.In, a.o.Now(); e.In {
			a.readTaste(nil) // who comes back may have changed a setting elsewhere
		}
	case term.Background:
		a.background(e)
	case term.Mouse:
		if e.Kind == term.Press {
			a.answers.click(a, e.X, e.Y)
		}
		a.mouse(e)
	}
	return !a.quit
}

// key goes to what has the keyboard: what is open, the question, the composer.
func (a *App) key(k term.Key) {
	leaving := a.leaving
	a.leaving = time.Time{}
	if k.Name == "ctrl+c" {
		a.ctrlC(leaving)
		return
	}
	if a.selected(k) {
		return
	}
	if a.panel != nil {
		if p := a.panel; p.key(a, k) && a.panel == p {
			a.panel = nil
			a.shut = a.o.Now()
		}
		return
	}
	if k.Name != "esc" {
		a.answers.left = time.Time{}
	}
	if a.answers.key(a, k) || a.menu.key(a, k) {
		return
	}
	chord := a.leader.Press(k.Name, a.o.Now())
	if chord == "" {
		return
	}
	for _, name := range a.o.Keys.Find(chord, a.keyState(), keys.Composer, keys.Transcript, keys.Global) {
		if a.perform(name, chord) {
			return
		}
	}
	if chord == k.Name && k.Text != "" {
		a.composing().Editor().Type(k.Text)
	}
}

// keyState is what bindings depend on.
func (a *App) keyState() keys.State {
	return keys.State{Empty: a.composing().Empty(), Start: a.at() == nil}
}

// perform does an action where it means something now. It reports whether it did.
func (a *App) perform(name, chord string) bool {
	e := a.composing().Editor()
	name = a.swapped(name, chord)
	if do := edit.Actions[name]; do != nil {
		do(e)
		return true
	}
	width := a.composerWidth()
	switch name {
	case "caret_up":
		return e.Up(width) || a.act("history_older")
	case "caret_down":
		return e.Down(width) || a.act("history_newer")
	case "line_previous":
		e.Up(width)
		return true
	case "line_next":
		e.Down(width)
		return true
	case "send":
		a.enter(delivery{queue: a.o.QueueFirst})
		return true
	case "queue":
		a.tab()
		return true
	case "close_or_interrupt":
		a.esc()
		return true
	}
	a.chord = chord
	return a.act(name)
}

// tab queues the message; with nothing written it goes to the question.
func (a *App) tab() {
	if a.composing().Empty() {
		if a.answers.open(a) || !a.takeOffer() {
			a.answers.focus(a)
		}
		return
	}
	if a.at() != nil {
		a.enter(delivery{queue: !a.o.QueueFirst})
	}
}

// swapped is the action of a chord where the settings have Enter make a newline.
func (a *App) swapped(name, chord string) string {
	switch {
	case !a.o.EnterNewline:
	case name == "send" && chord == "enter":
		return "newline"
	case name == "newline" && chord == "alt+enter":
		return "send"
	}
	return name
}

// esc closes what is open. With nothing open it interrupts, and at rest, twice with
// nothing written, it is rewind's chord.
func (a *App) esc() {
	now := a.o.Now()
	first := a.escaped
	a.escaped = time.Time{}
	switch s := a.at(); {
	case a.answers.holdsEsc(a):
	case a.shell != nil && !a.shell.ended:
		a.shell.stop()
		a.shut = now
	case s != nil && a.changing():
		a.out.Unchanged(&s.compose.Box)
		a.shut = now
	case a.inSide:
		a.closeSide()
		a.shut = now
	case s == nil:
	case s.working(a):
		a.interrupt()
		a.shut = now
	case !a.composing().Empty() || now.Sub(a.shut) < doubleEsc:
	case !a.o.DoubleEsc:
	case !first.IsZero() && now.Sub(first) < doubleEsc:
		a.act("rewind")
	default:
		a.escaped = now
	}
}

// ctrlC clears, interrupts, or asks once more and detaches.
func (a *App) ctrlC(leaving time.Time) {
	switch c := a.composing(); {
	case a.panel != nil:
		a.panel = nil
	case !c.Empty():
		a.cleared(c)
	case a.at() != nil && a.at().working(a):
		a.interrupt()
	case !leaving.IsZero() && a.o.Now().Sub(leaving) < leaveFor:
		a.leave()
	default:
		a.leaving = a.o.Now()
		a.notes.say("Ctrl+C again detaches; the bots go on")
	}
}

// cleared puts what was written into the history, and empties the composer.
func (a *App) cleared(c *composer) {
	for _, keep := range a.sent {
		keep(a, c.Text())
	}
	c.Clear()
}

func (a *App) scroll(rows int) {
	if s := a.at(); s != nil {
		s.up = max(0, s.up+rows)
	}
}
