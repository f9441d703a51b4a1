package main

import (
	"context"
	"sync"
	"time"

	"agent/protocol"
)

// watch reads a session's notifications and tells when turns end. A bot has
// one turn at a time.
type watch struct {
	mu    sync.Mutex
	turns map[string]*watched
	err   error
	ended chan struct{}
}

// watched is a turn under way. first is read after begun, the rest after done.
type watched struct {
	first    time.Time
	begun    chan struct{}
	parked   chan struct{} // closed when it first waits
	waits    bool
	finished time.Time
	end      protocol.TurnFinished
	why      string
	done     chan struct{}
}

// startWatch begins to watch. The owner of a daemon on standard input and
// output is told of every bot without asking (protocol.md 2); on a socket it
// asks.
func (d *daemon) startWatch(ctx context.Context) error {
	d.watch = &watch{turns: map[string]*watched{}, ended: make(chan struct{})}
	go d.watch.read(d)
	if d.pipes != nil {
		return nil
	}
	return d.session.Do(ctx, "follow", &protocol.Follow{Bot: "*"}, nil)
}

func (w *watch) read(d *daemon) {
	defer close(w.ended)
	for e, err := range d.session.Notifications() {
		if err != nil {
			w.mu.Lock()
			w.err = err
			w.mu.Unlock()
			return
		}
		w.see(e, time.Now())
	}
}

func (w *watch) see(e *protocol.Event, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.turns[e.Bot]
	if t == nil {
		return
	}
	switch e.Kind {
	case protocol.KindTextDelta:
		if t.first.IsZero() {
			t.first = now
			close(t.begun)
		}
	case protocol.KindTurnWaiting, protocol.KindTurnPaced:
		if !t.waits {
			t.waits = true
			close(t.parked)
		}
	case protocol.KindTurnFinished:
		t.finished, t.why = now, string(e.Data)
		if err := e.Decode(&t.end); err != nil {
			t.why = err.Error()
		}
		delete(w.turns, e.Bot)
		close(t.done)
	}
}

// expect announces a bot's next turn.
func (w *watch) expect(bot string) *watched {
	t := &watched{begun: make(chan struct{}), parked: make(chan struct{}), done: make(chan struct{})}
	w.mu.Lock()
	w.turns[bot] = t
	w.mu.Unlock()
	return t
}

// failure is what ended the session before its time.
func (w *watch) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}
