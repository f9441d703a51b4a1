package screen

import (
	"agent/internal/sonny/pen"
	"agent/internal/sonny/screen/outbox"
	"agent/protocol"
)

// delivery is how a message goes.
type delivery struct {
	queue bool // its own turn after this one
}

// enter is the key that sends: a chip under the caret opens instead, and a text that
// was typed for something else than a message does that.
func (a *App) enter(d delivery) {
	c := a.composing()
	e := c.Editor()
	switch {
	case e.Backslash(), e.ExpandHere(), a.wakeDaemon():
	case a.changing() && !a.at().gone:
		a.putBack()
	case a.act("mode " + string(e.Mode())):
	default:
		a.send(d)
	}
}

// changing reports whether the composer holds a message of the line.
func (a *App) changing() bool {
	n, _ := a.composing().Changing()
	return n > 0
}

// putBack puts the message that is being changed back in line.
func (a *App) putBack() {
	c := a.composing()
	if m := outbox.Of(c.Editor().Draft()); m.Empty() || a.goes(c, m) {
		a.out.PutBack(&c.Box)
	}
}

// send sends what the composer holds. The text is gone from it only when the daemon has
// it (sonny.md 10.2): a refusal loses nothing.
func (a *App) send(d delivery) {
	c := a.composing()
	m := outbox.Of(c.Editor().Draft())
	if s := a.at(); s != nil && s.gone {
		a.openGone(s)
		return
	}
	if m.Empty() {
		if a.at() != nil && !a.openMarked() {
			a.out.Resume(&c.Box)
		}
		return
	}
	if !a.goes(c, m) {
		return
	}
	s := a.at()
	if s == nil {
		a.start.send(a, m)
		return
	}
	a.gone(c, m)
	a.out.Post(&c.Box, m, d.queue)
}

// goes reports whether a message can go out as it is, and says why not.
func (a *App) goes(c *composer, m outbox.Message) bool {
	if c.Reading() {
		a.notes.say("a picture is still being read; Enter again when its chip is there")
		return false
	}
	if len(m.Prompt()) > protocol.MaxPrompt {
		a.tooLarge(c, len(m.Prompt()))
		return false
	}
	if model, blind := a.blind(); blind && len(m.Pictures()) > 0 {
		a.notes.fail(protocol.Fail(pen.Unsupported, model+" takes no pictures by the note in ~/.agent/models; pick another with /model, or take the picture out"))
		return false
	}
	return true
}

// gone empties the composer of a message that is on its way, and brings back what was
// put aside.
func (a *App) gone(c *composer, m outbox.Message) {
	a.told(m)
	c.Editor().Sent()
	c.offer = nil
	c.Unstash()
}

// told tells the parts of the screen of a message that was sent, as it was typed.
func (a *App) told(m outbox.Message) {
	for _, keep := range a.sent {
		keep(a, m.Typed())
	}
}

// wakeDaemon starts a daemon that was ended, or that is not started unasked any more, on
// the person's word. It reports whether
// there was need.
func (a *App) wakeDaemon() bool {
	if a.lost == nil || !a.lost.Stopped && !a.lost.Spent {
		return false
	}
	select {
	case a.wake <- struct{}{}:
	default:
	}
	return true
}

// workspace is where a bot works.
func (a *App) workspace(s *session) string {
	if s != nil {
		if b := a.botAt(s); b != nil && b.Record.Workspace != nil {
			return *b.Record.Workspace
		}
	}
	return a.o.Folder.Path
}

// leave ends Sonny on the person's word, when what they wrote is saved.
func (a *App) leave() { a.out.End(func() { a.quit = true }) }

// interrupt ends the turn of the bot that has the keyboard.
func (a *App) interrupt() { a.out.Interrupt(&a.composing().Box) }

// stashKeys put the draft aside (sonny.md 10.1).
var stashKeys = feature{
	actions: map[string]func(*App){"stash": func(a *App) {
		if !a.composing().Stash() {
			a.notes.say("nothing is written, and nothing is put aside")
		}
	}},
}
