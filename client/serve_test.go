package client

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"agent/protocol"
)

// tagFake is a daemon whose one tag is served: it pushes what the test says and
// hands the test every result.
type tagFake struct {
	*fake
	serving chan *fakeSession
	results chan *protocol.ToolResult
	renewed chan int64
	waiting []protocol.ToolCall // in the answer, and a page of it each
	refuse  atomic.Pointer[protocol.Error]
}

const fakeLease = 77

func newTagFake(t *testing.T, waiting ...protocol.ToolCall) *tagFake {
	t.Helper()
	f := &tagFake{serving: make(chan *fakeSession, 1), results: make(chan *protocol.ToolResult, 64), renewed: make(chan int64, 64), waiting: waiting}
	f.fake = newFake(t, func(s *fakeSession, r protocol.Request) {
		switch p := r.Params.(type) {
		case *protocol.ServeTools:
			calls, next := f.page(0)
			s.result(r, protocol.ToolsServing{Tag: p.Tag, Lease: fakeLease, LeaseMS: p.LeaseMS, Calls: calls, NextAfter: next, Through: 9})
			f.serving <- s
		case *protocol.ToolCallsRequest:
			calls, next := f.page(p.After)
			s.result(r, protocol.ToolCallPage{Calls: calls, NextAfter: next})
		case *protocol.RenewTools:
			select {
			case f.renewed <- p.Lease:
			default:
			}
			s.result(r, protocol.Lease{Tag: p.Tag, Lease: p.Lease})
		case *protocol.ToolResult:
			f.results <- p
			if err := f.refuse.Swap(nil); err != nil {
				s.refuse(r, err)
				return
			}
			s.result(r, protocol.ToolAccepted{Accepted: true})
		case *protocol.Step:
			s.result(r, protocol.StepVerdict{Step: p.Step, Decision: protocol.Deny, Reason: fmt.Sprint(p.Name, " of ", p.CallID, " under ", p.Lease)})
		case *protocol.StepResult:
			s.result(r, protocol.Empty{})
		default:
			s.refuse(r, protocol.Fail(protocol.InvalidJSON, r.Op))
		}
	})
	return f
}

// page is the waiting call at a place, one to a page.
func (f *tagFake) page(after int64) ([]protocol.ToolCall, *int64) {
	if int(after) >= len(f.waiting) {
		return nil, nil
	}
	next := after + 1
	if int(next) == len(f.waiting) {
		return f.waiting[after:next], nil
	}
	return f.waiting[after:next], &next
}

func fakeCall(id string) protocol.ToolCall {
	return protocol.ToolCall{Bot: "Ada", Turn: 5, Tag: "x", CallID: id, Request: 1, Name: "memory", Arguments: `{}`}
}

func pushOf(call protocol.ToolCall) protocol.ToolPush {
	p := protocol.ToolPush{Bot: call.Bot, Turn: call.Turn, Tag: call.Tag, Lease: fakeLease, Cursor: 1}
	call.Bot, call.Turn, call.Tag = "", 0, ""
	p.Data = call
	return p
}

// serve runs a server until the test ends and gives its end.
func (f *tagFake) serve(t *testing.T, o ServeOptions, h ToolHandler) (*fakeSession, context.CancelFunc, chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	c := f.client(t)
	go func() { ended <- c.ServeTools(ctx, "x", o, h) }()
	t.Cleanup(cancel)
	return <-f.serving, cancel, ended
}

type panickyError struct{}

func (panickyError) Error() string { panic("a defect in a defect") }

func shown(r *protocol.ToolResult) string {
	if r.Error != nil {
		return r.CallID + ": " + r.Error.Code + " " + r.Error.Detail
	}
	return r.CallID + "= " + r.Output.Or("")
}

func TestServeTools(t *testing.T) {
	t.Parallel()
	t.Run("CL-82 a handler that panics once answers tool_failed and the next call is served", func(t *testing.T) {
		f := newTagFake(t)
		s, _, _ := f.serve(t, ServeOptions{}, func(ctx context.Context, call *ToolCall) (ToolOutput, error) {
			if call.CallID == "c1" {
				panic("a defect")
			}
			return ToolOutput{Text: "done " + call.Bot + " " + call.Arguments, External: true}, nil
		})
		s.live(protocol.KindToolRequested, pushOf(fakeCall("c1")))
		if got := shown(<-f.results); !strings.HasPrefix(got, "c1: tool_failed ") {
			t.Errorf("result %s", got)
		}
		s.live(protocol.KindToolRequested, pushOf(fakeCall("c2")))
		r := <-f.results
		if shown(r) != "c2= done Ada {}" || !r.External || r.Lease != fakeLease || r.Bot != "Ada" || r.Turn != 5 || r.Request != 1 || r.Tag != "x" {
			t.Errorf("result %+v", r)
		}
	})
	t.Run("nothing that a handler does instead of answering ends the server, or takes its place", func(t *testing.T) {
		f := newTagFake(t)
		var none *protocol.Error
		s, _, _ := f.serve(t, ServeOptions{Concurrency: 1}, func(ctx context.Context, call *ToolCall) (ToolOutput, error) {
			switch call.CallID {
			case "c1":
				return ToolOutput{}, none // a nil pointer in an error
			case "c2":
				return ToolOutput{}, panickyError{}
			case "c3":
				runtime.Goexit()
			case "c4":
				return ToolOutput{}, errors.New("not\xffUTF-8")
			case "c5":
				return ToolOutput{Text: strings.Repeat("x", protocol.MaxLine)}, nil
			case "c6":
				return ToolOutput{Text: "not\xffUTF-8"}, nil
			}
			return ToolOutput{Text: "done"}, nil
		})
		for id, want := range map[string]string{
			"c1": "tool_failed the handler panicked: ", "c2": "tool_failed the handler panicked: ", "c3": "tool_failed the handler ended its goroutine",
			"c4": "tool_failed not\uFFFDUTF-8", "c5": "tool_failed the result was refused: input_line_limit_or_truncation",
			"c6": "tool_failed the result was refused: invalid_json: a text is not UTF-8",
		} {
			s.live(protocol.KindToolRequested, pushOf(fakeCall(id)))
			if got := shown(<-f.results); !strings.HasPrefix(got, id+": "+want) {
				t.Errorf("result %s, want %s", got, want)
			}
		}
		s.live(protocol.KindToolRequested, pushOf(fakeCall("c7")))
		if got := shown(<-f.results); got != "c7= done" {
			t.Errorf("result %s", got)
		}
	})
	t.Run("a call of the program's own making asks nobody", func(t *testing.T) {
		call := &ToolCall{ToolCall: fakeCall("c1")}
		if _, err := call.ApproveStep(t.Context(), protocol.Step{}); err == nil {
			t.Error("a step of it was approved")
		}
		if err := call.StepResult(t.Context(), "s", true, ""); err == nil {
			t.Error("a step of it was reported")
		}
	})
	t.Run("what waits already is taken from every page, each call once", func(t *testing.T) {
		f := newTagFake(t, fakeCall("c1"), fakeCall("c2"), fakeCall("c3"))
		hold, began := make(chan struct{}), make(chan string, 8)
		s, _, _ := f.serve(t, ServeOptions{}, func(ctx context.Context, call *ToolCall) (ToolOutput, error) {
			began <- call.CallID
			<-hold
			return ToolOutput{}, nil
		})
		s.live(protocol.KindToolRequested, pushOf(fakeCall("c1")))
		s.live(protocol.KindToolRequested, pushOf(fakeCall("c4")))
		for range 4 {
			<-began
		}
		close(hold)
		seen := map[string]int{}
		for range 4 {
			seen[(<-f.results).CallID]++
		}
		if len(seen) != 4 {
			t.Errorf("results of %v", seen)
		}
	})
	t.Run("a call that someone was given is not run", func(t *testing.T) {
		old := fakeCall("c1")
		old.Delivered = true
		f := newTagFake(t, old)
		f.serve(t, ServeOptions{}, func(context.Context, *ToolCall) (ToolOutput, error) { return ToolOutput{Text: "ran"}, nil })
		if got := shown(<-f.results); !strings.HasPrefix(got, "c1: outcome_unknown ") {
			t.Errorf("result %s", got)
		}
		f = newTagFake(t, old)
		f.serve(t, ServeOptions{Redelivered: true}, func(context.Context, *ToolCall) (ToolOutput, error) { return ToolOutput{Text: "ran"}, nil })
		if got := shown(<-f.results); got != "c1= ran" {
			t.Errorf("result %s", got)
		}
	})
	t.Run("errors keep a code that a tool may have, others are tool_failed", func(t *testing.T) {
		f := newTagFake(t)
		errs := map[string]error{"c1": fmt.Errorf("saving: %w", protocol.Fail("disk_full", "no room")), "c2": errors.New("oops"), "c3": protocol.Fail("Bad-Code", "x")}
		s, _, _ := f.serve(t, ServeOptions{}, func(_ context.Context, call *ToolCall) (ToolOutput, error) { return ToolOutput{}, errs[call.CallID] })
		for id, want := range map[string]string{"c1": "c1: disk_full no room", "c2": "c2: tool_failed oops", "c3": "c3: tool_failed Bad-Code: x"} {
			s.live(protocol.KindToolRequested, pushOf(fakeCall(id)))
			if got := shown(<-f.results); got != want {
				t.Errorf("result %s, want %s", got, want)
			}
		}
	})
	t.Run("a result that the daemon refuses becomes tool_failed", func(t *testing.T) {
		f := newTagFake(t)
		s, _, _ := f.serve(t, ServeOptions{}, func(context.Context, *ToolCall) (ToolOutput, error) { return ToolOutput{Text: "long"}, nil })
		f.refuse.Store(protocol.Fail(protocol.ToolResultLimit, ""))
		s.live(protocol.KindToolRequested, pushOf(fakeCall("c1")))
		if got := shown(<-f.results); got != "c1= long" {
			t.Errorf("result %s", got)
		}
		if got := shown(<-f.results); got != "c1: tool_failed the result was refused: tool_result_limit" {
			t.Errorf("result %s", got)
		}
	})
	t.Run("a cancelled call's context ends with the cause, and its result is dropped", func(t *testing.T) {
		f := newTagFake(t)
		causes := make(chan error, 1)
		began := make(chan struct{}, 1)
		s, _, _ := f.serve(t, ServeOptions{}, func(ctx context.Context, call *ToolCall) (ToolOutput, error) {
			if call.CallID == "c1" {
				began <- struct{}{}
				<-ctx.Done()
				causes <- context.Cause(ctx)
			}
			return ToolOutput{Text: call.CallID}, nil
		})
		s.live(protocol.KindToolRequested, pushOf(fakeCall("c1")))
		<-began
		s.live(protocol.KindToolCancelled, protocol.ToolCancelled{Bot: "Ada", Turn: 5, CallID: "c1", Request: 1, Tag: "x", Lease: fakeLease})
		if err := <-causes; !errors.Is(err, protocol.Cancelled) {
			t.Errorf("cause %v", err)
		}
		s.live(protocol.KindToolRequested, pushOf(fakeCall("c2")))
		if got := shown(<-f.results); got != "c2= c2" {
			t.Errorf("result %s", got)
		}
	})
	t.Run("a lost tag ends the server and its handlers with tools_lost", func(t *testing.T) {
		f := newTagFake(t)
		causes, began := make(chan error, 1), make(chan struct{})
		s, _, ended := f.serve(t, ServeOptions{}, func(ctx context.Context, call *ToolCall) (ToolOutput, error) {
			close(began)
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return ToolOutput{}, nil
		})
		s.live(protocol.KindToolRequested, pushOf(fakeCall("c1")))
		<-began
		s.live(protocol.KindToolsLost, protocol.TagLost{Tag: "x", Lease: fakeLease - 1}) // an earlier lease
		s.live(protocol.KindToolsLost, protocol.TagLost{Tag: "x", Lease: fakeLease})
		if err := <-ended; !errors.Is(err, protocol.ToolsLost) {
			t.Errorf("ended by %v", err)
		}
		if err := <-causes; !errors.Is(err, protocol.ToolsLost) {
			t.Errorf("cause %v", err)
		}
	})
	t.Run("no more handlers run than asked for, and a call cancelled in line never runs", func(t *testing.T) {
		f := newTagFake(t)
		began, hold := make(chan string, 8), make(chan struct{})
		s, _, _ := f.serve(t, ServeOptions{Concurrency: 1}, func(ctx context.Context, call *ToolCall) (ToolOutput, error) {
			began <- call.CallID
			<-hold
			return ToolOutput{}, nil
		})
		s.live(protocol.KindToolRequested, pushOf(fakeCall("c1")))
		if id := <-began; id != "c1" {
			t.Errorf("%s began", id)
		}
		s.live(protocol.KindToolRequested, pushOf(fakeCall("c2")))
		s.live(protocol.KindToolCancelled, protocol.ToolCancelled{Bot: "Ada", Turn: 5, CallID: "c2", Request: 1, Tag: "x", Lease: fakeLease})
		done := fakeCall("c3")
		done.Delivered = true // answered outside the line: the one before it was seen
		s.live(protocol.KindToolRequested, pushOf(done))
		if got := (<-f.results).CallID; got != "c3" {
			t.Errorf("result of %s", got)
		}
		s.live(protocol.KindToolRequested, pushOf(fakeCall("c4")))
		close(hold)
		if a, b := (<-f.results).CallID, (<-f.results).CallID; a+b != "c1c4" && a+b != "c4c1" || len(began) != 1 {
			t.Errorf("results of %s and %s", a, b)
		}
	})
	t.Run("the lease is renewed, and the server ends with its context", func(t *testing.T) {
		f := newTagFake(t)
		_, cancel, ended := f.serve(t, ServeOptions{Lease: 100 * time.Millisecond}, nil)
		for range 3 {
			if n := <-f.renewed; n != fakeLease {
				t.Errorf("lease %d", n)
			}
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) || protocol.CodeOf(err) != "" {
			t.Errorf("ended by %v", err)
		}
	})
	t.Run("a daemon that dies ends the server", func(t *testing.T) {
		f := newTagFake(t)
		s, _, ended := f.serve(t, ServeOptions{}, nil)
		s.conn.Close()
		if err := <-ended; !errors.Is(err, protocol.DaemonDisconnected) {
			t.Errorf("ended by %v", err)
		}
	})
	t.Run("a held tag is the server's error, with the time left", func(t *testing.T) {
		f := newFake(t, func(s *fakeSession, r protocol.Request) {
			s.refuse(r, protocol.Fail(protocol.ToolsServed, "").With("lease_left_ms", 420))
		})
		err := f.client(t).ServeTools(context.Background(), "x", ServeOptions{}, nil)
		var e *protocol.Error
		var left int64
		if !errors.Is(err, protocol.ToolsServed) || !errors.As(err, &e) {
			t.Fatalf("ended by %v", err)
		}
		if _, err := e.Fact("lease_left_ms", &left); err != nil || left != 420 {
			t.Errorf("%d ms left, %v", left, err)
		}
	})
	t.Run("a step is asked for, and reported, under the call's own name", func(t *testing.T) {
		f := newTagFake(t)
		s, _, _ := f.serve(t, ServeOptions{}, func(ctx context.Context, call *ToolCall) (ToolOutput, error) {
			v, err := call.ApproveStep(ctx, protocol.Step{Step: "s1", Name: "send", Arguments: []byte(`{}`)})
			if err != nil {
				return ToolOutput{}, err
			}
			return ToolOutput{Text: v.Decision + ", " + v.Reason}, call.StepResult(ctx, "s1", false, "not done")
		})
		s.live(protocol.KindToolRequested, pushOf(fakeCall("c1")))
		if got := shown(<-f.results); got != "c1= deny, send of c1 under 77" {
			t.Errorf("result %s", got)
		}
	})
}
