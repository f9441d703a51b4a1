package fakemodel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/go-json-experiment/json/jsontext"
)

// The server side of Responses over a WebSocket. A connection remembers the
// last response that it gave and all items up to it, and a request goes on from
// that or is whole. What goes on is put together with what is remembered and
// then held to the same checks as a request over HTTP.

// SocketFault is what goes wrong with one request over a socket.
type SocketFault int

const (
	// NotFound says that the response gone on from is not remembered.
	NotFound SocketFault = iota + 1
	// ConnectionLimit says that the connection has been open for too long.
	ConnectionLimit
	// Binary answers with a binary message.
	Binary
	// PingOnly sends pings and nothing else, a tenth of a second apart, until
	// the client leaves.
	PingOnly
	// LateEvent sends one more event after the last one of the answer.
	LateEvent
)

// Sockets say how a server behaves over WebSockets.
type Sockets struct {
	// Header goes with each 101.
	Header http.Header
	// Refuse are the answers to the first upgrades, each with a Status.
	Refuse []Reply
	// Faults are by the number of the request, 1 for the first over a socket.
	Faults map[int]SocketFault
}

// SocketMessage is a request as it came over a socket.
type SocketMessage struct {
	Conn   int         // 1 for the first connection
	Header http.Header // of its upgrade
	Body   []byte
}

// sockets is the state of a server's socket side.
type sockets struct {
	mu       sync.Mutex
	set      Sockets
	upgrades int // asked for, refused ones included
	opened   int
	open     int
	messages []SocketMessage // with Options.Keep and Options.Bodies
	asked    int
}

// SetSockets sets how sockets behave from now on.
func (s *Server) SetSockets(set Sockets) {
	s.sockets.mu.Lock()
	defer s.sockets.mu.Unlock()
	s.sockets.set = set
}

// SocketCounts are how many upgrades were asked for, how many connections were
// made and how many are open.
func (s *Server) SocketCounts() (upgrades, opened, open int) {
	s.sockets.mu.Lock()
	defer s.sockets.mu.Unlock()
	return s.sockets.upgrades, s.sockets.opened, s.sockets.open
}

// SocketMessages are the last Options.Keep requests over sockets.
func (s *Server) SocketMessages() []SocketMessage {
	s.sockets.mu.Lock()
	defer s.sockets.mu.Unlock()
	return slices.Clone(s.sockets.messages)
}

func isUpgrade(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("upgrade"), "websocket")
}

// serveSocket answers an upgrade and then the requests over it.
func (s *Server) serveSocket(w http.ResponseWriter, r *http.Request) {
	refusal, header, v := s.upgradeOf(r)
	switch {
	case v != nil:
		s.violated(v)
		refuse(w, "responses", v)
		return
	case refusal != nil:
		for name, values := range refusal.Header {
			w.Header()[http.CanonicalHeaderKey(name)] = values
		}
		body := []byte(refusal.Body)
		if len(body) == 0 {
			body = errorBody("responses", refusal.Status, refusal.Message, 0)
		}
		w.Header().Set("content-type", "application/json")
		w.WriteHeader(refusal.Status)
		w.Write(body)
		return
	}
	for name, values := range header {
		w.Header()[http.CanonicalHeaderKey(name)] = values
	}
	k := &s.sockets
	k.mu.Lock() // counted before the client can know of it
	k.opened++
	k.open++
	c := &socket{s: s, number: k.opened, header: r.Header}
	k.mu.Unlock()
	defer func() {
		k.mu.Lock()
		k.open--
		k.mu.Unlock()
	}()
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer conn.CloseNow()
	conn.SetReadLimit(64 << 20)
	c.conn = conn
	c.serve()
}

// upgradeOf checks an upgrade and takes the refusal that is meant for it.
func (s *Server) upgradeOf(r *http.Request) (*Reply, http.Header, *Violation) {
	fail := func(reason, format string, args ...any) (*Reply, http.Header, *Violation) {
		return nil, nil, &Violation{Reason: reason, Detail: fmt.Sprintf(format, args...)}
	}
	switch {
	case r.Method != http.MethodGet || r.URL.Path != "/v1/responses" || r.URL.RawQuery != "":
		return fail("wrong_path", "an upgrade of %s %s", r.Method, r.URL)
	case r.Header.Get("openai-beta") != "responses_websockets=2026-02-06":
		return fail("wrong_beta", "openai-beta is %q", r.Header.Get("openai-beta"))
	case r.Header.Get("sec-websocket-extensions") != "":
		return fail("compression_asked", "sec-websocket-extensions is %q", r.Header.Get("sec-websocket-extensions"))
	case r.Header.Get("sec-websocket-protocol") != "":
		return fail("wrong_subprotocol", "%q", r.Header.Get("sec-websocket-protocol"))
	case r.Header.Get("content-type") != "" || r.Header.Get("accept") != "":
		return fail("wrong_accept", "an upgrade with content-type or accept")
	}
	s.sockets.mu.Lock()
	defer s.sockets.mu.Unlock()
	s.sockets.upgrades++
	if set := &s.sockets.set; len(set.Refuse) > 0 {
		refusal := set.Refuse[0]
		set.Refuse = slices.Delete(slices.Clone(set.Refuse), 0, 1)
		return &refusal, nil, nil
	}
	return nil, s.sockets.set.Header, nil
}

// socket is one connection.
type socket struct {
	s      *Server
	conn   *websocket.Conn
	number int
	header http.Header

	last  string   // the response that can be gone on from, "" for none
	items [][]byte // all items up to it
}

// serve takes requests, one at a time, until the client leaves.
func (c *socket) serve() {
	ctx, cancel := context.WithCancel(c.s.ctx)
	defer cancel()
	in := make(chan []byte, 1)
	var reading sync.WaitGroup
	defer reading.Wait()
	defer c.conn.CloseNow()
	reading.Go(func() {
		defer cancel()
		defer close(in)
		for {
			kind, text, err := c.conn.Read(ctx)
			if err != nil {
				return
			}
			if kind != websocket.MessageText {
				c.s.violated(&Violation{Reason: "binary_message"})
				return
			}
			select {
			case in <- text:
			default:
				c.s.violated(&Violation{Reason: "overlap", Detail: "a request came over a socket while another waits"})
				return
			}
		}
	})
	for text := range in {
		if !c.answer(ctx, text) {
			return
		}
	}
}

// answer takes one request and reports whether the connection serves on.
func (c *socket) answer(ctx context.Context, text []byte) bool {
	fault := c.asked(text)
	body, input, previous, err := c.whole(text)
	if err == nil && fault == NotFound {
		c.forget()
		return c.error(ctx, 400, "previous_response_not_found", "Previous response with id '"+previous+"' not found.", nil)
	}
	if err != nil {
		v := violationOf(err)
		c.s.violated(v)
		return c.error(ctx, 400, "invalid_request_error", v.Error(), nil)
	}
	switch fault {
	case ConnectionLimit:
		c.error(ctx, 400, "websocket_connection_limit_reached", "Reconnect.", nil)
		<-ctx.Done() // the client is to close it
		return false
	case Binary:
		c.conn.Write(ctx, websocket.MessageBinary, []byte{0, 1, 2})
		<-ctx.Done()
		return false
	case PingOnly:
		c.ping(ctx)
		return false
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://model/v1/responses", bytes.NewReader(body))
	if err != nil {
		return false
	}
	r.Header = c.requestHeader()
	req, v := c.s.take(r)
	if v != nil {
		c.s.violated(v)
		return c.error(ctx, 400, "invalid_request_error", v.Error(), nil)
	}
	if req == nil {
		return false
	}
	if c.s.opts.Hook != nil {
		c.s.opts.Hook(req)
	}
	if !c.reply(ctx, req, input) {
		return false
	}
	if fault == LateEvent {
		return c.send(ctx, []byte(`{"type":"response.output_text.delta","delta":"late"}`)) == nil
	}
	return true
}

// asked counts a request and gives the fault that is meant for it.
func (c *socket) asked(text []byte) SocketFault {
	k := &c.s.sockets
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked++
	if c.s.opts.Bodies && c.s.opts.Keep > 0 {
		if len(k.messages) == c.s.opts.Keep {
			k.messages = slices.Delete(k.messages, 0, 1)
		}
		k.messages = append(k.messages, SocketMessage{c.number, c.header, text})
	}
	return k.set.Faults[k.asked]
}

func (c *socket) forget() { c.last, c.items = "", nil }

// whole is a message as the request that it would be over HTTP, with all items
// of its input. What only a socket has is checked here.
func (c *socket) whole(text []byte) (body []byte, input [][]byte, previous string, err error) {
	o, err := parseObject(text, "")
	if err != nil {
		return nil, nil, "", err
	}
	if len(o) == 0 || o[0].name != "type" || !o.is("type", `"response.create"`) {
		return nil, nil, "", fault("wrong_message", "type", "the first field must say response.create")
	}
	if o.has("stream") {
		return nil, nil, "", fault("unknown_field", "stream", "over a socket everything is a stream")
	}
	if o.has("previous_response_id") {
		if previous, err = o.text("previous_response_id", ""); err != nil {
			return nil, nil, "", err
		}
		if previous == "" || previous != c.last {
			return nil, nil, "", fault("previous_response_unknown", "previous_response_id",
				"%q is not the last one of this connection, which is %q", previous, c.last)
		}
		input = slices.Clone(c.items)
	}
	given, _ := o.get("input")
	err = each(given, "input", func(_ int, item jsontext.Value) error {
		input = append(input, bytes.Clone(item))
		return nil
	})
	if err != nil {
		return nil, nil, "", err
	}
	if previous != "" && len(input) == len(c.items) {
		return nil, nil, "", fault("no_items", "input", "nothing follows the response gone on from")
	}
	body = []byte(`{`)
	for _, m := range o[1:] {
		if m.name == "previous_response_id" || m.name == "input" {
			continue
		}
		body = append(appendString(body, m.name), ':')
		body = append(append(body, m.value...), ',')
		if m.name == "instructions" {
			body = append(body, `"stream":true,`...)
		}
	}
	body = append(body, `"input":[`...)
	body = append(body, bytes.Join(input, []byte{','})...)
	return append(body, `]}`...), input, previous, nil
}

func violationOf(err error) *Violation {
	var v *Violation
	if !errors.As(err, &v) {
		v = &Violation{Reason: "invalid_json", Detail: err.Error()}
	}
	return v
}

// requestHeader is what the checks of a request over HTTP look at.
func (c *socket) requestHeader() http.Header {
	h := http.Header{"Content-Type": {"application/json"}, "Accept": {"text/event-stream"}}
	for _, name := range []string{"Authorization", "X-Api-Key", "Session-Id", "User-Agent"} {
		if values := c.header.Values(name); len(values) > 0 {
			h[name] = values
		}
	}
	return h
}

// reply answers a good request and reports whether the connection serves on.
func (c *socket) reply(ctx context.Context, req *Request, input [][]byte) (goesOn bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer func() { req.exchange.end(c.s, ctx.Err() != nil) }()
	reply, ok := c.s.next(req)
	if !ok {
		v := &Violation{Reason: "no_reply", Detail: "the queue is empty and there is no handler", Request: req.Seq}
		c.s.violated(v)
		return c.error(ctx, 400, "invalid_request_error", v.Error(), nil)
	}
	c.s.opened(1)
	defer c.s.opened(-1)
	w := &socketWriter{c: c, ctx: ctx, header: http.Header{}, input: input}
	defer func() {
		// A reply that breaks its connection says so by a panic, as over HTTP.
		if p := recover(); p != nil && p != http.ErrAbortHandler {
			panic(p)
		} else if p != nil {
			goesOn = false
		}
	}()
	play(ctx, c.s, w, req, &reply)
	return w.ended()
}

// error sends an error event.
func (c *socket) error(ctx context.Context, status int, code, message string, header http.Header) bool {
	b := fmt.Appendf(nil, `{"type":"error","status":%d,"error":{"type":"invalid_request_error","code":`, status)
	b = appendString(append(appendString(b, code), `,"message":`...), message)
	return c.send(ctx, appendHeaders(append(b, '}'), header)) == nil
}

// appendHeaders ends an error event with the headers of what it wraps.
func appendHeaders(b []byte, header http.Header) []byte {
	if len(header) > 0 {
		b = append(b, `,"headers":{`...)
		for name, values := range header {
			b = append(appendString(b, strings.ToLower(name)), ':')
			b = append(appendString(b, values[0]), ',')
		}
		b[len(b)-1] = '}'
	}
	return append(b, '}')
}

func (c *socket) send(ctx context.Context, text []byte) error {
	return c.conn.Write(ctx, websocket.MessageText, text)
}

func (c *socket) ping(ctx context.Context) {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		// It waits for the pong, which the client's reader gives.
		if c.conn.Ping(ctx) != nil {
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// socketWriter turns the event stream of a reply into messages.
type socketWriter struct {
	c      *socket
	ctx    context.Context
	header http.Header
	input  [][]byte // the request's, and what was answered so far
	status int
	buf    []byte
	said   bool // the event that ends a response was sent
}

func (w *socketWriter) Header() http.Header    { return w.header }
func (w *socketWriter) WriteHeader(status int) { w.status = status }

// FlushError is what http.ResponseController asks for.
func (w *socketWriter) FlushError() error { return w.ctx.Err() }

func (w *socketWriter) Write(p []byte) (int, error) {
	w.buf = append(w.buf, p...)
	if w.status != 0 && w.status != http.StatusOK {
		return len(p), nil // an error's body, which is sent as it ends
	}
	for {
		frame, rest, ok := bytes.Cut(w.buf, []byte("\n\n"))
		if !ok {
			return len(p), nil
		}
		w.buf = rest
		if err := w.frame(frame); err != nil {
			return 0, err
		}
	}
}

func (w *socketWriter) frame(frame []byte) error {
	_, data, ok := bytes.Cut(frame, []byte("data: "))
	if !ok { // a comment
		return w.c.conn.Ping(w.ctx)
	}
	w.note(data)
	return w.c.send(w.ctx, data)
}

// note keeps what the connection remembers of an answer.
func (w *socketWriter) note(data []byte) {
	o, err := parseObject(data, "")
	if err != nil {
		return
	}
	kind, _ := o.text("type", "")
	switch kind {
	case "response.output_item.done":
		item, _ := o.get("item")
		w.input = append(w.input, bytes.Clone(item))
	case "response.completed":
		response, _ := o.get("response")
		r, err := parseObject(response, "")
		if err == nil {
			w.c.last, _ = r.text("id", "")
			w.c.items = w.input
		}
		w.said = true
	case "response.failed", "response.incomplete":
		w.c.forget()
		w.said = true
	case "error":
		w.said = true
	}
}

// ended sends what is left to say, and reports whether the response has ended so
// that another may follow on the connection.
func (w *socketWriter) ended() bool {
	if w.status == 0 || w.status == http.StatusOK {
		return w.said && len(w.buf) == 0
	}
	o, err := parseObject(w.buf, "")
	if err != nil {
		return false
	}
	inner, _ := o.get("error")
	b := append([]byte(`{"type":"error","status":`), strconv.Itoa(w.status)...)
	b = append(append(b, `,"error":`...), inner...)
	w.header.Del("content-type")
	w.header.Del("content-length")
	return w.c.send(w.ctx, appendHeaders(b, w.header)) == nil
}
