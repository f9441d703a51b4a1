package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"agent/protocol"
)

// ServeOptions say how a tag is served.
type ServeOptions struct {
	Lease       time.Duration // 100 ms – 10 min; 0: 5 s. Renewed at a fifth of it
	Concurrency int           // tools: handlers at once; 0: 16
	Redelivered bool          // tools: also handle calls someone else was given
}

const (
	defaultLease    = 5 * time.Second
	defaultHandlers = 16
)

// ToolHandler answers one call of a client-declared tool.
type ToolHandler func(ctx context.Context, call *ToolCall) (ToolOutput, error)

// ToolCall is a call to be answered. Its methods are safe for concurrent use.
type ToolCall struct {
	protocol.ToolCall // Bot, Turn and Tag are always set

	lease   int64
	session *Session
}

// ToolOutput is what a handler gives the model.
type ToolOutput struct {
	Text     string   // UTF-8, at most 512 KiB, and 1 MiB as JSON
	Pictures []string // absolute paths, at most 8 files as protocol.Submit takes them
	External bool     // it holds content from outside
}

// ServeTools answers the calls of tag until ctx ends or the tag is lost, and
// returns why, once its handlers have returned. h runs in its own goroutine per
// call. Its context ends, with the cause, when the turn is interrupted, the
// call expires or the tag is lost; what it returns then is dropped. An error of
// h becomes the tool's error: a *protocol.Error keeps its code, any other is
// tool_failed. A call handed to someone before is answered outcome_unknown
// without running, unless o.Redelivered. A panic in h is tool_failed and does
// not end the server, and so is a result that the daemon does not take, such as
// one that is too long: the error's detail says why.
//
// It has a connection of its own and ends with it, by daemon_disconnected: Retry
// serves again at the next daemon. tools_served means that another session holds
// the tag; the error's facts say for how long. When it returns the tag is free,
// and the calls it had are offered to the tag's next server as delivered.
func (c *Client) ServeTools(ctx context.Context, tag string, o ServeOptions, h ToolHandler) error {
	if o.Lease == 0 {
		o.Lease = defaultLease
	}
	if o.Concurrency <= 0 {
		o.Concurrency = defaultHandlers
	}
	session, err := c.Session(ctx)
	if err != nil {
		return withOp(err, protocol.OpServeTools)
	}
	s := &toolServer{
		c: c, session: session, tag: tag, o: o, h: h,
		slots: make(chan struct{}, o.Concurrency), calls: map[callKey]context.CancelCauseFunc{},
	}
	s.ctx, s.end = context.WithCancelCause(ctx)
	defer s.end(nil)
	err = s.serve()
	s.end(err)
	session.giveUp() // before the handlers: one that still asks something is not kept waiting
	s.handlers.Wait()
	return err
}

// toolServer is one ServeTools under way.
type toolServer struct {
	c       *Client
	session *Session
	tag     string
	o       ServeOptions
	h       ToolHandler
	lease   int64

	ctx      context.Context // ends with the tag
	end      context.CancelCauseFunc
	slots    chan struct{}
	handlers sync.WaitGroup

	mu    sync.Mutex
	calls map[callKey]context.CancelCauseFunc // those not answered yet
}

// callKey tells calls apart.
type callKey struct {
	bot     string
	turn    int64
	call    string
	request int64
}

func (s *toolServer) serve() error {
	var got protocol.ToolsServing
	r := &protocol.ServeTools{Tag: s.tag, LeaseMS: s.o.Lease.Milliseconds()}
	if err := s.session.Do(s.ctx, protocol.OpServeTools, r, &got); err != nil {
		return err
	}
	s.lease = got.Lease
	s.handlers.Go(s.renew)
	s.takeAll(got.Calls)
	for next := got.NextAfter; next != nil; {
		var page protocol.ToolCallPage
		ask := &protocol.ToolCallsRequest{Tag: s.tag, After: *next, Through: protocol.Set(got.Through)}
		if err := s.session.Do(s.ctx, protocol.OpToolCalls, ask, &page); err != nil {
			return s.why(err)
		}
		s.takeAll(page.Calls)
		next = page.NextAfter
	}
	for {
		e, err := s.session.next(s.ctx)
		if errors.Is(err, io.EOF) {
			err = s.session.disconnected()
		}
		if err != nil {
			return s.why(err)
		}
		if err := s.notified(e); err != nil {
			return err
		}
	}
}

// why prefers what ended the server from within to what that led to.
func (s *toolServer) why(err error) error {
	cause := context.Cause(s.ctx)
	switch {
	case cause == nil:
		return err
	case protocol.CodeOf(cause) != "":
		return cause
	}
	return contextError(s.ctx, protocol.OpServeTools)
}

// renew keeps the lease until the server ends.
func (s *toolServer) renew() {
	s.c.keepLease(s.ctx, s.end, s.tag, s.o.Lease, func() error {
		return s.session.Do(s.ctx, protocol.OpRenewTools, &protocol.RenewTools{Tag: s.tag, Lease: s.lease}, nil)
	})
}

// keepLease renews a tag's lease until ctx ends, or ends it with why the lease is
// lost.
func (c *Client) keepLease(ctx context.Context, end context.CancelCauseFunc, tag string, lease time.Duration, renew func() error) {
	tick := time.NewTicker(max(lease/5, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := renew(); err != nil && ctx.Err() == nil {
			c.logf("serve %s: %v", tag, protocol.CodeOf(err))
			end(err)
			return
		}
	}
}

func (s *toolServer) notified(e *protocol.Event) error {
	switch e.Kind {
	case protocol.KindToolRequested:
		var p protocol.ToolPush
		if err := e.Decode(&p); err != nil || p.Lease != s.lease || p.Tag != s.tag {
			return err
		}
		call := p.Data
		call.Bot, call.Turn, call.Tag = p.Bot, p.Turn, p.Tag
		s.take(call)
	case protocol.KindToolCancelled:
		var n protocol.ToolCancelled
		if err := e.Decode(&n); err != nil {
			return err
		}
		s.cancel(callKey{n.Bot, n.Turn, n.CallID, n.Request})
	case protocol.KindToolsLost:
		var n protocol.TagLost
		if err := e.Decode(&n); err != nil || n.Lease != s.lease {
			return err
		}
		return &protocol.Error{Code: protocol.ToolsLost, Op: protocol.OpServeTools, Detail: "another session took " + s.tag + ", or the lease ran out"}
	}
	return nil
}

func (s *toolServer) takeAll(calls []protocol.ToolCall) {
	for _, call := range calls {
		s.take(call)
	}
}

// errCancelled is the cause of a handler's context whose call is not wanted any
// more.
var errCancelled = protocol.Fail(protocol.Cancelled, "the turn was interrupted, or the call's time is over")

// take begins a call, once.
func (s *toolServer) take(call protocol.ToolCall) {
	key := callKey{call.Bot, call.Turn, call.CallID, call.Request}
	ctx, cancel := context.WithCancelCause(s.ctx)
	s.mu.Lock()
	if s.calls[key] != nil {
		s.mu.Unlock()
		cancel(nil)
		return
	}
	s.calls[key] = cancel
	s.mu.Unlock()
	s.handlers.Go(func() {
		defer s.cancel(key)
		s.answer(ctx, &ToolCall{ToolCall: call, lease: s.lease, session: s.session})
	})
}

func (s *toolServer) cancel(key callKey) {
	s.mu.Lock()
	cancel := s.calls[key]
	delete(s.calls, key)
	s.mu.Unlock()
	if cancel != nil {
		cancel(errCancelled)
	}
}

// answer runs a call in one of the handlers' places and sends what it came to.
func (s *toolServer) answer(ctx context.Context, call *ToolCall) {
	if call.Delivered && !s.o.Redelivered {
		s.send(ctx, call, failed(protocol.Fail(protocol.OutcomeUnknown,
			"the call was handed to another server before; whether it acted is not known")))
		return
	}
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return
	}
	r := failed(errors.New("the handler ended its goroutine"))
	defer func() { // also when it does that, as a test's Fatal would
		<-s.slots
		if ctx.Err() == nil {
			s.send(ctx, call, r)
		}
	}()
	r = s.run(ctx, call)
}

// run is what the handler says. What is wrong with its error, such as a nil
// pointer in it, is a panic of its own too.
func (s *toolServer) run(ctx context.Context, call *ToolCall) (r *protocol.ToolResult) {
	defer func() {
		if p := recover(); p != nil {
			s.c.logf("serve %s: the handler of %s panicked", s.tag, call.Name)
			r = failed(fmt.Errorf("the handler panicked: %v", p))
		}
	}()
	out, err := s.h(ctx, call)
	if err != nil {
		return failed(err)
	}
	return &protocol.ToolResult{Output: protocol.Set(out.Text), Pictures: out.Pictures, External: out.External}
}

// failed is the result of a call that came to an error.
func failed(err error) *protocol.ToolResult { return &protocol.ToolResult{Error: toolError(err)} }

// send gives the daemon a result. One that it does not take as it is becomes
// tool_failed, so that the turn does not wait for the call's expiry.
func (s *toolServer) send(ctx context.Context, call *ToolCall, r *protocol.ToolResult) {
	err := s.result(ctx, call, r)
	switch code := protocol.CodeOf(err); {
	case err == nil, ctx.Err() != nil:
	case code == protocol.StaleTurn, code == protocol.CallAlreadyAnswered, code == protocol.CallSuperseded,
		code == protocol.NoPendingCall, code == protocol.BotNotFound: // ordinary: the call is over
	case code == protocol.DaemonDisconnected: // the server ends by itself
	case code == protocol.ToolsLost:
		s.end(err)
	default:
		s.c.logf("serve %s: a result of %s was refused: %s", s.tag, call.Name, code)
		again := failed(fmt.Errorf("the result was refused: %v", err)) // under no code but tool_failed
		if err := s.result(ctx, call, again); protocol.CodeOf(err) == protocol.ToolsLost {
			s.end(err)
		}
	}
}

// result sends a result under the call's own name.
func (s *toolServer) result(ctx context.Context, call *ToolCall, r *protocol.ToolResult) error {
	r.Bot, r.Turn, r.CallID, r.Request, r.Tag, r.Lease = call.Bot, call.Turn, call.CallID, call.Request, call.Tag, call.lease
	return s.session.Do(ctx, protocol.OpToolResult, r, nil)
}

// toolError is a handler's error as the model reads it.
func toolError(err error) *protocol.ToolError {
	e := &protocol.ToolError{Code: string(protocol.ToolFailed), Detail: err.Error()}
	var coded *protocol.Error
	if errors.As(err, &coded) && validToolCode(string(coded.Code)) {
		e.Code, e.Detail = string(coded.Code), coded.Detail
	}
	e.Detail = strings.ToValidUTF8(e.Detail, "\uFFFD")
	return e
}

// validToolCode reports whether code may be a tool error's (protocol document,
// section 11).
func validToolCode(code string) bool {
	for i := range len(code) {
		if c := code[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return code != "" && len(code) <= protocol.MaxToolErrorCode
}

// errNoServer is what a call gets that no server handed out, such as a test's own.
var errNoServer = errors.New("client: the call was not handed out by ServeTools")

// ApproveStep asks the bot's gates for one step inside the call and waits. A
// denial is a verdict, not an error. Of step, what names the call is filled in.
func (t *ToolCall) ApproveStep(ctx context.Context, step protocol.Step) (*protocol.StepVerdict, error) {
	if t.session == nil {
		return nil, errNoServer
	}
	step.Bot, step.Turn, step.CallID, step.Request, step.Tag, step.Lease = t.Bot, t.Turn, t.CallID, t.Request, t.Tag, t.lease
	v := new(protocol.StepVerdict)
	if err := t.session.Do(ctx, protocol.OpApproveStep, &step, v); err != nil {
		return nil, err
	}
	return v, nil
}

// StepResult records what the step did.
func (t *ToolCall) StepResult(ctx context.Context, step string, ok bool, detail string) error {
	if t.session == nil {
		return errNoServer
	}
	r := &protocol.StepResult{
		Bot: t.Bot, Turn: t.Turn, CallID: t.CallID, Request: t.Request, Tag: t.Tag, Lease: t.lease,
		Step: step, OK: ok, Detail: detail,
	}
	return t.session.Do(ctx, protocol.OpStepResult, r, nil)
}
