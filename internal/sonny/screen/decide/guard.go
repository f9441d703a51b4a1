package decide

import "time"

// Keys that were meant for a message must never answer (sonny.md 9.2).
const (
	QuietBefore = time.Second            // no key for so long before a question opens: it takes the keyboard
	Swallowed   = 350 * time.Millisecond // and then takes no key for so long
)

// Guard keeps keys from a question that the person has not read yet. The zero value lets
// all through.
type Guard struct{ until time.Time }

// Restart lets no key through for a moment from now on.
func (g *Guard) Restart(now time.Time) { g.until = now.Add(Swallowed) }

// Deaf reports whether no key is let through now.
func (g *Guard) Deaf(now time.Time) bool { return now.Before(g.until) }

// Swallows reports whether a key that comes now is lost. The period starts over with
// each one that is.
func (g *Guard) Swallows(now time.Time) bool {
	if !g.Deaf(now) {
		return false
	}
	g.Restart(now)
	return true
}
