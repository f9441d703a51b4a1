package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"agent/internal/model"
	"agent/internal/model/pace"
)

const (
	errorBodyTime = 10 * time.Second
	// drainTime is how long a finished stream may stay open; a later event
	// in it is still noticed. Where the family ends with [DONE], usageTime is
	// that time before it, since the usage may come behind all else, and
	// doneTime behind it: nothing counts any more, but a connection whose body
	// was read to its end can be used again.
	drainTime = time.Second
	usageTime = 10 * time.Second
	doneTime  = 100 * time.Millisecond
	// wholeLimit is the longest answer that may come at once.
	wholeLimit = 1 << 20
)

// Call is one request whose answer is an event stream.
type Call struct {
	Path      string      // appended to the base URL, with its slash
	Header    http.Header // beyond those every call has; may be nil
	Pool      string
	MaxOutput int64  // for the estimate; 0: no cap
	Prefix    []byte // Stream takes it from the call, to hold it no longer than it must
	Items     model.Items
	Suffix    []byte
	Stall     time.Duration
	// Answered is told the headers of a response that is a success; may be nil.
	Answered func(http.Header)
}

// Decoder takes the frames of one stream, in order, from one goroutine.
type Decoder interface {
	// Event takes one frame and reports whether it was more than a
	// keep-alive. data is only valid during the call.
	Event(data []byte, sink func(model.Event)) (content bool, err error)
	// Ended reports whether the event came that ends a response.
	Ended() bool
}

// Ender is a Decoder whose family sends [DONE], or its usage, behind the event
// that ends a response.
type Ender interface {
	Decoder
	// Done is told that [DONE] came.
	Done()
}

// Whole is a Decoder whose family's servers may answer with all of a response
// at once, as JSON.
type Whole interface {
	Decoder
	// Whole takes a body of at most 1 MiB. ok is false where it is no
	// response. data is only valid during the call.
	Whole(data []byte, sink func(model.Event)) (ok bool, err error)
}

// Stream makes one attempt: pool, permit, request, stream. It returns nil when
// the response ended as it should, else model.ErrPaced with rep.ParkFor, an
// *model.Error, the cause of ctx's end, or the error of the items' reader.
// rep.Usage is the decoder's to fill.
func (c *Client) Stream(ctx context.Context, call *Call, dec Decoder, sink func(model.Event), rep *model.Report) error {
	b := &body{prefix: call.Prefix, items: call.Items, suffix: call.Suffix}
	call.Prefix = nil
	began := time.Now()
	grant, park, err := c.Pools.Acquire(ctx, call.Pool, pace.Estimate(b.length(), call.MaxOutput))
	rep.PacedMS += time.Since(began).Milliseconds()
	if err != nil {
		rep.ParkFor = park
		return err
	}
	a := &attempt{c: c, call: call, body: b, dec: dec, sink: sink, rep: rep, grant: grant}
	err = a.run(ctx)
	rep.Dispatched, rep.SentMS = a.dispatched.Load(), a.sentMS.Load()
	if e, ok := err.(*model.Error); ok && refusedForPace(e) {
		grant.Refused(e.Retry)
	}
	grant.End(rep.Dispatched, err == nil, rep.Usage)
	return c.Clean(err)
}

// attempt is the state of one Stream.
type attempt struct {
	c     *Client
	call  *Call
	body  *body
	dec   Decoder
	sink  func(model.Event)
	rep   *model.Report
	grant *pace.Grant

	cancel     context.CancelCauseFunc
	dispatched atomic.Bool
	sentMS     atomic.Int64
}

func (a *attempt) run(parent context.Context) error {
	release, err := a.c.env.Transports.Permit(parent)
	if err != nil {
		return err
	}
	permit := sync.OnceFunc(release)
	defer permit()
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	a.cancel = cancel

	resp, err := a.send(ctx)
	if err != nil {
		return a.failure(parent, ctx, err, connectionError)
	}
	defer resp.Body.Close()
	a.body.drop()
	permit()
	return a.reader(resp)(parent, ctx, resp)
}

// reader is what reads the response, whose headers it learns from.
func (a *attempt) reader(resp *http.Response) func(parent, ctx context.Context, resp *http.Response) error {
	a.rep.RequestID = resp.Header.Get(a.c.family.RequestID)
	a.c.learn(resp.Header)
	if resp.StatusCode/100 != 2 {
		return func(parent, _ context.Context, resp *http.Response) error { return a.refused(parent, resp) }
	}
	if a.call.Answered != nil {
		a.call.Answered(resp.Header)
	}
	a.grant.Learn(a.c.family.Limits(resp.Header))
	a.grant.Accepted()
	if contentType := resp.Header.Get("content-type"); contentType != "" && mediaType(contentType) != "text/event-stream" {
		return a.answer
	}
	return a.stream
}

// refused reads the refusal. One for a spent quota teaches the pool nothing:
// no waiting helps it, and other calls are not to be slowed by it.
func (a *attempt) refused(parent context.Context, resp *http.Response) error {
	limit := time.AfterFunc(errorBodyTime, func() { a.cancel(nil) })
	defer limit.Stop()
	e := a.c.refusal(parent, resp)
	if parent.Err() != nil {
		return context.Cause(parent)
	}
	if e.Code != "provider_quota_exhausted" {
		a.grant.Learn(a.c.family.Limits(resp.Header))
	}
	return e
}

// send dispatches the request and waits for the response's headers.
func (a *attempt) send(ctx context.Context) (*http.Response, error) {
	clock := startHeaderClock(a.c.family.HeaderWait, a.cancel)
	defer clock.stop()
	a.body.progress = clock.renew
	first := a.body.reader()
	trace := &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { first.ready() },
		WroteHeaders: func() {
			if !a.dispatched.Swap(true) {
				a.sentMS.Store(time.Now().UnixMilli())
			}
		},
	}
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace),
		http.MethodPost, a.c.base+a.call.Path, first)
	if err != nil {
		return nil, err
	}
	req.GetBody = a.body.open
	req.ContentLength = a.body.length()
	req.Header.Set("content-type", "application/json")
	req.Header.Set("accept", "text/event-stream")
	for name, values := range a.call.Header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	if err := a.c.authorize(ctx, req); err != nil {
		first.Close()
		return nil, err
	}
	return a.c.env.Transports.RoundTrip(req)
}

// failure finds what an error of the transport stands for: the store's own
// error, the caller's end, one of our clocks, or the connection.
func (a *attempt) failure(parent, ctx context.Context, err error, classify func(error) *model.Error) error {
	if stored := a.body.failure(); stored != nil {
		return stored
	}
	if parent.Err() != nil {
		return context.Cause(parent)
	}
	var ours *model.Error
	if errors.As(context.Cause(ctx), &ours) {
		return a.c.withProxy(ours)
	}
	return a.c.withProxy(classify(err))
}

// answer reads a successful response that is no stream.
func (a *attempt) answer(parent, ctx context.Context, resp *http.Response) error {
	contentType := resp.Header.Get("content-type")
	if dec, ok := a.dec.(Whole); ok && mediaType(contentType) == "application/json" {
		return a.whole(parent, ctx, resp, dec)
	}
	limit := time.AfterFunc(errorBodyTime, func() { a.cancel(nil) })
	defer limit.Stop()
	return expectedSSE(resp.StatusCode, contentType, readFailure(resp.Body, contentType))
}

// stream decodes a stream to its end. A turn waits here for most of its time,
// and the decoders go deep from here: its frame is kept small.
func (a *attempt) stream(parent, ctx context.Context, resp *http.Response) error {
	clocks := watch(a.call.Stall, a.cancel)
	defer clocks.stop()
	from := &watched{from: resp.Body, clocks: clocks, keep: resp.Header.Get("content-type") == ""}
	frames := NewSSE(from)
	defer frames.Close()
	end := a.ending(frames)
	defer end.stop()
	sink := a.sinkBetween(clocks)
	for n := 0; ; n++ {
		data, err := frames.Next()
		if err != nil {
			return a.ended(parent, ctx, resp, frames, n == 0, err)
		}
		if parent.Err() != nil {
			return context.Cause(parent)
		}
		ended := a.dec.Ended()
		content, err := a.dec.Event(data, sink)
		if err != nil {
			return err
		}
		if content {
			clocks.content()
		}
		if !ended && a.dec.Ended() {
			end.begin()
		}
	}
}

// ended gives what an end of the frames means: nil where all of the response is
// there. none: it came before any frame.
func (a *attempt) ended(parent, ctx context.Context, resp *http.Response, frames *SSE, none bool, err error) error {
	from := frames.from.(*watched)
	if frames.over && parent.Err() == nil {
		err = io.EOF // how a stream ends behind its [DONE] says nothing
	}
	var broken *model.Error
	whole := err == io.EOF || errors.As(err, &broken)
	if whole && none && from.keep && !from.startsLikeSSE() {
		return expectedSSE(resp.StatusCode, "", from.failure(err))
	}
	if err != io.EOF && !(a.dec.Ended() && parent.Err() == nil && broken == nil) {
		return a.failure(parent, ctx, err, streamError)
	}
	// Where all of the response is here, how its connection ends says nothing.
	if !a.dec.Ended() {
		return model.Errorf("missing_completion", "the stream ended without its last event")
	}
	return nil
}

// ending is the drain of a stream, for as long as the family's last words take.
func (a *attempt) ending(frames *SSE) *drain {
	d := &drain{end: func() { a.cancel(nil) }, after: drainTime}
	if dec, ok := a.dec.(Ender); ok {
		d.after = usageTime
		frames.OnDone(func() {
			dec.Done()
			d.after = doneTime
			d.begin()
		})
	}
	return d
}

// sinkBetween is the attempt's sink, whose time counts for no clock.
func (a *attempt) sinkBetween(clocks *stall) func(model.Event) {
	return func(e model.Event) {
		clocks.hold()
		a.sink(e)
		clocks.release()
	}
}

// whole reads an answer that came at once.
func (a *attempt) whole(parent, ctx context.Context, resp *http.Response, dec Whole) error {
	clocks := watch(a.call.Stall, a.cancel)
	defer clocks.stop()
	text, err := io.ReadAll(io.LimitReader(&watched{from: resp.Body, clocks: clocks}, wholeLimit+1))
	switch {
	case err != nil:
		return a.failure(parent, ctx, err, streamError)
	case len(text) > wholeLimit:
		return model.Errorf("provider_response_limit", "the answer, which came at once, is longer than 1 MiB")
	}
	ok, err := dec.Whole(text, a.sinkBetween(clocks))
	if !ok {
		contentType := resp.Header.Get("content-type")
		return expectedSSE(resp.StatusCode, contentType, readFailure(bytes.NewReader(text), contentType))
	}
	return err
}

// drain ends a stream that stays open behind all there is to come.
type drain struct {
	end   func()
	after time.Duration // how long the stream may stay open, as far as is known
	timer *time.Timer   // nil before it begins
	wait  time.Duration
}

// begin gives the stream its time, or shortens what it was given.
func (d *drain) begin() {
	if d.timer != nil && d.wait <= d.after {
		return
	}
	d.stop()
	d.wait, d.timer = d.after, time.AfterFunc(d.after, d.end)
}

func (d *drain) stop() {
	if d.timer != nil {
		d.timer.Stop()
	}
}

func mediaType(contentType string) string {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		media, _, _ = strings.Cut(contentType, ";")
	}
	return strings.ToLower(strings.TrimSpace(media))
}

func expectedSSE(status int, contentType string, f Failure) *model.Error {
	what := "no content-type"
	switch {
	case len(contentType) > 100:
		// Not cut: a part may end inside a credential, which nothing would mask.
		what = fmt.Sprintf("a content-type of %d bytes", len(contentType))
	case contentType != "":
		what = "content-type " + strings.ToValidUTF8(contentType, "")
	}
	detail := fmt.Sprintf("HTTP %d, %s", status, what)
	if f.Message != "" {
		detail += ": " + f.Message
	}
	return &model.Error{Code: "provider_expected_sse", Detail: detail}
}

// watched tells the clocks of every read. With keep it keeps the beginning of
// a response that names no type, for what it is when it is no event stream.
type watched struct {
	from   io.Reader
	clocks *stall
	keep   bool
	head   []byte
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.from.Read(p)
	if n > 0 {
		w.clocks.bytes()
		if w.keep && len(w.head) <= errorBodyLimit {
			w.head = append(w.head, p[:min(n, errorBodyLimit+1-len(w.head))]...)
		}
	}
	return n, err
}

func (w *watched) startsLikeSSE() bool {
	for _, start := range []string{"data", "event", "id", "retry", ":", "\n", "\r", "\xef\xbb\xbf"} {
		if strings.HasPrefix(string(w.head), start) {
			return true
		}
	}
	return false
}

// failure is what the kept beginning says, when it is the whole.
func (w *watched) failure(err error) Failure {
	var ended *model.Error
	if len(w.head) > errorBodyLimit || err != io.EOF &&
		!(errors.As(err, &ended) && ended.Code == "truncated_sse_frame") {
		return Failure{}
	}
	return ParseFailure(w.head, "")
}

// headerClock bounds the wait for headers. It is renewed while the transport
// takes the request's bytes, so that a long body is no reason to give up.
type headerClock struct {
	wait  time.Duration
	mu    sync.Mutex
	timer *time.Timer // nil once stopped
}

func startHeaderClock(wait time.Duration, cancel context.CancelCauseFunc) *headerClock {
	return &headerClock{wait: wait, timer: time.AfterFunc(wait, func() {
		cancel(model.Errorf("provider_connection_timeout", "no response headers came in %s", wait))
	})}
}

func (h *headerClock) renew() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.timer != nil {
		h.timer.Reset(h.wait)
	}
}

func (h *headerClock) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.timer.Stop()
	h.timer = nil
}
