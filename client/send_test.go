package client

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"agent/protocol"
)

// byHand is a client and the far end of its one connection, which has said that
// it is ready. What the client writes waits until the test reads it.
func byHand(t *testing.T) (*Client, *farEnd) {
	t.Helper()
	near, far := net.Pipe()
	c := &Client{Target: Target{Store: "/none", Socket: "/none.sock"}}
	c.Dial = func(context.Context, string) (net.Conn, error) {
		if near == nil {
			return nil, errors.New("there is one connection only")
		}
		conn := near
		near = nil
		return conn, nil
	}
	t.Cleanup(func() { far.Close(); c.Close() })
	ready, err := protocol.AppendReady(nil, &protocol.Ready{PID: 1})
	if err != nil {
		t.Fatal(err)
	}
	go far.Write(ready)
	if _, err := c.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c, &farEnd{t, far, bufio.NewReader(far)}
}

type farEnd struct {
	t     *testing.T
	conn  net.Conn
	lines *bufio.Reader
}

// request is the next whole line that the client wrote.
func (f *farEnd) request() protocol.Request {
	f.t.Helper()
	line, err := f.lines.ReadBytes('\n')
	if err != nil {
		f.t.Fatal(err)
	}
	r, refusal := protocol.ParseRequest(line)
	if refusal != nil {
		f.t.Fatalf("%s: %v", line, refusal)
	}
	return r
}

// oneByte waits for the first byte of a line, and leaves it and the rest where
// they are: the client is then within the line.
func (f *farEnd) oneByte() {
	f.t.Helper()
	one := make([]byte, 1)
	if _, err := io.ReadFull(f.conn, one); err != nil {
		f.t.Fatal(err)
	}
	f.lines = bufio.NewReader(io.MultiReader(bytes.NewReader(one), f.conn))
}

func (f *farEnd) say(line string) {
	f.t.Helper()
	if _, err := io.WriteString(f.conn, line+"\n"); err != nil {
		f.t.Fatal(err)
	}
}

// answerBot answers an inspect with the name that it asked for.
func (f *farEnd) answerBot(r protocol.Request) {
	f.t.Helper()
	line, err := protocol.AppendResult(nil, r.ID, protocol.Bot{Name: r.Params.(*protocol.Inspect).Bot})
	if err != nil {
		f.t.Fatal(err)
	}
	f.say(strings.TrimSuffix(string(line), "\n"))
}

const refusal = `{"id":null,"error":"invalid_json","detail":"unknown field x"}`

// inspecting asks for a bot and gives what came of it.
func inspecting(ctx context.Context, c *Client, name string) <-chan error {
	return asked(func() error {
		bot, err := c.Inspect(ctx, name)
		if err == nil && bot.Name != name {
			err = errors.New("the answer is " + bot.Name + "'s")
		}
		return err
	})
}

func TestARequestWaitsNoLongerThanItsContext(t *testing.T) {
	t.Parallel()
	c, far := byHand(t)
	first := inspecting(context.Background(), c, "first")
	far.oneByte() // it is being written, and no further
	ctx, cancel := context.WithCancel(t.Context())
	if err := <-inspecting(&noted{Context: ctx, asked: cancel}, c, "second"); !errors.Is(err, context.Canceled) {
		t.Errorf("behind a line that is being written: %v", err)
	}
	far.answerBot(far.request())
	if err := <-first; err != nil {
		t.Errorf("the one before: %v", err)
	}
}

func TestARequestCutWithinItsLineEndsNoOther(t *testing.T) {
	t.Parallel()
	c, far := byHand(t)
	ctx, cancel := context.WithCancel(t.Context())
	cut := inspecting(ctx, c, "cut-"+strings.Repeat("x", 100_000))
	far.oneByte()
	cancel()
	if err := <-cut; !errors.Is(err, context.Canceled) {
		t.Errorf("the one cut: %v", err)
	}
	next := inspecting(t.Context(), c, "next")
	if got := far.request(); len(got.Params.(*protocol.Inspect).Bot) != 100_004 {
		t.Error("what was cut did not come whole")
	}
	far.answerBot(far.request())
	if err := <-next; err != nil {
		t.Errorf("the next on the same connection: %v", err)
	}
}

func TestARestOfALineEndsWithTheClient(t *testing.T) {
	t.Parallel()
	c, far := byHand(t)
	ctx, cancel := context.WithCancel(t.Context())
	cut := inspecting(ctx, c, "cut")
	far.oneByte()
	cancel()
	<-cut
	waits := make(chan struct{})
	next := inspecting(&noted{Context: context.Background(), asked: func() { close(waits) }}, c, "next")
	<-waits
	c.Close()
	if err := <-next; !errors.Is(err, protocol.DaemonDisconnected) {
		t.Errorf("the next: %v", err)
	}
}

// lateParams are encoded once they may be.
type lateParams struct {
	encoding chan struct{}
	may      chan struct{}
}

func (p lateParams) AppendJSON(dst []byte) ([]byte, error) {
	close(p.encoding)
	<-p.may
	return append(dst, `{"bot":"late"}`...), nil
}

func TestAnAnswerWithoutAnIDIsTheFirstSents(t *testing.T) {
	t.Parallel()
	t.Run("not the first asked's", func(t *testing.T) {
		t.Parallel()
		c, far := byHand(t)
		p := lateParams{make(chan struct{}), make(chan struct{})}
		late := asked(func() error { return c.Do(context.Background(), protocol.OpInspect, p, nil) })
		<-p.encoding
		sent := inspecting(t.Context(), c, "sent")
		far.request()
		close(p.may)
		second := far.request()
		far.say(refusal)
		if err := <-sent; !errors.Is(err, protocol.InvalidJSON) {
			t.Errorf("the first that was sent: %v", err)
		}
		far.answerBot(second)
		if err := <-late; err != nil {
			t.Errorf("the other: %v", err)
		}
	})
	t.Run("also when that one's caller has gone", func(t *testing.T) {
		t.Parallel()
		c, far := byHand(t)
		ctx, cancel := context.WithCancel(t.Context())
		gone := inspecting(ctx, c, "gone")
		far.request()
		cancel()
		<-gone
		stays := inspecting(t.Context(), c, "stays")
		r := far.request()
		far.say(refusal)
		far.answerBot(r)
		if err := <-stays; err != nil {
			t.Errorf("the one that stays: %v", err)
		}
	})
	t.Run("and one with an id that nobody has is nobody's", func(t *testing.T) {
		t.Parallel()
		c, far := byHand(t)
		asks := inspecting(t.Context(), c, "B")
		r := far.request()
		n, err := strconv.ParseUint(string(r.ID), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{`"x"`, `"` + string(r.ID) + `"`, "-1", "1e99", strconv.FormatUint(n+1, 10), "99999999999999999999999", "{}", "true"} {
			far.say(`{"id":` + id + `,"error":"bot_not_found"}`)
		}
		far.answerBot(r)
		if err := <-asks; err != nil {
			t.Error(err)
		}
	})
}

// What a later daemon says, and this build knows nothing of, ends no connection.
func TestUnknownNotificationsEndNothing(t *testing.T) {
	t.Parallel()
	c, far := byHand(t)
	asks := inspecting(t.Context(), c, "B")
	r := far.request()
	for _, line := range []string{
		`{"event":"later","durable":false,"bot":"B","more":{"a":[1]}}`, `{"event":"later","durable":false,"bot":["B"],"turn":"soon"}`,
		`{"event":"later","cursor":7,"bot":"B","turn":null,"data":{"x":1},"more":1}`, `{"event":"ready","protocol":3,"pid":7}`,
	} {
		far.say(line)
	}
	far.answerBot(r)
	if err := <-asks; err != nil {
		t.Error(err)
	}
}

// countedContext counts how often somebody asked when it ends.
type countedContext struct {
	context.Context
	asked atomic.Int64
}

func (c *countedContext) Done() <-chan struct{} {
	c.asked.Add(1)
	return c.Context.Done()
}

// slowConn sets a deadline in the future only after the one in the past, if that
// is already due.
type slowConn struct {
	net.Conn
	due  func() bool
	past chan struct{}
}

func (c *slowConn) SetReadDeadline(t time.Time) error {
	if t.Before(time.Now()) {
		defer close(c.past)
	} else if c.due() {
		<-c.past
	}
	return c.Conn.SetReadDeadline(t)
}

func TestAContextThatEndsAsTheConnectionIsMade(t *testing.T) {
	t.Parallel()
	c := &Client{Target: Target{Store: "/none", Socket: "/none.sock"}, ReadyTimeout: time.Hour}
	// What a dial asks of its context after it has a connection is counted first,
	// to tell it from what the reading of the ready line asks.
	var dialing int64
	for _, step := range []func(ctx context.Context) error{
		func(ctx context.Context) error {
			conn, err := c.dial(ctx, c.Target.Socket, c.stepLimits())
			if err == nil {
				err = errors.Join(conn.Close(), ctx.Err())
			}
			return err
		},
		func(ctx context.Context) error { _, err := c.connect(ctx, c.Target, c.stepLimits()); return err },
	} {
		parent, cancel := context.WithCancel(t.Context())
		ctx := &countedContext{Context: parent}
		near, far := net.Pipe()
		var dialed int64
		c.Dial = func(context.Context, string) (net.Conn, error) {
			cancel()
			dialed = ctx.asked.Load()
			return &slowConn{near, func() bool { return ctx.asked.Load()-dialed > dialing }, make(chan struct{})}, nil
		}
		if err := step(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		dialing = ctx.asked.Load() - dialed
		far.Close()
	}
}
