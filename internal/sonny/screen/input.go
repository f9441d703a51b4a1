package screen

import (
	"time"

	"agent/internal/sonny/screen/term"
)

// panel is what covers the body and has the keyboard.
type panel interface {
	view(a *App, c term.Canvas)
	// key takes a key. Esc closes a panel that does not take it itself.
	key(a *App, k term.Key) (closed bool)
	hints() []string
}

// leaveFor is how long ctrl+c at rest waits for a second one.
const leaveFor = 2 * time.Second

// wheelRows is how far one step of the wheel scrolls.
const wheelRows = 3

// input takes what the terminal reports. It reports whether the screen goes on.
func (a *App) input(e term.Event) bool {
	switch e := e.(type) {
	case term.Closed:
		return false
	case term.Key:
		a.key(e)
		a.lastKey = a.o.Now()
	case term.Paste:
		a.answers.yield()
		a.composing().insert(pasted(e.Text))
		a.lastKey = a.o.Now()
	case term.Mouse:
		switch e.Kind {
		case term.WheelUp:
			a.scroll(wheelRows)
		case term.WheelDown:
			a.scroll(-wheelRows)
		}
	}
	return !a.quit
}

// key goes to what has the keyboard: what is open, the question, the composer.
func (a *App) key(k term.Key) {
	leaving := a.leaving
	a.leaving = time.Time{}
	switch k.Name {
	case "ctrl+c":
		a.ctrlC(leaving)
		return
	case "ctrl+z":
		a.suspend()
		return
	case "ctrl+l":
		a.o.Term.Redraw()
		return
	}
	if a.panel != nil {
		if a.panel.key(a, k) || k.Name == "esc" {
			a.panel = nil
		}
		return
	}
	if a.answers.key(a, k) {
		return
	}
	if a.global(k) || a.composing().key(k.Name, k.Text) {
		return
	}
}

// global are the keys that do the same wherever the caret stands.
func (a *App) global(k term.Key) bool {
	empty := a.composing().empty()
	switch k.Name {
	case "enter":
		if !a.continued() {
			a.send(delivery{})
		}
	case "tab":
		if a.session == nil || empty {
			return a.answers.focus(a)
		}
		a.send(delivery{queue: true})
	case "esc":
		a.esc()
	case "ctrl+d":
		if !empty {
			return false
		}
		a.quit = true
	case "shift+tab":
		a.nextRow()
	case "ctrl+o":
		if a.session != nil {
			a.session.look.Output = !a.session.look.Output
		}
	case "alt+t":
		if a.session != nil {
			a.session.look.Thoughts = !a.session.look.Thoughts
		}
	case "pgup":
		a.scroll(max(1, a.h/2))
	case "pgdown":
		a.scroll(-max(1, a.h/2))
	case "shift+up":
		a.scroll(1)
	case "shift+down":
		a.scroll(-1)
	case "ctrl+home":
		a.scroll(1 << 30)
	case "ctrl+end":
		a.scroll(-1 << 30)
	default:
		return false
	}
	return true
}

// continued makes a newline of a backslash and Enter.
func (a *App) continued() bool {
	c := a.composing()
	if c.at == 0 || c.buf[c.at-1] != '\\' {
		return false
	}
	c.key("backspace", "")
	c.insert("\n")
	return true
}

// esc closes the topmost open thing; with nothing open it interrupts.
func (a *App) esc() { a.interrupt() }

// ctrlC clears, interrupts, or asks once more and detaches.
func (a *App) ctrlC(leaving time.Time) {
	switch c := a.composing(); {
	case a.panel != nil:
		a.panel = nil
	case !c.empty():
		c.clear()
	case a.session != nil && a.session.working(a):
		a.interrupt()
	case !leaving.IsZero() && a.o.Now().Sub(leaving) < leaveFor:
		a.quit = true
	default:
		a.leaving = a.o.Now()
		a.notes.say("Ctrl+C again detaches; the bots go on")
	}
}

func (a *App) scroll(rows int) {
	if a.session != nil {
		a.session.up = max(0, a.session.up+rows)
	}
}
