package live

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"agent/client"
	"agent/protocol"
)

// Note is one thing that a feed tells, in order.
type Note struct {
	Ready *protocol.Ready // a connection stands; what came before holds if Resumed
	// Resumed is of Ready: the follow goes on where it was. Otherwise all that was
	// known is to be forgotten and read again.
	Resumed bool

	Event *protocol.Event
	Bots  []protocol.Bot     // a page of records
	Last  bool               // of Bots: the page is the last one
	Waits *protocol.Approval // a call that waits for a verdict
	Lost  *Lost              // the connection is gone
}

// Lost says why there is no connection, and what may help.
type Lost struct {
	Err     error
	Stopped bool // the socket is gone: the daemon was ended, and a person starts it
	Spent   bool // it died too often to be started again unasked: a person starts it
}

// Feed follows a daemon and tells what it hears. It is run by one goroutine.
type Feed struct {
	Client *client.Client

	// Start starts the daemon again where one died; nil: never.
	Start func(context.Context) error

	// Wake makes a feed that waits try at once, and start a daemon that was ended.
	Wake <-chan struct{}

	cursor  int64
	store   string
	pid     int // of the daemon that was followed
	started []time.Time

	now   func() time.Time // nil: time.Now; for tests
	every time.Duration    // 0: retryEvery; for tests
}

// The rhythm of a feed without a connection (sonny.md 30).
const (
	retryEvery    = 2 * time.Second
	maxRestarts   = 3
	restartWindow = 10 * time.Minute
	pageSize      = 256
)

// Run follows until ctx ends, and gives each note to tell, which may block and is called
// by two goroutines. After the
// connection is lost it tries every two seconds; a daemon that died, whose socket
// still stands, it starts again three times in ten minutes at most.
func (f *Feed) Run(ctx context.Context, tell func(Note)) {
	for ctx.Err() == nil {
		err := f.attach(ctx, tell)
		if ctx.Err() != nil {
			return
		}
		f.awaitEnd(ctx)
		stopped := f.socketGone()
		restarts := !stopped && f.mayRestart()
		tell(Note{Lost: &Lost{Err: err, Stopped: stopped, Spent: !stopped && !restarts && f.Start != nil}})
		if restarts && f.Start(ctx) == nil {
			continue
		}
		f.rest(ctx)
	}
}

// endsWithin is how long a daemon that closed its connections may take to be gone, and
// endsPoll how often that is looked at.
const (
	endsWithin = 10 * time.Second
	endsPoll   = 25 * time.Millisecond
)

// awaitEnd waits until the daemon that was followed is gone: one that was ended takes
// its socket away last of all, and one that died never does.
func (f *Feed) awaitEnd(ctx context.Context) {
	end := time.Now().Add(endsWithin)
	for f.pid != 0 && syscall.Kill(f.pid, 0) == nil && time.Now().Before(end) && ctx.Err() == nil && !f.socketGone() {
		time.Sleep(endsPoll)
	}
	f.pid = 0
}

func (f *Feed) socketGone() bool {
	_, err := os.Lstat(f.Client.Target.Socket)
	return errors.Is(err, fs.ErrNotExist)
}

func (f *Feed) clock() time.Time {
	if f.now != nil {
		return f.now()
	}
	return time.Now()
}

func (f *Feed) mayRestart() bool {
	if f.Start == nil {
		return false
	}
	now := f.clock()
	recent := 0
	for _, at := range f.started {
		if now.Sub(at) < restartWindow {
			recent++
		}
	}
	if recent >= maxRestarts {
		return false
	}
	f.started = append(f.started, now)
	return true
}

// rest waits for the next try. A person who wakes it starts the daemon.
func (f *Feed) rest(ctx context.Context) {
	every := f.every
	if every == 0 {
		every = retryEvery
	}
	timer := time.NewTimer(every)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-f.Wake:
		if f.Start != nil {
			_ = f.Start(ctx) // what it failed of is told by the next try
		}
	}
}

// attach follows over one connection until that ends.
func (f *Feed) attach(ctx context.Context, tell func(Note)) error {
	s, err := f.Client.Session(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	ready := s.Ready()
	f.pid = ready.PID
	resumed := f.store == ready.Store.Identity
	if !resumed {
		var stats protocol.Stats
		if err := s.Do(ctx, protocol.OpStats, &protocol.StatsRequest{}, &stats); err != nil {
			return err
		}
		f.store, f.cursor = ready.Store.Identity, stats.Cursor
	}
	tell(Note{Ready: ready, Resumed: resumed})
	if err := s.Do(ctx, protocol.OpFollow, &protocol.Follow{Bot: "*", After: f.cursor}, nil); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { s.Close() })()
	listed := make(chan error, 1)
	go func() { listed <- f.list(ctx, s, tell) }()
	for e, err := range s.Notifications() {
		if err != nil {
			<-listed
			return err
		}
		if e.Durable {
			f.cursor = max(f.cursor, e.Cursor)
		}
		tell(Note{Event: e})
	}
	return errors.Join(context.Cause(ctx), <-listed)
}

// list reads the records and the calls that wait, while events come. An error of it
// ends the connection, so that all is read again.
func (f *Feed) list(ctx context.Context, s *client.Session, tell func(Note)) error {
	err := func() error {
		for after := ""; ; {
			var page protocol.BotPage
			if err := s.Do(ctx, protocol.OpBots, &protocol.Bots{After: after, Limit: protocol.Set(int64(pageSize))}, &page); err != nil {
				return err
			}
			tell(Note{Bots: page.Bots, Last: page.NextAfter == nil})
			if page.NextAfter == nil {
				break
			}
			after = *page.NextAfter
		}
		for a, err := range f.Client.Approvals(ctx, client.ApprovalFilter{}) {
			if err != nil {
				return err
			}
			tell(Note{Waits: a})
		}
		return nil
	}()
	if err != nil {
		s.Close()
	}
	return err
}
