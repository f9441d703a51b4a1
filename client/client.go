package client

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"agent/protocol"
)

// A Client talks to one daemon. Its zero value uses the store and socket the
// environment names, as the agent command does, and starts nothing. Methods
// are safe for concurrent use. Requests share one connection, made at the
// first call and made again after it was lost; follows, waits and servers have
// their own. Exported fields are set before the first call and not changed later.
type Client struct {
	// Target says which daemon. Zero: Resolve("", "").
	Target Target

	// Starter, when set, starts a daemon when none answers.
	Starter *Starter

	// Dial replaces the Unix dialer, for tests. It gets Target.Socket.
	Dial func(ctx context.Context, socket string) (net.Conn, error)

	// ConnectTimeout and ReadyTimeout bound a connection and its ready line;
	// 0 means five seconds each. Exceeding them is daemon_connect_timeout and
	// daemon_ready_timeout. A Starter's Window replaces both.
	ConnectTimeout, ReadyTimeout time.Duration

	// Bot, when set, makes every create, fork, submit and pause the bot's own.
	Bot *BotEnv

	// Logf gets reconnects, lost leases and failed handlers: codes and names
	// only. Nil: silent.
	Logf func(format string, args ...any)

	mu       sync.Mutex
	shared   *Session              // the requests' connection; may have ended
	dialing  chan struct{}         // closed when the shared dial under way is over
	sessions map[*Session]struct{} // all that are open
	closes   int                   // how often Close was called
}

// Close ends the shared connection and every follow, wait, server and session of c.
// Open requests fail with daemon_disconnected. Later calls connect again.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closes++
	open := make([]*Session, 0, len(c.sessions))
	for s := range c.sessions {
		open = append(open, s)
	}
	c.shared = nil
	c.mu.Unlock()
	for _, s := range open {
		s.end(errClientClosed)
	}
	return nil
}

var errClientClosed = protocol.Fail(protocol.DaemonDisconnected, "the client was closed")

// Ready is the daemon's ready line, connecting if need be. It is shared and
// must not be changed.
func (c *Client) Ready(ctx context.Context) (*protocol.Ready, error) {
	s, err := c.sharedSession(ctx)
	if err != nil {
		return nil, err
	}
	return s.Ready(), nil
}

// Do sends one request and decodes its result into result, which may be nil or
// a *json.RawMessage. It is the way to reach an op this package has no method
// for. A refusal is a *protocol.Error. If ctx ends first the answer, when it
// comes, is dropped.
func (c *Client) Do(ctx context.Context, op string, params, result any) error {
	s, err := c.sharedSession(ctx)
	if err != nil {
		return withOp(err, op)
	}
	return s.Do(ctx, op, params, result)
}

// Session opens a connection of its own for a caller that wants to see
// notifications undivided. The caller closes it.
func (c *Client) Session(ctx context.Context) (*Session, error) {
	return c.open(ctx, true)
}

// sharedSession is the live shared connection. One caller dials, the others
// wait for it, each as long as its own context allows.
func (c *Client) sharedSession(ctx context.Context) (*Session, error) {
	for {
		c.mu.Lock()
		if c.shared != nil && c.shared.alive() {
			s := c.shared
			c.mu.Unlock()
			return s, nil
		}
		wait := c.dialing
		if wait == nil {
			c.dialing = make(chan struct{})
			c.mu.Unlock()
			return c.dialShared(ctx)
		}
		c.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, contextError(ctx, "connect")
		}
	}
}

func (c *Client) dialShared(ctx context.Context) (*Session, error) {
	s, err := c.open(ctx, false)
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.dialing)
	c.dialing = nil
	if err == nil && s.alive() {
		c.shared = s
	}
	return s, err
}

// open makes a connection, by the starter when there is one. notify says
// whether anybody will read its notifications.
func (c *Client) open(ctx context.Context, notify bool) (*Session, error) {
	if c.Starter != nil {
		s, _, _, err := c.start(ctx, c.Starter, notify)
		return s, err
	}
	target, err := c.target()
	if err != nil {
		return nil, err
	}
	before := c.closeCount()
	link, err := c.connect(ctx, target, c.stepLimits())
	if err != nil {
		return nil, err
	}
	return c.adopt(link, notify, before)
}

func (c *Client) target() (Target, error) {
	if c.Target.Socket != "" {
		return c.Target, nil
	}
	return Resolve(c.Target.Store, "")
}

func (c *Client) closeCount() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closes
}

// adopt makes a session of a connection, unless c was closed since before.
func (c *Client) adopt(l *link, notify bool, before int) (*Session, error) {
	s := newSession(l, notify)
	c.mu.Lock()
	closed := c.closes != before
	if !closed {
		if c.sessions == nil {
			c.sessions = map[*Session]struct{}{}
		}
		c.sessions[s] = struct{}{}
		s.forget = func() { c.mu.Lock(); delete(c.sessions, s); c.mu.Unlock() }
	}
	c.mu.Unlock()
	if closed {
		l.close()
		return nil, errClientClosed
	}
	go s.read()
	return s, nil
}

func (c *Client) logf(format string, args ...any) {
	if c.Logf != nil {
		c.Logf(format, args...)
	}
}

// contextError says what a context cut short, with its cause wrapped.
func contextError(ctx context.Context, doing string) error {
	return fmt.Errorf("%s: %w", doing, context.Cause(ctx))
}

// withOp names the operation in a coded error that names none.
func withOp(err error, op string) error {
	if e, ok := err.(*protocol.Error); ok && e.Op == "" {
		named := *e
		named.Op = op
		return &named
	}
	return err
}
