package screen

import (
	"context"

	"agent/internal/sonny/live"
	"agent/internal/sonny/screen/review"
	"agent/internal/sonny/screen/text"
	"agent/protocol"
)

// taskSizes are how much tasks have changed (sonny.md 11). One is read when its task is at
// hand in the list of tasks, beside the loop, one at a time, and again once the task has
// done something since.
type taskSizes struct {
	said    map[int64][]text.Span // by the task's bot
	fresh   map[int64]bool        // those that were read since it last did something
	reading bool
}

// sizeStale hears that a task may have changed something.
func (a *App) sizeStale(b *live.Bot, e *protocol.Event) {
	if b != nil && (e.Kind == protocol.KindToolCompleted || e.Kind == protocol.KindTurnFinished) {
		delete(a.sizes.fresh, b.Record.ID)
	}
}

// taskSize is what a task has changed, in a few words, as far as it is known; nothing of one
// without a worktree of its own.
func (a *App) taskSize(t *live.Bot) []text.Span {
	p := &a.sizes
	if !p.fresh[t.Record.ID] && !p.reading {
		a.readSize(t)
	}
	return p.said[t.Record.ID]
}

func (a *App) readSize(t *live.Bot) {
	p, id := &a.sizes, t.Record.ID
	if p.fresh == nil {
		p.fresh, p.said = map[int64]bool{}, map[int64][]text.Span{}
	}
	p.fresh[id] = true
	if a.session == nil {
		return
	}
	lead, of := a.repository(a.session), *t
	p.reading = true
	do(a, func(ctx context.Context) (*review.Set, error) {
		scope, own := review.TaskScope(lead, &of)
		if !own {
			return nil, nil
		}
		return scope.Read(ctx)
	}, func(set *review.Set, err error) {
		p.reading = false
		switch {
		case set != nil:
			p.said[id] = set.Size()
		case err != nil: // a worktree that cannot be read has no size
			delete(p.said, id)
		}
	})
}
