package fakemodel

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"agent/internal/model"
)

var (
	errLeft = errors.New("the client left")
	errCut  = errors.New("the reply cuts its stream here")
)

// stream writes one reply.
type stream struct {
	ctx   context.Context
	s     *Server
	w     http.ResponseWriter
	req   *Request
	reply *Reply
	sent  int64
	frame []byte // scratch
	first bool   // a delta was sent
}

// play sends a reply, or what the client waits for of it.
func play(ctx context.Context, s *Server, w http.ResponseWriter, req *Request, r *Reply) {
	st := &stream{ctx: ctx, s: s, w: w, req: req, reply: r}
	err := st.run()
	if errors.Is(err, errCut) && r.Abort {
		// What was written is on its way; the connection breaks after it.
		panic(http.ErrAbortHandler)
	}
}

func (st *stream) run() error {
	r := st.reply
	if err := st.sleep(r.Delay); err != nil {
		return err
	}
	if !r.Headers.pass(st.ctx.Done()) {
		return errLeft
	}
	for name, values := range r.Header {
		st.w.Header()[http.CanonicalHeaderKey(name)] = values
	}
	if r.Status != 0 && r.Status != http.StatusOK {
		return st.httpError()
	}
	atOnce := r.Chat.AtOnce && st.req.Family == model.FamilyChat
	if atOnce && r.ContentType == "" {
		r.ContentType = "application/json"
	}
	st.head()
	if err := st.write(nil); err != nil {
		return err
	}
	if r.Raw != nil {
		return st.raw()
	}
	switch st.req.Family {
	case model.FamilyResponses:
		return st.responses()
	case model.FamilyChat:
		if atOnce {
			return st.chatAtOnce()
		}
		return st.chat()
	}
	return st.anthropic()
}

func (st *stream) head() {
	switch st.reply.ContentType {
	case "":
		st.w.Header().Set("content-type", "text/event-stream")
	case "-":
		st.w.Header()["Content-Type"] = nil // also keeps net/http from guessing
	default:
		st.w.Header().Set("content-type", st.reply.ContentType)
	}
	st.w.Header().Set(requestIDHeader(st.req.Family), fmt.Sprintf("req_%d", st.req.Seq))
	st.w.WriteHeader(http.StatusOK)
}

func requestIDHeader(f model.Family) string {
	if f == model.FamilyAnthropic {
		return "request-id"
	}
	return "x-request-id"
}

func (st *stream) httpError() error {
	body := []byte(st.reply.Body)
	if len(body) == 0 {
		body = errorBody(st.req.Family, st.reply.Status, st.reply.Message, st.req.Seq)
	}
	if st.w.Header().Get("content-type") == "" {
		st.w.Header().Set("content-type", "application/json")
	}
	st.req.exchange.end(st.s, false)
	st.w.Header().Set("content-length", strconv.Itoa(len(body)))
	st.w.WriteHeader(st.reply.Status)
	_, err := st.w.Write(body)
	return err
}

// raw sends a body as it is; its last bytes end the exchange.
func (st *stream) raw() error {
	if err := st.before(); err != nil {
		return err
	}
	body := st.reply.Raw
	if st.reply.Stall {
		if err := st.write(body); err != nil {
			return err
		}
		return st.stall()
	}
	if !st.reply.Finish.pass(st.ctx.Done()) {
		return errLeft
	}
	st.finish(len(body), st.reply.Stored, nil, false)
	return st.write(body)
}

// before is what comes between the head of the stream and the first block.
func (st *stream) before() error {
	if st.reply.KeepAliveFor > 0 {
		if err := st.keepAlive(st.reply.KeepAliveFor); err != nil {
			return err
		}
	}
	if !st.reply.Start.pass(st.ctx.Done()) {
		return errLeft
	}
	return nil
}

// keepAlive sends keep-alives for d, without end when d is 0.
func (st *stream) keepAlive(d time.Duration) error {
	step := st.reply.KeepAlive
	if step <= 0 {
		return st.sleep(d)
	}
	for passed := time.Duration(0); d == 0 || passed+step <= d; passed += step {
		if err := st.sleep(step); err != nil {
			return err
		}
		if err := st.ping(); err != nil {
			return err
		}
	}
	return nil
}

func (st *stream) ping() error {
	switch {
	case st.reply.Comments:
		return st.write([]byte(": keep-alive\n\n"))
	case st.req.Family == model.FamilyChat:
		return st.chunk(`{}`, "null")
	case st.req.Family == model.FamilyResponses:
		return st.event("keepalive", nil)
	}
	return st.event("ping", nil)
}

// stall keeps the stream open until the client leaves.
func (st *stream) stall() error {
	if st.reply.KeepAlive > 0 {
		return st.keepAlive(0)
	}
	<-st.ctx.Done()
	return errLeft
}

// gap waits between two deltas.
func (st *stream) gap() error {
	if !st.first {
		st.first = true
		return nil
	}
	return st.sleep(st.reply.Gap)
}

func (st *stream) sleep(d time.Duration) error {
	if st.ctx.Err() != nil {
		return errLeft
	}
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-st.ctx.Done():
		return errLeft
	}
}

// event sends one event; fill appends the members after its type, each with a
// comma before it.
func (st *stream) event(kind string, fill func([]byte) []byte) error {
	st.build(kind, fill)
	return st.write(st.frame)
}

func (st *stream) build(kind string, fill func([]byte) []byte) {
	b := append(st.frame[:0], "event: "...)
	b = append(append(b, kind...), "\ndata: {\"type\":\""...)
	b = append(append(b, kind...), '"')
	if fill != nil {
		b = fill(b)
	}
	st.frame = append(b, "}\n\n"...)
}

// last sends the event that ends the stream, or leaves it out or breaks it as
// the reply says; with no kind fill makes all of it. items are what the client
// has to send back from now on.
func (st *stream) last(kind string, items [][]byte, exact []bool, pause bool, fill func([]byte) []byte) error {
	if st.reply.Stall {
		return st.stall()
	}
	if !st.reply.Finish.pass(st.ctx.Done()) {
		return errLeft
	}
	if kind != "" {
		st.build(kind, fill)
	} else {
		st.frame = fill(st.frame[:0])
	}
	switch {
	case st.reply.NoEnd:
		st.finish(0, nil, nil, false)
		return nil
	case st.reply.MidFrame:
		st.finish(0, nil, nil, false)
		return st.write(st.frame[:len(st.frame)/2])
	}
	st.finish(len(st.frame), items, exact, pause)
	return st.write(st.frame)
}

// finish frees the conversation and enters the answer, before the last n bytes
// go out: the client may ask again as soon as it has them.
func (st *stream) finish(n int, items [][]byte, exact []bool, pause bool) {
	whole := st.reply.CutAt == 0 || st.sent+int64(n) <= st.reply.CutAt
	if whole && len(items) > 0 {
		st.s.history.issue(st.req, items, exact, pause)
	}
	if whole && n > 0 {
		st.s.completed()
	}
	st.req.exchange.end(st.s, false)
}

// write sends b at once, up to the place where the reply is cut.
func (st *stream) write(b []byte) error {
	if st.ctx.Err() != nil {
		return errLeft
	}
	cutHere := st.reply.CutAt > 0 && st.sent+int64(len(b)) > st.reply.CutAt
	if cutHere {
		b = b[:st.reply.CutAt-st.sent]
		st.req.exchange.end(st.s, false)
	}
	if len(b) > 0 {
		if _, err := st.w.Write(b); err != nil {
			return errLeft
		}
	}
	if err := http.NewResponseController(st.w).Flush(); err != nil {
		return errLeft
	}
	st.sent += int64(len(b))
	if cutHere {
		return errCut
	}
	return nil
}

func (st *stream) usage(out int) Usage {
	if st.reply.Usage != nil {
		return *st.reply.Usage
	}
	return Usage{Input: st.req.Bytes / 4, Output: int64(out) / 4}
}

// said is how many bytes the blocks hold.
func said(blocks []built) int {
	n := 0
	for i := range blocks {
		n += len(blocks[i].text)
	}
	return n
}
