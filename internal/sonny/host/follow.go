package host

import (
	"context"
	"time"

	"agent/internal/sonny/host/plans"
	"agent/internal/sonny/lead"
	"agent/internal/sonny/live"
	"agent/protocol"
)

// follow hears what the bots do, as long as the daemon is there: notes of calls whose
// results are stored go, what belonged to deleted bots goes, and leads hear of their
// tasks.
func (h *host) follow(ctx context.Context) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	notes := make(chan live.Note)
	told := make(chan struct{})
	feed := &live.Feed{Client: h.Client}
	go func() {
		defer close(told)
		feed.Run(ctx, func(n live.Note) {
			select {
			case notes <- n:
			case <-ctx.Done():
			}
		})
	}()
	defer func() { end(); <-told }()
	h.hear(ctx, notes)
}

// hear is the loop that owns the updates and the notifications. It returns when the daemon is lost.
func (h *host) hear(ctx context.Context, notes <-chan live.Note) {
	u := newUpdates(h)
	tell := &teller{u: u}
	defer tell.end()
	var timer <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer:
		case n := <-h.notices:
			tell.tell(ctx, n)
		case n := <-notes:
			if n.Lost != nil {
				return
			}
			u.take(n)
			u.giveBack(ctx, n)
			if n.Event != nil {
				h.heard(n.Event)
				tell.hear(ctx, n.Event)
			}
			h.sendLater(ctx, n)
		}
		timer = nil
		next := u.send(ctx, h.Now())
		if due := tell.due(ctx); next.IsZero() || !due.IsZero() && due.Before(next) {
			next = due
		}
		if !next.IsZero() {
			timer = time.After(max(next.Sub(h.Now()), time.Millisecond))
		}
	}
}

// sendLater sends changes that waited for a turn to end: of the bot whose turn did, and
// of all when the host has just begun.
func (h *host) sendLater(ctx context.Context, n live.Note) {
	bot := ""
	switch {
	case n.Event != nil && n.Event.Kind == protocol.KindTurnFinished:
		bot = n.Event.Bot
	case !n.Last:
		return
	}
	if err := lead.SendLater(ctx, h.Client, h.sonny, h.Store, bot); err != nil {
		h.logf("%v", err)
	}
}

// heard tidies up after what an event tells.
func (h *host) heard(e *protocol.Event) {
	switch e.Kind {
	case protocol.KindToolCompleted:
		var d protocol.ToolCompleted
		if e.Decode(&d) == nil {
			h.notes.drop(e.Turn, d.CallID)
		}
	case protocol.KindTurnFinished: // the results of all its calls are stored
		h.notes.drop(e.Turn, "")
		h.recalls.drop(e.Turn)
		h.answers.DropTurn(e.Turn)
	}
}

// gone takes away what belonged to a bot that was deleted.
func (h *host) gone(bot int64, name string) {
	if err := plans.Clear(h.Store, bot); err != nil {
		h.logf("the plan of %s: %v", name, err)
	}
}
