// Package daemon serves an engine on Unix sockets or on standard input and
// output: sessions, fan-out of events, idle exit and shutdown. Nothing below
// it knows of sockets (protocol.md 1 to 4, 14).
package daemon

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"agent/internal/engine"
	"agent/internal/model"
	"agent/internal/model/bedrock"
	"agent/internal/place"
	"agent/internal/store"
	"agent/protocol"
)

// drainWithin bounds how long followers may take over what is committed when
// the daemon ends.
const drainWithin = 5 * time.Second

// Options are what a daemon is made of, as its flags and environment say.
type Options struct {
	Store    string // canonical
	Socket   string // "": standard input and output
	Version  string
	Limits   protocol.Limits
	Walls    []string
	Protect  []string
	Registry *model.Registry
	AWS      *bedrock.Keys // nil without a provider that signs with them
	Engine   engine.Config // Store, Live, StorePath, SocketPath and Instance are filled in here
	// InFlight is the transport's part of stats.
	InFlight func() []int
	// ProxyOf names the proxy on the way to a provider's URL, "" for none; nil
	// knows of none.
	ProxyOf func(url string) string
	Log     *slog.Logger
	Faults  *store.Faults

	Stdin  io.Reader
	Stdout io.Writer
}

// Daemon is one running daemon.
type Daemon struct {
	opt     Options
	store   *store.Store
	engine  *engine.Engine
	sandbox *engine.Sandbox
	lockID  string      // tells the store's lock from all others
	bots    *botSockets // nil in stdio mode
	// companions is nil in stdio mode.
	companions *companions
	fan        *fanout
	listener   *place.Listener
	scripted   map[string]bool // providers that are scripts
	deferred   chan struct{}

	mu       sync.Mutex
	sessions map[*session]bool
	ofBots   int        // of them, those on bots' own sockets
	clients  int        // of them, those that are no companion's
	room     *sync.Cond // fewer sessions than a bound, or an end
	idle     *time.Timer
	quiet    *time.Timer
	closing  bool
	deadline *time.Timer
	graceEnd time.Time

	quit chan error // why to end; the first one counts
	once sync.Once
}

// Run starts a daemon, serves until it is told to end, and closes it. The
// error is what serve reports; nil for an end that was asked for.
func Run(ctx context.Context, opt Options) error {
	d := &Daemon{
		opt: opt, fan: newFanout(), scripted: map[string]bool{}, quit: make(chan error, 1),
		deferred: make(chan struct{}, protocol.MaxAdmissions), sessions: map[*session]bool{},
	}
	d.room = sync.NewCond(&d.mu)
	if err := d.open(); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { d.end(nil) })
	defer stop()
	if d.listener != nil {
		d.bots.serve()
		go d.accept(d.listener.UnixListener, nil)
		d.armIdle()
	} else {
		go d.owner()
	}
	d.engine.Run()
	if d.companions != nil {
		go d.companions.start()
	}
	releaseProgram()
	var err error
	select {
	case err = <-d.quit:
	case err = <-d.store.Fatal():
	}
	d.close()
	return err
}

// open takes the store and the socket, puts right what an earlier daemon left,
// and only then listens.
func (d *Daemon) open() (err error) {
	var claim *place.Claim
	if d.opt.Socket != "" {
		if claim, err = place.ClaimSocket(d.opt.Socket); err != nil {
			return err
		}
	}
	if err := d.openStore(); err != nil {
		if claim != nil {
			claim.Close()
		}
		return err
	}
	if claim == nil {
		return nil
	}
	if d.listener, err = claim.Listen(); err != nil {
		d.bots.close()
		d.store.Close()
		claim.Close()
		return err
	}
	if _, err := d.opt.Stdout.Write(d.readyLine(nil)); err != nil {
		d.opt.Log.Warn("nobody reads the ready line", "error", err)
	}
	return nil
}

// openStore opens the store and recovers it.
func (d *Daemon) openStore() (err error) {
	if d.store, err = store.Open(store.Options{Path: d.opt.Store, Sink: d.fan, Faults: d.opt.Faults, Owned: d.own}); err != nil {
		return err
	}
	if err := d.openEngine(); err != nil {
		select {
		case damaged := <-d.store.Fatal(): // met while recovering: what it is called at open
			err = damaged
		default:
		}
		d.bots.close()
		if cerr := d.store.Close(); cerr != nil {
			d.opt.Log.Error("the store was not closed cleanly", "error", cerr)
		}
		return err
	}
	return nil
}

func (d *Daemon) openEngine() error {
	instance, _ := d.store.Identity()
	cfg := d.opt.Engine
	cfg.Store, cfg.Live, cfg.StorePath, cfg.SocketPath, cfg.Instance = d.store, d.fan, d.opt.Store, d.opt.Socket, instance
	cfg.Log, cfg.Fatal = d.opt.Log, d.end
	box, err := d.openSandbox()
	if err != nil {
		return err
	}
	d.sandbox, cfg.Sandbox = box, box
	cfg.Everyone = d.tellEveryone
	cfg.Idle = func() {
		d.armIdle()
		d.armQuiet()
		go d.bots.trimIdle()
	}
	for _, name := range d.opt.Registry.Names() {
		p, _ := d.opt.Registry.Provider(name)
		if p.Info().Family == model.FamilyScripted {
			d.scripted[name] = true
		}
	}
	d.engine = engine.New(cfg)
	if err := d.engine.Recover(); err != nil {
		return err
	}
	if d.opt.Socket != "" {
		if d.companions, err = d.newCompanions(); err != nil {
			return err
		}
	}
	if _, err := d.store.Sweep(context.Background()); err != nil {
		d.opt.Log.Warn("spilled output that no call names was not swept", "error", err)
	}
	if d.bots != nil {
		if err := d.bots.bindRecent(); err != nil {
			return err
		}
	}
	newest, failed := d.engine.FollowPoint(context.Background(), "*")
	if failed != nil {
		return failed
	}
	d.fan.mu.Lock()
	d.fan.published = max(d.fan.published, newest.Newest)
	d.fan.mu.Unlock()
	return nil
}

// accept takes connections, as many as may be open at once: of a bot's own
// socket, or of the daemon's (nil). Here it is decided who a session is.
func (d *Daemon) accept(l *net.UnixListener, bot *botSocket) {
	wait := time.Duration(0)
	for {
		d.waitRoom(bot)
		conn, err := l.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if wait == 0 { // once for each time of need
				d.opt.Log.Warn("a connection was not taken", "error", err)
			}
			wait = min(max(2*wait, 10*time.Millisecond), time.Second) // out of descriptors: let some go
			time.Sleep(wait)
			continue
		}
		wait = 0
		var owner *engine.Owner
		if bot != nil {
			owner = &bot.owner
		}
		s := d.newSession(conn, owner)
		if u, ok := conn.(*net.UnixConn); ok && bot == nil {
			s.companion = d.companions.owns(peerPID(u))
		}
		if !d.join(s, bot) {
			conn.Close()
			return
		}
		go func() {
			defer d.leave(s, bot)
			s.serve(conn)
		}()
	}
}

// waitRoom returns when the daemon's socket may have another session. A bot's
// connection is taken first and waits for its place after that: there are many
// of those sockets, and room now may be another's then.
func (d *Daemon) waitRoom(bot *botSocket) {
	if bot != nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.sessions) >= protocol.MaxSessions && !d.closing {
		d.room.Wait()
	}
}

// join enters a session, on a bot's socket once there is room. It reports false
// where there is to be none any more.
func (d *Daemon) join(s *session, bot *botSocket) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if bot != nil {
		for !d.closing && !bot.gone && (bot.sessions >= sessionsOfBot || d.ofBots >= sessionsOfBots) {
			d.room.Wait()
		}
		if bot.gone {
			return false
		}
	}
	if d.closing {
		return false
	}
	if bot != nil {
		bot.sessions++
		d.ofBots++
	}
	d.sessions[s] = true
	if s.companion {
		return true
	}
	d.clients++
	if d.idle != nil {
		d.idle.Stop()
	}
	return true
}

func (d *Daemon) leave(s *session, bot *botSocket) {
	d.mu.Lock()
	delete(d.sessions, s)
	if bot != nil {
		bot.sessions--
		d.ofBots--
	}
	if !s.companion {
		d.clients--
	}
	d.room.Broadcast()
	d.mu.Unlock()
	if !s.companion {
		d.armIdle()
	}
	if bot != nil {
		d.bots.trimIdle()
	}
}

// armIdle starts the idle period when nobody but companions is connected. At its end a turn
// that runs starts it again.
func (d *Daemon) armIdle() {
	seconds := d.opt.Limits.IdleExitSeconds
	if seconds == nil || *seconds <= 0 || d.listener == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closing || d.clients > 0 {
		return
	}
	if d.idle == nil {
		d.idle = time.AfterFunc(time.Duration(*seconds)*time.Second, d.idleOver)
		return
	}
	d.idle.Reset(time.Duration(*seconds) * time.Second)
}

func (d *Daemon) idleOver() {
	d.mu.Lock()
	idle := d.clients == 0 && d.engine.Quiesce()
	d.closing = d.closing || idle // whoever connects from here on finds nobody, and may start another
	d.mu.Unlock()
	if idle {
		d.end(nil)
		return
	}
	d.armIdle()
}

// Shutdown ends the daemon, after at most grace for the turns that run. A
// later call can only bring the end nearer.
func (d *Daemon) Shutdown(grace time.Duration) {
	if grace <= 0 {
		d.end(nil)
		return
	}
	d.engine.Drain()
	d.mu.Lock()
	end := time.Now().Add(grace)
	if d.deadline == nil {
		d.graceEnd = end
		d.deadline = time.AfterFunc(grace, func() { d.end(nil) })
		go func() {
			d.engine.WaitIdle()
			d.end(nil)
		}()
	} else if end.Before(d.graceEnd) {
		d.graceEnd = end
		d.deadline.Reset(grace)
	}
	d.mu.Unlock()
}

func (d *Daemon) end(err error) { d.once.Do(func() { d.quit <- err }) }

// close ends turns, sessions and the store, in that order: what is committed
// is handed to followers before they are let go. Nobody who does not read holds
// it up longer than drainWithin.
func (d *Daemon) close() {
	d.mu.Lock()
	d.closing = true
	d.room.Broadcast()
	for _, t := range []*time.Timer{d.idle, d.quiet} {
		if t != nil {
			t.Stop()
		}
	}
	d.mu.Unlock()
	if d.companions != nil {
		d.companions.freeze()
	}
	late := time.AfterFunc(drainWithin, func() {
		for _, s := range d.openSessions() {
			s.out.fail(errLate)
		}
	})
	defer late.Stop()
	if d.listener != nil {
		d.listener.Stop()
	}
	d.bots.close()
	d.engine.Close()
	d.published()
	for _, s := range d.openSessions() {
		s.endInput()
	}
	if d.companions != nil {
		d.companions.close()
	}
	if err := d.sandbox.Placeholders.Close(); err != nil {
		d.opt.Log.Error("the journal of placeholders was not closed cleanly", "error", err)
	}
	if err := d.store.Close(); err != nil {
		d.opt.Log.Error("the store was not closed cleanly", "error", err)
	}
	for _, s := range d.openSessions() {
		s.out.end()
		select {
		case <-s.out.done:
		case <-s.out.failed:
		}
	}
	if d.listener != nil {
		if err := d.listener.Close(); err != nil {
			d.opt.Log.Error("the socket was not removed", "error", err)
		}
	}
}

// tellEveryone gives a notice to every session that has its ready line, which
// says the same to those that come later.
func (d *Daemon) tellEveryone(line []byte) {
	for _, s := range d.openSessions() {
		s.greeting.Lock()
		if s.greeted {
			s.out.put(line)
		}
		s.greeting.Unlock()
	}
}

// published returns when every event committed so far is in its followers'
// queues.
func (d *Daemon) published() {
	done := make(chan struct{})
	err := d.store.Do("published", func(tx *store.Tx) error {
		tx.AfterPublish(func() { close(done) })
		return nil
	})
	if err == nil {
		<-done
	}
}

// openSessions are the sessions open now.
func (d *Daemon) openSessions() []*session {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := make([]*session, 0, len(d.sessions))
	for s := range d.sessions {
		list = append(list, s)
	}
	return list
}

// endInput lets a socket session finish the requests that it has and take no
// further one. An owner's input is not waited for: its reader may never return.
func (s *session) endInput() {
	c, ok := s.conn.(*net.UnixConn)
	if !ok {
		return
	}
	c.CloseRead()
	select {
	case <-s.inputDone:
	case <-s.out.failed:
	}
}

// owner serves standard input and output. It sees everything without
// following, and the daemon ends with it: when its input ends, as for a
// shutdown without grace, and when it does not take its output any more.
func (d *Daemon) owner() {
	s := d.newSession(nil, nil)
	s.out.block = true
	s.out.write = func(b []byte) error {
		_, err := d.opt.Stdout.Write(b)
		return err
	}
	d.mu.Lock()
	d.sessions[s] = true
	d.mu.Unlock()
	fl := &follow{s: s, name: "*", live: true, cursor: d.fan.last(), script: map[string]bool{}, cancel: func() {}}
	d.fan.add(fl)
	go s.out.run()
	s.greet()
	if err := s.read(d.opt.Stdin); err != nil {
		s.refuse(err)
	}
	d.end(nil)
}
