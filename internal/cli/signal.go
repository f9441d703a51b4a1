package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"agent/internal/outlet"
	"agent/protocol"

	"golang.org/x/sys/unix"
)

// ending is a signal that ends the client. The turn goes on: it belongs to the
// daemon (section 5).
type ending struct{ signal syscall.Signal }

func (e ending) Error() string { return e.signal.String() }

// status is the exit status of a program ended by the signal.
func (e ending) status() int { return 128 + int(e.signal) }

// endWithin is how long a command may take to say where to come back to.
const endWithin = 2 * time.Second

// endings is a context that ends with SIGINT or SIGTERM. SIGPIPE is caught and
// dropped, so that a closed stdout is an error of a write; ignoring it would be
// inherited by the daemon we may start. What holds undoing is not cut off.
func endings(undoing sync.Locker) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	go func() {
		e := ending{(<-signals).(syscall.Signal)}
		cancel(e)
		// Whoever reads our output may have stopped, and a write waits for them.
		time.AfterFunc(endWithin, func() {
			undoing.Lock()
			os.Exit(e.status())
		})
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}

// endedBy is the signal that ended ctx, or nil.
func endedBy(ctx context.Context) *ending {
	var e ending
	if errors.As(context.Cause(ctx), &e) {
		return &e
	}
	return nil
}

// spot is how far a command came: where to come back to.
type spot struct {
	handle    string // "" while no turn is known
	cursor    int64
	again     string // the command that goes on from here, but for the cursor
	bot       string // of a run
	requestID string // of a request that was not answered
	made      *protocol.Bot
}

// stopped is a stream that broke off at a place.
type stopped struct {
	error
	at spot
}

func (s stopped) Unwrap() error { return s.error }

// sayEnded prints where to come back to, for run and follow.
func (a *app) sayEnded(e *ending, err error) {
	var s stopped
	if !errors.As(err, &s) {
		return
	}
	name := unix.SignalName(e.signal)
	if s.at.requestID != "" {
		a.say(s.at.facts(protocol.Fail("interrupted", name+" ended this command before the answer came; what it asked for may have begun: repeat "+s.at.again)))
		return
	}
	a.say(s.at.facts(protocol.Fail("interrupted", name+" ended this command, not the work; go on with: "+
		s.at.again+" --after "+strconv.FormatInt(s.at.cursor, 10))))
}

// facts adds the place to an error.
func (p spot) facts(err error) error {
	if p.handle != "" {
		err = withFact(err, "handle", p.handle)
	}
	if p.cursor > 0 {
		err = withFact(err, "cursor", p.cursor)
	}
	if p.bot != "" {
		err = withFact(err, "bot", p.bot)
	}
	if p.requestID != "" {
		err = withFact(err, "request_id", p.requestID)
	}
	if p.made != nil {
		err = withFact(withFact(err, "bot_id", p.made.ID), "created", true)
	}
	return err
}

// watchOutput ends ctx when the reader of stdout goes away.
func (a *app) watchOutput(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	a.onOutputClosed(cancel)
	return ctx
}

// onOutputClosed calls gone when the reader of stdout goes away, also while there
// is nothing to write. Only a pipe or a socket can lose its reader.
func (a *app) onOutputClosed(gone context.CancelCauseFunc) {
	f, ok := a.stdout.(*os.File)
	if !ok {
		return
	}
	closed := outlet.Gone(f)
	if closed == nil {
		return
	}
	go func() {
		<-closed
		gone(errOutputClosed)
	}()
}
