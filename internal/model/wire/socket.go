package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
)

const (
	// socketIdle is how long a connection waits for its bot's next call, and
	// socketAge how old one may be when a call starts on it: servers cut at 60
	// minutes.
	socketIdle = 60 * time.Second
	socketAge  = 55 * time.Minute
	// socketSweep is the least time between two looks at what is idle.
	socketSweep = 5 * time.Second
	// socketsKept bounds the connections of one provider that wait for a next
	// call; past it the one that waits longest is closed.
	socketsKept = 1024
	// messageLimit bounds one message of the server.
	messageLimit = 16 << 20
)

// Sockets are a provider's WebSocket connections (providers.md 8): one for each
// bot, kept between its calls, and those of calls without one, which end with
// the call. It is safe for concurrent use.
//
// Each open connection has one goroutine, which reads and so answers pings. One
// timer serves the set, and only while a connection is idle: with none open
// there is neither goroutine nor timer.
type Sockets struct {
	client *Client
	stray  func(message []byte) bool

	mu    sync.Mutex
	kept  map[int64]*Socket // by bot
	open  int
	timer *time.Timer // nil while nothing is idle
	due   time.Time   // when it fires
}

// Sockets makes the set of a client; no connection is opened. stray says of a
// text message that came while no call waited for one whether it shows the
// server to be out of step: the connection is closed then.
func (c *Client) Sockets(stray func(message []byte) bool) *Sockets {
	k := &Sockets{client: c, stray: stray, kept: map[int64]*Socket{}}
	t := c.env.Transports
	t.mu.Lock()
	t.sockets = append(t.sockets, k)
	t.mu.Unlock()
	return k
}

// Socket is one open connection. At most one call has it at a time.
type Socket struct {
	// Memory is the family's, nil at first. Only the bot's own turn touches it.
	Memory any

	set        *Sockets
	bot        int64 // 0: it ends with its call
	conn       *websocket.Conn
	tap        *tap
	requestID  string
	dialed     time.Time
	credential [32]byte

	// Guarded by the set's lock.
	busy   bool
	closed bool
	idleAt time.Time // when its last call ended

	call atomic.Pointer[exchange]
	gone chan struct{} // closed as the reader ends
	err  error         // what the reader ended by; read after gone
}

// exchange is what a call and the reader of its connection share.
type exchange struct {
	in    chan message  // the reader waits until the call takes it
	taken chan struct{} // the call is done with the last one
	over  chan struct{} // closed: the call takes no more
}

// message is one of the server's. Its bytes are the reader's buffer.
type message struct {
	kind websocket.MessageType
	data []byte
}

// Of is the connection kept for a bot, nil when there is none.
func (k *Sockets) Of(bot int64) *Socket {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.kept[bot]
}

// Forget closes the connection of a bot that is deleted.
func (k *Sockets) Forget(bot int64) {
	if s := k.Of(bot); s != nil {
		s.close()
	}
}

// Status is the provider's part of stats: the client's, and how many
// connections are open.
func (k *Sockets) Status() json.RawMessage {
	k.mu.Lock()
	open := k.open
	k.mu.Unlock()
	raw := bytes.TrimSuffix(k.client.Status(), []byte("}"))
	raw = append(slices.Clip(raw), `,"sockets":`...)
	return append(strconv.AppendInt(raw, int64(open), 10), '}')
}

// take is the bot's connection for one call, nil where a new one is needed. One
// that is too old, or was opened with another credential, is closed.
func (k *Sockets) take(bot int64, credential [32]byte) *Socket {
	k.mu.Lock()
	s := k.kept[bot]
	if s == nil || s.busy {
		k.mu.Unlock()
		return nil
	}
	if s.credential == credential && time.Since(s.dialed) < socketAge {
		s.busy = true
		k.mu.Unlock()
		return s
	}
	k.mu.Unlock()
	s.close()
	return nil
}

// add enters a new connection, which a call has, and starts its reader.
func (k *Sockets) add(s *Socket) {
	s.set, s.busy, s.dialed, s.gone = k, true, time.Now(), make(chan struct{})
	k.mu.Lock()
	k.open++
	if k.kept[s.bot] != nil {
		s.bot = 0 // another call of the bot has its own
	}
	if s.bot != 0 {
		k.kept[s.bot] = s
	}
	k.mu.Unlock()
	go s.read()
}

// release ends a call's hold of a connection, which is kept only where it can
// serve another.
func (k *Sockets) release(s *Socket, keep bool) {
	var over *Socket
	k.mu.Lock()
	s.busy, s.idleAt = false, time.Now()
	if keep = keep && s.bot != 0 && !s.closed && s.due().After(s.idleAt); keep {
		k.arm(s.due())
		over = k.tooMany()
	}
	k.mu.Unlock()
	if over != nil {
		k.closeUnused(over)
	}
	if !keep {
		s.close()
	}
}

// tooMany is the connection that waits longest, where more wait than may. k.mu
// is held.
func (k *Sockets) tooMany() (longest *Socket) {
	if len(k.kept) <= socketsKept {
		return nil
	}
	idle := 0
	for _, s := range k.kept {
		if s.busy {
			continue
		}
		idle++
		if longest == nil || s.idleAt.Before(longest.idleAt) {
			longest = s
		}
	}
	if idle <= socketsKept {
		return nil
	}
	return longest
}

// due is when an idle connection is to be closed.
func (s *Socket) due() time.Time {
	idle, old := s.idleAt.Add(socketIdle), s.dialed.Add(socketAge)
	if old.Before(idle) {
		return old
	}
	return idle
}

// arm has the set looked at no later than at a time. k.mu is held.
func (k *Sockets) arm(due time.Time) {
	switch {
	case k.timer == nil:
		k.timer = time.AfterFunc(time.Until(due), k.sweep)
	case due.Before(k.due):
		k.timer.Reset(time.Until(due))
	default:
		return
	}
	k.due = due
}

// sweep closes what is due, and looks again when the next one is.
func (k *Sockets) sweep() {
	now := time.Now()
	var over []*Socket
	var next time.Time
	k.mu.Lock()
	for _, s := range k.kept {
		due := s.due()
		switch {
		case s.busy:
		case !due.After(now):
			over = append(over, s)
		case next.IsZero() || due.Before(next):
			next = due
		}
	}
	k.timer = nil
	if !next.IsZero() {
		if soonest := now.Add(socketSweep); next.Before(soonest) {
			next = soonest
		}
		k.arm(next)
	}
	k.mu.Unlock()
	for _, s := range over {
		k.closeUnused(s)
	}
}

// closeIdle closes all that no call has.
func (k *Sockets) closeIdle() {
	k.mu.Lock()
	idle := make([]*Socket, 0, len(k.kept))
	for _, s := range k.kept {
		idle = append(idle, s)
	}
	k.mu.Unlock()
	for _, s := range idle {
		k.closeUnused(s)
	}
}

// closeUnused closes a connection, unless a call took it meanwhile.
func (k *Sockets) closeUnused(s *Socket) {
	k.mu.Lock()
	busy := s.busy
	if !busy {
		k.remove(s)
	}
	k.mu.Unlock()
	if !busy {
		s.conn.CloseNow()
	}
}

// close ends a connection at once, from any goroutine: a call that has it fails.
// The server gets no closing frame, which it would have to be waited for with.
func (s *Socket) close() {
	s.set.mu.Lock()
	s.set.remove(s)
	s.set.mu.Unlock()
	s.conn.CloseNow()
}

// remove takes a connection off the set. k.mu is held.
func (k *Sockets) remove(s *Socket) {
	if s.closed {
		return
	}
	s.closed = true
	k.open--
	if k.kept[s.bot] == s {
		delete(k.kept, s.bot)
	}
	if len(k.kept) == 0 && k.timer != nil {
		k.timer.Stop()
		k.timer = nil
	}
}

var (
	messageBuffers = sync.Pool{New: func() any { return new([]byte) }}
	errStray       = errors.New("the server sent a message that no call waited for")
)

// read takes messages until the connection ends. It holds a buffer only while
// there is one.
func (s *Socket) read() {
	defer close(s.gone)
	defer s.close()
	for {
		kind, r, err := s.conn.Reader(context.Background())
		if err != nil {
			s.err = err
			return
		}
		buf := messageBuffers.Get().(*[]byte)
		*buf, err = readMessage((*buf)[:0], r)
		if err == nil {
			err = s.deliver(message{kind, *buf})
		}
		if cap(*buf) <= keptSize {
			messageBuffers.Put(buf)
		}
		if err != nil {
			s.err = err
			return
		}
	}
}

// readMessage appends a message, whose length the connection bounds. No length
// that the server claims is believed: the buffer grows with what came.
func readMessage(to []byte, r io.Reader) ([]byte, error) {
	for {
		to = slices.Grow(to, 512)
		n, err := r.Read(to[len(to):cap(to)])
		to = to[:len(to)+n]
		if err == io.EOF {
			return to, nil
		}
		if err != nil {
			return to, err
		}
	}
}

// deliver hands a message to the call that waits and returns when that is done
// with it. An error ends the connection.
func (s *Socket) deliver(m message) error {
	if x := s.call.Load(); x != nil {
		select {
		case x.in <- m:
			select {
			case <-x.taken:
			case <-x.over:
			}
			return nil
		case <-x.over:
		}
	}
	if m.kind != websocket.MessageText || s.set.stray(m.data) {
		return errStray
	}
	return nil
}

// begin makes a call the one that messages go to; end takes it off.
func (s *Socket) begin() *exchange {
	x := &exchange{in: make(chan message), taken: make(chan struct{}), over: make(chan struct{})}
	s.call.Store(x)
	return x
}

func (s *Socket) end(x *exchange) {
	s.call.Store(nil)
	close(x.over)
}
