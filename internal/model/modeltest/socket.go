package modeltest

import (
	"context"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"

	"agent/internal/model/wire"
)

// Pipes are a network in memory, whose connections a test with a clock of its
// own can wait on.
type Pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// NewPipes makes a network without a connection.
func NewPipes() *Pipes {
	return &Pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Dial connects to whoever accepts.
func (p *Pipes) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-p.closed:
		return nil, errors.New("nobody listens")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept is net.Listener's.
func (p *Pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close is net.Listener's.
func (p *Pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr is net.Listener's.
func (p *Pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes", Net: "unix"} }

// SocketServer serves WebSockets over a network in memory, at Env's transports.
type SocketServer struct {
	Env wire.Env

	opened atomic.Int64
	open   atomic.Int64
	server *http.Server
	pipes  *Pipes
	ctx    context.Context
	stop   context.CancelFunc
	serves sync.WaitGroup
}

// ServeSockets starts a server; play has each connection, the first is 1, until
// it returns. Before an upgrade before is asked, if it is not nil: it writes an
// answer and reports true, or sets headers for the 101.
func ServeSockets(t testing.TB, vars map[string]string, before func(http.ResponseWriter, *http.Request) bool, play func(ctx context.Context, c *websocket.Conn, n int)) *SocketServer {
	t.Helper()
	s := &SocketServer{Env: Env(t, vars), pipes: NewPipes()}
	s.Env.Transports = wire.NewTransports(wire.Options{Connections: 1, Dial: s.pipes.Dial})
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.serves.Add(1)
		defer s.serves.Done()
		if before != nil && before(w, r) {
			return
		}
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		n := int(s.opened.Add(1))
		s.open.Add(1)
		defer s.open.Add(-1)
		defer c.CloseNow()
		c.SetReadLimit(64 << 20)
		play(s.ctx, c, n)
	})}
	s.serves.Go(func() { s.server.Serve(s.pipes) })
	return s
}

// Dial is the server's network, for other transports.
func (s *SocketServer) Dial() func(context.Context, string, string) (net.Conn, error) {
	return s.pipes.Dial
}

// Accept is the answer to the key of an upgrade, for one that is played by
// bytes.
func Accept(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// Counts are how many connections were made, and how many are open.
func (s *SocketServer) Counts() (opened, open int) { return int(s.opened.Load()), int(s.open.Load()) }

// Close ends the server and all connections. A test calls it before its end,
// within its bubble.
func (s *SocketServer) Close() {
	s.Env.Transports.CloseIdle()
	s.stop()
	s.server.Close()
	s.serves.Wait()
}
