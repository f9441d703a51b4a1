// Package beside is for what takes time: it runs beside the loop that owns a screen's
// state, which waits for nothing, and comes back into it.
package beside

import "context"

// Loop is what work is beside.
type Loop interface {
	// Beside runs work beside the loop, and in the loop what that gives.
	Beside(work func(context.Context) (then func()))
}

// Do runs work beside a loop. done is called in the loop with what came of it. It is
// called in the loop itself.
func Do[T any](l Loop, work func(context.Context) (T, error), done func(T, error)) {
	l.Beside(func(ctx context.Context) func() {
		v, err := work(ctx)
		return func() { done(v, err) }
	})
}
