package pace

import (
	"time"

	"agent/internal/model"
)

// Grant is one admitted call's part of its pool.
type Grant struct {
	pools   *Pools
	pool    *pool
	share   [dimensions]float64
	settled [dimensions]bool
	epoch   int
	told    bool // whether it was accepted or refused
	ended   bool
}

// Limits is what response headers say, by dimension. A limit of 0 means that
// the dimension was not named.
type Limits [dimensions]struct {
	Limit        float64
	Remaining    float64
	HasRemaining bool
}

// Learn takes a response's headers. A dimension they report is settled by
// them: its reservation ends in the same step, so that others may start while
// this call streams.
func (g *Grant) Learn(l Limits) { g.learn(l, true) }

// Seed is Learn for headers that came before the call was sent: its
// reservations stand.
func (g *Grant) Seed(l Limits) { g.learn(l, false) }

func (g *Grant) learn(l Limits, settle bool) {
	g.pools.mu.Lock()
	defer g.pools.mu.Unlock()
	now := time.Now()
	for d, report := range l {
		if report.Limit <= 0 {
			continue
		}
		b := &g.pool.buckets[d]
		if settle && !g.settled[d] {
			g.settled[d] = true
			b.reserved = max(b.reserved-g.share[d], 0)
		}
		b.report(now, report.Limit, report.Remaining, report.HasRemaining)
	}
	g.pools.pump(g.pool)
}

// Refused closes the pool after a refusal for pace: for the named delay, else
// (0) for 1 s, doubling to 32 s while the pool reopens only to be refused.
// Calls that were in flight when a closure began belong to it, and are counted
// once.
func (g *Grant) Refused(named time.Duration) {
	g.pools.mu.Lock()
	defer g.pools.mu.Unlock()
	o := g.pool
	fresh := g.epoch == o.epoch
	delay := named
	if named <= 0 {
		if !fresh {
			return
		}
		delay = o.nextClosure
		o.nextClosure = min(2*o.nextClosure, lastClosure)
	}
	g.told = true
	if fresh {
		o.epoch++
		o.window, o.probes = 1, 0
	}
	if until := time.Now().Add(delay); until.After(o.closedUntil) {
		o.closedUntil = until
	}
	g.pools.pump(o)
}

// Accepted says that the provider answers the call, which opens the pool wider
// after a closure. Saying it again changes nothing.
func (g *Grant) Accepted() {
	g.pools.mu.Lock()
	defer g.pools.mu.Unlock()
	o := g.pool
	if g.told || g.epoch != o.epoch {
		return
	}
	g.told = true
	o.probes--
	if o.window *= 2; o.window > widestWindow {
		o.window = 0
	}
	g.pools.pump(o)
}

// End ends the call. Not dispatched: everything is refunded. Dispatched: what
// headers did not settle is replaced by usage, or stays charged at the estimate
// without one. completed says that the stream ran to its end, which forgets
// earlier refusals. Ending twice changes nothing.
func (g *Grant) End(dispatched, completed bool, usage *model.Usage) {
	g.pools.mu.Lock()
	defer g.pools.mu.Unlock()
	if g.ended {
		return
	}
	g.ended = true
	o := g.pool
	o.grants--
	if !g.told && g.epoch == o.epoch {
		o.probes--
	}
	used := g.share
	switch {
	case !dispatched:
		used = [dimensions]float64{}
	case usage != nil:
		used = Cost{Input: usage.Input, Output: usage.Output}.share()
	}
	now := time.Now()
	for d := range o.buckets {
		if !g.settled[d] {
			o.buckets[d].settle(now, g.share[d], used[d])
		}
	}
	if completed {
		o.nextClosure = firstClosure
	}
	g.pools.pump(o)
}
