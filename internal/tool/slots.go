package tool

import (
	"context"
	"sync"
)

// Slots is a first-come bound on how many of something run at once; the zero
// bound has none. It is safe for concurrent use.
type Slots struct {
	mu      sync.Mutex
	limit   int
	taken   int
	waiting []chan struct{}
}

// NewSlots makes limit slots; 0 means unbounded.
func NewSlots(limit int) *Slots { return &Slots{limit: limit} }

// Acquire waits for a slot, or returns the cause of ctx's end without one.
func (s *Slots) Acquire(ctx context.Context) error {
	s.mu.Lock()
	if s.limit == 0 || s.taken < s.limit {
		s.taken++
		s.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	s.waiting = append(s.waiting, turn)
	s.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	for i, w := range s.waiting {
		if w == turn {
			s.waiting = append(s.waiting[:i], s.waiting[i+1:]...)
			s.mu.Unlock()
			return context.Cause(ctx)
		}
	}
	s.mu.Unlock()
	s.Release() // handed over in the same instant
	return context.Cause(ctx)
}

// Release gives a slot to the first in line.
func (s *Slots) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) > 0 {
		close(s.waiting[0])
		s.waiting = s.waiting[1:]
		return
	}
	s.taken--
}

// Taken is how many slots are in use.
func (s *Slots) Taken() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken
}

// Budget is a shared amount of memory that is taken or refused at once.
type Budget struct {
	mu   sync.Mutex
	left int64
}

// NewBudget makes a budget of bytes.
func NewBudget(bytes int64) *Budget { return &Budget{left: bytes} }

// Take reserves n bytes, or reports that they are not there.
func (b *Budget) Take(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left < n {
		return false
	}
	b.left -= n
	return true
}

// Give returns n bytes.
func (b *Budget) Give(n int64) {
	b.mu.Lock()
	b.left += n
	b.mu.Unlock()
}
