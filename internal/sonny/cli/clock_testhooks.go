//go:build testhooks

package cli

import (
	"os"
	"time"
)

// shownClock is the clock of what is shown: in a build for tests SONNY_CLOCK stops it
// (sonny.md 34).
func shownClock() func() time.Time {
	at, err := time.Parse(time.RFC3339, os.Getenv("SONNY_CLOCK"))
	if err != nil {
		return nil
	}
	return func() time.Time { return at }
}
