package tool

import (
	"context"
	"errors"
	"os"
	"time"

	"agent/protocol"
)

// Work on files can block for as long as it likes: a mount whose server is
// gone, a special file that calls itself regular. Nothing can end a system
// call that hangs, so such work runs beside the call, which leaves it behind
// when its context ends (runtime.md 14: file I/O may outlive the turn).
const (
	// maxFileWork bounds how much of it runs at once in this process, what was
	// left behind included: each piece that hangs holds a goroutine and a
	// thread.
	maxFileWork = 64
	// fileWorkWait is how long a call waits for others' work to end before it
	// is refused with capacity_exhausted.
	fileWorkWait = 30 * time.Second
	// quietTime is how long a file that the poller can wait for, which a
	// proper regular file never is, may bring nothing.
	quietTime = 5 * time.Second
)

// fileWork is the bound, of all bots.
var fileWork = NewSlots(maxFileWork)

// errFileWork says that the bound stayed full.
var errFileWork = errors.New("the file work of other calls hangs, as with a mount whose server is gone: no more is begun until some of it ends")

// leftBehind says that ctx ended while the work ran, and that it still does.
type leftBehind struct{ error }

func (l leftBehind) Unwrap() error { return l.error }

// beside runs work where it may hang and gives its result. When ctx ends first
// the error is leftBehind: the work still runs to its end, and must touch
// nothing of the call's that is used afterwards. With any other error, for
// want of a place or because ctx had ended, it was not begun.
func beside[T any](ctx context.Context, slots *Slots, work func() T) (T, error) {
	var none T
	if ctx.Err() != nil {
		return none, context.Cause(ctx)
	}
	waiting, cancel := context.WithTimeoutCause(ctx, fileWorkWait, errFileWork)
	defer cancel()
	if err := slots.Acquire(waiting); err != nil {
		return none, err
	}
	done := make(chan T, 1)
	go func() {
		defer slots.Release()
		done <- work()
	}()
	select {
	case r := <-done:
		return r, nil
	case <-ctx.Done():
		return none, leftBehind{context.Cause(ctx)}
	}
}

// leftFailure is why work on a file was not waited for, or not begun.
func leftFailure(path string, err error) *Failure {
	if errors.Is(err, errFileWork) {
		return failuref(protocol.CapacityExhausted, "%s: %v", path, err)
	}
	if !errors.As(err, new(leftBehind)) {
		return failuref(protocol.Cancelled, "%s: the turn ended before it was looked at", path)
	}
	return failuref(protocol.Cancelled, "%s: the turn ended first; what was begun may still be done", path)
}

// quietFile reads a file without waiting for ever. A descriptor that the
// runtime's poller takes would be parked until something comes.
type quietFile struct {
	*os.File
	plain bool // takes no deadline: reads do not park
}

func (f *quietFile) Read(p []byte) (int, error) {
	if !f.plain {
		f.plain = f.SetReadDeadline(time.Now().Add(quietTime)) != nil
	}
	n, err := f.File.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = nothingCame(quietTime)
	}
	return n, err
}

// nothingCame is the failure of a file that brought nothing for so long.
func nothingCame(quiet time.Duration) *Failure {
	return failuref(protocol.FileUnreadable, "nothing came from it in %v: it is no ordinary file", quiet)
}
