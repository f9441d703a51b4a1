package wire

import (
	"sync"
	"time"

	"agent/internal/model"
)

// DefaultStall is the stall bound of a request that names none.
const DefaultStall = 120 * time.Second

// keepAliveFactor is how many stall bounds keep-alives alone may fill: a local
// server that thinks for minutes is alive, one that only pings for ten is not.
const keepAliveFactor = 5

// stall watches an established stream by two clocks (providers.md 18): no byte
// at all for the bound, or nothing but keep-alives for five times as long. One
// timer serves both; it is not moved as bytes come, but looks at the clocks
// when it fires.
type stall struct {
	bound time.Duration
	fail  func(error)

	mu      sync.Mutex
	timer   *time.Timer
	byteAt  time.Time // last byte
	realAt  time.Time // last frame that was no keep-alive
	heldAt  time.Time // since when the sink has the stream; zero: it has not
	stopped bool
}

// watch starts both clocks. fail is called once, with provider_stream_stalled.
func watch(bound time.Duration, fail func(error)) *stall {
	if bound <= 0 {
		bound = DefaultStall
	}
	now := time.Now()
	s := &stall{bound: bound, fail: fail, byteAt: now, realAt: now}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer = time.AfterFunc(bound, s.look)
	return s
}

// bytes says that something was read.
func (s *stall) bytes() {
	s.mu.Lock()
	s.byteAt = time.Now()
	s.mu.Unlock()
}

// content says that a frame was no keep-alive.
func (s *stall) content() {
	s.mu.Lock()
	s.realAt = time.Now()
	s.mu.Unlock()
}

// hold stops the clocks while a follower takes a piece, release starts them.
func (s *stall) hold() {
	s.mu.Lock()
	s.heldAt = time.Now()
	s.mu.Unlock()
}

func (s *stall) release() {
	s.mu.Lock()
	held := time.Since(s.heldAt)
	s.byteAt, s.realAt = s.byteAt.Add(held), s.realAt.Add(held)
	s.heldAt = time.Time{}
	s.mu.Unlock()
}

func (s *stall) stop() {
	s.mu.Lock()
	s.stopped = true
	s.timer.Stop()
	s.mu.Unlock()
}

func (s *stall) look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return
	}
	if !s.heldAt.IsZero() {
		s.timer.Reset(s.bound)
		return
	}
	now := time.Now()
	silent := s.byteAt.Add(s.bound)
	pinging := s.realAt.Add(keepAliveFactor * s.bound)
	switch {
	case !now.Before(silent):
		s.stopped = true
		s.fail(model.Errorf("provider_stream_stalled",
			"no byte came for %s (--stall-timeout)", s.bound))
	case !now.Before(pinging):
		s.stopped = true
		s.fail(model.Errorf("provider_stream_stalled",
			"only keep-alives came for %s, five times --stall-timeout", keepAliveFactor*s.bound))
	case silent.Before(pinging):
		s.timer.Reset(silent.Sub(now))
	default:
		s.timer.Reset(pinging.Sub(now))
	}
}
