package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"agent/protocol"
)

func TestManyGoroutinesShareOneConnection(t *testing.T) {
	t.Parallel()
	t.Run("CL-80 64 goroutines making 1,000 requests each get their own answers", func(t *testing.T) {
		t.Parallel()
		f := newFake(t, func(s *fakeSession, r protocol.Request) {
			s.result(r, protocol.Bot{Name: r.Params.(*protocol.Inspect).Bot})
		})
		c := f.client(t)
		var wg sync.WaitGroup
		for g := range 64 {
			wg.Go(func() {
				for i := g; i < 1000; i += 64 {
					name := fmt.Sprintf("bot-%d", i)
					bot, err := c.Inspect(t.Context(), name)
					if err != nil || bot.Name != name {
						t.Errorf("%s: got %v %v", name, bot, err)
						return
					}
				}
			})
		}
		wg.Wait()
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.sessions) != 1 {
			t.Errorf("%d connections", len(f.sessions))
		}
	})
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(s *fakeSession, r protocol.Request) {
		switch p := r.Params.(type) {
		case *protocol.Submit:
			s.refuse(r, protocol.Fail(protocol.BudgetExhausted, "spent").With("budget_tokens", 200).With("tokens_used", 220))
		case *protocol.Inspect:
			if p.Bot == "bad" {
				s.write(protocol.AppendError(nil, nil, protocol.Fail(protocol.InvalidJSON, "bot")))
				return
			}
			s.result(r, protocol.Bot{Name: p.Bot})
		}
	})
	c := f.client(t)
	t.Run("CL-81 a code is tested and a fact read", func(t *testing.T) {
		_, err := c.Submit(t.Context(), &protocol.Submit{Bot: "B"})
		var e *protocol.Error
		if !errors.Is(err, protocol.BudgetExhausted) || !errors.As(err, &e) || e.Op != protocol.OpSubmit {
			t.Fatalf("got %v", err)
		}
		var n int
		if ok, err := e.Fact("tokens_used", &n); !ok || err != nil || n != 220 {
			t.Errorf("%v %v %d", ok, err, n)
		}
	})
	t.Run("a refusal without an id reaches the request it is for", func(t *testing.T) {
		if _, err := c.Inspect(t.Context(), "bad"); !errors.Is(err, protocol.InvalidJSON) {
			t.Errorf("got %v", err)
		}
		if bot, err := c.Inspect(t.Context(), "good"); err != nil || bot.Name != "good" {
			t.Errorf("got %v %v", bot, err)
		}
	})
	t.Run("an op this package has no method for is reached", func(t *testing.T) {
		var out json.RawMessage
		if err := c.Do(t.Context(), protocol.OpInspect, map[string]string{"bot": "raw"}, &out); err != nil || !strings.HasPrefix(string(out), `{"name":"raw"`) {
			t.Errorf("got %s %v", out, err)
		}
	})
}

func TestContextsAndEnds(t *testing.T) {
	t.Parallel()
	t.Run("CL-79 a wait whose context ends returns at once and leaves no waiter", func(t *testing.T) {
		t.Parallel()
		waiting, gone := make(chan struct{}), make(chan struct{})
		f := newFake(t, func(s *fakeSession, r protocol.Request) {
			close(waiting)
			go func() { <-s.ended; close(gone) }()
		})
		c := f.client(t)
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() { <-waiting; cancel(cause) }()
		if _, err := c.Wait(ctx, &protocol.Wait{Handles: []string{"proc:1"}}); !errors.Is(err, cause) {
			t.Errorf("got %v", err)
		}
		<-gone
	})
	t.Run("an answer that comes after its context's end is dropped", func(t *testing.T) {
		t.Parallel()
		held := make(chan func(), 1)
		f := newFake(t, func(s *fakeSession, r protocol.Request) {
			name := r.Params.(*protocol.Inspect).Bot
			if name == "slow" {
				held <- func() { s.result(r, protocol.Bot{Name: name}) }
				return
			}
			s.result(r, protocol.Bot{Name: name})
		})
		c := f.client(t)
		ctx, cancel := context.WithCancel(t.Context())
		var late func()
		go func() { late = <-held; cancel() }()
		if _, err := c.Inspect(ctx, "slow"); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
		late()
		if bot, err := c.Inspect(t.Context(), "next"); err != nil || bot.Name != "next" {
			t.Errorf("got %v %v", bot, err)
		}
	})
	t.Run("open requests fail when the daemon goes, and later ones connect again", func(t *testing.T) {
		t.Parallel()
		f := newFake(t, func(s *fakeSession, r protocol.Request) {
			if r.Params.(*protocol.Inspect).Bot == "last" {
				s.conn.Close()
				return
			}
			s.result(r, protocol.Bot{})
		})
		c := f.client(t)
		_, err := c.Inspect(t.Context(), "last")
		var e *protocol.Error
		if !errors.As(err, &e) || e.Code != protocol.DaemonDisconnected || e.Op != protocol.OpInspect {
			t.Fatalf("got %v", err)
		}
		if _, err := c.Inspect(t.Context(), "again"); err != nil {
			t.Error(err)
		}
	})
	t.Run("Close ends open requests and follows, and later calls connect again", func(t *testing.T) {
		t.Parallel()
		var l log
		asked := make(chan struct{}, 1)
		f := newFake(t, func(s *fakeSession, r protocol.Request) {
			switch r.Params.(type) {
			case *protocol.Follow:
				l.follow(s, r)
			case *protocol.Inspect:
				s.result(r, protocol.Bot{})
			default:
				asked <- struct{}{}
			}
		})
		c := f.client(t)
		errs := make(chan error, 2)
		go func() { _, err := c.Stats(t.Context()); errs <- err }()
		<-asked
		live := make(chan struct{})
		go func() {
			for _, err := range c.Follow(t.Context(), "B", FollowOptions{}) {
				if err != nil {
					errs <- err
					return
				}
				close(live)
			}
		}()
		<-live
		c.Close()
		for range 2 {
			if err := <-errs; !errors.Is(err, protocol.DaemonDisconnected) {
				t.Errorf("got %v", err)
			}
		}
		if _, err := c.Inspect(t.Context(), "B"); err != nil {
			t.Error(err)
		}
	})
	t.Run("a request too long for a line is not sent", func(t *testing.T) {
		t.Parallel()
		f := newFake(t, func(s *fakeSession, r protocol.Request) { s.result(r, protocol.Bot{}) })
		c := f.client(t)
		_, err := c.Submit(t.Context(), &protocol.Submit{Bot: "B", Prompt: strings.Repeat("x", protocol.MaxLine)})
		if !errors.Is(err, protocol.InputLineLimitOrTruncation) {
			t.Fatalf("got %v", err)
		}
		if _, err := c.Inspect(t.Context(), "B"); err != nil {
			t.Error(err)
		}
	})
	t.Run("a session's notifications have one range at a time", func(t *testing.T) {
		t.Parallel()
		f := newFake(t, func(s *fakeSession, r protocol.Request) {
			s.live(protocol.KindPaused, protocol.PauseInfo{By: "pat"})
			s.result(r, protocol.Bot{})
		})
		s, err := f.client(t).Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Do(t.Context(), protocol.OpInspect, protocol.Inspect{Bot: "B"}, nil); err != nil {
			t.Fatal(err)
		}
		for e, err := range s.Notifications() {
			if err != nil || e.Kind != protocol.KindPaused {
				t.Fatalf("got %v %v", e, err)
			}
			for _, err := range s.Notifications() {
				if !errors.Is(err, errRanging) {
					t.Errorf("got %v", err)
				}
			}
			s.Close()
		}
		if s.Err() != nil {
			t.Errorf("a closed session has %v", s.Err())
		}
		<-s.Done()
	})
}

func TestConnecting(t *testing.T) {
	t.Parallel()
	// listen answers each connection with what talk does.
	listen := func(t *testing.T, talk func(net.Conn)) *Client {
		t.Helper()
		socket := filepath.Join(socketDir(t), "s")
		l, err := net.Listen("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				wg.Go(func() { defer conn.Close(); talk(conn) })
			}
		})
		c := &Client{Target: Target{Store: "/none", Socket: socket}, ReadyTimeout: 200 * time.Millisecond}
		t.Cleanup(func() { c.Close(); l.Close(); wg.Wait() })
		return c
	}
	// silence reads until the client is gone.
	silence := func(conn net.Conn) { conn.Read(make([]byte, 1)) }
	for _, row := range []struct {
		name string
		talk func(net.Conn)
		code protocol.Code
	}{
		{"CL-14 a listener that never writes", silence, protocol.DaemonReadyTimeout},
		{"CL-14 a listener that sends a space now and then", func(conn net.Conn) {
			for {
				if _, err := conn.Write([]byte(" ")); err != nil {
					return
				}
				conn.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
				if _, err := conn.Read(make([]byte, 1)); err != nil && !errors.Is(err, context.DeadlineExceeded) && !isTimeout(err) {
					return
				}
			}
		}, protocol.DaemonReadyTimeout},
		{"CL-15 a listener of another protocol", func(conn net.Conn) {
			conn.Write([]byte(`{"event":"ready","protocol":4,"pid":7,"version":"9.1","limits":"new"}` + "\n"))
			silence(conn)
		}, protocol.DaemonProtocolMismatch},
		{"a listener whose first line is something else", func(conn net.Conn) {
			conn.Write([]byte("HTTP/1.1 400 Bad Request\n"))
			silence(conn)
		}, protocol.DaemonProtocolMismatch},
		{"a listener that closes before its ready line", func(conn net.Conn) { conn.Write([]byte(`{"event":`)) }, protocol.DaemonUnavailable},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			c := listen(t, row.talk)
			_, err := c.Ready(t.Context())
			if protocol.CodeOf(err) != row.code {
				t.Errorf("got %v", err)
			}
			if row.code == protocol.DaemonProtocolMismatch && strings.HasPrefix(row.name, "CL-15") {
				ready, _, err := c.Start(t.Context(), &Starter{NoSpawn: true})
				if ready == nil || ready.Protocol != 4 || !strings.Contains(err.Error(), "9.1") || !strings.Contains(string(ready.Line), `"limits":"new"`) {
					t.Errorf("got %+v %v", ready, err)
				}
			}
		})
	}
	t.Run("nobody listens", func(t *testing.T) {
		t.Parallel()
		c := &Client{Target: Target{Store: "/none", Socket: filepath.Join(socketDir(t), "none")}}
		if _, err := c.Ready(t.Context()); !errors.Is(err, protocol.DaemonUnavailable) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a full backlog is tried again until there is room", func(t *testing.T) {
		t.Parallel()
		f := newFake(t, func(s *fakeSession, r protocol.Request) { s.result(r, protocol.Bot{}) })
		c := f.client(t)
		tries := 0
		c.Dial = func(ctx context.Context, socket string) (net.Conn, error) {
			if tries++; tries < 3 {
				return nil, os.NewSyscallError("connect", syscall.EAGAIN)
			}
			return net.Dial("unix", socket)
		}
		if _, err := c.Ready(t.Context()); err != nil || tries != 3 {
			t.Errorf("%v after %d tries", err, tries)
		}
	})
	t.Run("a dial that takes too long", func(t *testing.T) {
		t.Parallel()
		c := &Client{Target: Target{Socket: "x"}, ConnectTimeout: 20 * time.Millisecond, Dial: func(ctx context.Context, socket string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}
		if _, err := c.Ready(t.Context()); !errors.Is(err, protocol.DaemonConnectTimeout) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a caller that gives up does not end the dial of the others", func(t *testing.T) {
		t.Parallel()
		f := newFake(t, func(s *fakeSession, r protocol.Request) { s.result(r, protocol.Bot{}) })
		dialing, first := make(chan struct{}), true
		c := &Client{Target: Target{Store: "/none", Socket: f.socket}, Dial: func(ctx context.Context, socket string) (net.Conn, error) {
			if first {
				first = false
				close(dialing)
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return net.Dial("unix", socket)
		}}
		t.Cleanup(func() { c.Close() })
		ctx, cancel := context.WithCancel(t.Context())
		gaveUp := make(chan error, 1)
		go func() { _, err := c.Ready(ctx); gaveUp <- err }()
		<-dialing
		other := make(chan error, 1)
		go func() { _, err := c.Ready(t.Context()); other <- err }()
		cancel()
		if err := <-gaveUp; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if err := <-other; err != nil {
			t.Error(err)
		}
	})
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

func TestRetry(t *testing.T) {
	t.Parallel()
	t.Run("it goes on after a lost connection and stops at a refusal", func(t *testing.T) {
		t.Parallel()
		tries := 0
		_, err := Retry(t.Context(), func(context.Context) (int, error) {
			if tries++; tries == 1 {
				return 0, protocol.Fail(protocol.DaemonDisconnected, "")
			}
			return 0, protocol.Fail(protocol.BotBusy, "")
		})
		if tries != 2 || !errors.Is(err, protocol.BotBusy) {
			t.Errorf("%d tries, %v", tries, err)
		}
	})
	t.Run("it ends with its context", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		_, err := Retry(ctx, func(context.Context) (int, error) {
			cancel()
			return 0, protocol.Fail(protocol.DaemonUnavailable, "")
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("the wait doubles from 100 ms to 5 s, a fifth up or down", func(t *testing.T) {
		t.Parallel()
		for attempt, want := range map[int]time.Duration{1: 100 * time.Millisecond, 2: 200 * time.Millisecond, 6: 3200 * time.Millisecond, 7: 5 * time.Second, 1000: 5 * time.Second} {
			if d := backoff(attempt); d < want*79/100 || d > want*121/100 {
				t.Errorf("attempt %d waits %v", attempt, d)
			}
		}
	})
}
