package client

import (
	"context"
	"crypto/rand"
	"encoding/json"

	"agent/protocol"
)

// call is Do with an answer of type R.
func call[R any](ctx context.Context, c *Client, op string, params any) (*R, error) {
	r := new(R)
	if err := c.Do(ctx, op, params, r); err != nil {
		return nil, err
	}
	return r, nil
}

// Create makes a bot. It is not idempotent: after daemon_disconnected, look
// the name up.
func (c *Client) Create(ctx context.Context, r *protocol.Create) (*protocol.Bot, error) {
	own := *r
	c.Bot.declare(&own.CreatedBy, &own.CreatedByID, &own.From)
	return call[protocol.Bot](ctx, c, protocol.OpCreate, &own)
}

// Fork makes a bot that goes on from a point of another's history. It is not
// idempotent, as Create is not.
func (c *Client) Fork(ctx context.Context, r *protocol.Fork) (*protocol.Bot, error) {
	own := *r
	c.Bot.declare(&own.CreatedBy, &own.CreatedByID, &own.From)
	return call[protocol.Bot](ctx, c, protocol.OpFork, &own)
}

// Inspect reads a bot's record; it never makes a bot.
func (c *Client) Inspect(ctx context.Context, bot string) (*protocol.Bot, error) {
	return call[protocol.Bot](ctx, c, protocol.OpInspect, &protocol.Inspect{Bot: bot})
}

// Configure replaces the named parts of a bot.
func (c *Client) Configure(ctx context.Context, r *protocol.Configure) (*protocol.Bot, error) {
	return call[protocol.Bot](ctx, c, protocol.OpConfigure, r)
}

// Delete removes a bot. It may take long.
func (c *Client) Delete(ctx context.Context, bot string) (*protocol.Deleted, error) {
	return call[protocol.Deleted](ctx, c, protocol.OpDelete, &protocol.Delete{Bot: bot})
}

// Prune removes what is older than the keep newest finished turns. It may take
// long.
func (c *Client) Prune(ctx context.Context, bot string, keep int) (*protocol.Pruned, error) {
	return call[protocol.Pruned](ctx, c, protocol.OpPrune, &protocol.Prune{Bot: bot, KeepTurns: int64(keep)})
}

// Submit gives a bot a prompt. An empty RequestID is filled with a random one
// in r, so that a retry with r repeats it.
func (c *Client) Submit(ctx context.Context, r *protocol.Submit) (*protocol.Submitted, error) {
	if r.RequestID == "" {
		r.RequestID = rand.Text()
	}
	own := *r
	if c.Bot != nil && own.From == nil && own.Origin == "" {
		own.From = c.Bot.author()
	}
	return call[protocol.Submitted](ctx, c, protocol.OpSubmit, &own)
}

// Interrupt ends a turn. An empty reason is none.
func (c *Client) Interrupt(ctx context.Context, bot string, turn int64, reason string) (*protocol.Interrupted, error) {
	return call[protocol.Interrupted](ctx, c, protocol.OpInterrupt, &protocol.Interrupt{Bot: bot, Turn: turn, Reason: reason})
}

// Withdraw ends a turn that is still in line. One that has begun goes on: stale_turn then,
// or no_active_turn where it is over by now. An empty reason is none.
func (c *Client) Withdraw(ctx context.Context, bot string, turn int64, reason string) (*protocol.Interrupted, error) {
	return call[protocol.Interrupted](ctx, c, protocol.OpInterrupt, &protocol.Interrupt{Bot: bot, Turn: turn, Reason: reason, Queued: true})
}

// Result is how a turn ended. For one that has not, Finished is false.
func (c *Client) Result(ctx context.Context, bot string, turn int64) (*protocol.Outcome, error) {
	return call[protocol.Outcome](ctx, c, protocol.OpResult, &protocol.Result{Bot: bot, Turn: turn})
}

// Wait waits for handles, on a connection of its own that is closed when ctx
// ends, so that no waiter is left in the daemon.
func (c *Client) Wait(ctx context.Context, r *protocol.Wait) (*protocol.Waited, error) {
	s, err := c.Session(ctx)
	if err != nil {
		return nil, withOp(err, protocol.OpWait)
	}
	defer s.Close()
	w := new(protocol.Waited)
	if err := s.Do(ctx, protocol.OpWait, r, w); err != nil {
		return nil, err
	}
	return w, nil
}

// Events is one page of a bot's durable events after a cursor. Continue from
// its NextCursor until a page is empty: a short one is not the end.
func (c *Client) Events(ctx context.Context, bot string, after int64, limit int) (*protocol.EventPage, error) {
	return call[protocol.EventPage](ctx, c, protocol.OpEvents, &protocol.EventsRequest{Bot: bot, After: after, Limit: int64(limit)})
}

// Item is one stored item, in its provider family's own encoding.
func (c *Client) Item(ctx context.Context, bot string, node int64) (json.RawMessage, error) {
	r, err := call[json.RawMessage](ctx, c, protocol.OpItem, &protocol.ItemRequest{Bot: bot, Node: node})
	if err != nil {
		return nil, err
	}
	return *r, nil
}

// Prompts says who wrote what a turn was asked. bytes bounds the earlier
// prompts; 0 is the daemon's default.
func (c *Client) Prompts(ctx context.Context, bot string, turn int64, bytes int) (*protocol.Prompts, error) {
	r := &protocol.PromptsRequest{Bot: bot, Turn: turn}
	if bytes != 0 {
		r.Bytes = protocol.Set(int64(bytes))
	}
	return call[protocol.Prompts](ctx, c, protocol.OpPrompts, r)
}

// Answer gives a verdict on a waiting call. Without a lease it is an override.
func (c *Client) Answer(ctx context.Context, r *protocol.Answer) (*protocol.Answered, error) {
	return call[protocol.Answered](ctx, c, protocol.OpAnswer, r)
}

// Stats are the daemon's counts.
func (c *Client) Stats(ctx context.Context) (*protocol.Stats, error) {
	return call[protocol.Stats](ctx, c, protocol.OpStats, nil)
}

// ProviderModels asks each provider for its own model list. It may take long.
func (c *Client) ProviderModels(ctx context.Context) (*protocol.ProviderModels, error) {
	return call[protocol.ProviderModels](ctx, c, protocol.OpProviderModels, nil)
}

// Companions lists the helper programs that the daemon keeps running.
func (c *Client) Companions(ctx context.Context) ([]protocol.Companion, error) {
	return c.companions(ctx, &protocol.CompanionsRequest{})
}

// SetCompanions replaces the set; an empty one ends them all.
func (c *Client) SetCompanions(ctx context.Context, set []protocol.CompanionSpec) ([]protocol.Companion, error) {
	if set == nil {
		set = []protocol.CompanionSpec{}
	}
	return c.companions(ctx, &protocol.CompanionsRequest{Set: set})
}

// RestartCompanions restarts the named ones.
func (c *Client) RestartCompanions(ctx context.Context, names ...string) ([]protocol.Companion, error) {
	return c.companions(ctx, &protocol.CompanionsRequest{Restart: names})
}

func (c *Client) companions(ctx context.Context, r *protocol.CompanionsRequest) ([]protocol.Companion, error) {
	list, err := call[protocol.Companions](ctx, c, protocol.OpCompanions, r)
	if err != nil {
		return nil, err
	}
	return list.Companions, nil
}

// Pause interrupts every turn and starts none until Resume. It may take long.
func (c *Client) Pause(ctx context.Context, reason string) (*protocol.Pause, error) {
	r := &protocol.PauseRequest{Reason: reason}
	if c.Bot != nil {
		if r.From = c.Bot.author(); r.From == nil {
			r.By = c.Bot.Bot
		}
	}
	return call[protocol.Pause](ctx, c, protocol.OpPause, r)
}

// Resume lifts a pause and says which; nil when none stood.
func (c *Client) Resume(ctx context.Context) (was *protocol.Pause, err error) {
	r, err := call[protocol.Resumed](ctx, c, protocol.OpResume, nil)
	if err != nil || r.Was == nil {
		return nil, err
	}
	p := r.Was
	return &protocol.Pause{Paused: true, By: p.By, ByID: p.ByID, Turn: p.Turn, Reason: p.Reason, SinceMS: p.SinceMS, Extra: p.Extra}, nil
}
