// Package fakemodel is a model server on the loopback for tests, benchmarks
// and the demo. It speaks the wire formats of the Anthropic Messages, the
// OpenAI Responses and the Chat Completions API, says what it is told to say, and is strict about what
// it is asked: a request that a strict provider would refuse, or a history
// that is not the one it answered, gets status 400 and is remembered as a
// Violation, on which a test then fails.
//
//	s, err := fakemodel.New(fakemodel.Options{Identity: fakemodel.ByModel})
//	defer s.Close()
//	s.Queue(fakemodel.Say("Looking.", fakemodel.Call("shell", `{"command":"ls"}`)), fakemodel.Say("Done."))
//	// ... point a provider at s.URL, run a turn ...
//	s.Verify(t)
//
// A test in which the client rightly sends other items than before (a window
// that moved, a summary, a picture left out) sets Options.Window; one that
// interrupts turns sets Options.Lost.
package fakemodel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Options say how a server behaves. The zero value is strict and answers from
// the queue alone.
type Options struct {
	// Addr is the loopback address to listen on; "" is a free port of
	// 127.0.0.1.
	Addr string
	// Key is the credential every request must carry; with "" a request that
	// carries one is a violation.
	Key string
	// Handler makes the reply to a good request for which the queue is empty.
	// It is called from many goroutines at once.
	Handler func(*Request) Reply
	// Hook sees each good request before it is answered.
	Hook func(*Request)
	// Keep is how many of the last good requests Requests gives; Bodies keeps
	// their bodies too.
	Keep   int
	Bodies bool
	// Identity names the conversation a request belongs to ("" for none), one
	// name for each bot. Only with it can the server tell that requests of one
	// bot overlap or that one starts over. ByModel and the others are ready.
	Identity func(*Request) string
	// Window allows a history that leaves out its beginning, or old thinking:
	// each of the server's items in it must still be one it issued.
	Window bool
	// Foreign allows items in the assistant's name that this server did not
	// issue, as after its own restart.
	Foreign bool
	// Lost allows a finished answer to be missing from the next request, as
	// after an interrupt.
	Lost bool
	// Models are the ids that GET /models lists.
	Models []string
}

// maxViolations bounds what is remembered; Count goes on.
const maxViolations = 256

// overlapGrace is how long a second request of a conversation waits for the
// first to be seen as given up by its client. A stream that ends on its own
// account in that time was overlapped.
const overlapGrace = 2 * time.Second

// Server is a running server. It is safe for concurrent use.
type Server struct {
	// URL is the base URL for a provider, http://127.0.0.1:PORT/v1.
	URL string

	opts    Options
	http    *http.Server
	ctx     context.Context
	stop    context.CancelFunc
	serving sync.WaitGroup
	history *history
	sockets sockets

	mu         sync.Mutex
	seq        int64
	queue      []Reply
	kept       []*Request
	violations []Violation
	stats      Stats
	busy       map[string]*exchange
}

// Stats are a server's counts since its start.
type Stats struct {
	Requests   int64 `json:"requests"` // good ones, refreshes of the cache included
	Refreshes  int64 `json:"refreshes"`
	Violations int64 `json:"violations"`
	Open       int   `json:"open"`      // streams open now, held ones included
	MaxOpen    int   `json:"max_open"`  // the most at once
	Completed  int64 `json:"completed"` // streams sent with their last event
	Abandoned  int64 `json:"abandoned"` // requests whose body broke off
	BytesIn    int64 `json:"bytes_in"`
}

// exchange is a request whose reply is not finished.
type exchange struct {
	identity string
	ended    chan struct{} // closed at its end
	left     bool          // the client went away; read after ended
	once     sync.Once
}

// New starts a server.
func New(opts Options) (*Server, error) {
	if opts.Addr == "" {
		opts.Addr = "127.0.0.1:0"
	}
	host, _, err := net.SplitHostPort(opts.Addr)
	if err != nil {
		return nil, fmt.Errorf("the address of the model server: %w", err)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return nil, fmt.Errorf("the model server listens on the loopback alone, not on %q", host)
	}
	l, err := net.Listen("tcp", opts.Addr)
	if err != nil {
		return nil, err
	}
	s := &Server{
		URL:     "http://" + l.Addr().String() + "/v1",
		opts:    opts,
		history: newHistory(),
		busy:    make(map[string]*exchange),
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: 30 * time.Second}
	s.serving.Go(func() { s.http.Serve(l) })
	return s, nil
}

// Close ends every stream and waits until none is left.
func (s *Server) Close() error {
	s.stop()
	err := s.http.Close()
	s.serving.Wait()
	return err
}

// Queue adds replies; each good request takes the next one.
func (s *Server) Queue(replies ...Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, replies...)
}

// Queued is how many replies nobody has asked for yet.
func (s *Server) Queued() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)
}

// Stats gives the counts.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats
}

// Requests gives the last Options.Keep good requests, oldest first.
func (s *Server) Requests() []*Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.kept)
}

// Violations gives the first of what was wrong, in order.
func (s *Server) Violations() []Violation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.violations)
}

// Verify fails a test for each violation, and for replies nobody asked for.
func (s *Server) Verify(t interface {
	Helper()
	Errorf(format string, args ...any)
},
) {
	t.Helper()
	for _, v := range s.Violations() {
		t.Errorf("model server: %v", &v)
	}
	if n := s.Queued(); n > 0 {
		t.Errorf("model server: %d replies of the queue were never asked for", n)
	}
}

func (s *Server) violated(v *Violation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Violations++
	if len(s.violations) < maxViolations {
		s.violations = append(s.violations, *v)
	}
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.serving.Add(1)
	defer s.serving.Done()
	if r.Method == http.MethodGet && r.URL.Path == "/v1/models" {
		s.listModels(w, r)
		return
	}
	if isUpgrade(r) {
		s.serveSocket(w, r)
		return
	}
	req, v := s.take(r)
	if req == nil && v == nil {
		return // the client left
	}
	if v != nil {
		s.violated(v)
		refuse(w, familyOf(r), v)
		return
	}
	if s.opts.Hook != nil {
		s.opts.Hook(req)
	}
	if req.Refresh {
		answerRefresh(w, req)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	defer func() { req.exchange.end(s, ctx.Err() != nil) }()
	reply, ok := s.next(req)
	if !ok {
		v := &Violation{Reason: "no_reply", Detail: "the queue is empty and there is no handler", Request: req.Seq}
		s.violated(v)
		refuse(w, req.Family, v)
		return
	}
	s.opened(1)
	defer s.opened(-1)
	play(ctx, s, w, req, &reply)
}

// take reads and checks a request and enters it. It returns nothing when the
// client left before its request was complete.
func (s *Server) take(r *http.Request) (*Request, *Violation) {
	req, err := s.check(r)
	var v *Violation
	if errors.As(err, &v) {
		return nil, v
	}
	if err != nil {
		s.mu.Lock()
		s.stats.Abandoned++
		s.mu.Unlock()
		return nil, nil
	}
	if s.opts.Identity != nil && !req.Refresh {
		req.Identity = s.opts.Identity(req)
	}
	if v := s.enter(req); v != nil {
		return nil, v
	}
	if v := s.history.continues(req, &s.opts); v != nil {
		req.exchange.end(s, false)
		return nil, v
	}
	return req, nil
}

// enter counts a good request and makes sure that its conversation has no
// other one open.
func (s *Server) enter(req *Request) *Violation {
	req.exchange = &exchange{identity: req.Identity, ended: make(chan struct{})}
	for {
		s.mu.Lock()
		other := s.busy[req.Identity]
		if req.Identity == "" || req.Refresh || other == nil {
			break
		}
		s.mu.Unlock()
		if !givenUp(other) {
			return &Violation{Reason: "overlap", Detail: "another request of " + req.Identity + " is still being answered", Request: req.Seq}
		}
	}
	defer s.mu.Unlock()
	if req.Identity != "" && !req.Refresh {
		s.busy[req.Identity] = req.exchange
	}
	s.stats.Requests++
	s.stats.BytesIn += req.Bytes
	if req.Refresh {
		s.stats.Refreshes++
	}
	if s.opts.Keep > 0 {
		if len(s.kept) == s.opts.Keep {
			s.kept = slices.Delete(s.kept, 0, 1)
		}
		s.kept = append(s.kept, req)
	}
	return nil
}

func givenUp(x *exchange) bool {
	timer := time.NewTimer(overlapGrace)
	defer timer.Stop()
	select {
	case <-x.ended:
		return x.left
	case <-timer.C:
		return false
	}
}

// end leaves the conversation free for its next request. It is called before
// the last bytes of a reply go out: a client may ask again as soon as it has
// them.
func (x *exchange) end(s *Server, left bool) {
	x.once.Do(func() {
		s.mu.Lock()
		if s.busy[x.identity] == x {
			delete(s.busy, x.identity)
		}
		s.mu.Unlock()
		x.left = left
		close(x.ended)
	})
}

func (s *Server) next(req *Request) (Reply, bool) {
	s.mu.Lock()
	if len(s.queue) > 0 {
		r := s.queue[0]
		s.queue = slices.Delete(s.queue, 0, 1)
		s.mu.Unlock()
		return r, true
	}
	s.mu.Unlock()
	if s.opts.Handler == nil {
		return Reply{}, false
	}
	return s.opts.Handler(req), true
}

func (s *Server) opened(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Open += n
	s.stats.MaxOpen = max(s.stats.MaxOpen, s.stats.Open)
}

func (s *Server) completed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Completed++
}
