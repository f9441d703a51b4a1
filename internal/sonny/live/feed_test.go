package live

import (
	"context"
	"os"
	"testing"
	"time"

	"agent/client"
	"agent/internal/sonny/sonnytest"
	"agent/protocol"
)

func TestMain(m *testing.M) { sonnytest.Main(m) }

func TestMayRestart(t *testing.T) {
	t.Parallel()
	begun := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for _, row := range []struct {
		name string
		at   []time.Duration // when a daemon died
		want []bool
	}{
		{"three in ten minutes, and no more", []time.Duration{0, time.Minute, 2 * time.Minute, 3 * time.Minute, 9 * time.Minute}, []bool{true, true, true, false, false}},
		{"again once the first of them is ten minutes old", []time.Duration{0, time.Minute, 2 * time.Minute, 10*time.Minute - 1, 10 * time.Minute, 10*time.Minute + 1}, []bool{true, true, true, false, true, false}},
		{"one that was not started does not count", []time.Duration{0, 1, 2, 3, 4, 5, 10 * time.Minute}, []bool{true, true, true, false, false, false, true}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			var now time.Time
			f := &Feed{Start: func(context.Context) error { return nil }, now: func() time.Time { return now }}
			for i, after := range row.at {
				now = begun.Add(after)
				if got := f.mayRestart(); got != row.want[i] {
					t.Errorf("after %s: %t", after, got)
				}
			}
		})
	}
	if (&Feed{}).mayRestart() {
		t.Error("a feed that has no way to start a daemon may start one")
	}
}

// fed is a feed that runs on the daemon of a home.
type fed struct {
	t     *testing.T
	h     *sonnytest.Home
	notes chan Note
	wake  chan struct{}
	start chan struct{} // one for each start of a daemon
}

// feed runs one until the test's end. Its tries follow at once.
func feed(t *testing.T, h *sonnytest.Home, restarts bool) *fed {
	t.Helper()
	d := &fed{t: t, h: h, notes: make(chan Note, 4096), wake: make(chan struct{}), start: make(chan struct{}, 64)}
	f := &Feed{Client: &client.Client{Target: h.Client().Target}, Wake: d.wake, every: 20 * time.Millisecond}
	if restarts {
		f.Start = func(context.Context) error {
			d.start <- struct{}{}
			if r := h.Agent("start"); r.Exit != 0 {
				t.Errorf("agent start: %+v", r)
			}
			return nil
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f.Run(ctx, func(n Note) {
			select {
			case d.notes <- n:
			case <-ctx.Done():
			}
		})
	}()
	t.Cleanup(func() { cancel(); <-ended; f.Client.Close() })
	return d
}

// until gives the next note that fits.
func (d *fed) until(what string, fits func(Note) bool) Note {
	d.t.Helper()
	late := time.After(time.Minute)
	for {
		select {
		case n := <-d.notes:
			if fits(n) {
				return n
			}
		case <-late:
			d.t.Fatalf("no %s came", what)
		}
	}
}

func (d *fed) ready() Note {
	d.t.Helper()
	return d.until("ready", func(n Note) bool { return n.Ready != nil })
}

func (d *fed) lost() *Lost {
	d.t.Helper()
	return d.until("loss", func(n Note) bool { return n.Lost != nil }).Lost
}

// page is a page of records that holds a bot.
func (d *fed) page(bot string) {
	d.t.Helper()
	d.until("page with "+bot, func(n Note) bool {
		for _, b := range n.Bots {
			if b.Name == bot {
				return true
			}
		}
		return false
	})
}

func (d *fed) created(bot string) {
	d.t.Helper()
	d.until("event of "+bot, func(n Note) bool {
		return n.Event != nil && n.Event.Kind == protocol.KindCreated && n.Event.Bot == bot
	})
}

func (d *fed) make(bot string) {
	d.t.Helper()
	if _, err := d.h.Client().Create(d.t.Context(), &protocol.Create{Bot: bot, Model: "scripted/sonny", Instructions: "Be brief."}); err != nil {
		d.t.Fatal(err)
	}
}

// starts is how many daemons were started so far.
func (d *fed) starts() int { return len(d.start) }

func started(t *testing.T, h *sonnytest.Home) {
	t.Helper()
	if r := h.Agent("start"); r.Exit != 0 {
		t.Fatalf("%+v", r)
	}
}

func TestFeed(t *testing.T) {
	t.Parallel()
	t.Run("what there is comes as pages, what happens as events", func(t *testing.T) {
		t.Parallel()
		h := sonnytest.Fresh(t)
		started(t, h)
		before := &fed{t: t, h: h}
		before.make("before")
		d := feed(t, h, true)
		if n := d.ready(); n.Resumed || n.Ready.PID != h.DaemonPID() {
			t.Errorf("%+v", n)
		}
		d.page("before")
		d.make("after")
		d.created("after")
	})
	t.Run("a daemon that was killed is started again, and the follow goes on", func(t *testing.T) {
		t.Parallel()
		h := sonnytest.Fresh(t)
		started(t, h)
		d := feed(t, h, true)
		pid := d.ready().Ready.PID
		d.make("first")
		d.created("first")
		h.KillDaemon()
		if l := d.lost(); l.Stopped || l.Err == nil {
			t.Errorf("%+v", l)
		}
		n := d.ready()
		if !n.Resumed || n.Ready.PID == pid || d.starts() != 1 {
			t.Errorf("resumed %t, process %d, %d starts", n.Resumed, n.Ready.PID, d.starts())
		}
		d.page("first")
		d.make("second")
		d.created("second")
	})
	t.Run("after the third time it stays, and is met again when somebody starts it", func(t *testing.T) {
		t.Parallel()
		h := sonnytest.Fresh(t)
		started(t, h)
		d := feed(t, h, true)
		d.ready()
		for range maxRestarts {
			h.KillDaemon()
			if l := d.lost(); l.Spent {
				t.Errorf("%+v", l)
			}
			d.ready()
		}
		h.KillDaemon()
		for range 3 {
			if l := d.lost(); l.Stopped || !l.Spent {
				t.Errorf("%+v", l)
			}
		}
		if d.starts() != maxRestarts {
			t.Errorf("%d starts", d.starts())
		}
		started(t, h)
		if n := d.ready(); !n.Resumed {
			t.Error("the follow does not go on")
		}
		h.KillDaemon()
		d.lost()
		d.wake <- struct{}{}
		if n := d.ready(); !n.Resumed {
			t.Error("the person's word does not start it")
		}
	})
	t.Run("one that was ended stays ended until the person wakes the feed", func(t *testing.T) {
		t.Parallel()
		h := sonnytest.Fresh(t)
		started(t, h)
		d := feed(t, h, true)
		d.ready()
		if r := h.Agent("shutdown"); r.Exit != 0 {
			t.Fatalf("%+v", r)
		}
		for range 3 { // it tries, and starts nothing
			if l := d.lost(); !l.Stopped {
				t.Errorf("%+v", l)
			}
		}
		if d.starts() != 0 || h.DaemonPID() != 0 {
			t.Error("a daemon was started")
		}
		d.wake <- struct{}{}
		if n := d.ready(); !n.Resumed || d.starts() != 1 {
			t.Errorf("resumed %t, %d starts", n.Resumed, d.starts())
		}
	})
	t.Run("one with another store is told as one of which nothing is known", func(t *testing.T) {
		t.Parallel()
		h := sonnytest.Fresh(t)
		started(t, h)
		d := feed(t, h, true)
		store := d.ready().Ready.Store.Identity
		d.make("old")
		d.created("old")
		if r := h.Agent("shutdown"); r.Exit != 0 {
			t.Fatalf("%+v", r)
		}
		d.lost()
		for _, name := range []string{"state.sqlite", "state.sqlite-wal", "state.sqlite-shm"} {
			os.Remove(h.Path(".agent", name))
		}
		started(t, h)
		n := d.ready()
		if n.Resumed || n.Ready.Store.Identity == store {
			t.Errorf("resumed %t, store %s after %s", n.Resumed, n.Ready.Store.Identity, store)
		}
		d.make("new")
		d.created("new")
	})
	t.Run("a feed that may start nothing only waits", func(t *testing.T) {
		t.Parallel()
		h := sonnytest.Fresh(t)
		d := feed(t, h, false)
		for range 2 {
			if l := d.lost(); !l.Stopped {
				t.Errorf("%+v", l)
			}
		}
		started(t, h)
		if n := d.ready(); n.Resumed {
			t.Errorf("%+v", n)
		}
	})
}
