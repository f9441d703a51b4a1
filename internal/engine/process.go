package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"agent/internal/store"
	"agent/internal/tool"
	"agent/protocol"
)

// processes are the background and detached commands that this daemon started
// (runtime.md 9). Only one that runs or waits in line costs anything.
type processes struct {
	mu       sync.Mutex
	live     map[int64]*background // by process id, until their result is stored
	queued   int64                 // accepted, without a slot
	detached map[*tool.Detached]bool
	places   int64 // of detached ones, those that are being started included
	era      *era
	running  sync.WaitGroup // background commands, of all eras
}

// era is the time from one stop of all commands to the next: the daemon's end,
// or a pause.
type era struct {
	ctx     context.Context // ends with it, by errPaused or errEnds
	end     context.CancelCauseFunc
	running sync.WaitGroup // the background commands that began in it
	stopped atomic.Int64   // those of them that its end ended, as stored
}

var (
	errPaused = errors.New("the daemon was paused")
	errEnds   = errors.New("the daemon ends")
)

func newEra() *era {
	x := &era{}
	x.ctx, x.end = context.WithCancelCause(context.Background())
	return x
}

func (p *processes) init() {
	p.live, p.detached = map[int64]*background{}, map[*tool.Detached]bool{}
	p.era = newEra()
}

// background is one background command.
type background struct {
	id      int64
	bot     int64
	outside bool          // it runs in no sandbox
	started chan struct{} // closed once cmd is set, or could not be
	cmd     *tool.Running
}

// beyond is a turn's way to what outlives it.
type beyond struct {
	t         *task
	call      string
	env       *tool.Env
	sandboxed bool // the bot has a sandbox
	allowed   bool // every gate allowed this call to leave it
}

// Background takes a command into line, records it and answers its handle.
func (b beyond) Background(_ context.Context, start func(*tool.Env) (*tool.Running, *tool.Failure), limit time.Duration) tool.Result {
	e := b.t.e
	p := &e.procs
	if !p.reserve(e.cfg.Limits.Processes) {
		return tool.Fail(string(protocol.CapacityExhausted), fmt.Sprintf("%d background commands wait in line already; wait for one", e.cfg.Limits.Processes))
	}
	var id int64
	err := e.store.Do("process_start", func(tx *store.Tx) (err error) {
		id, err = tx.AddProcess(b.t.bot, b.t.turn, b.call)
		return err
	})
	if err != nil {
		p.unqueue()
		perr := asError(err)
		return tool.Fail(string(perr.Code), perr.Detail)
	}
	proc := &background{id: id, bot: b.t.bot, outside: b.env.Confinement == nil, started: make(chan struct{})}
	p.mu.Lock()
	p.live[id] = proc
	began := p.era
	began.running.Add(1)
	p.running.Add(1)
	p.mu.Unlock()
	env := *b.env
	env.Cause = func() tool.StopCause { return tool.StopShutdown }
	go e.superviseProcess(began, proc, &env, b.t.turn, start, limit)
	return tool.Result{Output: string(newObject().str("handle", protocol.Handle{Proc: id}.String()).bool("background", true).done())}
}

// reserve takes a place in line, if one is left.
func (p *processes) reserve(limit int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if limit > 0 && p.queued >= limit {
		return false
	}
	p.queued++
	return true
}

func (p *processes) unqueue() {
	p.mu.Lock()
	p.queued--
	p.mu.Unlock()
}

// superviseProcess runs a background command to its end and stores what it came
// to, or that a pause ended it. One that the daemon's end cuts short stays as it
// is: the next start calls it lost.
func (e *Engine) superviseProcess(began *era, proc *background, env *tool.Env, turn int64, start func(*tool.Env) (*tool.Running, *tool.Failure), limit time.Duration) {
	p := &e.procs
	defer p.running.Done()
	defer began.running.Done()
	res := e.runProcess(began, proc, env, start, limit)
	switch context.Cause(began.ctx) {
	case nil:
		e.storeProcess(proc, turn, env.CallID, &res, "done")
	case errPaused:
		if e.storeProcess(proc, turn, env.CallID, &res, "stopped") {
			began.stopped.Add(1)
		}
	}
	p.mu.Lock()
	delete(p.live, proc.id)
	p.mu.Unlock()
	if e.cfg.Idle != nil && e.Unbusy() {
		e.cfg.Idle()
	}
}

// runProcess waits for a slot and runs a background command in it, to its end or
// that of its era.
func (e *Engine) runProcess(began *era, proc *background, env *tool.Env, start func(*tool.Env) (*tool.Running, *tool.Failure), limit time.Duration) tool.Result {
	err := e.processes.Acquire(began.ctx)
	e.procs.unqueue()
	if err != nil {
		close(proc.started)
		return tool.Result{}
	}
	defer e.processes.Release()
	cmd, f := start(env)
	proc.cmd = cmd
	close(proc.started)
	if f != nil {
		return tool.Fail(f.Code, string(env.Redact.Bytes([]byte(f.Detail))))
	}
	return cmd.Supervise(began.ctx, limit)
}

// keepTrying is how long a command's result is offered to a store that refuses
// it.
const keepTrying = 60 * time.Second

// storeProcess reports whether the result is stored.
func (e *Engine) storeProcess(proc *background, turn int64, callID string, res *tool.Result, status string) bool {
	handle := protocol.Handle{Proc: proc.id}.String()
	began := time.Now()
	packArtifacts(res)
	for wait := firstEndWait; ; wait = min(2*wait, time.Second) {
		err := e.store.Do("process_finish", func(tx *store.Tx) error {
			if err := tx.EndProcess(proc.id, status, resultOf(res, status)); err != nil {
				return err
			}
			if err := e.keepArtifacts(tx, turn, callID, res); err != nil {
				return err
			}
			e.tellWaiters(tx, handle, nil)
			return nil
		})
		if err == nil {
			return true
		}
		if protocol.CodeOf(err) != protocol.StorageError || time.Since(began) > keepTrying {
			e.cfg.Log.Error("a command's result could not be stored", "process", proc.id, "error", err)
			if e.cfg.Fatal != nil { // rather than strand who waits for it
				e.cfg.Fatal(err)
			}
			return false
		}
		if !e.sleepOpen(wait) {
			return false
		}
	}
}

// resultOf is what a command's row says it came to. That of one that was
// stopped says nothing: its status does.
func resultOf(res *tool.Result, status string) json.RawMessage {
	if status == "stopped" {
		return nil
	}
	return json.RawMessage(res.Output)
}

// outside reports whether a handle is that of a live command of the bot which
// runs in no sandbox.
func (p *processes) outside(bot int64, handle string) bool {
	h, err := protocol.ParseHandle(handle)
	if err != nil || h.Proc == 0 {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	proc := p.live[h.Proc]
	return proc != nil && proc.bot == bot && proc.outside
}

// Detach starts a command whose end nobody is told.
func (b beyond) Detach(start func() (*tool.Detached, *tool.Failure)) tool.Result {
	p := &b.t.e.procs
	limit := b.t.e.cfg.Limits.Detached
	p.mu.Lock()
	if limit > 0 && p.places >= limit {
		p.mu.Unlock()
		return tool.Fail(string(protocol.DetachedLimit), fmt.Sprintf("%d detached commands live already, of at most %d", p.places, limit))
	}
	p.places++
	p.mu.Unlock()
	d, f := start()
	p.mu.Lock()
	if f != nil {
		p.places--
		p.mu.Unlock()
		return tool.Fail(f.Code, string(b.env.Redact.Bytes([]byte(f.Detail))))
	}
	p.detached[d] = true
	p.mu.Unlock()
	go func() {
		d.Wait()
		p.mu.Lock()
		delete(p.detached, d)
		p.places--
		p.mu.Unlock()
	}()
	return tool.Result{Output: string(newObject().int("pid", int64(d.PID())).bool("detached", true).done())}
}

// Input is the write_stdin tool.
func (b beyond) Input(ctx context.Context, in tool.Input) tool.Result {
	fail := func(f *tool.Failure) tool.Result { return tool.Fail(f.Code, f.Detail) }
	proc, f := b.find(ctx, in.Handle)
	if f != nil {
		return fail(f)
	}
	if in.Chars != "" && proc.outside && b.sandboxed && !b.allowed {
		return fail(failure(protocol.EscalationRefused, "the command runs outside the sandbox, so that input to it leaves the sandbox, and no approval gate of this bot covers write_stdin"))
	}
	switch {
	case proc.awaitStart(ctx, in.Yield):
	case ctx.Err() != nil:
		return fail(failure(protocol.Cancelled, "the turn ended"))
	case in.Chars == "" && !in.Close && in.Signal == "":
		return tool.NoOutput(in.Handle)
	default:
		return fail(failure(protocol.StdinFull, "the command still waits in line; 0 bytes went in"))
	}
	cmd := proc.cmd
	if cmd == nil {
		return fail(failure(protocol.ProcessFinished, "the command could not be started; wait on its handle"))
	}
	if f := cmd.CheckInput(); f != nil {
		return fail(f)
	}
	if in.Chars != "" {
		if _, f := cmd.Write(ctx, in.Chars, in.Yield); f != nil {
			return fail(f)
		}
	}
	if in.Close {
		if f := cmd.CloseInput(); f != nil {
			return fail(f)
		}
	}
	if in.Signal != "" {
		cmd.Signal(in.Signal)
	}
	return cmd.Collect(ctx, in.Handle, in.Yield)
}

// awaitStart reports whether a command has its slot, or gets it before d is over
// and ctx ends.
func (b *background) awaitStart(ctx context.Context, d time.Duration) bool {
	select {
	case <-b.started:
		return true
	default:
	}
	limit := time.NewTimer(d)
	defer limit.Stop()
	select {
	case <-b.started:
		return true
	case <-limit.C:
	case <-ctx.Done():
	}
	return false
}

// find gives a live command of this bot.
func (b beyond) find(ctx context.Context, handle string) (*background, *tool.Failure) {
	h, err := protocol.ParseHandle(handle)
	if err != nil || h.Proc == 0 {
		return nil, failure(protocol.InvalidHandle, "%s is no handle of a background command", handle)
	}
	p := &b.t.e.procs
	p.mu.Lock()
	proc := p.live[h.Proc]
	p.mu.Unlock()
	if proc != nil {
		if proc.bot != b.t.bot {
			return nil, failure(protocol.HandleUnavailable, "another bot's command")
		}
		return proc, nil
	}
	var row store.Process
	var ok bool
	err = b.t.e.read(ctx, "process", func(c *store.Conn) (err error) {
		row, ok, err = store.ProcessByID(c, h.Proc)
		return err
	})
	switch {
	case err != nil:
		return nil, asFailure(err).(*tool.Failure)
	case !ok:
		return nil, failure(protocol.UnknownHandle, "no background command %d", h.Proc)
	case row.BotID != b.t.bot:
		return nil, failure(protocol.HandleUnavailable, "another bot's command")
	case row.Status == "lost":
		return nil, failure(protocol.ProcessLost, "an earlier daemon supervised the command")
	}
	return nil, failure(protocol.ProcessFinished, "the command has ended; wait on its handle gives its result")
}

// stopProcesses kills every background command, for the daemon's end, and
// returns when all are reaped.
func (e *Engine) stopProcesses() {
	e.procs.mu.Lock()
	x := e.procs.era
	e.procs.mu.Unlock()
	x.end(errEnds)
	e.procs.running.Wait() // those of a pause under way, too
}

// stop kills every background and detached command, for a pause, and returns
// how many that ended once all are gone and what they were is stored. No turn
// may run that could begin another.
func (p *processes) stop() int64 {
	p.mu.Lock()
	x := p.era
	p.era = newEra()
	detached := make([]*tool.Detached, 0, len(p.detached))
	for d := range p.detached {
		detached = append(detached, d)
	}
	p.mu.Unlock()
	x.end(errPaused)
	ended := int64(0)
	for _, d := range detached {
		if d.Kill() {
			ended++
		}
	}
	x.running.Wait()
	return ended + x.stopped.Load()
}

// counts are the commands whose result is not stored, and those of them that
// have no slot yet.
func (p *processes) counts() (running, queued int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return int64(len(p.live)), p.queued
}
