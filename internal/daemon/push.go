package daemon

import (
	"encoding/json"
	"errors"
	"sync"

	"agent/protocol"
)

// maxPushes bounds the pushes that wait for room in a session's output; past
// it the session is closed (protocol.md 10).
const maxPushes = 128

var errPushes = errors.New("the session does not take what is pushed to it")

// pushes are what a session gets as the server of tags, in order. A push that
// finds room costs no goroutine.
type pushes struct {
	mu      sync.Mutex
	queue   []push
	held    bool // the answer that grants a lease goes first
	running bool // a goroutine waits for room
}

type push struct {
	line   []byte
	stands func() bool
}

// Push queues a notification behind those pushed before (engine.Server).
func (s *session) Push(line []byte, stands func() bool) {
	p := &s.pushes
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) == 0 && !p.running && !p.held && s.out.putNow(line, stands) {
		return
	}
	if len(p.queue) >= maxPushes {
		s.out.fail(errPushes)
		return
	}
	p.queue = append(p.queue, push{line, stands})
	s.startPushing()
}

// startPushing sends what waits; p.mu is held.
func (s *session) startPushing() {
	p := &s.pushes
	if p.running || p.held || len(p.queue) == 0 {
		return
	}
	p.running = true
	go func() {
		for {
			p.mu.Lock()
			if len(p.queue) == 0 {
				p.queue, p.running = nil, false
				p.mu.Unlock()
				return
			}
			next := p.queue[0]
			p.queue = p.queue[1:]
			p.mu.Unlock()
			s.out.putWhen(next.line, next.stands)
		}
	}()
}

func (s *session) holdPushes(held bool) {
	p := &s.pushes
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = held
	s.startPushing()
}

// serveTools grants a lease. Its answer is queued ahead of what is pushed under
// it.
func (s *session) serveTools(id json.RawMessage, r *protocol.ServeTools) {
	s.holdPushes(true)
	defer s.holdPushes(false)
	answer, queued, err := s.d.engine.ServeTools(s.ctx, s, r)
	s.settle(id, answer, err)
	if err == nil {
		queued()
	}
}

// serveApprovals is serveTools for the verdicts of a tag.
func (s *session) serveApprovals(id json.RawMessage, r *protocol.ServeApprovals) {
	s.holdPushes(true)
	defer s.holdPushes(false)
	answer, queued, err := s.d.engine.ServeApprovals(s.ctx, s, r)
	s.settle(id, answer, err)
	if err == nil {
		queued()
	}
}
