package daemon

import (
	"errors"
	"net"
	"sync"
	"time"

	"agent/protocol"
)

// A session's output (protocol.md 1, 2). Lines are queued without waiting; a
// socket whose queue is full, or whose peer takes nothing for a while, is
// closed whole, so that a slow reader never delays a turn.
const (
	stuckAfter  = 2 * time.Second
	replyWithin = 5 * time.Second
	// inputBelow is how much output may wait before no further request is
	// taken up.
	inputBelow = 1 << 20
	// deltaJoin bounds what joined deltas of one turn may hold.
	deltaJoin = 64 << 10
	writeSize = 64 << 10
)

// output is the queue of one session. It is safe for concurrent use.
type output struct {
	mu      sync.Mutex
	changed sync.Cond // lines, room, or the end
	lines   []outLine
	bytes   int // queued, and being written
	writing int // of bytes
	err     error
	ended   bool          // nothing more is put; the writer drains and stops
	done    chan struct{} // the writer has stopped
	failed  chan struct{} // the output has failed

	conn    net.Conn // nil: a stdio owner, whose writer is write
	write   func([]byte) error
	closing func() // called once, without the lock, when the output fails
	block   bool   // producers wait for room (stdio)
}

// outLine is a queued line, or text deltas of a turn that may still grow.
type outLine struct {
	line []byte
	// Of a delta:
	kind, bot string
	turn      int64
	text      []byte
}

func (l *outLine) size() int {
	if l.line != nil {
		return len(l.line)
	}
	return len(l.text) + len(l.bot) + 96
}

var (
	errFull    = errors.New("the session's output is full")
	errStopped = errors.New("the owner stopped reading")
	errLate    = errors.New("the daemon ends and its output is not taken")
)

func newOutput(conn net.Conn, closing func()) *output {
	o := &output{conn: conn, closing: closing, done: make(chan struct{}), failed: make(chan struct{})}
	o.changed.L = &o.mu
	return o
}

// put queues a line. A full queue ends the session; a stdio owner's producers
// wait instead. It reports whether the line was taken.
func (o *output) put(line []byte) bool {
	o.mu.Lock()
	for o.block && o.err == nil && !o.ended && o.full(len(line)) {
		o.changed.Wait()
	}
	if o.err != nil || o.ended {
		o.mu.Unlock()
		return false
	}
	if o.full(len(line)) {
		o.mu.Unlock()
		o.fail(errFull)
		return false
	}
	o.push(outLine{line: line})
	o.mu.Unlock()
	return true
}

// reply queues an answer. A stdio owner has five seconds to make room for one;
// then it counts as gone.
func (o *output) reply(line []byte) bool {
	if !o.block {
		return o.put(line)
	}
	late := time.AfterFunc(replyWithin, func() { o.fail(errStopped) })
	defer late.Stop()
	return o.put(line)
}

// putWhen queues a line that can wait, a replay's, once less than half of the
// queue is used. ok is asked under the queue's lock just before; when it says
// no, or the output ended, nothing is queued.
func (o *output) putWhen(line []byte, ok func() bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.err == nil && !o.ended && ok() && (len(o.lines) >= protocol.MaxQueueLines/2 || o.bytes > protocol.MaxQueueBytes/2) {
		o.changed.Wait()
	}
	if o.err != nil || o.ended || !ok() {
		return false
	}
	o.push(outLine{line: line})
	return true
}

// putNow is putWhen where that need not wait. It reports whether the line is
// dealt with: queued, or dropped as one that nobody wants any more.
func (o *output) putNow(line []byte, ok func() bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil || o.ended || !ok() {
		return true
	}
	if len(o.lines) >= protocol.MaxQueueLines/2 || o.bytes > protocol.MaxQueueBytes/2 {
		return false
	}
	o.push(outLine{line: line})
	return true
}

// delta queues streamed text. It joins the turn's delta that waits, and is
// dropped when the queue is more than half full: it never closes a session.
func (o *output) delta(kind, bot string, turn int64, text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil || o.ended {
		return
	}
	for i := len(o.lines) - 1; i >= 0 && i >= len(o.lines)-32; i-- {
		l := &o.lines[i]
		if l.line == nil && l.turn == turn && l.bot == bot {
			if l.kind != kind || len(l.text)+len(text) > deltaJoin {
				break
			}
			l.text = append(l.text, text...)
			o.bytes += len(text)
			return
		}
	}
	if len(o.lines) > protocol.MaxQueueLines/2 || o.bytes > protocol.MaxQueueBytes/2 {
		return
	}
	o.push(outLine{kind: kind, bot: bot, turn: turn, text: []byte(text)})
}

func (o *output) full(n int) bool {
	return len(o.lines) >= protocol.MaxQueueLines || o.bytes+n > protocol.MaxQueueBytes
}

func (o *output) push(l outLine) {
	o.lines = append(o.lines, l)
	o.bytes += l.size()
	o.changed.Broadcast()
}

// waitRoom holds a socket session's input back while much output waits. An
// owner's is taken up: its answers pile up until one counts as not taken.
func (o *output) waitRoom() {
	o.mu.Lock()
	for !o.block && o.err == nil && !o.ended && o.bytes >= inputBelow {
		o.changed.Wait()
	}
	o.mu.Unlock()
}

// fail ends the output at once and closes the session.
func (o *output) fail(err error) {
	o.mu.Lock()
	first := o.err == nil
	if first {
		o.err = err
		o.lines, o.bytes = nil, 0
	}
	o.changed.Broadcast()
	o.mu.Unlock()
	if first {
		close(o.failed)
		o.closing()
	}
}

// end lets what is queued be written and then stops the writer.
func (o *output) end() {
	o.mu.Lock()
	o.ended = true
	o.changed.Broadcast()
	o.mu.Unlock()
}

// run writes until the output ends. It is the session's writer goroutine.
func (o *output) run() {
	defer close(o.done)
	var buf []byte
	for {
		var ok bool
		if buf, ok = o.take(buf[:0]); !ok {
			return
		}
		if err := o.send(buf); err != nil {
			o.fail(err)
			return
		}
		o.mu.Lock()
		o.bytes -= o.writing
		o.writing = 0
		idle := len(o.lines) == 0
		o.changed.Broadcast()
		o.mu.Unlock()
		if idle || cap(buf) > 2*writeSize {
			buf = nil // an idle session holds no buffer
		}
	}
}

// take waits for lines and joins some of them.
func (o *output) take(buf []byte) ([]byte, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.lines) == 0 && o.err == nil && !o.ended {
		o.changed.Wait()
	}
	if o.err != nil || len(o.lines) == 0 {
		return nil, false
	}
	n := 0
	for n < len(o.lines) && (n == 0 || len(buf)+o.lines[n].size() <= writeSize) {
		l := &o.lines[n]
		o.writing += l.size()
		if l.line != nil {
			buf = append(buf, l.line...)
		} else {
			buf = protocol.AppendDelta(buf, l.kind, l.bot, l.turn, string(l.text))
		}
		n++
	}
	rest := copy(o.lines, o.lines[n:])
	clear(o.lines[rest:])
	o.lines = o.lines[:rest]
	if rest == 0 {
		o.lines = nil
	}
	return buf, true
}

// send writes a piece. A peer that takes at least a byte every two seconds is
// alive, though the system wakes a writer only when much of its buffer is free:
// so what is still unread there is looked at a few times meanwhile.
func (o *output) send(b []byte) error {
	if o.conn == nil {
		return o.write(b)
	}
	alive, unread := time.Now(), -1
	for len(b) > 0 {
		if err := o.conn.SetWriteDeadline(time.Now().Add(stuckAfter / 8)); err != nil {
			return err
		}
		n, err := o.conn.Write(b)
		b = b[n:]
		if err != nil && !isTimeout(err) {
			return err
		}
		left := unreadBytes(o.conn)
		if err == nil || n > 0 || left >= 0 && left < unread {
			alive = time.Now()
		}
		unread = left
		if time.Since(alive) >= stuckAfter {
			return err
		}
	}
	return nil
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}
