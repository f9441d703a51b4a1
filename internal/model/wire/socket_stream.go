package wire

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"agent/internal/model"
	"agent/internal/model/pace"
)

// SocketCall is one request over a WebSocket.
type SocketCall struct {
	Path      string      // appended to the base URL, with its slash
	Header    http.Header // of the upgrade, canonical names; may be nil
	Bot       int64       // whose connection is used; 0: one for this call alone
	Pool      string
	MaxOutput int64 // for the estimate; 0: no cap
	// Bytes is the length of the request as it is without anything that the
	// server remembers: what the estimate goes by, since the model reads it all.
	Bytes int64
	Stall time.Duration
}

// Fate is what an error of a response leaves of its connection.
type Fate int

const (
	Close  Fate = iota // nothing: what comes on it next cannot be told
	Keep               // the response is over, and the connection serves on
	Resend             // the same, and the request is to be made and sent again
)

// Talk is a family's side of one call. Its methods are called by one goroutine.
type Talk interface {
	Decoder
	// Request makes the message to send over a connection.
	Request(s *Socket) ([]byte, error)
	// Fate is what err, which Event gave, leaves, and the headers that the
	// server sent with it, nil for none.
	Fate(err error) (Fate, http.Header)
}

// Stream makes one attempt: pool, permit, connection, message, events. It gives
// what Client.Stream does. A request that is to be sent again (Resend) goes over
// the same connection with a reservation and a permit of its own; that is no
// other attempt.
func (k *Sockets) Stream(ctx context.Context, call *SocketCall, talk Talk, sink func(model.Event), rep *model.Report) error {
	var s *Socket
	for {
		again, err := k.once(ctx, call, talk, s, sink, rep)
		if again == nil {
			return k.client.Clean(err)
		}
		s = again
	}
}

// once sends one message, over s if that is not nil. It gives the connection,
// still held, where it is to be done again.
func (k *Sockets) once(ctx context.Context, call *SocketCall, talk Talk, s *Socket, sink func(model.Event), rep *model.Report) (*Socket, error) {
	began := time.Now()
	grant, park, err := k.client.Pools.Acquire(ctx, call.Pool, pace.Estimate(call.Bytes, call.MaxOutput))
	rep.PacedMS += time.Since(began).Milliseconds()
	if err != nil {
		rep.ParkFor = park
		if s != nil {
			k.release(s, true)
		}
		return nil, err
	}
	a := &socketAttempt{k: k, call: call, talk: talk, s: s, sink: sink, rep: rep, grant: grant}
	fate, err := a.run(ctx)
	if e, ok := err.(*model.Error); ok && refusedForPace(e) {
		grant.Refused(e.Retry)
	}
	usage := rep.Usage
	if fate == Resend {
		usage = &model.Usage{} // the refused continuation cost a request and no token
	}
	grant.End(a.reached, err == nil, usage)
	if fate == Resend {
		return a.s, err
	}
	if a.s != nil {
		k.release(a.s, fate == Keep)
	}
	return nil, err
}

// socketAttempt is the state of one message and its answer.
type socketAttempt struct {
	k     *Sockets
	call  *SocketCall
	talk  Talk
	s     *Socket // nil until there is one
	sink  func(model.Event)
	rep   *model.Report
	grant *pace.Grant

	reached bool // what is paid for came to the provider
	permit  func()
}

func (a *socketAttempt) run(parent context.Context) (Fate, error) {
	release, err := a.k.client.env.Transports.Permit(parent)
	if err != nil {
		return Keep, err
	}
	a.permit = sync.OnceFunc(release)
	defer a.permit()
	if a.s == nil {
		if a.s, err = a.connect(parent); err != nil {
			return Close, err
		}
		a.rep.RequestID = a.s.requestID
	}
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	message, err := a.talk.Request(a.s)
	if parent.Err() != nil {
		return Keep, context.Cause(parent)
	}
	if err != nil {
		return Keep, err
	}
	x := a.s.begin()
	defer a.s.end(x)
	defer context.AfterFunc(ctx, a.s.close)()
	clocks := watch(a.call.Stall, cancel)
	a.s.tap.clocks.Store(clocks)
	defer clocks.stop()
	defer a.s.tap.clocks.Store(nil)
	sentMS := time.Now().UnixMilli()
	if err := a.s.conn.Write(context.Background(), websocket.MessageText, message); err != nil {
		return Close, a.failure(parent, ctx, err, connectionError)
	}
	a.reached, a.rep.Dispatched, a.rep.SentMS = true, true, sentMS
	return a.answer(parent, ctx, x, clocks)
}

// answer takes the response's events.
func (a *socketAttempt) answer(parent, ctx context.Context, x *exchange, clocks *stall) (Fate, error) {
	sink := func(e model.Event) {
		clocks.hold()
		a.sink(e)
		clocks.release()
	}
	accepted := sync.OnceFunc(a.grant.Accepted)
	for total := 0; ; {
		var m message
		select {
		case m = <-x.in:
		case <-a.s.gone:
			return Close, a.failure(parent, ctx, a.s.err, socketError)
		case <-ctx.Done():
			return Close, a.failure(parent, ctx, ctx.Err(), socketError)
		}
		a.permit()
		if ctx.Err() != nil {
			return Close, a.failure(parent, ctx, ctx.Err(), socketError)
		}
		if m.kind != websocket.MessageText {
			return Close, model.Errorf("provider_unexpected_binary", "the server sent a binary message of %d bytes", len(m.data))
		}
		if total += len(m.data); total > responseLimit {
			return Close, tooMuch()
		}
		content, err := a.talk.Event(m.data, sink)
		if err != nil {
			return a.over(err)
		}
		accepted()
		if a.talk.Ended() {
			return Keep, nil
		}
		if content {
			clocks.content()
		}
		select {
		case x.taken <- struct{}{}:
		case <-a.s.gone: // the reader left as the connection was closed
		}
	}
}

// over settles an error of the response.
func (a *socketAttempt) over(err error) (Fate, error) {
	fate, header := a.talk.Fate(err)
	if header != nil {
		a.grant.Learn(a.k.client.family.Limits(header))
	}
	return fate, err
}

// failure finds what an error of the connection stands for: the caller's end,
// one of our clocks, or the connection.
func (a *socketAttempt) failure(parent, ctx context.Context, err error, classify func(error) *model.Error) error {
	if parent.Err() != nil {
		return context.Cause(parent)
	}
	var ours *model.Error
	if errors.As(context.Cause(ctx), &ours) {
		return a.k.client.withProxy(ours)
	}
	return a.k.client.withProxy(classify(err))
}

// socketError classifies how a connection ended in the middle of a response.
func socketError(err error) *model.Error {
	var closed websocket.CloseError
	switch {
	case errors.Is(err, websocket.ErrMessageTooBig):
		return tooMuch()
	case errors.As(err, &closed):
		detail := fmt.Sprintf("the server closed the connection (status %d) before the response's last event", closed.Code)
		if closed.Reason != "" {
			detail += ": " + closed.Reason
		}
		return &model.Error{Code: "missing_completion", Detail: detail, Cause: err}
	}
	return streamError(err)
}

func tooMuch() *model.Error {
	return model.Errorf("provider_response_limit", "the response is longer than %d MiB", responseLimit>>20)
}
