package client

import (
	"context"
	"errors"
	"io"
	"iter"
	"sync"
	"time"

	"agent/protocol"
)

// A Round is what one model response planned and one gate must judge.
type Round struct {
	Bot   string
	BotID int64 // 0 where the daemon's push does not say it
	Turn  int64
	Calls []*protocol.Approval // Bot and Turn are always set
}

// A Verdict is what is answered for a call. Its zero value is a denial without
// a reason.
type Verdict struct {
	allow  bool
	reason string

	// By is a label for the record, 1 to 128 bytes, not verified. "": none.
	By string
}

// Allow and Deny make verdicts; a denial's reason is what the model reads.
func Allow() Verdict { return Verdict{allow: true} }

// Deny is a denial; see Allow.
func Deny(reason string) Verdict { return Verdict{reason: reason} }

// Allowed reports which of the two a verdict is.
func (v Verdict) Allowed() bool { return v.allow }

// Reason is a denial's reason.
func (v Verdict) Reason() string { return v.reason }

// ApprovalServer holds a tag. Its methods are safe for concurrent use, but only
// one goroutine ranges over Rounds.
type ApprovalServer struct {
	c       *Client
	session *Session
	tag     string
	lease   int64
	renewal sync.WaitGroup

	ctx    context.Context // ends with the tag
	end    context.CancelCauseFunc
	unbind func() bool // from the context that it was made with

	mu      sync.Mutex
	waiting []*Round                         // those that waited when the tag was taken
	parts   map[partKey][]*protocol.Approval // of rounds whose last part is still to come
}

// errServerClosed ends a server that was closed.
var errServerClosed = errors.New("client: the server was closed")

// partKey tells announcements apart.
type partKey struct {
	bot    string
	turn   int64
	cursor int64
}

// ServeApprovals takes tag for itself. approvals_served means another session
// holds it; the error's facts say for how long. The lease is renewed by a
// goroutine of its own until Close, ctx's end, or its loss.
//
// It has a connection of its own, which Close ends, and the end of ctx: the tag is
// free then. What waited already has been read when it returns.
func (c *Client) ServeApprovals(ctx context.Context, tag string, o ServeOptions) (*ApprovalServer, error) {
	if o.Lease == 0 {
		o.Lease = defaultLease
	}
	session, err := c.Session(ctx)
	if err != nil {
		return nil, withOp(err, protocol.OpServeApprovals)
	}
	s := &ApprovalServer{c: c, session: session, tag: tag}
	s.ctx, s.end = context.WithCancelCause(ctx)
	s.unbind = context.AfterFunc(ctx, session.giveUp)
	var got protocol.ApprovalsServing
	r := &protocol.ServeApprovals{Tag: tag, LeaseMS: o.Lease.Milliseconds()}
	if err := session.Do(s.ctx, protocol.OpServeApprovals, r, &got); err != nil {
		s.Close()
		return nil, err
	}
	s.lease = got.Lease
	s.renewal.Go(func() { s.renew(o.Lease) })
	if err := s.list(&got); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// list reads what waited up to the point from which calls are pushed.
func (s *ApprovalServer) list(got *protocol.ApprovalsServing) error {
	s.sort(got.Approvals)
	for next := got.NextAfter; next != nil; {
		var page protocol.ApprovalPage
		ask := &protocol.ApprovalsRequest{Tag: s.tag, After: *next, Through: protocol.Set(got.Through)}
		if err := s.session.Do(s.ctx, protocol.OpApprovals, ask, &page); err != nil {
			return s.why(err)
		}
		s.sort(page.Approvals)
		next = page.NextAfter
	}
	return nil
}

// sort puts listed calls into rounds: all that waits in one turn is one.
func (s *ApprovalServer) sort(calls []protocol.Approval) {
	for i := range calls {
		call := &calls[i]
		var round *Round
		for _, r := range s.waiting {
			if r.Bot == call.Bot && r.BotID == call.BotID && r.Turn == call.Turn {
				round = r
			}
		}
		if round == nil {
			round = &Round{Bot: call.Bot, BotID: call.BotID, Turn: call.Turn}
			s.waiting = append(s.waiting, round)
		}
		round.Calls = append(round.Calls, call)
	}
}

// renew keeps the lease until the server ends.
func (s *ApprovalServer) renew(lease time.Duration) {
	s.c.keepLease(s.ctx, s.end, s.tag, lease, func() error {
		return s.session.Do(s.ctx, protocol.OpRenewApprovals, &protocol.RenewApprovals{Tag: s.tag, Lease: s.lease}, nil)
	})
}

// Lease is the number under which this server answers.
func (s *ApprovalServer) Lease() int64 { return s.lease }

// Context ends when the tag is lost, the daemon is gone or the server is closed.
func (s *ApprovalServer) Context() context.Context { return s.ctx }

// Rounds yields the calls that wait, first those already waiting, then new
// ones, one round at a time with its parts joined. It ends with
// approvals_lost, daemon_disconnected, follow_lagged or the context's error, and
// after Close without one.
func (s *ApprovalServer) Rounds() iter.Seq2[*Round, error] {
	return func(yield func(*Round, error) bool) {
		for {
			round, err := s.next()
			if err != nil {
				s.end(err)
			}
			if err == errServerClosed || !yield(round, err) || err != nil {
				return
			}
		}
	}
}

func (s *ApprovalServer) next() (*Round, error) {
	if round := s.waited(); round != nil {
		return round, nil
	}
	for {
		e, err := s.session.next(s.ctx)
		if err == io.EOF { // Close, and no end of the daemon's
			return nil, errServerClosed
		}
		if err != nil {
			return nil, s.why(err)
		}
		round, err := s.notified(e)
		if round != nil || err != nil {
			return round, err
		}
	}
}

// waited is the next of the rounds that waited when the tag was taken, or nil.
func (s *ApprovalServer) waited() *Round {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		return nil
	}
	round := s.waiting[0]
	s.waiting = s.waiting[1:]
	return round
}

// notified is the round that a notification completes, nil when it completes
// none.
func (s *ApprovalServer) notified(e *protocol.Event) (*Round, error) {
	switch e.Kind {
	case protocol.KindApprovalRequested:
		var p protocol.ApprovalPush
		if err := e.Decode(&p); err != nil || p.Lease != s.lease || p.Tag != s.tag {
			return nil, err
		}
		return s.joined(&p), nil
	case protocol.KindApprovalsLost:
		var n protocol.TagLost
		if err := e.Decode(&n); err != nil || n.Tag != s.tag || n.Lease != s.lease {
			return nil, err
		}
		return nil, &protocol.Error{Code: protocol.ApprovalsLost, Op: protocol.OpServeApprovals, Detail: "another session took " + s.tag + ", or the lease ran out"}
	}
	return nil, nil
}

// joined is the round of which p is the last part, nil when more are to come.
func (s *ApprovalServer) joined(p *protocol.ApprovalPush) *Round {
	key := partKey{p.Bot, p.Turn, p.Cursor}
	calls := s.parts[key]
	for i := range p.Data.Calls {
		call := &p.Data.Calls[i]
		call.Bot, call.Turn = p.Bot, p.Turn
		calls = append(calls, call)
	}
	if p.Data.Part < p.Data.Parts {
		if s.parts == nil {
			s.parts = map[partKey][]*protocol.Approval{}
		}
		s.parts[key] = calls
		return nil
	}
	delete(s.parts, key)
	if len(calls) == 0 {
		return nil
	}
	return &Round{Bot: p.Bot, BotID: calls[0].BotID, Turn: p.Turn, Calls: calls}
}

// why prefers what ended the server from within to what that led to.
func (s *ApprovalServer) why(err error) error {
	cause := context.Cause(s.ctx)
	switch {
	case cause == nil:
		return err
	case cause == errServerClosed:
		return cause
	case protocol.CodeOf(cause) != "":
		return cause
	}
	return contextError(s.ctx, protocol.OpServeApprovals)
}

// Answer gives a verdict under the lease. stale_turn, approval_superseded and
// approval_already_answered are ordinary: someone was faster. approvals_lost ends
// the server.
func (s *ApprovalServer) Answer(ctx context.Context, call *protocol.Approval, v Verdict) (*protocol.Answered, error) {
	r := &protocol.Answer{
		Bot: call.Bot, Turn: call.Turn, CallID: call.CallID, Request: call.Request, Step: call.Step,
		Tag: s.tag, Lease: s.lease, Decision: protocol.Deny, Reason: v.reason, By: v.By,
	}
	if v.allow {
		r.Decision, r.Reason = protocol.Allow, ""
	}
	a := new(protocol.Answered)
	err := s.session.Do(ctx, protocol.OpAnswer, r, a)
	if protocol.CodeOf(err) == protocol.ApprovalsLost {
		s.end(err)
	}
	if err != nil {
		return nil, err
	}
	return a, nil
}

// Close gives the tag up: when it returns the tag is free, unless the daemon does
// not answer within a second. It may be called more than once.
func (s *ApprovalServer) Close() error {
	s.unbind()
	s.end(errServerClosed)
	s.session.giveUp()
	s.renewal.Wait()
	return nil
}
