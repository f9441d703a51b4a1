package host

import (
	"context"
	"slices"

	"agent/internal/sonny/lead"
	"agent/internal/sonny/live"
	"agent/protocol"
)

// giveBack gives bots their compaction point again that /compact lowered for one turn:
// when that turn has ended, and at the host's start those whose turn ended without it.
func (u *updates) giveBack(ctx context.Context, n live.Note) {
	switch {
	case n.Last:
		for _, f := range u.allLeads() {
			if b := u.world.Bot(f.Record.Name); f.Compact != nil && b.Turn == 0 {
				u.giveBackTo(ctx, b, func(c *lead.Compact) bool { return !inLine(b, c.Request) })
			}
		}
	case n.Event != nil && n.Event.Kind == protocol.KindTurnFinished:
		if b := u.world.Bot(n.Event.Bot); b != nil {
			u.giveBackTo(ctx, b, func(c *lead.Compact) bool { return n.Event.Turn > c.After && !inLine(b, c.Request) })
		}
	}
}

func (u *updates) giveBackTo(ctx context.Context, b *live.Bot, over func(*lead.Compact) bool) {
	err := lead.BookIn(u.h.sonny).GiveBack(ctx, u.h.Client, u.h.ready.Store.Identity, b.Record.ID, over)
	if err != nil {
		u.h.logf("the compaction point of %s: %v", b.Record.Name, err)
	}
}

// inLine reports whether a request's turn has not begun yet.
func inLine(b *live.Bot, request string) bool {
	return slices.ContainsFunc(b.Queue, func(t live.Turn) bool { return t.Request == request })
}
