package client

import (
	"context"
	"errors"
	"net"
	"sync"
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
