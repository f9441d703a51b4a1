package client

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"agent/protocol"
)

func quick(int) time.Duration { return time.Millisecond }

// followFake is a fake with a log and one bot.
func followFake(t *testing.T, l *log, botID *atomic.Int64) *fake {
	return newFake(t, func(s *fakeSession, r protocol.Request) {
		switch p := r.Params.(type) {
		case *protocol.Follow:
			l.follow(s, r)
		case *protocol.Inspect:
			if botID == nil || botID.Load() == 0 {
				s.refuse(r, protocol.Fail(protocol.BotNotFound, p.Bot))
				return
			}
			s.result(r, protocol.Bot{Name: p.Bot, ID: botID.Load()})
		default:
			s.result(r, protocol.Empty{})
		}
	})
}

func TestFollowReconnects(t *testing.T) {
	t.Parallel()
	t.Run("CL-77 a daemon killed and started twice gives every durable event once", func(t *testing.T) {
		t.Parallel()
		var l log
		var id atomic.Int64
		id.Store(7)
		f := followFake(t, &l, &id)
		for range 3 {
			l.add("B", 1, protocol.KindMessage, protocol.Message{Node: 1})
		}
		var cursors []int64
		reconnects, lives := 0, 0
		for e, err := range f.client(t).Follow(t.Context(), "B", FollowOptions{Reconnect: true, Backoff: quick, Turn: 9}) {
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case e.Durable:
				cursors = append(cursors, e.Cursor)
			case e.Kind == protocol.KindReconnected:
				reconnects++
			case e.Kind == protocol.KindFollowLive:
				if lives++; lives == 3 {
					l.add("B", 9, protocol.KindTurnFinished, protocol.TurnFinished{Status: "completed"})
					continue
				}
				l.add("B", 1, protocol.KindMessage, protocol.Message{Node: 2})
				f.stop()
				l.add("B", 1, protocol.KindMessage, protocol.Message{Node: 3})
				f.start(t)
			}
		}
		if want := []int64{1, 2, 3, 4, 5, 6, 7, 8}; !slices.Equal(cursors, want) || reconnects != 2 {
			t.Errorf("cursors %v, %d reconnects", cursors, reconnects)
		}
	})
	for _, row := range []struct {
		name   string
		change func(*fake, *atomic.Int64)
		code   protocol.Code
	}{
		{"CL-45 another store at that path ends it", func(f *fake, _ *atomic.Int64) {
			f.announce(func(r *protocol.Ready) { r.Store.Identity = "store-2" })
		}, protocol.StoreChanged},
		{"another bot under the name ends it", func(_ *fake, id *atomic.Int64) { id.Store(8) }, protocol.BotNotFound},
		{"a bot that is gone ends it", func(_ *fake, id *atomic.Int64) { id.Store(0) }, protocol.BotNotFound},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			var l log
			var id atomic.Int64
			id.Store(7)
			f := followFake(t, &l, &id)
			var last error
			for e, err := range f.client(t).Follow(t.Context(), "B", FollowOptions{Reconnect: true, Backoff: quick}) {
				if last = err; err == nil && e.Kind == protocol.KindFollowLive {
					f.stop()
					row.change(f, &id)
					f.start(t)
				}
			}
			if protocol.CodeOf(last) != row.code {
				t.Errorf("ended with %v", last)
			}
		})
	}
	t.Run("without Reconnect a lost connection ends it", func(t *testing.T) {
		t.Parallel()
		var l log
		f := followFake(t, &l, nil)
		var last error
		for e, err := range f.client(t).Follow(t.Context(), "*", FollowOptions{}) {
			if last = err; err == nil && e.Kind == protocol.KindFollowLive {
				f.stop()
			}
		}
		if !errors.Is(last, protocol.DaemonDisconnected) {
			t.Errorf("ended with %v", last)
		}
	})
	t.Run("its context ends the wait between two tries", func(t *testing.T) {
		t.Parallel()
		var l log
		f := followFake(t, &l, nil)
		ctx, cancel := context.WithCancel(t.Context())
		var last error
		o := FollowOptions{Reconnect: true, Backoff: func(int) time.Duration { cancel(); return time.Hour }}
		for e, err := range f.client(t).Follow(ctx, "*", o) {
			if last = err; err == nil && e.Kind == protocol.KindFollowLive {
				f.stop()
			}
		}
		if !errors.Is(last, context.Canceled) {
			t.Errorf("ended with %v", last)
		}
	})
}

func TestFollowLags(t *testing.T) {
	t.Parallel()
	t.Run("CL-78 a consumer that stops reading for 5,000 events is told, and requests still work", func(t *testing.T) {
		t.Parallel()
		var l log
		f := followFake(t, &l, nil)
		c := f.client(t)
		if err := c.Do(t.Context(), protocol.OpStats, nil, nil); err != nil {
			t.Fatal(err)
		}
		stopped := false
		var last error
		got := int64(0)
		for e, err := range c.Follow(t.Context(), "*", FollowOptions{}) {
			if last = err; err != nil {
				break
			}
			if e.Durable {
				if got++; e.Cursor != got {
					t.Fatalf("cursor %d after %d", e.Cursor, got-1)
				}
			}
			if !stopped {
				stopped = true
				follower := onlyFollower(f)
				for range 5000 {
					l.add("B", 1, protocol.KindMessage, protocol.Message{Node: 1})
				}
				<-follower.ended // the client has given up on it
			}
		}
		if !errors.Is(last, protocol.FollowLagged) || got != maxNotifications {
			t.Errorf("ended with %v after %d", last, got)
		}
		if err := c.Do(t.Context(), protocol.OpStats, nil, nil); err != nil {
			t.Error(err)
		}
		t.Run("and going on from the last cursor brings the rest", func(t *testing.T) {
			for e, err := range c.Follow(t.Context(), "*", FollowOptions{After: got, UntilLive: true}) {
				if err != nil {
					t.Fatal(err)
				}
				if e.Durable {
					if got++; e.Cursor != got {
						t.Fatalf("cursor %d after %d", e.Cursor, got-1)
					}
				}
			}
			if got != 5000 {
				t.Errorf("ended at %d", got)
			}
		})
	})
}

// onlyFollower is the session that follows.
func onlyFollower(f *fake) *fakeSession {
	f.mu.Lock()
	defer f.mu.Unlock()
	for s := range f.sessions {
		if s.followed {
			return s
		}
	}
	panic("nobody follows")
}

func TestFollowEnds(t *testing.T) {
	t.Parallel()
	// follow lists the kinds that come of what script sends after the answer.
	follow := func(t *testing.T, o FollowOptions, result any, script func(*fakeSession)) (kinds []string, events []*protocol.Event, last error) {
		t.Helper()
		f := newFake(t, func(s *fakeSession, r protocol.Request) {
			switch r.Params.(type) {
			case *protocol.Follow:
				s.result(r, protocol.Following{})
				script(s)
			case *protocol.Result:
				if refusal, ok := result.(*protocol.Error); ok {
					s.refuse(r, refusal)
					return
				}
				s.result(r, result)
			}
		})
		for e, err := range f.client(t).Follow(t.Context(), "B", o) {
			if err != nil {
				last = err
				break
			}
			kinds, events = append(kinds, e.Kind), append(events, e)
		}
		return kinds, events, last
	}
	delta := func(s *fakeSession) {
		s.write(protocol.AppendDelta(nil, protocol.KindTextDelta, "B", 5, "hi"))
	}
	finish := func(s *fakeSession, turn int64) {
		s.event(10+turn, "B", turn, protocol.KindTurnFinished, protocol.TurnFinished{Status: "completed"})
	}
	t.Run("it ends after the turn asked for", func(t *testing.T) {
		t.Parallel()
		kinds, _, err := follow(t, FollowOptions{Turn: 5}, nil, func(s *fakeSession) { finish(s, 4); delta(s); finish(s, 5); finish(s, 6) })
		if want := []string{"turn_finished", "text_delta", "turn_finished"}; err != nil || !slices.Equal(kinds, want) {
			t.Errorf("%v %v", kinds, err)
		}
	})
	t.Run("it ends after the replay and leaves out deltas", func(t *testing.T) {
		t.Parallel()
		kinds, _, err := follow(t, FollowOptions{UntilLive: true, NoDeltas: true}, nil, func(s *fakeSession) {
			finish(s, 4)
			delta(s)
			s.live(protocol.KindFollowLive, protocol.FollowLive{Bot: "B", Cursor: 14})
			finish(s, 5)
		})
		if want := []string{"turn_finished", "follow_live"}; err != nil || !slices.Equal(kinds, want) {
			t.Errorf("%v %v", kinds, err)
		}
	})
	pruned := func(s *fakeSession) {
		s.live(protocol.KindPruned, protocol.PrunedNotice{Bot: "B", Before: 9})
	}
	t.Run("PR-40 a gap makes it ask for the turn, which had finished", func(t *testing.T) {
		t.Parallel()
		failed := protocol.BudgetExhausted
		kinds, events, err := follow(t, FollowOptions{Turn: 5}, &protocol.Outcome{
			Turn: 5, Status: "failed", Finished: true, Error: &failed,
			Extra: protocol.Extra{"tokens_used": raw(220)},
		}, pruned)
		if want := []string{"pruned", "turn_finished"}; err != nil || !slices.Equal(kinds, want) {
			t.Fatalf("%v %v", kinds, err)
		}
		var end protocol.TurnFinished
		if err := events[1].Decode(&end); err != nil || *end.Error != failed || string(end.Extra["tokens_used"]) != "220" {
			t.Errorf("%+v %v", end, err)
		}
		if events[1].Cursor != 0 || events[1].Durable || events[1].Turn != 5 {
			t.Errorf("%+v", events[1])
		}
	})
	t.Run("a gap and a turn that still runs", func(t *testing.T) {
		t.Parallel()
		kinds, _, err := follow(t, FollowOptions{Turn: 5}, &protocol.Outcome{Turn: 5, Status: "running"}, func(s *fakeSession) { pruned(s); finish(s, 5) })
		if want := []string{"pruned", "turn_finished"}; err != nil || !slices.Equal(kinds, want) {
			t.Errorf("%v %v", kinds, err)
		}
	})
	t.Run("PR-41 a gap and a turn whose outcome is gone", func(t *testing.T) {
		t.Parallel()
		if _, _, err := follow(t, FollowOptions{Turn: 5}, protocol.Fail(protocol.TurnResultPruned, ""), pruned); !errors.Is(err, protocol.TurnResultPruned) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a bot that is deleted ends it", func(t *testing.T) {
		t.Parallel()
		kinds, _, err := follow(t, FollowOptions{}, nil, func(s *fakeSession) { s.live(protocol.KindDeleted, protocol.DeletedNotice{Bot: "B"}) })
		if !slices.Equal(kinds, []string{"deleted"}) || !errors.Is(err, protocol.BotNotFound) {
			t.Errorf("%v %v", kinds, err)
		}
	})
	t.Run("an event that comes twice is given once", func(t *testing.T) {
		t.Parallel()
		kinds, _, err := follow(t, FollowOptions{Turn: 5, After: 13}, nil, func(s *fakeSession) { finish(s, 3); finish(s, 4); finish(s, 4); finish(s, 5) })
		if want := []string{"turn_finished", "turn_finished"}; err != nil || !slices.Equal(kinds, want) {
			t.Errorf("%v %v", kinds, err)
		}
	})
	t.Run("breaking off frees the session", func(t *testing.T) {
		t.Parallel()
		var l log
		f := followFake(t, &l, nil)
		var session *fakeSession
		for range f.client(t).Follow(t.Context(), "*", FollowOptions{}) {
			session = onlyFollower(f)
			break
		}
		<-session.ended
	})
}

// A daemon that lets itself be followed and fails at once is asked less and less
// often, and one that came on is asked soon again.
func TestFollowWaitsLongerForADaemonThatFailsAtOnce(t *testing.T) {
	t.Parallel()
	var l log
	var fails atomic.Int64
	f := newFake(t, func(s *fakeSession, r protocol.Request) {
		l.follow(s, r)
		if fails.Add(1) == 4 {
			l.add("B", 1, protocol.KindMessage, protocol.Message{Node: 1})
		}
		s.write([]byte("no message\n"))
	})
	var tries []int
	ctx, cancel := context.WithCancel(t.Context())
	o := FollowOptions{Reconnect: true, Backoff: func(attempt int) time.Duration {
		if tries = append(tries, attempt); len(tries) == 6 {
			cancel()
		}
		return 0
	}}
	if err := allOf(f.client(t).Follow(ctx, "*", o)); !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
	if want := []int{1, 2, 3, 1, 2, 3}; !slices.Equal(tries, want) {
		t.Errorf("the tries were %v, want %v", tries, want)
	}
}
