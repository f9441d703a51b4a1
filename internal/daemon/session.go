package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"agent/internal/engine"
	"agent/protocol"
)

// session is one client's connection, or the owner on standard input and
// output. Its reader takes up one request at a time, in order.
type session struct {
	d     *Daemon
	conn  net.Conn      // nil: stdio
	owner *engine.Owner // whom a bot's own socket answers as; nil on the daemon's
	// companion says that one of the daemon's own companions is connected,
	// which keeps no idle daemon.
	companion bool
	out       *output
	ctx       context.Context
	cancel    context.CancelFunc

	follows map[string]*follow // of the reader's goroutine alone

	greeting sync.Mutex
	greeted  bool // the ready line is queued; guarded by greeting

	inputDone chan struct{} // every request that came is answered
	deferred  chan struct{} // a place for each deferred request under way

	// Answers of admissions in the order of their requests, though each comes
	// after a commit of its own.
	mu       sync.Mutex
	admitted []*slot
	settled  sync.Cond // admitted became empty
	waits    map[int64]func()
	waitSeq  int64
	steps    int // verdicts that were asked for and whose answers are not queued
	replays  sync.WaitGroup
	// A place for each page of a replay that is read and not queued yet.
	replaying chan struct{}
	pushes    pushes
}

// slot is the place of an admission's answer.
type slot struct {
	line []byte
	done bool
}

func (d *Daemon) newSession(conn net.Conn, owner *engine.Owner) *session {
	s := &session{
		d: d, conn: conn, owner: owner, follows: map[string]*follow{}, inputDone: make(chan struct{}),
		deferred: make(chan struct{}, protocol.MaxAdmissions), replaying: make(chan struct{}, replayedAtOnce), waits: map[int64]func(){},
	}
	s.settled.L = &s.mu
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.out = newOutput(conn, func() {
		s.cancel()
		if conn == nil {
			d.end(protocol.Fail(protocol.OutputClosed, s.out.err.Error()))
			return
		}
		conn.Close()
	})
	return s
}

// serve speaks to a client on a socket until either side ends the session.
func (s *session) serve(r io.Reader) {
	defer s.cancel()
	go s.out.run()
	s.greet()
	err := s.read(r)
	s.waitAdmitted()
	close(s.inputDone)
	s.forgetWaits()
	s.d.engine.Unserve(s)
	for _, fl := range s.follows {
		s.stopFollow(fl)
	}
	if err != nil {
		s.refuse(err)
	}
	s.out.end()
	<-s.out.done
	s.cancel()
	if err != nil {
		s.discardInput()
	}
	if s.conn != nil {
		s.conn.Close()
	}
	s.replays.Wait()
}

// greet queues the ready line, ahead of every notice.
func (s *session) greet() {
	s.greeting.Lock()
	defer s.greeting.Unlock()
	s.out.put(s.d.readyLine(s.scope()))
	s.greeted = true
}

// read handles requests to the end of the input. The error is the one to
// answer before the session is closed.
func (s *session) read(r io.Reader) *protocol.Error {
	lines := protocol.NewLineReader(r)
	defer lines.Close()
	for {
		s.out.waitRoom()
		line, err := lines.Next()
		if err != nil {
			switch {
			case errors.Is(err, protocol.ErrLineTooLong):
				return protocol.Fail(protocol.InputLineLimitOrTruncation, "a line is longer than 1048576 bytes")
			case errors.Is(err, protocol.ErrLineTruncated):
				return protocol.Fail(protocol.InputLineLimitOrTruncation, "the last line has no newline")
			}
			return nil
		}
		if s.ctx.Err() != nil {
			return nil
		}
		req, perr := protocol.ParseRequest(line)
		if perr != nil {
			s.waitAdmitted()
			s.refuse(perr)
			continue
		}
		if perr := emptyText(&req); perr != nil {
			s.admit(req.ID, func(done func(any, *protocol.Error)) { done(nil, perr) })
			continue
		}
		s.handle(req)
	}
}

// discardInput takes what a client still sends after its line was refused:
// closing a socket with unread input would reset it, and the client could lose
// the answer that says why.
func (s *session) discardInput() {
	c, ok := s.conn.(*net.UnixConn)
	if !ok || c.CloseWrite() != nil || c.SetReadDeadline(time.Now().Add(stuckAfter)) != nil {
		return
	}
	io.Copy(io.Discard, io.LimitReader(c, 64<<20))
}

func (s *session) refuse(e *protocol.Error) { s.out.reply(protocol.AppendError(nil, nil, e)) }

// answer queues a request's result, or that it does not fit a line.
func (s *session) answer(id json.RawMessage, result any) { s.out.reply(answerLine(id, result)) }

func answerLine(id json.RawMessage, result any) []byte {
	line, err := protocol.AppendResult(nil, id, result)
	if err != nil && len(line) == 0 {
		return protocol.AppendError(nil, id, protocol.Fail(protocol.StoreRowInvalid, err.Error()))
	}
	if len(line) > protocol.MaxLine {
		return protocol.AppendError(nil, id, protocol.Fail(protocol.ResponseSizeLimit, "the answer does not fit a line; ask for less"))
	}
	return line
}

// settle answers with a result or an error.
func (s *session) settle(id json.RawMessage, result any, err *protocol.Error) {
	if err != nil {
		s.out.reply(protocol.AppendError(nil, id, err))
		return
	}
	s.answer(id, result)
}

// live sends a notification that is not durable.
func (s *session) live(kind string, v any) {
	line, _ := protocol.AppendLive(nil, kind, v)
	s.out.put(line)
}

// admit runs an admission and keeps the place of its answer. begin must call
// its argument once, at any time.
func (s *session) admit(id json.RawMessage, begin func(done func(any, *protocol.Error))) {
	place := &slot{}
	s.mu.Lock()
	s.admitted = append(s.admitted, place)
	s.mu.Unlock()
	id = append(json.RawMessage(nil), id...)
	begin(func(result any, err *protocol.Error) {
		var line []byte
		if err != nil {
			line = protocol.AppendError(nil, id, err)
		} else {
			line = answerLine(id, result)
		}
		s.mu.Lock()
		place.line, place.done = line, true
		for len(s.admitted) > 0 && s.admitted[0].done {
			s.out.reply(s.admitted[0].line)
			s.admitted = s.admitted[1:]
		}
		if len(s.admitted) == 0 {
			s.admitted = nil
			s.settled.Broadcast()
		}
		s.mu.Unlock()
	})
}

// wait answers when its handles have resolved. The end of the session forgets
// it, its timer included.
func (s *session) wait(id json.RawMessage, r *protocol.Wait) {
	id = append(json.RawMessage(nil), id...)
	s.mu.Lock()
	s.waitSeq++
	n, open := s.waitSeq, len(s.waits)
	s.mu.Unlock()
	if timeout, bounded := r.TimeoutMS.Get(); open >= protocol.MaxWaits && !(bounded && timeout == 0) {
		s.settle(id, nil, protocol.Fail(protocol.WaitLimit,
			fmt.Sprintf("%d waits of this session are open; name up to %d handles in one, or open another session", open, protocol.MaxHandles)))
		return
	}
	answered := false // guarded by s.mu
	forget := s.d.engine.Wait(s.owner, r, func(result *protocol.Waited, err *protocol.Error) {
		line := answerLine(id, result)
		if err != nil {
			line = protocol.AppendError(nil, id, err)
		}
		s.out.putWhen(line, func() bool { return true })
		s.mu.Lock()
		answered = true
		delete(s.waits, n)
		s.mu.Unlock()
	})
	s.mu.Lock()
	if !answered {
		s.waits[n] = forget
	}
	s.mu.Unlock()
}

// forgetWaits drops the waits that stand.
func (s *session) forgetWaits() {
	s.mu.Lock()
	waits := s.waits
	s.waits = map[int64]func(){}
	s.mu.Unlock()
	for _, forget := range waits {
		forget()
	}
}

// maxSteps bounds the verdicts on steps that a session may wait for at once.
const maxSteps = 4096

// approveStep answers when the step is decided. While it waits it costs no
// goroutine.
func (s *session) approveStep(id json.RawMessage, r *protocol.Step) {
	s.mu.Lock()
	full := s.steps >= maxSteps
	if !full {
		s.steps++
	}
	s.mu.Unlock()
	if full {
		s.settle(id, nil, protocol.Fail(protocol.StepLimit, fmt.Sprintf("%d steps of this session wait; wait until some are judged", maxSteps)))
		return
	}
	id = append(json.RawMessage(nil), id...)
	s.d.engine.ApproveStep(s, r, func(v *protocol.StepVerdict, err *protocol.Error) {
		line := answerLine(id, v)
		if err != nil {
			line = protocol.AppendError(nil, id, err)
		}
		go func() { // the store's goroutine waits for no session
			s.out.putWhen(line, func() bool { return true })
			s.mu.Lock()
			s.steps--
			s.mu.Unlock()
		}()
	})
}

// later answers a request when its work is done, while others go on. As many
// run at once, daemon-wide, as admissions may, and as many of one session wait
// for that or for room in its output; neither wait is another session's.
func (s *session) later(id json.RawMessage, work func() (any, *protocol.Error)) {
	s.aside(id, func() (any, *protocol.Error) {
		s.d.deferred <- struct{}{}
		defer func() { <-s.d.deferred }()
		return work()
	})
}

// aside is later for work that only waits for others and takes none of the
// daemon's places.
func (s *session) aside(id json.RawMessage, work func() (any, *protocol.Error)) {
	s.deferred <- struct{}{}
	id = append(json.RawMessage(nil), id...)
	go func() {
		defer func() { <-s.deferred }()
		result, err := work()
		line := answerLine(id, result)
		if err != nil {
			line = protocol.AppendError(nil, id, err)
		}
		s.out.putWhen(line, func() bool { return true })
	}()
}

// waitAdmitted waits for the answers of the admissions sent before.
func (s *session) waitAdmitted() {
	s.mu.Lock()
	for len(s.admitted) > 0 {
		s.settled.Wait()
	}
	s.mu.Unlock()
}

// follow starts replay and live delivery of a bot, or of all. The answer goes
// before the first replayed event.
func (s *session) follow(id json.RawMessage, r *protocol.Follow) {
	if r.After < 0 {
		s.settle(id, nil, protocol.Fail(protocol.InvalidEventPage, "after is a cursor, 0 or above"))
		return
	}
	point, err := s.d.engine.FollowPoint(s.ctx, r.Bot)
	if err != nil {
		s.settle(id, nil, err)
		return
	}
	if old := s.follows[r.Bot]; old != nil {
		s.stopFollow(old)
	}
	// A cursor from beyond the store's end is of another past, before a copy was put
	// back: what comes from now on is new to whoever names it.
	after := min(r.After, point.Newest)
	fl := &follow{s: s, name: r.Bot, bot: point.BotID, cursor: after, script: map[string]bool{}}
	s.follows[r.Bot] = fl
	s.answer(id, protocol.Following{Following: &fl.name, After: &r.After})
	if point.Pruned > r.After {
		s.live(protocol.KindPruned, protocol.PrunedNotice{Bot: r.Bot, Before: point.Pruned})
	}
	if point.Script != "" {
		s.live(protocol.KindScriptedModel, protocol.ScriptedModel{Bot: r.Bot, Model: point.Script})
	}
	ctx, cancel := context.WithCancel(s.ctx)
	fl.cancel = cancel
	s.d.fan.add(fl)
	s.replays.Add(1)
	go func() {
		defer s.replays.Done()
		fl.replay(ctx, s.d.engine, s.d.fan)
	}()
}

// stopFollow ends a follow: once it returns, nothing more of it is queued.
func (s *session) stopFollow(fl *follow) {
	s.d.fan.remove(fl)
	s.out.mu.Lock()
	fl.ended = true
	s.out.changed.Broadcast()
	s.out.mu.Unlock()
	fl.cancel()
	delete(s.follows, fl.name)
}

func (s *session) unfollow(id json.RawMessage, r *protocol.Unfollow) {
	if fl := s.follows[r.Bot]; fl != nil {
		s.stopFollow(fl)
	}
	s.answer(id, protocol.Following{})
}
