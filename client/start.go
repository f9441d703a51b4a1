package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"agent/internal/place"
	"agent/protocol"
)

// startWindow covers connecting, starting and reading the whole ready line.
const startWindow = 10 * time.Second

// startPoll is how often the socket of a daemon that starts is tried.
const startPoll = 50 * time.Millisecond

// exitOwned is serve's exit status when another daemon owns the store or the
// socket: the race that a client recognises by the status alone.
const exitOwned = 75

// Start connects to the target's daemon, starting one when none answers, and
// reports whether it did (section 3). Stated options that differ from a running
// daemon's are daemon_configuration_mismatch. Losing the start race is not an
// error. Inside a bot's shell on the bot's socket it starts nothing. A nil s is
// the zero Starter. With daemon_protocol_mismatch and daemon_configuration_mismatch
// ready is what the listener announced, if it announced something; with any other
// error it is nil, and started says no more than that a process was begun.
//
// What was started goes on when ctx ends and when this program does; until then a
// goroutine waits for its exit.
func (c *Client) Start(ctx context.Context, s *Starter) (ready *protocol.Ready, started bool, err error) {
	if s == nil {
		s = &Starter{}
	}
	session, ready, started, err := c.start(ctx, c.untilClose(), s, false)
	if err != nil {
		return ready, started, err
	}
	c.mu.Lock()
	keep := c.shared == nil || !c.shared.alive()
	if keep {
		c.shared = session
	}
	c.mu.Unlock()
	if !keep {
		session.Close()
	}
	return ready, started, nil
}

// start is Start with the session it made, unless life ends.
func (c *Client) start(ctx, life context.Context, s *Starter, notify bool) (*Session, *protocol.Ready, bool, error) {
	target, err := c.target()
	if err != nil {
		return nil, nil, false, err
	}
	ctx, cancel := within(ctx, life)
	defer cancel()
	window := s.Window
	if window == 0 {
		window = startWindow
	}
	search := &search{c: c, s: s, target: target, end: time.Now().Add(window), window: window}
	l, err := search.run(ctx)
	started := search.started()
	won := started && l != nil && l.ready != nil && search.child.race(l)
	if err != nil {
		if l != nil && l.ready != nil {
			return nil, l.ready, false, err
		}
		return nil, nil, started, err
	}
	if err := s.Check(l.ready); err != nil {
		l.close()
		return nil, l.ready, started, err
	}
	session, err := c.adopt(l, notify, life)
	if err != nil {
		return nil, nil, started, err
	}
	return session, session.ready, won, nil
}

// search is one look for a daemon, within one window.
type search struct {
	c      *Client
	s      *Starter
	target Target
	window time.Duration
	end    time.Time
	child  *child // once one was started
	owned  bool   // one that was started gave way to another
}

func (s *search) started() bool { return s.child != nil }

// run connects, and starts a daemon at the first sign that none is there.
func (s *search) run(ctx context.Context) (*link, error) {
	l, err := s.try(ctx)
	if !errors.Is(err, protocol.DaemonUnavailable) {
		return l, err
	}
	if s.s.NoSpawn || inBotShell(s.target.Socket) {
		return nil, err
	}
	if s.child, err = s.spawn(); err != nil {
		return nil, err
	}
	return s.meet(ctx)
}

// meet polls for the daemon that was started, or for the one that won. The
// owner that a child lost to may have been on its way out, so while nobody
// answers another child is tried, less and less often.
func (s *search) meet(ctx context.Context) (*link, error) {
	exited := s.child.exited
	var again <-chan time.Time
	for delay := 5 * startPoll; ; {
		select {
		case <-exited:
			exited = nil
			if s.child.code == exitOwned {
				s.owned = true
				again = time.After(delay)
				delay *= 2
				continue
			}
			if l, err := s.try(ctx); !errors.Is(err, protocol.DaemonUnavailable) {
				return l, err
			}
			return nil, protocol.Fail(protocol.DaemonStartFailed, s.child.failure(s.logPath()))
		case <-again:
			again = nil
			child, err := s.spawn()
			if err != nil {
				return nil, err
			}
			s.child, exited = child, child.exited
			continue
		case <-ctx.Done():
			return nil, contextError(ctx, "start a daemon")
		case <-time.After(startPoll):
		}
		l, err := s.try(ctx)
		if !errors.Is(err, protocol.DaemonUnavailable) {
			return l, err
		}
	}
}

// try connects once, within what is left of the window.
func (s *search) try(ctx context.Context) (*link, error) {
	left := time.Until(s.end)
	if left <= 0 {
		return nil, protocol.Fail(protocol.DaemonStartTimeout, fmt.Sprintf("no daemon was ready on %s within %v%s", s.target.Socket, s.window, s.owner()))
	}
	limited, cancel := context.WithTimeoutCause(ctx, left, os.ErrDeadlineExceeded)
	defer cancel()
	l, err := s.c.connect(limited, s.target, limits{left, left, protocol.DaemonStartTimeout, protocol.DaemonStartTimeout})
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = protocol.Fail(protocol.DaemonStartTimeout, fmt.Sprintf("%s sent no whole ready line within %v", s.target.Socket, s.window))
	}
	return l, err
}

// owner says, where a daemon that was started gave way to another, that there is
// one, which listens somewhere else or nowhere.
func (s *search) owner() string {
	if !s.owned {
		return ""
	}
	return ": another daemon has the store " + s.target.Store + " or that socket; name its socket with --socket, or end it"
}

func (s *search) logPath() string { return s.target.Store + ".log" }

// spawn starts agent serve in a session of its own, so that neither the
// caller's terminal nor its process group can end it.
func (s *search) spawn() (*child, error) {
	if err := s.target.whole(); err != nil {
		return nil, err
	}
	if s.s.ExistingOnly {
		if _, err := os.Stat(s.target.Store); errors.Is(err, fs.ErrNotExist) {
			return nil, protocol.Fail(protocol.StoreNotFound, "there is no store "+s.target.Store)
		}
	}
	bin, err := s.s.Program()
	if err != nil {
		return nil, err
	}
	env, err := s.s.environment()
	if err != nil {
		return nil, err
	}
	providers := s.s.Providers
	if len(providers) == 0 {
		providers = ImpliedProviders(env)
	}
	if len(providers) == 0 {
		return nil, protocol.Fail(protocol.NoProviders, "a daemon needs a model provider: set ANTHROPIC_API_KEY, OPENAI_API_KEY or OPENROUTER_API_KEY, set AGENT_PROVIDER, sign in with agent login chatgpt, or give --provider, such as ollama for a local server or, offline, --provider scripted")
	}
	args, err := s.s.arguments(s.target, providers)
	if err != nil {
		return nil, err
	}
	return s.launch(bin, args, env)
}

func (s *search) launch(bin string, args, env []string) (*child, error) {
	if err := makeFolder(s.target.Store); err != nil {
		return nil, err
	}
	log, err := place.OpenPrivate(s.logPath(), os.O_WRONLY|os.O_CREATE|os.O_APPEND)
	if err != nil {
		return nil, coded(protocol.DaemonStartFailed, "the log cannot be opened: "+err.Error()+"; the store must lie in a folder that is there and is yours", err)
	}
	defer log.Close()
	from, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, coded(protocol.DaemonStartFailed, "the log cannot be opened: "+err.Error()+"; the store must lie in a folder that is there and is yours", err)
	}
	cmd := exec.Command(bin, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = env, log, log // stdin is /dev/null
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, coded(protocol.DaemonStartFailed, bin+" cannot be started: "+reason(err), err)
	}
	ch := &child{pid: cmd.Process.Pid, process: cmd.Process, logFrom: from, exited: make(chan struct{})}
	go ch.wait(cmd)
	return ch, nil
}

// makeFolder makes ~/.agent when the store lies there. No other folder is made.
func makeFolder(store string) error {
	def, err := place.DefaultStore()
	if err != nil {
		return nil // no home, so the store is elsewhere
	}
	if canonical, err := place.Canonical(def); err != nil || filepath.Dir(canonical) != filepath.Dir(store) {
		return nil
	}
	_, err = place.MakeAgentDir()
	return placeError(err)
}

// child is a daemon that was started. code and ended may be read once exited is
// closed.
type child struct {
	pid     int
	process *os.Process
	logFrom int64 // where its log begins
	exited  chan struct{}
	code    int
	ended   string // how, in the system's words
}

// wait reaps the child, whenever that is.
func (ch *child) wait(cmd *exec.Cmd) {
	cmd.Wait()
	ch.code, ch.ended = cmd.ProcessState.ExitCode(), cmd.ProcessState.String()
	close(ch.exited)
}

// race reports whether it is the child that listens, or what the child started
// where that is a wrapper. One that another daemon was faster than is ended: left to
// find that out by itself it would come up where the other is shut down meanwhile,
// and nobody would know of it.
func (ch *child) race(l *link) (won bool) {
	pid := l.peer
	if pid == 0 {
		pid = l.ready.PID
	}
	session, err := unix.Getsid(pid)
	if pid == ch.pid || err == nil && session == ch.pid {
		return true
	}
	if err == nil { // a process that cannot be seen may yet be ours
		ch.process.Signal(syscall.SIGTERM) // not to whoever has the number of one that has ended
	}
	return false
}

// failure is the last line that the child wrote to its log. Other daemons of
// the store write there too: what says that one is ready, or lost a race, is
// not why this one failed.
func (ch *child) failure(path string) string {
	const most = 4096
	text := fmt.Sprintf("agent serve exited with status %d", ch.code)
	if ch.code < 0 {
		text = "agent serve was ended: " + ch.ended
	}
	if ch.code == 0 {
		return text + ": it was ended before it could be met"
	}
	f, err := os.Open(path)
	if err != nil {
		return text
	}
	defer f.Close()
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return text
	}
	tail := make([]byte, max(0, min(end-ch.logFrom, most)))
	if _, err := f.ReadAt(tail, end-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return text
	}
	lines := bytes.Split(tail, []byte("\n"))
	whole := len(lines[len(lines)-1]) == 0
	for _, line := range slices.Backward(lines) {
		if len(line) > 0 && !ofAnother(line) {
			text = string(bytes.ToValidUTF8(line, []byte("\uFFFD")))
			if whole {
				return text
			}
			break
		}
	}
	return text + unwritable(path)
}

// unwritable says why a log holds nothing, or half a line, when that is because
// no more goes into it: a full disk ends the daemon, and its words with it.
func unwritable(path string) string {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		_, err = f.WriteString("\n") // every reader passes over it
		err = errors.Join(err, f.Close())
	}
	switch {
	case err == nil:
		return ""
	case errors.Is(err, syscall.ENOSPC):
		return "; the disk that holds " + path + " is full: make room and start again"
	}
	return "; its log cannot be written: " + err.Error()
}

func ofAnother(line []byte) bool {
	return bytes.HasPrefix(line, []byte(`{"event":"ready"`)) ||
		bytes.HasPrefix(line, []byte("agent: "+protocol.StoreAlreadyOwned)) || bytes.HasPrefix(line, []byte("agent: "+protocol.SocketAlreadyOwned))
}
