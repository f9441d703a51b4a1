package screen

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"agent/internal/sonny/live"
	"agent/internal/sonny/notify"
	"agent/protocol"
)

// Notify says what a person who looks elsewhere is told of (sonny.md 28).
type Notify struct {
	On      []string
	When    string // unfocused, always, never
	MinTurn time.Duration
	Route   notify.Route // never auto
	Command []string
	Sound   bool
}

// The times of notifications.
const (
	burst   = 2 * time.Second  // what comes within it is one
	again   = 10 * time.Minute // an approval that nobody answered is told of once more
	quietAs = 10 * time.Second // without a key for so long, a terminal that tells nothing counts as unfocused
)

// telling is the state of notifications.
type telling struct {
	focus   *bool // what the terminal said; nil: it never did
	pending []notify.Note
	due     bool
}

// notifying tells of what happened to the bots that this screen is about.
var notifying = feature{event: (*App).tellOf}

// tellOf hears an event.
func (a *App) tellOf(b *live.Bot, e *protocol.Event) {
	switch e.Kind {
	case protocol.KindPaused:
		a.tell(notify.Note{Event: "paused", Body: a.pausedWords()})
	case protocol.KindApprovalRequested:
		var d protocol.ApprovalRequested
		if b == nil || !a.concerns(b) || e.Decode(&d) != nil {
			return
		}
		for _, c := range d.Calls {
			if forPerson(c.Gates) {
				a.tellApproval(b.Record.Name, c)
				return
			}
		}
	case protocol.KindAccepted:
		var d protocol.Accepted
		if b != nil && a.concerns(b) && e.Decode(&d) == nil && d.Origin == "trigger" {
			a.tell(notify.Note{Event: "trigger", Bot: b.Record.Name, Body: b.Record.Name + " was woken by a trigger"})
		}
	case protocol.KindTurnFinished:
		if b != nil && a.concerns(b) {
			a.tellEnd(b, e)
		}
	}
}

// concerns reports whether a bot is on screen, or a task of the one that is.
func (a *App) concerns(b *live.Bot) bool {
	return a.session != nil && (b.Record.ID == a.session.id || slices.Contains(a.tasks(), b))
}

// tellApproval tells of a call that waits, at once and again when nobody answered.
func (a *App) tellApproval(bot string, c protocol.RequestedCall) {
	note := notify.Note{Event: "approval", Bot: bot, Body: bot + " asks to use " + c.Name}
	a.tell(note)
	a.after(again, func() {
		if b := a.world.Bot(bot); b != nil {
			for _, w := range b.Waits {
				if w.Request == c.Request {
					a.tell(note)
				}
			}
		}
	})
}

func (a *App) tellEnd(b *live.Bot, e *protocol.Event) {
	var d protocol.TurnFinished
	if e.Decode(&d) != nil || d.Status == protocol.StatusSteered || d.Missed() {
		return
	}
	detail := ""
	if d.Detail != nil {
		detail = *d.Detail
	}
	name := b.Record.Name
	switch {
	case d.Status == protocol.StatusFailed:
		a.tell(notify.Note{Event: "failed", Bot: name, Body: name + " failed"})
	case strings.HasPrefix(detail, "stopped: ") || d.Error != nil && *d.Error == protocol.ApprovalsUnserved:
		a.tell(notify.Note{Event: "breaker", Bot: name, Body: name + " was stopped by its approver"})
	case d.Status == protocol.StatusCompleted && b.Origin == "" && a.o.Clock().Sub(b.Since) >= a.o.Notify.MinTurn:
		a.tell(notify.Note{Event: "done", Bot: name, Body: name + " is done"})
	}
}

// tell sends a note, where this kind is wanted and nobody looks. What comes within two
// seconds of another goes with it.
func (a *App) tell(n notify.Note) {
	o := &a.o.Notify
	if !slices.Contains(o.On, n.Event) || !a.elsewhere() {
		return
	}
	n.Title = "sonny"
	if a.session != nil {
		n.Title = "sonny: " + a.session.name()
	}
	t := &a.telling
	if t.due {
		t.pending = append(t.pending, n)
		return
	}
	t.due = true
	a.after(burst, func() {
		t.due = false
		if rest := t.pending; len(rest) > 0 {
			t.pending = nil
			last := rest[len(rest)-1]
			if len(rest) > 1 {
				last.Body = fmt.Sprintf("%s, and %d more", last.Body, len(rest)-1)
			}
			a.tell(last)
		}
	})
	a.deliver(n)
}

// elsewhere reports whether the person looks elsewhere, as far as it is known.
func (a *App) elsewhere() bool {
	switch a.o.Notify.When {
	case "always":
		return true
	case "never":
		return false
	}
	if a.telling.focus != nil {
		return !*a.telling.focus
	}
	return a.o.Now().Sub(a.lastKey) >= quietAs
}

func (a *App) deliver(n notify.Note) {
	o := &a.o.Notify
	if seq := n.Sequence(o.Route); seq != "" {
		a.o.Term.Send(seq)
	}
	if o.Route == notify.Bell || o.Sound {
		a.o.Term.Bell()
	}
	if o.Route == notify.Native || o.Route == notify.Command {
		do(a, func(ctx context.Context) (struct{}, error) { return struct{}{}, n.Run(ctx, o.Route, o.Command) },
			func(_ struct{}, err error) {
				if err != nil {
					a.notes.say("the notification failed: " + err.Error())
				}
			})
	}
}

// after calls a function in the loop when a time has passed, unless the screen ended.
func (a *App) after(d time.Duration, call func()) {
	time.AfterFunc(d, func() { a.later(call) })
}
