package pace

import "time"

// The dimensions of a pool's allowance.
const (
	Requests = iota
	Tokens
	Input
	Output
	dimensions
)

var dimensionWords = [dimensions]string{"requests", "tokens", "input tokens", "output tokens"}

// bucket is one allowance per minute. Until a response names its limit it is
// unknown and admits everything; what calls reserve is counted from the start,
// so that a first report can be corrected for them.
type bucket struct {
	known    bool
	limit    float64
	level    float64
	at       time.Time // when level was true
	reserved float64   // by admitted calls that are not settled
}

// refill brings level to now: limit/60 a second, up to the limit.
func (b *bucket) refill(now time.Time) {
	if !b.known {
		return
	}
	if passed := now.Sub(b.at).Seconds(); passed > 0 {
		b.level = min(b.level+passed*b.limit/60, b.limit)
	}
	b.at = now
}

// slack absorbs what floating point loses between a wait and its end.
const slack = 1e-6

// wait is how long from now until the bucket can pay share.
func (b *bucket) wait(now time.Time, share float64) time.Duration {
	b.refill(now)
	if !b.known || b.level+slack >= share {
		return 0
	}
	seconds := (share - b.level) / (b.limit / 60)
	return time.Duration(seconds*float64(time.Second)) + time.Microsecond
}

func (b *bucket) take(now time.Time, share float64) {
	b.refill(now)
	b.level -= share
	b.reserved += share
}

// report learns from a response's headers. remaining only ever lowers the
// level, since reports come out of order, and is not counting what other calls
// have reserved: those are taken off it.
func (b *bucket) report(now time.Time, limit, remaining float64, hasRemaining bool) {
	b.refill(now)
	if !b.known {
		b.known, b.at, b.level = true, now, limit-b.reserved
	}
	b.limit = limit
	b.level = min(b.level, limit)
	if hasRemaining {
		b.level = min(b.level, remaining-b.reserved)
	}
}

// mostDebt is how many minutes' allowance a call may be found to have used
// beyond what there was. A provider that reports an absurd figure would else
// close the pool for good.
const mostDebt = 5

// settle ends a reservation and replaces its charge by what was used.
func (b *bucket) settle(now time.Time, share, used float64) {
	b.reserved = max(b.reserved-share, 0)
	if !b.known {
		return
	}
	b.refill(now)
	b.level = min(max(b.level+share-used, -mostDebt*b.limit), b.limit)
}
