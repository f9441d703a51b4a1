//go:build !testhooks

package cli

import "time"

// shownClock is the clock of what is shown; nil for the system's.
func shownClock() func() time.Time { return nil }
