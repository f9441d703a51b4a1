package client

import (
	"context"
	"errors"
	"iter"

	"agent/protocol"
)

// Run submits s, follows its turn and returns the outcome. each, when not
// nil, sees every event of the bot on the way, from the submission's own event
// on; its error stops following (not the turn) and is returned. A turn that
// fails is an Outcome, not an error.
func (c *Client) Run(ctx context.Context, s *protocol.Submit, each func(*protocol.Event) error) (*protocol.Outcome, error) {
	var sub *protocol.Submitted
	for e, err := range c.SubmitFollow(ctx, s, func(answer *protocol.Submitted) { sub = answer }) {
		if err != nil {
			return nil, err
		}
		if each == nil {
			continue
		}
		if err := each(e); err != nil {
			return nil, err
		}
	}
	return c.Result(ctx, sub.Bot, sub.Turn)
}

// SubmitFollow submits s while it follows the bot, and yields every event of
// the bot from the submission's own event on, to the end of its turn. The
// follow is live before the submission is sent, so that the first words of a
// quick model are not missed, as they are by a Follow after a Submit.
//
// answered is called once, with the submission's answer, before the first
// event. An error without it means that the submission was refused, or, when
// the connection or ctx ended, that it may not have been recorded: send it
// again with its RequestID, which is filled in as Submit does. A duplicate's
// events begin with the first that is kept of its turn.
func (c *Client) SubmitFollow(ctx context.Context, s *protocol.Submit, answered func(*protocol.Submitted)) iter.Seq2[*protocol.Event, error] {
	return func(yield func(*protocol.Event, error) bool) {
		r := &running{c: c, s: s, answered: answered, yield: yield}
		if err := r.run(ctx); err != nil && !errors.Is(err, errStopped) {
			yield(nil, err)
		}
	}
}

// mostHeld bounds what is kept of a turn until the submission's own event
// comes. Deltas may be lost, and these come by a shorter way than it.
const mostHeld = 4096

// running is one SubmitFollow under way.
type running struct {
	c        *Client
	s        *protocol.Submit
	answered func(*protocol.Submitted)
	yield    func(*protocol.Event, error) bool

	f     *follower
	sub   *protocol.Submitted // once it is answered
	err   error               // why it was not submitted
	begun bool                // the submission's own event was yielded
	notes []*protocol.Event   // of the follow itself, from before the answer
	held  []*protocol.Event   // live ones of the turn, from before its own event
}

func (r *running) run(ctx context.Context) error {
	// What was published before is no concern of this turn, and may be much.
	load, err := r.c.Stats(ctx)
	if err != nil {
		return err
	}
	r.f = &follower{c: r.c, bot: r.s.Bot, o: FollowOptions{After: load.Cursor}, last: load.Cursor}
	r.f.yield = func(e *protocol.Event, _ error) bool { return r.take(ctx, e) }
	err = r.f.run(ctx)
	if r.err != nil {
		return r.err
	}
	if r.sub != nil && r.sub.Cursor == nil {
		return r.again(ctx)
	}
	return err
}

// take is what the follow brings; false ends it.
func (r *running) take(ctx context.Context, e *protocol.Event) bool {
	switch {
	case r.begun:
		return r.yield(e, nil)
	case r.sub == nil && e.Kind == protocol.KindFollowLive:
		return r.submit(ctx)
	case r.sub == nil:
		if e.Kind == protocol.KindScriptedModel {
			r.notes = append(r.notes, e)
		}
	case e.Durable && e.Cursor >= *r.sub.Cursor:
		r.begun = true
		return r.yield(e, nil) && r.give(r.held)
	case !e.Durable && e.Turn == r.sub.Turn && len(r.held) < mostHeld:
		r.held = append(r.held, e)
	}
	return true
}

// submit sends the submission, now that nothing of it can be missed. The end of
// a duplicate's turn may be over already: it is followed anew.
func (r *running) submit(ctx context.Context) bool {
	if r.sub, r.err = r.c.Submit(ctx, r.s); r.err != nil {
		return false
	}
	if r.answered != nil {
		r.answered(r.sub)
	}
	r.f.o.Turn = r.sub.Turn
	return r.sub.Cursor != nil && r.give(r.notes)
}

func (r *running) give(events []*protocol.Event) bool {
	for _, e := range events {
		if !r.yield(e, nil) {
			return false
		}
	}
	return true
}

// again follows the turn of a duplicate, whose answer has no cursor: its events
// begin somewhere in the history.
func (r *running) again(ctx context.Context) error {
	f := &follower{c: r.c, bot: r.sub.Bot, o: FollowOptions{Turn: r.sub.Turn}}
	f.yield = func(e *protocol.Event, _ error) bool {
		r.begun = r.begun || e.Turn == r.sub.Turn
		return !r.begun || r.yield(e, nil)
	}
	return f.run(ctx)
}
