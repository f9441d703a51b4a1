package keys

import "time"

// The leader's times (sonny.md 15).
const (
	LeaderWait = 1500 * time.Millisecond // for the second key
	LeaderShow = 300 * time.Millisecond  // until the choices are shown
)

// Leader waits for the second key of a chord. The zero value is at rest. Its clock is
// the caller's.
type Leader struct{ since time.Time }

// Waiting reports whether the first key was pressed and the second may come.
func (l *Leader) Waiting(now time.Time) bool {
	return !l.since.IsZero() && now.Sub(l.since) < LeaderWait
}

// Shown reports whether the choices are to be shown by now.
func (l *Leader) Shown(now time.Time) bool {
	return l.Waiting(now) && now.Sub(l.since) >= LeaderShow
}

// Next is when something changes without a key: the choices show, or the wait ends.
// False at rest.
func (l *Leader) Next(now time.Time) (time.Time, bool) {
	switch {
	case !l.Waiting(now):
		return time.Time{}, false
	case !l.Shown(now):
		return l.since.Add(LeaderShow), true
	}
	return l.since.Add(LeaderWait), true
}

// Press takes a key. It returns the chord to look up, "" while the second key is waited
// for and where Esc gave the wait up.
func (l *Leader) Press(key string, now time.Time) string {
	if l.Waiting(now) {
		l.since = time.Time{}
		if key == "esc" {
			return ""
		}
		return LeaderChord + " " + key
	}
	l.since = time.Time{}
	if key == LeaderChord {
		l.since = now
		return ""
	}
	return key
}
