package client

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agent/protocol"
)

// mute is a client whose dialer is under the test's hand: each connection is
// announced on dialed and never says a word.
func mute(t *testing.T) (c *Client, dialed chan net.Conn) {
	t.Helper()
	dialed = make(chan net.Conn, 16)
	c = &Client{Target: Target{Store: "/none", Socket: "/none.sock"}, ReadyTimeout: time.Hour}
	c.Dial = func(context.Context, string) (net.Conn, error) {
		near, far := net.Pipe()
		t.Cleanup(func() { far.Close() })
		dialed <- far
		return near, nil
	}
	t.Cleanup(func() { c.Close() })
	return c, dialed
}

// asked is f's error, once it is there.
func asked(f func() error) <-chan error {
	ended := make(chan error, 1)
	go func() { ended <- f() }()
	return ended
}

// allOf drains a stream and is the error that it ended with.
func allOf[T any](stream func(yield func(T, error) bool)) (last error) {
	for _, err := range stream {
		last = err
	}
	return last
}

func TestCloseEndsWhatBegan(t *testing.T) {
	t.Parallel()
	background := context.Background()
	for _, row := range []struct {
		name string
		call func(c *Client) error
	}{
		{"a request", func(c *Client) error { _, err := c.Inspect(background, "B"); return err }},
		{"a wait", func(c *Client) error {
			_, err := c.Wait(background, &protocol.Wait{Handles: []string{"proc:1"}})
			return err
		}},
		{"a session", func(c *Client) error { _, err := c.Session(background); return err }},
		{"a follow that reconnects", func(c *Client) error {
			return allOf(c.Follow(background, "B", FollowOptions{Reconnect: true, Backoff: quick}))
		}},
		{"a server of tools", func(c *Client) error { return c.ServeTools(background, "x", ServeOptions{}, nil) }},
		{"a server of approvals", func(c *Client) error { _, err := c.ServeApprovals(background, "x", ServeOptions{}); return err }},
		{"a start", func(c *Client) error {
			_, _, err := c.Start(background, &Starter{NoSpawn: true, Window: time.Hour})
			return err
		}},
		{"a shutdown", func(c *Client) error { return c.Shutdown(background, 0) }},
	} {
		t.Run(row.name+" that connects ends with the client's Close, and connects no more", func(t *testing.T) {
			t.Parallel()
			c, dialed := mute(t)
			ended := asked(func() error { return row.call(c) })
			<-dialed
			c.Close()
			select {
			case err := <-ended:
				if !errors.Is(err, protocol.DaemonDisconnected) {
					t.Errorf("ended with %v", err)
				}
			case <-dialed:
				t.Error("it dialed again after Close")
			}
		})
	}
	t.Run("requests that wait for another's connection end too", func(t *testing.T) {
		t.Parallel()
		c, dialed := mute(t)
		var all []<-chan error
		var waits sync.WaitGroup
		for range 8 {
			waits.Add(1)
			ctx := &noted{Context: background, asked: waits.Done}
			all = append(all, asked(func() error { _, err := c.Inspect(ctx, "B"); return err }))
		}
		<-dialed
		waits.Wait()
		c.Close()
		for _, ended := range all {
			select {
			case err := <-ended:
				if !errors.Is(err, protocol.DaemonDisconnected) {
					t.Errorf("ended with %v", err)
				}
			case <-dialed:
				t.Fatal("one dialed after Close")
			}
		}
	})
}

// noted is a context that tells when somebody first asks when it ends.
type noted struct {
	context.Context
	once  sync.Once
	asked func()
}

func (n *noted) Done() <-chan struct{} {
	n.once.Do(n.asked)
	return n.Context.Done()
}

func TestCloseEndsAFollowThatReconnects(t *testing.T) {
	t.Parallel()
	closed := func(t *testing.T, c *Client, o FollowOptions, at func()) {
		t.Helper()
		o.Reconnect = true
		var last error
		for e, err := range c.Follow(context.Background(), "*", o) {
			if last = err; err == nil && e.Kind == protocol.KindFollowLive {
				at()
			} else if err == nil && e.Kind == protocol.KindReconnected {
				t.Fatal("it connected again after Close")
			}
		}
		if !errors.Is(last, protocol.DaemonDisconnected) {
			t.Errorf("ended with %v", last)
		}
	}
	t.Run("while it is live", func(t *testing.T) {
		t.Parallel()
		var l log
		c := followFake(t, &l, nil).client(t)
		closed(t, c, FollowOptions{Backoff: quick}, func() { c.Close() })
	})
	t.Run("while it waits between two tries", func(t *testing.T) {
		t.Parallel()
		var l log
		f := followFake(t, &l, nil)
		c := f.client(t)
		closed(t, c, FollowOptions{Backoff: func(int) time.Duration { c.Close(); return time.Hour }}, f.stop)
	})
	t.Run("and a later follow connects again", func(t *testing.T) {
		t.Parallel()
		var l log
		c := followFake(t, &l, nil).client(t)
		c.Close()
		if err := allOf(c.Follow(t.Context(), "*", FollowOptions{UntilLive: true, Reconnect: true})); err != nil {
			t.Error(err)
		}
	})
}

func TestCloseFromEverywhere(t *testing.T) {
	t.Parallel()
	var l log
	f := followFake(t, &l, nil)
	c := f.client(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				if err := c.Do(context.Background(), protocol.OpStats, nil, nil); err != nil && !errors.Is(err, protocol.DaemonDisconnected) {
					t.Error(err)
				}
			}
		})
		wg.Go(func() {
			for range 10 {
				err := allOf(c.Follow(context.Background(), "*", FollowOptions{UntilLive: true}))
				if err != nil && !errors.Is(err, protocol.DaemonDisconnected) {
					t.Error(err)
				}
			}
		})
		wg.Go(func() {
			for range 20 {
				c.Close()
			}
		})
	}
	wg.Wait()
}

func TestAPanicInDialHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	c := &Client{Target: Target{Store: "/none", Socket: "/none.sock"}}
	c.Dial = func(context.Context, string) (net.Conn, error) { panic("a defect") }
	for range 2 {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("Dial's panic was swallowed")
				}
			}()
			c.Ready(t.Context())
		}()
	}
}

// A daemon frees what a session holds when it reads the session's end. Whoever
// gives a tag up and takes it again at once must not be refused by itself.
func TestATagIsFreeOnceItIsGivenUp(t *testing.T) {
	t.Parallel()
	tools := func(c *Client, held *atomic.Bool) error {
		ctx, cancel := context.WithCancel(context.Background())
		ended := asked(func() error { return c.ServeTools(ctx, "x", ServeOptions{}, nil) })
		for !held.Load() {
			runtime.Gosched()
		}
		cancel()
		return <-ended
	}
	approvals := func(c *Client, _ *atomic.Bool) error {
		srv, err := c.ServeApprovals(context.Background(), "x", ServeOptions{})
		if err != nil {
			return err
		}
		return errors.Join(srv.Close(), srv.Close(), context.Canceled)
	}
	for name, serve := range map[string]func(*Client, *atomic.Bool) error{"of tools": tools, "of approvals": approvals} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var held atomic.Bool
			f := newFake(t, func(s *fakeSession, r protocol.Request) {
				if !held.CompareAndSwap(false, true) {
					s.refuse(r, protocol.Fail(protocol.ToolsServed, "by a session that has ended"))
				} else if r.Op == protocol.OpServeTools {
					s.result(r, protocol.ToolsServing{Tag: "x", Lease: fakeLease})
				} else {
					s.result(r, protocol.ApprovalsServing{Tag: "x", Lease: fakeLease})
				}
			})
			f.ended = func() { held.Store(false) }
			c := f.client(t)
			for range 200 {
				if err := serve(c, &held); !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				if held.Load() {
					t.Fatal("the tag was held when its server had ended")
				}
			}
		})
	}
	t.Run("and a daemon that says no goodbye is not waited for long", func(t *testing.T) {
		t.Parallel()
		l, err := net.Listen("unix", filepath.Join(socketDir(t), "s.sock"))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		conn, err := net.Dial("unix", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		s := newSession(&link{conn: conn, lines: protocol.NewLineReader(conn)}, true)
		go s.read()
		s.giveUp()
		if s.alive() || s.Err() != nil {
			t.Errorf("it lives, or ended with %v", s.Err())
		}
	})
}
