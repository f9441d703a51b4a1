package host

import (
	"context"
	"sync"
)

// How many calls run at once, of all bots and of one (companions.md 2.3). Those that
// wait for a verdict or an answer are not counted.
const (
	maxCalls = 64
	maxEach  = 4

	// manyCalls is how many may be there at all, waiting ones among them. Each bot has
	// one turn with few calls, and the daemon bounds the turns.
	manyCalls = 1 << 16
)

// places gives calls their turn, in the order in which they came as far as their bots
// have places. It is safe for concurrent use.
type places struct {
	all, each int

	mu      sync.Mutex
	running int
	of      map[int64]int
	line    []*ticket
}

// ticket is a call that waits for a place.
type ticket struct {
	bot int64
	in  chan struct{} // closed once it has one
}

func newPlaces(all, each int) *places { return &places{all: all, each: each, of: map[int64]int{}} }

// enter waits for a place, until ctx ends.
func (p *places) enter(ctx context.Context, bot int64) error {
	t := &ticket{bot, make(chan struct{})}
	p.mu.Lock()
	p.line = append(p.line, t)
	p.admit()
	p.mu.Unlock()
	select {
	case <-t.in:
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, other := range p.line {
		if other == t {
			p.line = append(p.line[:i], p.line[i+1:]...)
			return context.Cause(ctx)
		}
	}
	p.free(bot) // it came in just now
	return context.Cause(ctx)
}

// leave gives a place back.
func (p *places) leave(bot int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free(bot)
}

func (p *places) free(bot int64) {
	p.running--
	if p.of[bot]--; p.of[bot] == 0 {
		delete(p.of, bot)
	}
	p.admit()
}

// admit lets in whom there are places for. p.mu is held.
func (p *places) admit() {
	kept := p.line[:0]
	for _, t := range p.line {
		if p.running < p.all && p.of[t.bot] < p.each {
			p.running++
			p.of[t.bot]++
			close(t.in)
			continue
		}
		kept = append(kept, t)
	}
	clear(p.line[len(kept):])
	p.line = kept
}
