package tool

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"agent/protocol"
)

const (
	// termGrace is how long a group has between SIGTERM and SIGKILL.
	termGrace = 500 * time.Millisecond
	// firstLook is how long after its leader's end a group is looked at again;
	// the pauses double.
	firstLook = 15 * time.Millisecond
	// drainTime is how long what is left in the pipes is read after the group
	// was killed.
	drainTime = 250 * time.Millisecond
)

// command is a running script with its two captured streams.
type command struct {
	env      *Env
	process  *process
	confined *confined  // nil outside a sandbox
	streams  [2]*reader // stdout, stderr
	over     chan struct{}

	status      syscall.WaitStatus
	timedOut    bool
	stopped     bool // ended by us before its time
	leftRunning bool
}

// reader copies one pipe into its capture until the pipe ends.
type reader struct {
	pipe    *os.File
	capture *capture
	done    chan struct{} // closed when the copying has ended
	eof     bool          // nobody holds the pipe any more; read after done
}

// startCommand starts a script. The caller must supervise it.
func startCommand(ctx context.Context, env *Env, script string) (*command, *Failure) {
	return startCommandWith(ctx, env, script, false, nil, [2]*tail{})
}

// startCommandWith is startCommand with a standard input, nil for an empty one,
// and with tails that get the newest output, nil for none. beyond says that the
// command outlives its call.
func startCommandWith(ctx context.Context, env *Env, script string, beyond bool, input *os.File, tails [2]*tail) (*command, *Failure) {
	c := &command{env: env, over: make(chan struct{})}
	if input == nil {
		null, err := os.Open(os.DevNull)
		if err != nil {
			return nil, failuref(protocol.ShellSpawnFailed, "%v", err)
		}
		defer null.Close()
		input = null
	}
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		return nil, failuref(protocol.ShellSpawnFailed, "%v", err)
	}
	defer outWrite.Close()
	errRead, errWrite, err := os.Pipe()
	if err != nil {
		_ = outRead.Close()
		return nil, failuref(protocol.ShellSpawnFailed, "%v", err)
	}
	defer errWrite.Close()
	// A script that begins with a dash is no option of the shell.
	argv := []string{env.Shell, "-c", "--", script}
	var f *Failure
	c.process, c.confined, f = env.startIn(ctx, argv, beyond, [3]*os.File{input, outWrite, errWrite})
	if f != nil {
		_, _ = outRead.Close(), errRead.Close()
		return nil, f
	}
	over := sync.OnceFunc(func() { close(c.over) })
	for i, pipe := range []*os.File{outRead, errRead} {
		name := []string{"stdout", "stderr"}[i]
		kept := newCapture(env, name)
		kept.tail = tails[i]
		c.streams[i] = &reader{pipe: pipe, capture: kept, done: make(chan struct{})}
		go c.streams[i].copy(over)
	}
	return c, nil
}

// withoutStartFiles drops the variables that would make the shell run a file,
// or a command, of its own.
func withoutStartFiles(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return name == "BASH_ENV" || name == "ENV" || name == "PROMPT_COMMAND"
	})
}

// copy reads until the pipe ends or its deadline passes. over is called when
// the stream passes its limit, or the disk is full; what follows is read and dropped, so that the
// writer is not stopped by a full pipe before it is killed. A buffer is held
// only while there is something to read.
func (r *reader) copy(over func()) {
	defer close(r.done)
	conn, err := r.pipe.SyscallConn()
	if err != nil {
		return
	}
	for {
		var buffer *[bufferSize]byte
		var n int
		var failed error
		err := conn.Read(func(fd uintptr) bool {
			buffer = buffers.Get().(*[bufferSize]byte)
			n, failed = unix.Read(int(fd), buffer[:])
			if errors.Is(failed, unix.EAGAIN) || errors.Is(failed, unix.EINTR) {
				buffers.Put(buffer)
				buffer = nil
				return errors.Is(failed, unix.EINTR)
			}
			return true
		})
		if buffer != nil {
			if n > 0 {
				if _, werr := r.capture.Write(buffer[:n]); werr != nil {
					over()
				}
			}
			buffers.Put(buffer)
		}
		switch {
		case err != nil:
			return
		case buffer == nil:
			continue // interrupted
		case failed != nil:
			return
		case n == 0:
			r.eof = true
			return
		}
	}
}

// supervise waits for the script's end, or ends it: at limit of running time,
// at a stream's limit, or when ctx does. When it returns, no process of the
// group is left and both streams are read out.
func (c *command) supervise(ctx context.Context, limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-c.process.ended:
	case <-c.over:
		c.stopped = true
	case <-timer.C:
		c.stopped, c.timedOut = true, true
		c.terminate()
	case <-ctx.Done():
		c.stopped = true
		if c.env.Cause == nil || c.env.Cause() == StopInterrupt {
			c.terminate()
		}
	}
	c.status = c.process.finish()
	c.drain()
	if c.confined != nil {
		c.confined.end()
	}
}

// terminate asks the group to end and gives all of it a moment to: the script
// may end at once and what it started still be writing its files. That the
// last member is gone can only be asked for, so it is, ever less often.
func (c *command) terminate() {
	c.process.signalGroup(unix.SIGTERM)
	grace := time.NewTimer(termGrace)
	defer grace.Stop()
	select {
	case <-c.process.ended:
	case <-c.over:
		return
	case <-grace.C:
		return
	}
	group := groupWatch{pgid: c.process.pid}
	for pause := firstLook; group.lives(); pause *= 2 {
		look := time.NewTimer(pause)
		select {
		case <-look.C:
		case <-c.over:
			look.Stop()
			return
		case <-grace.C:
			look.Stop()
			return
		}
	}
}

// drain reads what is still in the pipes. One that does not end is held by a
// process that left the group.
func (c *command) drain() {
	until := time.Now().Add(drainTime)
	for _, r := range c.streams {
		_ = r.pipe.SetReadDeadline(until)
	}
	for _, r := range c.streams {
		<-r.done
		_ = r.pipe.Close()
		c.leftRunning = c.leftRunning || !r.eof
	}
}

// result is what the model is told (runtime.md 11, shell).
func (c *command) result() Result {
	stdout, stderr := c.streams[0].capture.finish(), c.streams[1].capture.finish()
	if c.neverRan() {
		return c.env.refuse(failuref(protocol.ShellSpawnFailed, "the sandbox could not be started, and nothing ran: %s", strings.TrimSpace(stderr.preview)))
	}
	over := stdout.over || stderr.over
	killed := c.stopped || c.status.Signaled()
	success := !killed && !over && !stdout.full && !stderr.full && c.status.ExitStatus() == 0

	b := make([]byte, 0, len(stdout.preview)+len(stderr.preview)+1<<10)
	b = appendQuoted(append(b, `{"stdout":`...), stdout.preview)
	b = appendQuoted(append(b, `,"stderr":`...), stderr.preview)
	b = append(append(b, `,"exit_code":`...), c.exitCode()...)
	b = strconv.AppendBool(append(b, `,"success":`...), success)
	if over {
		b = appendQuoted(append(b, `,"error":`...), string(protocol.ShellOutputLimit))
	}
	if c.timedOut {
		b = append(b, `,"timed_out":true`...)
	}
	if c.status.Signaled() {
		b = appendQuoted(append(b, `,"signal":`...), unix.SignalName(c.status.Signal()))
	}
	if c.leftRunning {
		b = append(b, `,"left_running":true`...)
	}
	b = c.appendConfined(b, success, stdout.preview, stderr.preview)
	r := Result{Failed: !success}
	var references, files []string
	for _, s := range []captured{stdout, stderr} {
		if s.artifact == nil {
			continue
		}
		r.Artifacts = append(r.Artifacts, *s.artifact)
		references = append(references, c.env.reference(s.artifact.Stream))
		if s.artifact.File != "" {
			files = append(files, s.artifact.File)
		}
	}
	b = appendList(b, "artifacts", references)
	b = appendList(b, "files", files)
	r.Output = string(append(b, '}'))
	return r
}

// neverRan reports whether the launcher of a confined command gave up before it
// started: it ended by itself without a word of the command's end.
func (c *command) neverRan() bool {
	return c.confined != nil && !c.stopped && !c.status.Signaled() && !c.confined.ran
}

// appendConfined adds what the sandbox has to say about a command.
func (c *command) appendConfined(b []byte, success bool, stdout, stderr string) []byte {
	if c.confined == nil {
		return b
	}
	if !success && !c.stopped {
		if hint := sandboxHint(c.confined.placed.Plan, stdout+"\n"+stderr); hint != "" {
			b = appendQuoted(append(b, `,"sandbox_hint":`...), hint)
		}
	}
	return appendList(b, "protected_changed", c.confined.changed)
}

// exitCode is the script's exit status, null when it was killed.
func (c *command) exitCode() json.RawMessage {
	if c.stopped || c.status.Signaled() {
		return json.RawMessage("null")
	}
	return strconv.AppendInt(nil, int64(c.status.ExitStatus()), 10)
}

// appendList adds a member that is a list of strings, unless it is empty.
func appendList(b []byte, name string, items []string) []byte {
	for i, item := range items {
		if i == 0 {
			b = append(appendQuoted(append(b, ','), name), ":["...)
		} else {
			b = append(b, ',')
		}
		b = appendQuoted(b, item)
	}
	if len(items) > 0 {
		b = append(b, ']')
	}
	return b
}
