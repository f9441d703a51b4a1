// Package engine runs bots: it admits submissions, runs turns, delivers what
// waits, ends what must end, and puts things right after a crash (runtime.md
// 3 to 7, 14, 25, 27). All it keeps is in the store; in memory are only the
// turns that run now.
package engine

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"agent/internal/model"
	"agent/internal/store"
	"agent/internal/tool"
	"agent/internal/window"
	"agent/protocol"
)

// Limits are the daemon's, as its flags set them (runtime.md 30). 0 is
// unbounded where the document says so.
type Limits struct {
	Active       int64
	Processes    int64
	Detached     int64
	Pending      int64
	PendingBytes int64
	Context      window.Bounds
	NoteTurns    int64
	CompactAt    int64         // percent of an envelope; 0: never
	CompactKeep  int64         // percent of an envelope
	KeepWarm     time.Duration // 0: off
	RetainTurns  int64         // 0: all
	MaxOutput    int64
	Stall        time.Duration
	CacheTTL     string
	Hold         time.Duration // how long a turn waits live for a served call
}

// Live takes what is not durable to whoever follows a bot now. It must not
// block a turn for a slow reader. It is safe for concurrent use.
type Live interface {
	// Wants reports whether anyone follows the bot.
	Wants(bot string) bool
	// Delta gives a piece of streamed text: kind is text_delta or
	// thinking_delta.
	Delta(bot string, turn int64, kind, text string)
	// Notice gives a whole notification line, newline included. It may be
	// kept.
	Notice(bot string, line []byte)
	// Deleted gives the notification line of a bot's deletion and ends what
	// follows it: its name may be another bot's from here on.
	Deleted(bot int64, name string, line []byte)
}

// Config is what an engine is made of. All of it belongs to the engine then.
type Config struct {
	Store     *store.Store
	Providers map[string]model.Provider
	Codecs    map[model.Family]model.Codec
	Tools     []tool.Tool
	Limits    Limits
	Redact    tool.Redactor
	Live      Live
	Log       *slog.Logger

	// Sandbox confines bots; nil: none can be.
	Sandbox    *Sandbox
	Environ    []string // a command's environment before the AGENT_ names
	Shell      string
	Self       string // the daemon's own program
	StorePath  string
	SocketPath string // "" in stdio mode
	Instance   string // the store's instance value, for cache keys
	// Clock gives the times that are stored; nil is the system's. What is
	// measured goes by the monotonic clock, whatever this one says.
	Clock func() time.Time
	// Peak is told, without a lock held, when more turns run at once than
	// ever before. Nil: nobody is.
	Peak func(turns int)
	// Fatal is told when the engine cannot go on.
	Fatal func(error)
	// Everyone gives a whole notification line, newline included, to every
	// session. It is called behind the events committed before; nil: nobody is
	// told.
	Everyone func(line []byte)
	// Idle is told when the last turn that ran has ended. It must not block.
	Idle func()
}

// Engine runs the bots of one store. It is safe for concurrent use.
type Engine struct {
	cfg       Config
	store     *store.Store
	tools     map[string]tool.Tool
	toolNames []string
	toolSets  toolSets
	schemas   schemas
	processes *tool.Slots
	captures  *tool.Budget
	pending   pending
	waits     waits
	procs     processes
	served    served
	cord      cord
	verdicts  verdicts
	looks     looks
	ruleSets  ruleSets
	// The creations and submissions at the store's worker, as many as may be
	// there at once (runtime.md 2). What they name on disk is looked at before: a
	// file system that hangs holds up who named it, and nobody else.
	admissions chan struct{}

	mu       sync.Mutex
	live     map[int64]*task       // by bot id: from the commit that starts a turn to the one that ends it
	parked   map[int64]*parkedTurn // by bot id: from the commit that parks a turn
	textOnly map[string]bool       // models, PROVIDER/MODEL, that said they take no pictures
	wakes    []*parkedTurn         // parked turns whose condition is met, first come first
	active   int64                 // slots taken, reservations included
	ready    int64                 // ready turns, as of the last commit
	peak     int                   // the most turns that ran at once
	starting int64                 // starts of waiting turns that are under way
	begun    int64                 // ready turns that they will make run, as of the last commit still ready
	open     bool                  // recovery is done
	closing  bool                  // no turn starts any more
	draining bool
	pause    *protocol.PauseInfo // the one that stands, as of the last commit; what it points to does not change
	totals   protocol.TokenStats

	tasks sync.WaitGroup
}

// New makes an engine. It runs nothing until Recover.
func New(cfg Config) *Engine {
	e := &Engine{
		cfg: cfg, store: cfg.Store, live: map[int64]*task{}, parked: map[int64]*parkedTurn{}, textOnly: map[string]bool{}, tools: map[string]tool.Tool{},
		processes:  tool.NewSlots(int(cfg.Limits.Processes)),
		captures:   tool.NewBudget(16 << 20),
		admissions: make(chan struct{}, protocol.MaxAdmissions),
	}
	for _, t := range cfg.Tools {
		name := t.Def().Name
		e.tools[name] = t
		e.toolNames = append(e.toolNames, name)
	}
	e.toolSets.init(e)
	e.procs.init()
	e.served.init(e.loseSteps)
	e.verdicts.init()
	e.looks.init()
	return e
}

// ToolNames are the registered tools, sorted.
func (e *Engine) ToolNames() []string { return e.toolNames }

// provider finds the binding of a model reference and checks that it speaks
// the bot's family (runtime.md 3).
func (e *Engine) provider(name string, family model.Family) (model.Provider, *protocol.Error) {
	p := e.cfg.Providers[name]
	if p == nil {
		return nil, protocol.Fail(protocol.ProviderUnavailable,
			"provider "+name+" is not registered with this daemon; start it with --provider "+name)
	}
	if f := p.Info().Family; family != "" && f != family {
		return nil, protocol.Fail(protocol.ProviderFamilyMismatch,
			"the bot speaks "+string(family)+", provider "+name+" speaks "+string(f))
	}
	return p, nil
}

// startsTurns reports whether turns may start and resume. e.mu is held.
func (e *Engine) startsTurns() bool { return !e.closing && !e.draining && e.pause == nil }

// reserve takes an active slot for a new submission, if one is left when all
// earlier work that waits has its own.
func (e *Engine) reserve() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	limit := e.cfg.Limits.Active
	if !e.startsTurns() || limit > 0 && e.active+e.ready-e.begun+int64(len(e.wakes)) >= limit {
		return false
	}
	e.active++
	return true
}

// full reports whether every slot is taken. e.mu is held.
func (e *Engine) full() bool { return e.cfg.Limits.Active > 0 && e.active >= e.cfg.Limits.Active }

// release gives a slot back and lets waiting work have it.
func (e *Engine) release() {
	e.mu.Lock()
	e.active--
	e.mu.Unlock()
	e.dispatch()
}

// addReady counts ready turns that a commit made or used up.
func (e *Engine) addReady(n int64) {
	e.mu.Lock()
	e.ready += n
	e.mu.Unlock()
}

// goLive enters a turn that a commit started or resumed.
func (e *Engine) goLive(t *task) {
	e.mu.Lock()
	e.live[t.bot] = t
	e.tasks.Add(1)
	n := len(e.live)
	more := n > e.peak
	e.peak = max(e.peak, n)
	e.mu.Unlock()
	if more && e.cfg.Peak != nil {
		e.cfg.Peak(n)
	}
}

// goIdle takes a bot's turn, if it ran, out of the table when a commit has ended
// or parked it, and gives its slot to what waits: whoever sees the commit may
// count on the slot.
func (e *Engine) goIdle(bot int64) {
	e.mu.Lock()
	ran := e.live[bot] != nil
	delete(e.live, bot)
	idle := len(e.live) == 0
	e.mu.Unlock()
	if ran {
		e.release()
	}
	if idle && e.cfg.Idle != nil {
		e.cfg.Idle()
	}
}

// taskOf is the live turn of a bot, nil when it has none.
func (e *Engine) taskOf(bot int64) *task {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.live[bot]
}

// parkedTurnOf is the parked turn of a bot, nil when it has none.
func (e *Engine) parkedTurnOf(bot int64) *parkedTurn {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.parked[bot]
}

// Active is the number of slots in use, reservations included.
func (e *Engine) Active() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.active
}

// LiveTurns is the number of turns that run now.
func (e *Engine) LiveTurns() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.live)
}

// Unbusy reports that no turn runs and no background command does.
func (e *Engine) Unbusy() bool {
	running, _ := e.procs.counts()
	return running == 0 && e.LiveTurns() == 0
}

// Quiesce stops turns from starting and resuming if nothing runs now, and
// reports whether nothing did. It is for an end that must interrupt no work:
// what waits stays for the next start.
func (e *Engine) Quiesce() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	running, _ := e.procs.counts()
	if running > 0 || e.active > 0 || len(e.live) > 0 {
		return false
	}
	e.draining = true
	return true
}

// read runs f on a query-only connection.
func (e *Engine) read(ctx context.Context, op string, f func(c *store.Conn) error) error {
	return e.store.Read(ctx, op, func(r *store.Reader) error { return f(r.Conn()) })
}

// readAtOnce is read, with all that f reads as of one moment: what reads many rows does
// so for half the work, since a statement alone begins and ends a transaction of its own.
func (e *Engine) readAtOnce(ctx context.Context, op string, f func(c *store.Conn) error) error {
	return e.store.Read(ctx, op, func(r *store.Reader) error {
		if err := r.Snapshot(); err != nil {
			return err
		}
		return f(r.Conn())
	})
}

// pending counts the work that waits, for the bounds on it. Only the writer's
// goroutine changes it, inside jobs, so that the jobs of one group see each
// other; whoever reads it elsewhere sees a figure that may be a moment old.
type pending struct {
	mu    sync.Mutex
	turns int64
	bytes int64
}

// delta is what one job added to pending, kept so that it can be taken back
// when the job does not commit.
type delta struct{ turns, bytes int64 }

func (p *pending) add(d *delta, turns, bytes int64) {
	p.mu.Lock()
	p.turns += turns
	p.bytes += bytes
	p.mu.Unlock()
	d.turns += turns
	d.bytes += bytes
}

func (p *pending) undo(d *delta) {
	p.mu.Lock()
	p.turns -= d.turns
	p.bytes -= d.bytes
	p.mu.Unlock()
	*d = delta{}
}

func (p *pending) get() (turns, bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.turns, p.bytes
}
