package engine

import "time"

// Two clocks. What is stored is the wall clock's, in milliseconds: a restart,
// or another program, has to make sense of it. What is measured goes by the
// monotonic clock, which no setting of the wall clock moves and which stands
// while the machine sleeps: a deadline that a running daemon waits for is as
// far away as it was when the wait began (runtime.md, conventions). The two
// meet here alone.

// nowMS is the wall clock as it is stored.
func (e *Engine) nowMS() int64 {
	if e.cfg.Clock != nil {
		return e.cfg.Clock().UnixMilli()
	}
	return time.Now().UnixMilli()
}

// deadline is a stored time that is waited for from now on. One that has
// passed is due at once.
func (e *Engine) deadline(ms int64) time.Time {
	return time.Now().Add(time.Duration(ms-e.nowMS()) * time.Millisecond)
}

// past is when something began that was stored, as far back as the wall clock
// says: never later than now.
func (e *Engine) past(ms int64) time.Time {
	return time.Now().Add(-time.Duration(max(e.nowMS()-ms, 0)) * time.Millisecond)
}
