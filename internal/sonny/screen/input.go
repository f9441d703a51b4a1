package screen

import (
	"time"

	"agent/internal/sonny/screen/term"
)

// panel is what covers the body and has the keyboard.
type panel interface {
	view(a *App, c term.Canvas)
	// key takes a key, Esc too. It reports whether the panel is done with.
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
	case term.Background:
		a.background(e)
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
	if k.Name == "ctrl+c" {
		a.ctrlC(leaving)
		return
	}
	if a.panel != nil {
		if p := a.panel; p.key(a, k) && a.panel == p {
			a.panel = nil
		}
		return
	}
	if a.answers.key(a, k) {
		return
	}
	if name := a.bound(k); name != "" && a.act(name) {
		return
	}
	a.composed(k)
}

// bindings are the keys of actions that mean the same with text in the composer, empty
// those that mean it only without.
var (
	bindings = map[string]string{
		"ctrl+z": "suspend", "ctrl+l": "redraw", "shift+tab": "row_next", "alt+a": "answer",
		"ctrl+o": "fold_output", "alt+t": "fold_thoughts",
		"pgup": "scroll_up", "pgdown": "scroll_down", "shift+up": "row_up", "shift+down": "row_down",
		"ctrl+home": "top", "ctrl+end": "bottom",
		"alt+right": "pane_next", "alt+left": "pane_previous",
	}
	empty = map[string]string{"ctrl+d": "detach", "ctrl+p": "peek_next", "ctrl+n": "peek_previous"}
)

// bound is the action that a key is bound to here; "" for none.
func (a *App) bound(k term.Key) string {
	if a.composing().empty() {
		if name := empty[k.Name]; name != "" {
			return name
		}
	}
	return bindings[k.Name]
}

// composed takes a key of the composer.
func (a *App) composed(k term.Key) {
	switch k.Name {
	case "enter":
		if !a.continued() {
			a.send(delivery{})
		}
	case "tab":
		if a.at() == nil || a.composing().empty() {
			a.answers.focus(a)
		} else {
			a.send(delivery{queue: true})
		}
	case "esc":
		if a.inSide {
			a.closeSide()
			return
		}
		a.interrupt()
	default:
		a.composing().key(k.Name, k.Text)
	}
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

// ctrlC clears, interrupts, or asks once more and detaches.
func (a *App) ctrlC(leaving time.Time) {
	switch c := a.composing(); {
	case a.panel != nil:
		a.panel = nil
	case !c.empty():
		c.clear()
	case a.at() != nil && a.at().working(a):
		a.interrupt()
	case !leaving.IsZero() && a.o.Now().Sub(leaving) < leaveFor:
		a.quit = true
	default:
		a.leaving = a.o.Now()
		a.notes.say("Ctrl+C again detaches; the bots go on")
	}
}

func (a *App) scroll(rows int) {
	if s := a.at(); s != nil {
		s.up = max(0, s.up+rows)
	}
}
