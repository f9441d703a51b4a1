package sandbox

import (
	"context"
	"sync"
)

// Launcher starts confined commands. It is safe for concurrent use.
type Launcher struct {
	Helper string // the path of the daemon's own program
	// Owner tells the daemon, and those before and after it, from all others: what
	// EndStrays goes by. Letters, digits and punctuation; "" for none.
	Owner string

	mu      sync.Mutex
	program *program // nil until the probe has passed
	last    error    // of the last probe
	tried   bool
}

// Probe finds out whether commands can be confined on this machine; nil means
// that they can, which is remembered. Else it is sandbox_unavailable with what to
// do about it, and asked anew the next time (sandbox.md 4.2, 5.5).
func (l *Launcher) Probe(ctx context.Context) error {
	_, err := l.ready(ctx)
	return err
}

// State is what Probe last found: tried is false before the first.
func (l *Launcher) State() (tried bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tried, l.last
}

// ready is the launcher, once a probe has passed.
func (l *Launcher) ready(ctx context.Context) (*program, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.program != nil {
		return l.program, nil
	}
	found, err := probe(ctx, l.Helper, l.Owner)
	l.tried, l.last = true, nil
	if err != nil {
		l.last = unavailable(err)
		return nil, l.last
	}
	l.program = found
	return found, nil
}
