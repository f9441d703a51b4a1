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
	life     context.Context       // ends at the next Close; nil until something asked
	endLife  context.CancelCauseFunc
}

// Close ends the shared connection and every follow, wait, server and session of
// c, also one that is about to connect or to reconnect. Open requests fail with
// daemon_disconnected. Later calls connect again.
func (c *Client) Close() error {
	c.mu.Lock()
	if c.endLife != nil {
		c.endLife(errClientClosed)
	}
	c.life, c.endLife = nil, nil
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
// for. A refusal is a *protocol.Error; an answer that does not fit result is one
// too, invalid_json with a Cause, which no refusal has. If ctx ends first the
// answer, when it comes, is dropped.
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
	return c.open(ctx, c.untilClose(), true)
}

// untilClose is a context that ends at the next Close. What began before a Close
// goes by it, so that none of it connects after one.
func (c *Client) untilClose() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.life == nil {
		c.life, c.endLife = context.WithCancelCause(context.Background())
	}
	return c.life
}

// within is ctx, ended by life's end too. Its cause is then errClientClosed.
func within(ctx, life context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(life, func() { cancel(context.Cause(life)) })
	return ctx, func() { stop(); cancel(nil) }
}

// sharedSession is the live shared connection. One caller dials, the others
// wait for it, each as long as its own context allows.
func (c *Client) sharedSession(ctx context.Context) (*Session, error) {
	life := c.untilClose()
	for {
		if life.Err() != nil {
			return nil, errClientClosed
		}
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
			return c.dialShared(ctx, life)
		}
		c.mu.Unlock()
		select {
		case <-wait:
		case <-life.Done():
		case <-ctx.Done():
			return nil, contextError(ctx, "connect")
		}
	}
}

func (c *Client) dialShared(ctx, life context.Context) (*Session, error) {
	var s *Session
	defer func() { // also when Dial panics: the others would wait for ever
		c.mu.Lock()
		defer c.mu.Unlock()
		close(c.dialing)
		c.dialing = nil
		if s != nil && s.alive() {
			c.shared = s
		}
	}()
	var err error
	s, err = c.open(ctx, life, false)
	return s, err
}

// open makes a connection, by the starter when there is one, unless life ends.
// notify says whether anybody will read its notifications.
func (c *Client) open(ctx, life context.Context, notify bool) (*Session, error) {
	if c.Starter != nil {
		s, _, _, err := c.start(ctx, life, c.Starter, notify)
		return s, err
	}
	target, err := c.target()
	if err != nil {
		return nil, err
	}
	ctx, cancel := within(ctx, life)
	defer cancel()
	link, err := c.connect(ctx, target, c.stepLimits())
	if err != nil {
		return nil, err
	}
	return c.adopt(link, notify, life)
}

func (c *Client) target() (Target, error) {
	if c.Target.Socket != "" {
		return c.Target, nil
	}
	return Resolve(c.Target.Store, "")
}

// adopt makes a session of a connection, unless life has ended.
func (c *Client) adopt(l *link, notify bool, life context.Context) (*Session, error) {
	s := newSession(l, notify)
	c.mu.Lock()
	closed := life.Err() != nil
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

// contextError says what a context cut short, with its cause wrapped. A client's
// Close needs no more words.
func contextError(ctx context.Context, doing string) error {
	if context.Cause(ctx) == errClientClosed {
		return errClientClosed
	}
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
