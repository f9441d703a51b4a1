package screen

import (
	"context"
	"runtime/debug"
	"time"
)

// slackRest is how long after the last work that leaves much behind the memory of it is
// given back.
const slackRest = 5 * time.Second

// slack gives back what was needed for a while: to load a part of a history, or to show a
// reply while it came. Sonny is open all day, and mostly waits.
type slack struct{ due *time.Timer }

// soon gives it back when a while has gone by.
func (s *slack) soon() {
	if s.due != nil {
		s.due.Reset(slackRest)
	}
}

// freeSlack collects what nobody needs and returns it to the system, beside the loop.
func (a *App) freeSlack() {
	do(a, func(context.Context) (struct{}, error) {
		debug.FreeOSMemory()
		return struct{}{}, nil
	}, func(struct{}, error) {})
}
