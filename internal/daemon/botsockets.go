package daemon

import (
	"cmp"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"agent/internal/engine"
	"agent/internal/place"
	"agent/protocol"
)

// The sandboxed bots' own sockets (protocol.md 15).
const (
	// idleSockets are kept of bots that have no turn, no live process and no
	// session, those of the most recent turns and creations.
	idleSockets = 256
	// sessionsOfBot may be open on one bot's socket at once, and sessionsOfBots on
	// all of them; further connections wait without a ready line. What is left of
	// the daemon's bound is for its own socket, which no bot can so shut.
	sessionsOfBot  = 64
	sessionsOfBots = protocol.MaxSessions - 1024
)

var errBotGone = errors.New("the bot whose socket this is was deleted, or has no sandbox any more")

// botSockets are the listeners. It is safe for concurrent use.
type botSockets struct {
	d    *Daemon
	dir  string // where they are bound
	real string // the same folder, as a sandbox shows it

	uses atomic.Int64

	mu     sync.Mutex
	open   map[int64]*botSocket
	serves bool // connections are taken
	closed bool // the daemon ends
}

// botSocket is the socket of one bot. Who connects to it is that bot.
type botSocket struct {
	owner    engine.Owner
	listener *net.UnixListener
	used     int64 // higher: later

	// Guarded by Daemon.mu.
	sessions int
	gone     bool // closed: whoever connected late gets no session
}

// openBotSockets makes the folder and clears away what a killed daemon left in
// it. The socket's lock must be held.
func openBotSockets(d *Daemon, dir, real string) (*botSockets, error) {
	if err := place.MakeBotSocketDir(dir); err != nil {
		return nil, err
	}
	return &botSockets{d: d, dir: dir, real: real, open: map[int64]*botSocket{}}, nil
}

// bindRecent binds the sockets of the bots that were there before.
func (b *botSockets) bindRecent() error {
	bots, err := b.d.engine.SandboxedBots(idleSockets)
	if err != nil {
		return err
	}
	for _, o := range bots {
		b.use(o.ID, o.Name)
	}
	return nil
}

// serve begins to take connections, when the daemon's own socket is there.
func (b *botSockets) serve() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.serves = true
	for _, s := range b.open {
		go b.d.accept(s.listener, s)
	}
}

// use makes sure that a bot has its socket, and gives its path inside a sandbox.
// It is "" where that cannot be: when the daemon ends, or when the system refuses,
// which is logged.
func (b *botSockets) use(id int64, name string) string { return b.useAt(b.now(), id, name) }

// now is a place in the order of uses, later than all before.
func (b *botSockets) now() int64 {
	if b == nil {
		return 0
	}
	return b.uses.Add(1)
}

// useAt is use as of a moment that now gave: bots are made in an order, and get
// their sockets beside each other. One that many were used after may be closed
// again by its return.
func (b *botSockets) useAt(at, id int64, name string) string {
	if b == nil {
		return ""
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return ""
	}
	file := strconv.FormatInt(id, 10)
	path := filepath.Join(b.dir, file)
	s := b.open[id]
	if s != nil {
		if _, err := os.Lstat(path); err != nil { // somebody cleaned up
			b.drop(s)
			s = nil
		}
	}
	if s == nil {
		l, err := place.ListenBot(path)
		if err != nil {
			b.d.opt.Log.Warn("a bot has no socket of its own", "bot", id, "error", err)
			return ""
		}
		s = &botSocket{owner: engine.Owner{ID: id, Name: name}, listener: l}
		b.open[id] = s
		if b.serves {
			go b.d.accept(l, s)
		}
	}
	s.used = max(s.used, at)
	b.trim()
	return filepath.Join(b.real, file)
}

// settle has a bot's socket be what its record, committed at a moment that now
// gave, says of it.
func (b *botSockets) settle(at int64, r *protocol.Bot) {
	if b == nil {
		return
	}
	if r.Sandbox != protocol.SandboxFull {
		b.useAt(at, r.ID, r.Name)
		// By now another request may have taken its reason away; one that does so
		// later ends the socket after this.
		now, err := b.d.engine.Bot(context.Background(), r.Name)
		if err == nil && now.ID == r.ID && now.Status != protocol.StatusDeleting && now.Sandbox != protocol.SandboxFull {
			return
		}
	}
	b.end(r.ID)
}

// trim closes the sockets of idle bots that were used longest ago, past the
// bound. b.mu is held.
func (b *botSockets) trim() {
	if len(b.open) <= idleSockets {
		return
	}
	busy := b.d.engine.BusyBots()
	var idle []*botSocket
	b.d.mu.Lock()
	for id, s := range b.open {
		switch {
		case busy[id]:
			s.used = max(s.used, b.uses.Load())
		case s.sessions == 0:
			idle = append(idle, s)
		}
	}
	b.d.mu.Unlock()
	if len(idle) <= idleSockets {
		return
	}
	slices.SortFunc(idle, func(x, y *botSocket) int { return cmp.Compare(y.used, x.used) })
	for _, s := range idle[idleSockets:] {
		b.drop(s)
	}
}

// trimIdle trims when turns, commands or sessions have ended.
func (b *botSockets) trimIdle() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trim()
}

// drop closes a listener, which removes its file. b.mu is held.
func (b *botSockets) drop(s *botSocket) {
	delete(b.open, s.owner.ID)
	if err := s.listener.Close(); err != nil {
		b.d.opt.Log.Warn("a bot's socket was not closed", "bot", s.owner.ID, "error", err)
	}
	b.d.mu.Lock()
	s.gone = true
	b.d.room.Broadcast()
	b.d.mu.Unlock()
}

// end takes a bot's socket away and closes its sessions: the bot is deleted, or
// has no sandbox any more.
func (b *botSockets) end(id int64) {
	if b == nil {
		return
	}
	b.mu.Lock()
	if s := b.open[id]; s != nil {
		b.drop(s)
	}
	b.mu.Unlock()
	for _, s := range b.d.openSessions() {
		if s.owner != nil && s.owner.ID == id {
			s.out.fail(errBotGone)
		}
	}
}

// close ends all listeners and removes their files.
func (b *botSockets) close() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for _, s := range b.open {
		b.drop(s)
	}
}
