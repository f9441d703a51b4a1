package client

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"agent/protocol"
)

// fake is a daemon of the test's making on a Unix socket: it speaks the wire,
// and handle says what it answers.
type fake struct {
	socket string

	// handle answers one request of a session. It runs in the session's
	// goroutine.
	handle func(s *fakeSession, r protocol.Request)

	// ended, when set, is called at the end of a session, before it is closed.
	ended func()

	mu       sync.Mutex
	ready    protocol.Ready
	listener net.Listener
	sessions map[*fakeSession]bool
	wg       sync.WaitGroup
}

// fakeSession is one connection of a fake. Its writers may be several.
type fakeSession struct {
	conn  net.Conn
	mu    sync.Mutex
	ended chan struct{} // closed when the client is gone

	followed bool // guarded by the fake's mu
}

// socketDir is a folder whose paths fit an address.
func socketDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "agent-client-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	dir, err = filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func newFake(t *testing.T, handle func(*fakeSession, protocol.Request)) *fake {
	t.Helper()
	f := &fake{socket: filepath.Join(socketDir(t), "s.sock"), handle: handle, sessions: map[*fakeSession]bool{}}
	f.ready = protocol.Ready{PID: os.Getpid(), Store: protocol.Store{Identity: "store-1"}, Capabilities: protocol.Capabilities()}
	f.start(t)
	t.Cleanup(f.stop)
	return f
}

// announce changes what the next sessions are told.
func (f *fake) announce(change func(*protocol.Ready)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.ready)
}

// client is one on the fake's socket, closed with the test.
func (f *fake) client(t *testing.T) *Client {
	t.Helper()
	c := &Client{Target: Target{Store: "/none", Socket: f.socket}}
	t.Cleanup(func() { c.Close() })
	return c
}

func (f *fake) start(t *testing.T) {
	t.Helper()
	l, err := net.Listen("unix", f.socket)
	if err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	f.listener = l
	f.mu.Unlock()
	f.wg.Go(func() { f.accept(l) })
}

// stop ends the listener and every session, as a killed daemon would.
func (f *fake) stop() {
	f.mu.Lock()
	f.listener.Close()
	for s := range f.sessions {
		s.conn.Close()
	}
	f.mu.Unlock()
	f.wg.Wait()
}

func (f *fake) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		s := &fakeSession{conn: conn, ended: make(chan struct{})}
		f.mu.Lock()
		f.sessions[s] = true
		f.mu.Unlock()
		f.wg.Go(func() { f.serve(s) })
	}
}

func (f *fake) serve(s *fakeSession) {
	defer func() {
		if f.ended != nil {
			f.ended()
		}
		s.conn.Close()
		close(s.ended)
		f.mu.Lock()
		delete(f.sessions, s)
		f.mu.Unlock()
	}()
	f.mu.Lock()
	ready := f.ready
	f.mu.Unlock()
	line, err := protocol.AppendReady(nil, &ready)
	if err != nil {
		panic(err)
	}
	s.write(line)
	lines := protocol.NewLineReader(s.conn)
	defer lines.Close()
	for {
		line, err := lines.Next()
		if err != nil {
			return
		}
		r, refusal := protocol.ParseRequest(line)
		if refusal != nil {
			s.write(protocol.AppendError(nil, nil, refusal))
			continue
		}
		if r.Op == protocol.OpFollow {
			f.mu.Lock()
			s.followed = true
			f.mu.Unlock()
		}
		f.handle(s, r)
	}
}

func (s *fakeSession) write(line []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn.Write(line) // a client that is gone is the reader's matter
}

func (s *fakeSession) result(r protocol.Request, v any) {
	line, err := protocol.AppendResult(nil, r.ID, v)
	if err != nil {
		panic(err)
	}
	s.write(line)
}

func (s *fakeSession) refuse(r protocol.Request, e *protocol.Error) {
	s.write(protocol.AppendError(nil, r.ID, e))
}

func (s *fakeSession) live(kind string, v any) {
	line, err := protocol.AppendLive(nil, kind, v)
	if err != nil {
		panic(err)
	}
	s.write(line)
}

// event sends a durable event whose data is v.
func (s *fakeSession) event(cursor int64, bot string, turn int64, kind string, v any) {
	s.write(eventLine(cursor, bot, turn, kind, v))
}

func eventLine(cursor int64, bot string, turn int64, kind string, v any) []byte {
	data, err := protocol.Append(nil, v)
	if err != nil {
		panic(err)
	}
	return protocol.AppendEvent(nil, cursor, bot, turn, kind, data)
}

// log is a fake's durable events, which it replays as a daemon does.
type log struct {
	mu        sync.Mutex
	lines     [][]byte // the event of cursor i+1
	followers map[*fakeSession]bool
}

// follow answers a follow, replays and goes live.
func (l *log) follow(s *fakeSession, r protocol.Request) {
	after := r.Params.(*protocol.Follow).After
	bot := r.Params.(*protocol.Follow).Bot
	l.mu.Lock()
	defer l.mu.Unlock()
	s.result(r, protocol.Following{Following: &bot, After: &after})
	s.write(bytes.Join(l.lines[after:], nil))
	s.live(protocol.KindFollowLive, protocol.FollowLive{Bot: bot, Cursor: int64(len(l.lines))})
	if l.followers == nil {
		l.followers = map[*fakeSession]bool{}
	}
	l.followers[s] = true
}

// add commits an event and sends it to who follows.
func (l *log) add(bot string, turn int64, kind string, v any) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	cursor := int64(len(l.lines) + 1)
	line := eventLine(cursor, bot, turn, kind, v)
	l.lines = append(l.lines, line)
	for s := range l.followers {
		select {
		case <-s.ended:
			delete(l.followers, s)
		default:
			s.write(line)
		}
	}
	return cursor
}

// live sends a live event of a turn to who follows.
func (l *log) live(bot string, turn int64, d protocol.Delta) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d.Bot, d.Turn = bot, turn
	for s := range l.followers {
		s.live(protocol.KindTextDelta, d)
	}
}

func raw(v any) json.RawMessage {
	b, err := protocol.Append(nil, v)
	if err != nil {
		panic(err)
	}
	return b
}
