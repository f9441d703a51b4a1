package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net"
	"os"
	"sync"
	"time"

	"agent/protocol"
)

// maxNotifications is how many may wait for their reader (protocol.md 16).
const maxNotifications = 4096

// A Session is one connection. Its methods are safe for concurrent use.
type Session struct {
	conn   net.Conn
	lines  *protocol.LineReader // the reader goroutine's
	ready  *protocol.Ready
	notify bool
	forget func()

	sending chan struct{} // holds a token while a line is written

	mu      sync.Mutex
	lastID  uint64
	sent    uint64              // how many lines were begun
	waiting map[uint64]*request // by id: not answered yet
	queue   []*protocol.Event
	ranging bool
	wake    chan struct{} // holds one token when the queue or the end changed
	err     error         // why it ended, once done is closed; nil after Close
	done    chan struct{}
}

// request is one that is not answered yet. Its caller may have gone.
type request struct {
	op     string
	place  uint64               // among the lines of its session; 0: not sent
	answer chan *protocol.Reply // room for one
}

func newSession(l *link, notify bool) *Session {
	return &Session{
		conn: l.conn, lines: l.lines, ready: l.ready, notify: notify,
		sending: make(chan struct{}, 1), waiting: map[uint64]*request{}, wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
}

// Ready is the session's ready line. It is shared and must not be changed.
func (s *Session) Ready() *protocol.Ready { return s.ready }

// Done is closed when the session ends; Err then says why, nil after Close.
func (s *Session) Done() <-chan struct{} { return s.done }

// Err is why the session ended: daemon_disconnected, follow_lagged, or nil
// while it lives and after Close.
func (s *Session) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Close ends the session. Open requests fail with daemon_disconnected.
func (s *Session) Close() error {
	s.end(nil)
	return nil
}

// goodbye is how long a daemon has to end its side of a session.
const goodbye = time.Second

// giveUp is Close for a session that holds a tag: the daemon ends the connection
// once it has freed the tag, so that the next to ask for it gets it.
func (s *Session) giveUp() {
	if half, ok := s.conn.(interface{ CloseWrite() error }); ok && s.alive() && half.CloseWrite() == nil {
		select {
		case <-s.done:
		case <-time.After(goodbye):
		}
	}
	s.end(nil)
}

func (s *Session) alive() bool {
	select {
	case <-s.done:
		return false
	default:
		return true
	}
}

// end closes the connection for the first reason given.
func (s *Session) end(why error) {
	s.mu.Lock()
	if !s.alive() {
		s.mu.Unlock()
		return
	}
	s.err = why
	if why == nil {
		s.queue = nil
	}
	close(s.done)
	s.mu.Unlock()
	s.conn.Close()
	if s.forget != nil {
		s.forget()
	}
	s.wakeReader()
}

// Do sends one request and decodes its result into result, which may be nil or
// a *json.RawMessage. See Client.Do.
func (s *Session) Do(ctx context.Context, op string, params, result any) error {
	reply, err := s.roundTrip(ctx, op, params)
	if err != nil {
		return err
	}
	if reply.Err != nil {
		reply.Err.Op = op
		return reply.Err
	}
	switch into := result.(type) {
	case nil:
		return nil
	case *json.RawMessage:
		*into = reply.Result
		return nil
	}
	return withOp(reply.Decode(result), op)
}

func (s *Session) roundTrip(ctx context.Context, op string, params any) (*protocol.Reply, error) {
	if ctx.Err() != nil {
		return nil, contextError(ctx, op)
	}
	r := &request{op: op, answer: make(chan *protocol.Reply, 1)}
	id := s.expect(r)
	defer s.leave(id, r)
	line, err := protocol.AppendRequest(nil, id, op, params)
	if err != nil {
		return nil, err
	}
	if err := s.send(ctx, r, line); err != nil {
		return nil, withOp(err, op)
	}
	select {
	case reply := <-r.answer:
		return reply, nil
	case <-ctx.Done():
		return nil, contextError(ctx, op)
	case <-s.done:
	}
	select { // it may have come just before the end
	case reply := <-r.answer:
		return reply, nil
	default:
		return nil, withOp(s.disconnected(), op)
	}
}

func (s *Session) expect(r *request) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastID++
	s.waiting[s.lastID] = r
	return s.lastID
}

// leave forgets a request that was never sent. One that was sent keeps its place
// until it is answered, whoever has gone: an answer without an id is known by the
// places.
func (s *Session) leave(id uint64, r *request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.place == 0 {
		delete(s.waiting, id)
	}
}

// send writes one line. A context that ends within the line leaves the rest of it
// to a goroutine, since what follows half a line means nothing: the request is
// then sent, as one whose context ends a moment later is.
func (s *Session) send(ctx context.Context, r *request, line []byte) error {
	select {
	case s.sending <- struct{}{}:
	case <-s.done:
		return s.disconnected()
	case <-ctx.Done():
		return contextError(ctx, "send")
	}
	if ctx.Err() != nil { // both were so
		<-s.sending
		return contextError(ctx, "send")
	}
	s.begin(r)
	n, err := s.write(ctx, line)
	switch {
	case err == nil:
		<-s.sending
		return nil
	case ctx.Err() == nil || !errors.Is(err, os.ErrDeadlineExceeded):
		<-s.sending
		return s.sendingFailed(err)
	case n == 0:
		s.unbegin(r)
		<-s.sending
	default:
		go s.finish(line[n:])
	}
	return contextError(ctx, "send")
}

// write writes a line until its context ends, and says how far it came.
func (s *Session) write(ctx context.Context, line []byte) (int, error) {
	cut := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		s.conn.SetWriteDeadline(time.Unix(1, 0))
		close(cut)
	})
	n, err := s.conn.Write(line)
	if !stop() {
		<-cut
		s.conn.SetWriteDeadline(time.Time{})
	}
	return n, err
}

// finish writes the rest of a line, however long the daemon takes to read it, and
// lets the next one in.
func (s *Session) finish(rest []byte) {
	if _, err := s.conn.Write(rest); err != nil {
		s.sendingFailed(err)
	}
	<-s.sending
}

// begin gives a request its place.
func (s *Session) begin(r *request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent++
	r.place = s.sent
}

// unbegin takes the place back: nothing of the line was written.
func (s *Session) unbegin(r *request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.place = 0
}

// sendingFailed ends the session, and is what it ended with.
func (s *Session) sendingFailed(err error) error {
	s.end(coded(protocol.DaemonDisconnected, "sending failed: "+reason(err), err))
	return s.disconnected()
}

// disconnected is what an open request ends with.
func (s *Session) disconnected() error {
	if err := s.Err(); err != nil && protocol.CodeOf(err) == protocol.DaemonDisconnected {
		return err
	} else if err != nil {
		return coded(protocol.DaemonDisconnected, err.Error(), err)
	}
	return protocol.Fail(protocol.DaemonDisconnected, "the session was closed")
}

// read is the session's goroutine: it hands out answers and queues
// notifications until the connection ends.
func (s *Session) read() {
	defer s.lines.Close()
	for {
		line, err := s.lines.Next()
		if err != nil {
			s.end(coded(protocol.DaemonDisconnected, "the daemon closed the connection: "+reason(err), err))
			return
		}
		in, err := protocol.ParseMessage(line)
		if err != nil {
			s.end(coded(protocol.DaemonDisconnected, err.Error(), err))
			return
		}
		switch {
		case in.Answer != nil:
			s.deliver(in.Answer)
		case in.Event != nil && s.notify:
			if !s.enqueue(in.Event) {
				s.end(protocol.Fail(protocol.FollowLagged, "4096 notifications waited for their reader"))
				return
			}
		}
	}
}

// deliver hands an answer to whoever asked. Nobody may be there any more. An
// answer to nobody's id is dropped.
func (s *Session) deliver(reply *protocol.Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, ok := reply.Number()
	if string(reply.ID) == "null" {
		id, ok = s.oldest(), true
	}
	if r := s.waiting[id]; ok && r != nil {
		delete(s.waiting, id)
		r.answer <- reply
	}
}

// oldest is the request that an answer without an id refuses: answers come in
// order, so it is the first one sent, deferred ones only if there is no other.
func (s *Session) oldest() uint64 {
	var first, firstDeferred uint64
	for id, r := range s.waiting {
		slot := &first
		if protocol.Deferred(r.op) {
			slot = &firstDeferred
		}
		if r.place != 0 && (*slot == 0 || r.place < s.waiting[*slot].place) {
			*slot = id
		}
	}
	if first == 0 {
		return firstDeferred
	}
	return first
}

func (s *Session) enqueue(e *protocol.Event) bool {
	s.mu.Lock()
	if len(s.queue) >= maxNotifications {
		s.mu.Unlock()
		return false
	}
	s.queue = append(s.queue, e)
	s.mu.Unlock()
	s.wakeReader()
	return true
}

func (s *Session) wakeReader() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// next is the next notification. After the session's end come those that were
// queued, then its error, or io.EOF after Close.
func (s *Session) next(ctx context.Context) (*protocol.Event, error) {
	for {
		if ctx.Err() != nil {
			return nil, contextError(ctx, "follow")
		}
		s.mu.Lock()
		ended := !s.alive()
		if len(s.queue) > 0 {
			e := s.queue[0]
			s.queue[0] = nil
			s.queue = s.queue[1:]
			s.mu.Unlock()
			return e, nil
		}
		s.queue = nil
		err := s.err
		s.mu.Unlock()
		if ended && err == nil {
			return nil, io.EOF
		} else if ended {
			return nil, err
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
		case <-s.done:
		}
	}
}

var errRanging = errors.New("client: a session's notifications have one range at a time")

// Notifications yields what comes without an id, in order. Only one range at
// a time; a second yields an error at once. It ends with daemon_disconnected,
// follow_lagged, or without an error after Close.
func (s *Session) Notifications() iter.Seq2[*protocol.Event, error] {
	return func(yield func(*protocol.Event, error) bool) {
		if !s.startRange() {
			yield(nil, errRanging)
			return
		}
		defer s.endRange()
		for {
			e, err := s.next(context.Background())
			if errors.Is(err, io.EOF) && s.Err() == nil {
				return
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

func (s *Session) startRange() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ranging {
		return false
	}
	s.ranging = true
	return true
}

func (s *Session) endRange() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ranging = false
}
