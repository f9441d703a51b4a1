// Package pace holds a provider's calls to the pace the provider allows: one
// pool for each quota key, with a first-come gate, buckets that response
// headers teach, and closures after a refusal (providers.md 17, runtime.md
// 18). Nothing here is stored, and an idle pool has no timer.
package pace

import (
	"context"
	"sync"
	"time"

	"agent/internal/model"
)

const (
	// ParkAfter is the closure from which a call is not held but parked.
	ParkAfter    = 250 * time.Millisecond
	firstClosure = time.Second
	lastClosure  = 32 * time.Second
	// defaultOutput is the estimate of a call's output without a cap.
	defaultOutput = 512
	maxPools      = 1024
	// probeTime is how long after a closure the pool is held to its window, and
	// widestWindow the width past which there is none.
	probeTime    = 10 * time.Second
	widestWindow = 32
)

// Pools are the pools of one provider. It is safe for concurrent use; every
// step holds one lock for a few operations.
type Pools struct {
	mu    sync.Mutex
	pools map[string]*pool
}

// New makes the pools of one provider: none, until a call comes.
func New() *Pools { return &Pools{pools: map[string]*pool{}} }

// Cost is what a call is expected to take.
type Cost struct{ Input, Output int64 }

// Estimate is the cost of a request of so many bytes with the output cap
// maxOutput; 0 means no cap.
func Estimate(bytes, maxOutput int64) Cost {
	if maxOutput <= 0 {
		maxOutput = defaultOutput
	}
	return Cost{Input: bytes / 4, Output: maxOutput}
}

// share is what a cost takes of each bucket.
func (c Cost) share() [dimensions]float64 {
	in, out := float64(c.Input), float64(c.Output)
	return [dimensions]float64{Requests: 1, Tokens: in + out, Input: in, Output: out}
}

type pool struct {
	buckets [dimensions]bucket
	waiting []*waiter
	timer   *time.Timer // for the head of the line; nil while nobody waits

	closedUntil time.Time
	nextClosure time.Duration // of a refusal that names no delay
	epoch       int           // closures so far
	grants      int           // calls admitted and not ended
	// window is how many calls may be unanswered after a closure: one, and twice
	// as many with each that is accepted, else all that waited would be sent at
	// once only to be refused, until some had no attempt left. 0: any number.
	window int
	probes int // calls admitted since the closure and not answered
}

type waiter struct {
	share [dimensions]float64
	done  chan result // buffered: the gate never waits for a caller
}

type result struct {
	grant *Grant
	park  time.Duration
	err   error
}

// Acquire waits in arrival order until every known bucket can pay, and takes
// the estimate out of them. With the pool closed for 250 ms or more it returns
// model.ErrPaced at once with how long. Other errors are *model.Error
// provider_pacing_limit, and the cause of ctx's end.
//
// A grant must be ended by Grant.End.
func (p *Pools) Acquire(ctx context.Context, key string, cost Cost) (*Grant, time.Duration, error) {
	share := cost.share()
	p.mu.Lock()
	o := p.pool(key)
	now := time.Now()
	if park := o.closedUntil.Sub(now); park >= ParkAfter {
		p.mu.Unlock()
		return nil, park, model.ErrPaced
	}
	if err := o.tooBig(share); err != nil {
		p.mu.Unlock()
		return nil, 0, err
	}
	if len(o.waiting) == 0 && o.wait(now, share) <= 0 {
		defer p.mu.Unlock()
		return o.admit(p, now, share), 0, nil
	}
	w := &waiter{share: share, done: make(chan result, 1)}
	o.waiting = append(o.waiting, w)
	p.pump(o)
	p.mu.Unlock()
	select {
	case r := <-w.done:
		return r.grant, r.park, r.err
	case <-ctx.Done():
		return nil, 0, p.leave(ctx, o, w)
	}
}

// leave takes a waiter out of the line. One that was admitted in the same
// moment gives its grant back unused.
func (p *Pools) leave(ctx context.Context, o *pool, w *waiter) error {
	p.mu.Lock()
	for i, other := range o.waiting {
		if other == w {
			o.waiting = append(o.waiting[:i], o.waiting[i+1:]...)
			break
		}
	}
	p.pump(o)
	p.mu.Unlock()
	select {
	case r := <-w.done:
		if r.grant != nil {
			r.grant.End(false, false, nil)
		}
	default:
	}
	return context.Cause(ctx)
}

// pool is the pool of a key. A client chooses model ids freely, so pools that
// know nothing and carry nothing make room for others.
func (p *Pools) pool(key string) *pool {
	if o := p.pools[key]; o != nil {
		return o
	}
	if len(p.pools) >= maxPools {
		now := time.Now()
		for k, o := range p.pools {
			if o.grants == 0 && len(o.waiting) == 0 && !o.closedUntil.After(now) {
				delete(p.pools, k)
				break
			}
		}
	}
	o := &pool{nextClosure: firstClosure}
	p.pools[key] = o
	return o
}

// pump admits the line's head while it can pay, answers all when the pool is
// closed for long, and sets the timer for the next moment something changes.
func (p *Pools) pump(o *pool) {
	for len(o.waiting) > 0 {
		now := time.Now()
		if park := o.closedUntil.Sub(now); park >= ParkAfter {
			for _, w := range o.waiting {
				w.done <- result{park: park, err: model.ErrPaced}
			}
			o.waiting = nil
			break
		}
		head := o.waiting[0]
		if err := o.tooBig(head.share); err != nil {
			head.done <- result{err: err}
		} else if wait := o.wait(now, head.share); wait > 0 {
			o.wakeAfter(p, wait)
			return
		} else {
			head.done <- result{grant: o.admit(p, now, head.share)}
		}
		o.waiting[0] = nil
		o.waiting = o.waiting[1:]
	}
	if o.timer != nil {
		o.timer.Stop()
		o.timer = nil
	}
}

func (o *pool) wakeAfter(p *Pools, wait time.Duration) {
	if o.timer != nil {
		o.timer.Reset(wait)
		return
	}
	o.timer = time.AfterFunc(wait, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.pump(o)
	})
}

// tooBig refuses a call that no full bucket could ever pay.
func (o *pool) tooBig(share [dimensions]float64) error {
	for d, b := range o.buckets {
		if b.known && share[d] > b.limit {
			return model.Errorf("provider_pacing_limit",
				"the call is estimated at %.0f %s and the provider allows %.0f a minute",
				share[d], dimensionWords[d], b.limit)
		}
	}
	return nil
}

// wait is how long from now until the pool is open and every bucket can pay.
func (o *pool) wait(now time.Time, share [dimensions]float64) time.Duration {
	wait := o.closedUntil.Sub(now)
	if o.window > 0 && o.probes >= o.window {
		wait += probeTime
	}
	for d := range o.buckets {
		wait = max(wait, o.buckets[d].wait(now, share[d]))
	}
	return wait
}

func (o *pool) admit(p *Pools, now time.Time, share [dimensions]float64) *Grant {
	for d := range o.buckets {
		o.buckets[d].take(now, share[d])
	}
	o.grants++
	o.probes++
	return &Grant{pools: p, pool: o, share: share, epoch: o.epoch}
}
