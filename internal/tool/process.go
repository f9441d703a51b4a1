package tool

import (
	"errors"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// process is a child that leads a process group of its own.
type process struct {
	pid int
	// ended is closed once the leader has ended. Until reap it stays a zombie,
	// so its number, which is its group's too, cannot belong to a stranger.
	ended chan struct{}
	// inner gives, for a confined command, the leader of the group within, which
	// signals that a command may handle go to: 0 while there is none, -1 where it
	// is the process itself. nil for any other command.
	inner func() int

	mu     sync.Mutex
	reaped bool
}

// starting bounds how many processes are being started at once. Each holds a
// thread until its program runs, and a thread that the runtime has made stays.
var starting = make(chan struct{}, 8)

// startProcess starts argv in dir with the three standard files and what comes
// behind them, in a group or a session of its own; with inner, which is
// process.inner, in a session. The child starts with default signal handlers:
// the runtime resets those of the daemon between fork and exec.
func startProcess(argv, env []string, dir string, files []*os.File, session bool, inner func() int) (*process, error) {
	session = session || inner != nil
	attr := &syscall.ProcAttr{Dir: dir, Env: env, Sys: &syscall.SysProcAttr{Setpgid: !session, Setsid: session}}
	for _, f := range files {
		attr.Files = append(attr.Files, f.Fd())
	}
	if inner != nil {
		dieWithUs(attr.Sys)
	}
	pidfd := watchable(attr.Sys)
	starting <- struct{}{}
	pid, err := syscall.ForkExec(argv[0], argv, attr)
	<-starting
	if err != nil {
		return nil, err
	}
	p := &process{pid: pid, inner: inner, ended: make(chan struct{})}
	go func() {
		awaitEnd(pid, *pidfd)
		close(p.ended)
	}()
	return p, nil
}

// signalGroup sends sig to all of the group, unless the leader was reaped: the
// number may be a stranger's then. Of a confined command SIGKILL goes to the
// launcher, with which the whole sandbox dies; another signal would end the
// launcher before the command has handled it, and so goes to the command's own
// group (sandbox.md 4.3).
func (p *process) signalGroup(sig syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return
	}
	group := p.pid
	if p.inner != nil && sig != unix.SIGKILL {
		switch inner := p.inner(); {
		case inner == 0:
			return // nothing runs yet
		case inner > 1:
			group = inner
		}
	}
	_ = unix.Kill(-group, sig) // gone is as good
}

// finish kills what is left of the group, waits for the leader's end and reaps
// it. That the group is killed first is what makes the number safe to use.
func (p *process) finish() syscall.WaitStatus {
	p.signalGroup(unix.SIGKILL)
	return p.reap()
}

// reap waits for the leader's end and reaps it; the rest of its group lives on.
func (p *process) reap() syscall.WaitStatus {
	<-p.ended
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reaped = true
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(p.pid, &status, 0, nil)
		if !errors.Is(err, syscall.EINTR) {
			return status
		}
	}
}
