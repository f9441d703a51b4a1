package client

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"

	"agent/protocol"
)

// FollowOptions say where a Follow begins and when it ends.
type FollowOptions struct {
	After     int64 // exclusive; 0: everything kept
	Turn      int64 // end after this turn's turn_finished
	UntilLive bool  // end after the replay
	NoDeltas  bool
	Reconnect bool
	Backoff   func(attempt int) time.Duration // nil: 100 ms doubling to 5 s, ±20 %
}

// Follow yields bot's events from a cursor on; bot "*" is every bot. Durable
// events come once each, in rising cursor order, also across reconnects; the
// greatest cursor seen is a complete point to resume from. Deltas may be lost.
// The notices paused and resumed come too, whichever bot is followed.
//
// Without Reconnect the iterator ends with daemon_disconnected or
// follow_lagged. With it, it dials again after those, daemon_unavailable and
// the timeouts, follows from the last cursor, and yields one KindReconnected
// event. It gives up with store_changed when the store's identity is another,
// bot_not_found when the name has another identity or the bot is gone, and
// daemon_protocol_mismatch.
//
// With Turn set, a pruned notice makes it ask for the turn's result: a
// finished turn is yielded as a turn_finished without cursor, a pruned one
// ends the iterator with turn_result_pruned.
func (c *Client) Follow(ctx context.Context, bot string, o FollowOptions) iter.Seq2[*protocol.Event, error] {
	return func(yield func(*protocol.Event, error) bool) {
		f := &follower{c: c, bot: bot, o: o, last: o.After, yield: yield}
		if err := f.run(ctx); err != nil && !errors.Is(err, errStopped) {
			yield(nil, err)
		}
	}
}

// errStopped ends a follow without an error: it reached its end, or its
// consumer broke off.
var errStopped = errors.New("stopped")

// follower is one Follow under way, over all its connections.
type follower struct {
	c     *Client
	bot   string
	o     FollowOptions
	yield func(*protocol.Event, error) bool

	last     int64  // the greatest cursor seen
	store    string // the store's identity, once known
	botID    int64  // the bot's, once known
	attached bool   // it followed once
	tries    int    // failures since it last came on
}

func (f *follower) run(ctx context.Context) error {
	life := f.c.untilClose()
	ctx, cancel := within(ctx, life)
	defer cancel()
	for {
		began, from := time.Now(), f.last
		err := f.attach(ctx, life)
		if !f.o.Reconnect || ctx.Err() != nil || life.Err() != nil || !lost(err) {
			return err
		}
		if f.last > from || time.Since(began) > longestBackoff {
			f.tries = 0 // one that follows and fails at once is still failing
		}
		f.tries++
		f.c.logf("follow %s: %v; attempt %d", f.bot, protocol.CodeOf(err), f.tries)
		wait := backoff
		if f.o.Backoff != nil {
			wait = f.o.Backoff
		}
		if !pause(ctx, wait(f.tries)) {
			return contextError(ctx, "follow")
		}
	}
}

// lost reports that a new connection may help.
func lost(err error) bool {
	switch protocol.CodeOf(err) {
	case protocol.DaemonDisconnected, protocol.FollowLagged, protocol.DaemonUnavailable,
		protocol.DaemonConnectTimeout, protocol.DaemonReadyTimeout, protocol.DaemonStartTimeout:
		return true
	}
	return false
}

// attach follows over one connection until that ends.
func (f *follower) attach(ctx, life context.Context) error {
	s, err := f.c.open(ctx, life, true)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := f.identify(ctx, s); err != nil {
		return err
	}
	if err := s.Do(ctx, protocol.OpFollow, &protocol.Follow{Bot: f.bot, After: f.last}, nil); err != nil {
		return err
	}
	if f.attached {
		again := &protocol.Event{Kind: protocol.KindReconnected, Bot: f.bot}
		if !f.yield(again, nil) {
			return errStopped
		}
	}
	f.attached = true
	for {
		e, err := s.next(ctx)
		if errors.Is(err, io.EOF) {
			err = s.disconnected()
		}
		if err != nil {
			return err
		}
		if err := f.take(ctx, s, e); err != nil {
			return err
		}
	}
}

// identify makes sure that what is followed is what was followed before. The
// bot's identity matters only to one that reconnects.
func (f *follower) identify(ctx context.Context, s *Session) error {
	identity := s.Ready().Store.Identity
	if f.store != "" && identity != f.store {
		return &protocol.Error{Code: protocol.StoreChanged, Op: protocol.OpFollow, Detail: "the daemon has another store than before: start again from cursor 0"}
	}
	f.store = identity
	if f.bot == "*" || !f.o.Reconnect {
		return nil
	}
	var record protocol.Bot
	if err := s.Do(ctx, protocol.OpInspect, &protocol.Inspect{Bot: f.bot}, &record); err != nil {
		return err
	}
	if f.botID != 0 && record.ID != f.botID {
		return &protocol.Error{Code: protocol.BotNotFound, Op: protocol.OpFollow, Detail: "the name " + f.bot + " has another bot now"}
	}
	f.botID = record.ID
	return nil
}

// take handles one notification and yields it.
func (f *follower) take(ctx context.Context, s *Session, e *protocol.Event) error {
	if e.Durable {
		if e.Cursor <= f.last {
			return nil
		}
		f.last = e.Cursor
	}
	if f.o.NoDeltas && e.IsDelta() {
		return nil
	}
	if !f.yield(e, nil) {
		return errStopped
	}
	switch {
	case e.Kind == protocol.KindFollowLive:
		var live protocol.FollowLive
		if e.Decode(&live) == nil {
			f.last = max(f.last, live.Cursor)
		}
		if f.o.UntilLive {
			return errStopped
		}
	case e.Kind == protocol.KindTurnFinished && f.o.Turn != 0 && e.Turn == f.o.Turn:
		return errStopped
	case e.Kind == protocol.KindPruned && f.o.Turn != 0:
		return f.askResult(ctx, s)
	case e.Kind == protocol.KindDeleted && e.Bot == f.bot:
		return &protocol.Error{Code: protocol.BotNotFound, Op: protocol.OpFollow, Detail: "the bot was deleted"}
	}
	return nil
}

// askResult is for a turn whose end may lie in a gap.
func (f *follower) askResult(ctx context.Context, s *Session) error {
	if f.bot == "*" {
		return nil // result needs the turn's bot
	}
	var out protocol.Outcome
	if err := s.Do(ctx, protocol.OpResult, &protocol.Result{Bot: f.bot, Turn: f.o.Turn}, &out); err != nil {
		return err
	}
	if !out.Finished {
		return nil
	}
	e, err := finishedEvent(f.bot, &out)
	if err != nil {
		return err
	}
	f.yield(e, nil)
	return errStopped
}

// finishedEvent is a turn_finished made from an outcome.
func finishedEvent(bot string, out *protocol.Outcome) (*protocol.Event, error) {
	data, err := protocol.Append(nil, &protocol.TurnFinished{
		Status: out.Status, Checkpoint: out.Checkpoint,
		Error: out.Error, Detail: out.Detail, Into: out.Into, Node: out.Node, Extra: out.Extra,
	})
	if err != nil {
		return nil, err
	}
	line := protocol.AppendEvent(nil, 0, bot, out.Turn, protocol.KindTurnFinished, data)
	return &protocol.Event{Kind: protocol.KindTurnFinished, Bot: bot, Turn: out.Turn, Data: data, Line: line[:len(line)-1]}, nil
}
