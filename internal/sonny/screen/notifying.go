package screen

import (
	"context"
	"slices"
	"time"

	"agent/internal/sonny/fault"
	"agent/internal/sonny/host/panes"
	"agent/internal/sonny/live"
	"agent/internal/sonny/notify"
	"agent/internal/sonny/screen/whereabouts"
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
	Content bool // a command's text may be told

	Progress bool // the terminal shows that the bot on screen works
}

// quietAs is how long without a key a terminal that tells nothing counts as unfocused.
const quietAs = 10 * time.Second

// telling is the state of notifications.
type telling struct {
	focus   *bool     // what the terminal said; nil: it never did
	focusAt time.Time // when
	burst   notify.Burst

	progress   bool // is shown
	progressAt time.Time
}

// notifying tells of what happened to the bots that this screen is about.
var notifying = feature{event: (*App).tellOf}

// tellOf hears an event.
func (a *App) tellOf(b *live.Bot, e *protocol.Event) {
	if b != nil && !a.concerns(b) {
		return
	}
	n, ok := notify.Of(b, e, a.o.Clock(), a.o.Notify.MinTurn)
	if !ok {
		return
	}
	a.tell(n)
	if n.Event == "approval" {
		a.after(notify.Again, func() {
			if a.world.Unanswered(n.Bot, n.Request) {
				a.tell(n)
			}
		})
	}
}

// concerns reports whether a bot is on screen, or a task of the one that is.
func (a *App) concerns(b *live.Bot) bool {
	return a.session != nil && (b.Record.ID == a.session.id || slices.Contains(a.tasks(), b))
}

// tell sends a note, where this kind is wanted and nobody looks, unless another screen
// that it concerns had the person later. What comes within two seconds of another goes
// with it.
func (a *App) tell(n notify.Note) {
	if !slices.Contains(a.o.Notify.On, n.Event) || !a.elsewhere() {
		return
	}
	n.Title = "sonny"
	if a.session != nil {
		n.Title = "sonny: " + a.session.name()
	}
	kept, store, content := a.o.Kept, a.ready.Store.Identity, a.o.Notify.Content
	do(a, func(ctx context.Context) ([]panes.Record, error) {
		if content {
			n = notify.WithContent(ctx, a.client(), n)
		}
		return whereabouts.Others(kept, store)
	},
		func(list []panes.Record, err error) {
			if err != nil {
				a.notes.fail(err) // nobody else is known to tell of it
			}
			if !a.lookedLater(list, n.Bot) {
				a.sendNote(n)
			}
		})
}

// sendNote delivers a note, or keeps it for the end of the burst.
func (a *App) sendNote(n notify.Note) {
	t := &a.telling
	if !t.burst.Add(n) {
		return
	}
	a.after(notify.BurstFor, func() {
		if rest, ok := t.burst.Over(); ok && a.elsewhere() {
			a.sendNote(rest)
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

// progressEvery is how often progress is shown anew: terminals take it away by themselves.
const progressEvery = 5 * time.Second

// showProgress has the terminal show whether the bot on screen works.
func (a *App) showProgress(works bool) {
	t, now := &a.telling, a.o.Now()
	switch {
	case works && a.o.Notify.Progress && (!t.progress || now.Sub(t.progressAt) >= progressEvery):
		t.progress, t.progressAt = true, now
		a.o.Term.Send(notify.Progress(true))
	case t.progress && !(works && a.o.Notify.Progress):
		t.progress = false
		a.o.Term.Send(notify.Progress(false))
	}
}

func (a *App) deliver(n notify.Note) {
	o := &a.o.Notify
	notify.Tell(a.o.Term, n, o.Route, o.Sound)
	if o.Route.Program() {
		do(a, func(ctx context.Context) (struct{}, error) { return struct{}{}, n.Run(ctx, o.Route, o.Command) },
			func(_ struct{}, err error) {
				if err != nil {
					a.notes.say("the notification failed: " + fault.Screen.Words(err))
				}
			})
	}
}

// after calls a function in the loop when a time has passed, unless the screen ended.
func (a *App) after(d time.Duration, call func()) {
	time.AfterFunc(d, func() { a.later(call) })
}

// whereabouts is where this screen is, for other programs.
func (a *App) whereabouts() whereabouts.State {
	s := whereabouts.State{Store: a.ready.Store.Identity, Tells: a.telling.focus != nil, Focused: a.telling.focusAt, Key: a.lastKey}
	if a.session != nil {
		s.BotID = a.session.id
	}
	return s
}

// lookedLater reports whether one of other screens has a bot or whose task it is, and had
// the person later than this one. "" is every bot.
func (a *App) lookedLater(others []panes.Record, bot string) bool {
	mine := a.where.Looked()
	return slices.ContainsFunc(others, func(r panes.Record) bool {
		return r.Looked.After(mine) && (bot == "" || a.isOn(r, bot))
	})
}

// isOn reports whether a screen shows a bot, or one whose task it is.
func (a *App) isOn(r panes.Record, bot string) bool {
	on, b := a.world.ByID(r.BotID), a.world.Bot(bot)
	return on != nil && b != nil && (r.BotID == b.Record.ID || slices.Contains(a.tasksOf(on), b))
}
