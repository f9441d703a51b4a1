package tool

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"agent/protocol"
)

// Beyond keeps what outlives a call: background and detached commands. The
// engine implements it, since their results are durable (runtime.md 9).
type Beyond interface {
	// Background takes a command into line, records it and gives the result of
	// the call, a handle. start is called when the command has its slot.
	Background(ctx context.Context, start func(*Env) (*Running, *Failure), limit time.Duration) Result
	// Detach starts a command whose end nobody is told.
	Detach(start func() (*Detached, *Failure)) Result
	// Input is the write_stdin tool.
	Input(ctx context.Context, in Input) Result
}

// Input is what a write_stdin call asks for.
type Input struct {
	Handle string
	Chars  string
	Close  bool
	Signal string // INT, TERM, KILL or ""
	Yield  time.Duration
}

// Running is a command that outlives its call. Supervise is called once; the
// other methods are safe for concurrent use, also after the command has ended.
type Running struct {
	c     *command
	tails [2]*tail

	mu    sync.Mutex
	stdin *os.File // nil: none, or closed
	piped bool     // it was started with a pipe
	ended chan struct{}
	done  Result
}

// startRunning starts a script whose end its call does not wait for. With
// stdin it keeps a pipe to it open, and the newest output at hand.
func startRunning(ctx context.Context, env *Env, script string, stdin bool) (*Running, *Failure) {
	r := &Running{piped: stdin, ended: make(chan struct{})}
	var input *os.File
	if stdin {
		read, write, err := os.Pipe()
		if err != nil {
			return nil, failuref(protocol.ShellSpawnFailed, "%v", err)
		}
		defer read.Close()
		input, r.stdin = read, write
		r.tails = [2]*tail{newTail(), newTail()}
	}
	c, f := startCommandWith(ctx, env, script, true, input, r.tails)
	if f != nil {
		if r.stdin != nil {
			r.stdin.Close()
		}
		return nil, f
	}
	r.c = c
	return r, nil
}

// Supervise waits for the command's end, or ends it as supervise does, and
// gives its result.
func (r *Running) Supervise(ctx context.Context, limit time.Duration) Result {
	r.c.supervise(ctx, limit)
	r.mu.Lock()
	if r.stdin != nil {
		r.stdin.Close()
		r.stdin = nil
	}
	r.done = r.c.result()
	r.mu.Unlock()
	close(r.ended)
	return r.done
}

// Write puts bytes into the command's input, as many as it takes until d is
// over or ctx ends, and says how many went in. It is refused where no pipe is
// open.
func (r *Running) Write(ctx context.Context, chars string, d time.Duration) (int, *Failure) {
	r.mu.Lock()
	stdin := r.stdin
	r.mu.Unlock()
	if stdin == nil {
		return 0, r.noInput()
	}
	_ = stdin.SetWriteDeadline(time.Now().Add(max(d, 100*time.Millisecond)))
	defer context.AfterFunc(ctx, func() { _ = stdin.SetWriteDeadline(time.Now()) })()
	n, err := stdin.WriteString(chars)
	switch {
	case err == nil:
		return n, nil
	case ctx.Err() != nil:
		return n, failuref(protocol.Cancelled, "the turn ended; the command took %d of %d bytes", n, len(chars))
	case os.IsTimeout(err):
		return n, failuref(protocol.StdinFull, "the command took %d of %d bytes", n, len(chars))
	}
	return n, failuref(protocol.StdinClosed, "the command closed its input after %d of %d bytes", n, len(chars))
}

// CloseInput ends the command's input.
func (r *Running) CloseInput() *Failure {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stdin == nil {
		return r.noInputLocked()
	}
	r.stdin.Close()
	r.stdin = nil
	return nil
}

// CheckInput refuses a command that has no pipe.
func (r *Running) CheckInput() *Failure {
	if !r.piped {
		return failuref(protocol.StdinNotOpen, "the command was started without stdin: true")
	}
	return nil
}

func (r *Running) noInput() *Failure {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.noInputLocked()
}

func (r *Running) noInputLocked() *Failure {
	if !r.piped {
		return failuref(protocol.StdinNotOpen, "the command was started without stdin: true")
	}
	return failuref(protocol.StdinClosed, "the command's input is closed")
}

// Signal sends INT, TERM or KILL to the command's group, unless it has ended.
func (r *Running) Signal(name string) {
	sig := map[string]syscall.Signal{"INT": unix.SIGINT, "TERM": unix.SIGTERM, "KILL": unix.SIGKILL}[name]
	select {
	case <-r.c.process.ended: // it may be reaped, and its number another's
	default:
		r.c.process.signalGroup(sig)
	}
}

// silence ends a collection of output that has something to show.
const silence = 100 * time.Millisecond

// Collect waits for output until d is over, the command ends, or 100 ms pass in
// silence behind some, and gives the write_stdin result.
func (r *Running) Collect(ctx context.Context, handle string, d time.Duration) Result {
	limit := time.NewTimer(d)
	defer limit.Stop()
	quiet := time.NewTimer(silence)
	quiet.Stop()
	defer quiet.Stop()
	for waiting := true; waiting; {
		select {
		case <-r.tails[0].news:
			quiet.Reset(silence)
		case <-r.tails[1].news:
			quiet.Reset(silence)
		case <-quiet.C:
			waiting = false
		case <-limit.C:
			waiting = false
		case <-r.ended:
			waiting = false
		case <-ctx.Done():
			waiting = false
		}
	}
	running := true
	select {
	case <-r.ended:
		running = false
	default:
	}
	return r.collected(handle, running)
}

func (r *Running) collected(handle string, running bool) Result {
	stdout, lostOut := r.tails[0].take()
	stderr, lostErr := r.tails[1].take()
	o := output{Handle: handle, Running: running, Stdout: stdout, Stderr: stderr, Dropped: lostOut + lostErr}
	if !running {
		ok := !r.done.Failed
		o.Success = &ok
		o.Exit = r.c.exitCode()
	}
	return o.result()
}

// output is the write_stdin result.
type output struct {
	Handle  string          `json:"handle"`
	Running bool            `json:"running"`
	Stdout  string          `json:"stdout"`
	Stderr  string          `json:"stderr"`
	Dropped int64           `json:"dropped_bytes,omitzero"`
	Exit    json.RawMessage `json:"exit_code,omitzero"` // once it has ended
	Success *bool           `json:"success,omitzero"`
}

func (o output) result() Result {
	out, _ := protocol.Append(nil, o)
	return Result{Output: string(out)}
}

// NoOutput is the write_stdin result of a command that still waits in line.
func NoOutput(handle string) Result { return output{Handle: handle, Running: true}.result() }

// tail keeps the newest output of a stream until it is taken.
type tail struct {
	mu   sync.Mutex
	buf  []byte
	lost int64
	news chan struct{}
}

func newTail() *tail { return &tail{news: make(chan struct{}, 1)} }

func (t *tail) add(p []byte) {
	t.mu.Lock()
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - maxPreview; over > 0 {
		t.lost += int64(over)
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	select {
	case t.news <- struct{}{}:
	default:
	}
	t.mu.Unlock()
}

// take gives what came since the last take, and how many older bytes are gone.
// What it gives is no news any more.
func (t *tail) take() (text string, lost int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-t.news:
	default:
	}
	whole, rest := splitBroken(t.buf) // output may have come up to within a character
	text, lost = strings.ToValidUTF8(string(whole), ""), t.lost
	t.buf, t.lost = append([]byte(nil), rest...), 0
	return text, lost
}

// Detached is a command that lives on when its call, its turn and, unless it is
// confined, the daemon have ended. Nobody is told what it comes to. Wait is
// called once; the other methods are safe for concurrent use.
type Detached struct {
	process *process
	end     func()
}

// PID is its process, which leads a session of its own.
func (d *Detached) PID() int { return d.process.pid }

// Wait returns once it has ended and is reaped.
func (d *Detached) Wait() {
	d.process.reap()
	d.end()
}

// Kill ends its whole group, a confined one's sandbox with it, and returns once
// its leader has ended. It reports whether that one still ran.
func (d *Detached) Kill() bool {
	select {
	case <-d.process.ended:
		return false
	default:
	}
	d.process.signalGroup(unix.SIGKILL)
	<-d.process.ended
	return true
}

// startDetached starts a script in a session of its own, with nothing of ours:
// it redirects for itself.
func startDetached(ctx context.Context, env *Env, script string) (*Detached, *Failure) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, failuref(protocol.ShellSpawnFailed, "%v", err)
	}
	defer null.Close()
	argv, environ, dir := []string{env.Shell, "-c", "--", script}, withoutStartFiles(env.Environ), env.Workspace
	files := []*os.File{null, null, null}
	d, inner := &Detached{end: func() {}}, (func() int)(nil)
	if env.Confinement != nil {
		c, f := env.confine(ctx, argv, true)
		if f != nil {
			return nil, f
		}
		defer c.Started()
		argv, environ, dir, d.end, inner = c.Argv, c.Env, c.Dir, c.end, c.Pid
		files = append(files, c.Files...)
	}
	if d.process, err = startProcess(argv, environ, dir, files, true, inner); err != nil {
		d.end()
		return nil, failuref(protocol.ShellSpawnFailed, "%s: %v", env.Shell, err)
	}
	return d, nil
}
