package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"agent/protocol"
)

// gateFake is a daemon one of whose tags is served for verdicts.
type gateFake struct {
	*fake
	serving chan *fakeSession
	answers chan *protocol.Answer
	renewed chan int64
	waiting []protocol.Approval // in the answer, and a page of it each
}

func newGateFake(t *testing.T, waiting ...protocol.Approval) *gateFake {
	t.Helper()
	f := &gateFake{serving: make(chan *fakeSession, 1), answers: make(chan *protocol.Answer, 64), renewed: make(chan int64, 64), waiting: waiting}
	f.fake = newFake(t, func(s *fakeSession, r protocol.Request) {
		switch p := r.Params.(type) {
		case *protocol.ServeApprovals:
			calls, next := f.page(0)
			s.result(r, protocol.ApprovalsServing{Tag: p.Tag, Lease: fakeLease, LeaseMS: p.LeaseMS, Approvals: calls, NextAfter: next, Through: 9})
			f.serving <- s
		case *protocol.ApprovalsRequest:
			calls, next := f.page(p.After)
			s.result(r, protocol.ApprovalPage{Approvals: calls, NextAfter: next})
		case *protocol.RenewApprovals:
			select {
			case f.renewed <- p.Lease:
			default:
			}
			s.result(r, protocol.Lease{Tag: p.Tag, Lease: p.Lease})
		case *protocol.Answer:
			f.answers <- p
			if p.CallID == "lost" {
				s.refuse(r, protocol.Fail(protocol.ApprovalsLost, "the lease ended"))
				return
			}
			s.result(r, protocol.Answered{CallID: p.CallID, Decision: p.Decision})
		default:
			s.refuse(r, protocol.Fail(protocol.InvalidJSON, r.Op))
		}
	})
	return f
}

func (f *gateFake) page(after int64) ([]protocol.Approval, *int64) {
	if int(after) >= len(f.waiting) {
		return nil, nil
	}
	next := after + 1
	if int(next) == len(f.waiting) {
		return f.waiting[after:next], nil
	}
	return f.waiting[after:next], &next
}

func (f *gateFake) serve(t *testing.T, ctx context.Context) (*fakeSession, *ApprovalServer) {
	t.Helper()
	s, err := f.client(t).ServeApprovals(ctx, "x", ServeOptions{Lease: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return <-f.serving, s
}

func waitingCall(bot string, turn int64, id string) protocol.Approval {
	return protocol.Approval{Bot: bot, BotID: 2, Turn: turn, CallID: id, Request: 1, Name: "shell", Arguments: []byte(`{}`)}
}

// pushPart is a part of a round as the daemon pushes it.
func pushPart(turn, cursor, part, parts int64, ids ...string) protocol.ApprovalPush {
	p := protocol.ApprovalPush{Bot: "Bob", Turn: turn, Tag: "x", Lease: fakeLease, Cursor: cursor}
	p.Data.Part, p.Data.Parts = part, parts
	for _, id := range ids {
		call := waitingCall("", 0, id)
		call.BotID = 0
		p.Data.Calls = append(p.Data.Calls, call)
	}
	return p
}

// told is a round in short.
func told(r *Round, err error) string {
	if err != nil {
		return string(protocol.CodeOf(err))
	}
	var ids []string
	for _, c := range r.Calls {
		ids = append(ids, fmt.Sprint(c.Bot, "/", c.Turn, " ", c.CallID))
	}
	return strings.Join(ids, ", ")
}

func TestServeApprovals(t *testing.T) {
	t.Parallel()
	t.Run("what waits comes first, a turn's calls as one round, then what is pushed, its parts joined", func(t *testing.T) {
		f := newGateFake(t, waitingCall("Ada", 5, "a"), waitingCall("Eve", 6, "e"), waitingCall("Ada", 5, "b"))
		s, server := f.serve(t, t.Context())
		s.live(protocol.KindApprovalRequested, pushPart(7, 1, 1, 2, "c"))
		s.live(protocol.KindApprovalRequested, pushPart(8, 2, 1, 1, "d"))
		s.live(protocol.KindApprovalRequested, pushPart(7, 1, 2, 2, "f"))
		other := pushPart(9, 3, 1, 1, "g")
		other.Lease++
		s.live(protocol.KindApprovalRequested, other)
		s.live(protocol.KindApprovalsLost, protocol.TagLost{Tag: "x", Lease: fakeLease})
		var got []string
		for r, err := range server.Rounds() {
			got = append(got, told(r, err))
		}
		want := "Ada/5 a, Ada/5 b; Eve/6 e; Bob/8 d; Bob/7 c, Bob/7 f; approvals_lost"
		if text := strings.Join(got, "; "); text != want {
			t.Errorf("got %s", text)
		}
		if server.Context().Err() == nil {
			t.Error("its context goes on")
		}
	})
	t.Run("the lease is renewed while nobody reads, and answers go out under it", func(t *testing.T) {
		f := newGateFake(t)
		_, server := f.serve(t, t.Context())
		for range 3 {
			if lease := <-f.renewed; lease != fakeLease || lease != server.Lease() {
				t.Fatalf("lease %d", lease)
			}
		}
		call := waitingCall("Ada", 5, "a")
		call.Step = "s1"
		yes := Allow()
		yes.By = "me"
		if a, err := server.Answer(t.Context(), &call, yes); err != nil || a.Decision != protocol.Allow {
			t.Fatalf("%+v %v", a, err)
		}
		if got := <-f.answers; *got != (protocol.Answer{Bot: "Ada", Turn: 5, CallID: "a", Request: 1, Step: "s1", Tag: "x", Lease: fakeLease, Decision: protocol.Allow, By: "me"}) {
			t.Errorf("%+v", got)
		}
		server.Answer(t.Context(), &call, Deny("no"))
		if got := <-f.answers; got.Decision != protocol.Deny || got.Reason != "no" || got.By != "" {
			t.Errorf("%+v", got)
		}
		server.Answer(t.Context(), &call, Verdict{})
		if got := <-f.answers; got.Decision != protocol.Deny {
			t.Errorf("a verdict that says nothing is %+v", got)
		}
	})
	t.Run("an answer whose lease has ended ends the server", func(t *testing.T) {
		f := newGateFake(t)
		_, server := f.serve(t, t.Context())
		call := waitingCall("Ada", 5, "lost")
		if _, err := server.Answer(t.Context(), &call, Allow()); !errors.Is(err, protocol.ApprovalsLost) {
			t.Fatalf("error %v", err)
		}
		for r, err := range server.Rounds() {
			if told(r, err) != "approvals_lost" {
				t.Errorf("%v %v", r, err)
			}
		}
	})
	t.Run("it ends with the daemon, with its context, and after Close without an error", func(t *testing.T) {
		f := newGateFake(t)
		s, server := f.serve(t, t.Context())
		s.conn.Close()
		for r, err := range server.Rounds() {
			if told(r, err) != "daemon_disconnected" {
				t.Errorf("%v %v", r, err)
			}
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		_, server = f.serve(t, ctx)
		why := errors.New("enough")
		cancel(why)
		for r, err := range server.Rounds() {
			if !errors.Is(err, why) {
				t.Errorf("%v %v", r, err)
			}
		}
		_, server = f.serve(t, t.Context())
		server.Close()
		for r, err := range server.Rounds() {
			t.Errorf("%v %v", r, err)
		}
	})
}

func TestAGateIsGivenUpWithItsContext(t *testing.T) {
	t.Parallel()
	f := newGateFake(t)
	ctx, cancel := context.WithCancel(t.Context())
	s, srv := f.serve(t, ctx)
	cancel()
	<-s.ended // its connection, while nobody has called Close
	if err := allOf(srv.Rounds()); !errors.Is(err, context.Canceled) {
		t.Errorf("rounds ended with %v", err)
	}
}
