package host

import (
	"context"
	"slices"
	"sync"
	"time"

	"agent/internal/sonny/fault"
	"agent/internal/sonny/host/panes"
	"agent/internal/sonny/lead"
	"agent/internal/sonny/live"
	"agent/internal/sonny/notify"
	"agent/protocol"
)

// Notify says what the person is told of while no screen is open (sonny.md 28).
type Notify struct {
	On      []string
	When    string // never: nothing is told
	MinTurn time.Duration
	Command []string // empty: nothing is told
	Content bool     // a call's own text may be told
}

// teller runs the person's notification command while no screen is attached. It belongs
// to the loop of follow.
type teller struct {
	u       *updates
	burst   notify.Burst
	over    time.Time // when the burst ends; zero: there is none
	waits   []asked   // approvals that are told of once more
	running sync.WaitGroup
}

// asked is an approval that was told of, and when it is told of again.
type asked struct {
	n  notify.Note
	at time.Time
}

// maxAsked bounds those that are told of again; later ones are told of once.
const maxAsked = 256

// notice has the loop tell the person of something. It waits for nobody: where too much
// is to be told, this is not.
func (h *host) notice(n notify.Note) {
	select {
	case h.notices <- n:
	default:
	}
}

// hear tells of an event, where it is one to tell of.
func (t *teller) hear(ctx context.Context, e *protocol.Event) {
	set, _ := t.u.h.Settings("")
	b := t.u.world.Bot(e.Bot)
	n, ok := notify.Of(b, e, t.u.h.Now(), set.Notify.MinTurn)
	if !ok || b != nil && !t.u.concerns(b) {
		return
	}
	t.tell(ctx, n)
	if n.Event == "approval" && len(t.waits) < maxAsked {
		t.waits = append(t.waits, asked{n, t.u.h.Now().Add(notify.Again)})
	}
}

// concerns reports whether a bot is a lead of Sonny's or a task of one.
func (u *updates) concerns(b *live.Bot) bool {
	return slices.ContainsFunc(u.allLeads(), func(f lead.Found) bool { return f.BotID == b.Record.ID }) || u.leadOf(b) != nil
}

// tell tells the person of something, unless a screen is open: that tells of it.
func (t *teller) tell(ctx context.Context, n notify.Note) {
	h := t.u.h
	set, _ := h.Settings("")
	if len(set.Notify.Command) == 0 || set.Notify.When == "never" || !slices.Contains(set.Notify.On, n.Event) {
		return
	}
	open, err := panes.All(h.sonny, h.ready.Store.Identity)
	if err != nil {
		h.logf("the screens that are open: %v", err) // none is known to tell of it
	}
	if len(open) > 0 || !t.burst.Add(n) {
		return
	}
	t.over = h.Now().Add(notify.BurstFor)
	n.Title = "sonny"
	if n.Bot != "" {
		n.Title += ": " + t.u.title(n.Bot)
	}
	t.running.Go(func() {
		if set.Notify.Content {
			n = notify.WithContent(ctx, h.Client, n)
		}
		if err := n.Run(ctx, notify.Command, set.Notify.Command); err != nil {
			h.logf("notifications.command: %s", fault.Verb.Words(err))
		}
	})
}

// title is what a session of a bot is called, or the bot's name.
func (u *updates) title(bot string) string {
	for _, f := range u.allLeads() {
		if f.Record.Name == bot && f.Title != "" {
			return f.Title
		}
	}
	return bot
}

// due tells what is due, and says when to look again; zero: when something happens.
func (t *teller) due(ctx context.Context) (next time.Time) {
	now := t.u.h.Now()
	if !t.over.IsZero() && !t.over.After(now) {
		t.over = time.Time{}
		if n, ok := t.burst.Over(); ok {
			t.tell(ctx, n)
		}
	}
	next = t.over
	t.waits = slices.DeleteFunc(t.waits, func(w asked) bool {
		if !t.u.world.Unanswered(w.n.Bot, w.n.Request) {
			return true
		}
		if w.at.After(now) {
			if next.IsZero() || w.at.Before(next) {
				next = w.at
			}
			return false
		}
		t.tell(ctx, w.n)
		if next.IsZero() {
			next = t.over
		}
		return true
	})
	return next
}

// end waits for the commands that run.
func (t *teller) end() { t.running.Wait() }
