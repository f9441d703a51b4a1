package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"agent/protocol"
)

// shutdownLimit is how long a daemon may take to be gone, after its grace.
const shutdownLimit = 30 * time.Second

// Shutdown ends the daemon, after at most grace for its running turns, and
// returns when its process is gone: then the store is closed and may be
// copied. A zombie counts as gone. It never starts a daemon. A daemon of an
// older protocol is ended by SIGTERM; one of a newer is left alone, as
// daemon_protocol_mismatch. daemon_shutdown_timeout comes 30 s after the grace.
func (c *Client) Shutdown(ctx context.Context, grace time.Duration) error {
	_, err := c.ShutdownPID(ctx, grace)
	return err
}

// ShutdownPID is Shutdown, and says which process it was.
func (c *Client) ShutdownPID(ctx context.Context, grace time.Duration) (pid int, err error) {
	target, err := c.target()
	if err != nil {
		return 0, err
	}
	life := c.untilClose()
	dialing, cancel := within(ctx, life)
	defer cancel()
	l, err := c.connect(dialing, target, c.stepLimits())
	if errors.Is(err, protocol.DaemonProtocolMismatch) && l.ready != nil && l.ready.Protocol < protocol.Version {
		if err := l.checkPeer(); err != nil {
			return 0, err
		}
		return l.ready.PID, endOld(ctx, l.ready.PID)
	}
	if err != nil {
		return 0, withOp(err, protocol.OpShutdown)
	}
	s, err := c.adopt(l, false, life)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	pid = s.Ready().PID
	err = s.Do(ctx, protocol.OpShutdown, &protocol.Shutdown{GraceMS: grace.Milliseconds()}, nil)
	if err != nil && !errors.Is(err, protocol.DaemonDisconnected) {
		return pid, err
	}
	return pid, awaitExit(ctx, pid, s.Done(), grace+shutdownLimit)
}

// checkPeer refuses to signal a process that is not the one that listens.
func (l *link) checkPeer() error {
	if pid := l.ready.PID; pid == 1 || pid == os.Getpid() || l.peer != 0 && l.peer != pid {
		return protocol.Fail(protocol.DaemonProtocolMismatch,
			fmt.Sprintf("the listener speaks an older protocol and says it is process %d, which it is not; nothing was ended", pid))
	}
	return nil
}

func endOld(ctx context.Context, pid int) error {
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return &protocol.Error{
			Code: protocol.DaemonProtocolMismatch, Op: protocol.OpShutdown,
			Detail: fmt.Sprintf("the daemon, process %d, speaks an older protocol and cannot be ended: %s", pid, reason(err)), Cause: err,
		}
	}
	ended := make(chan struct{})
	close(ended)
	return awaitExit(ctx, pid, ended, shutdownLimit)
}

// awaitExit returns when the process is gone. The end of the connection says
// when to begin looking; from there on it is a matter of moments, and no
// system call that all our systems have waits for a process not one's own.
func awaitExit(ctx context.Context, pid int, disconnected <-chan struct{}, limit time.Duration) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	select {
	case <-disconnected:
	case <-limited.Done():
	}
	for !processGone(pid) {
		if pause(limited, 20*time.Millisecond) {
			continue
		}
		if ctx.Err() != nil {
			return contextError(ctx, protocol.OpShutdown)
		}
		return &protocol.Error{
			Code: protocol.DaemonShutdownTimeout, Op: protocol.OpShutdown,
			Detail: fmt.Sprintf("process %d is still there after %v", pid, limit),
		}
	}
	return nil
}

// onSocket calls f with the descriptor of a connection that has one.
func onSocket(conn net.Conn, f func(fd int)) {
	sc, ok := conn.(syscall.Conn)
	if !ok {
		return
	}
	if raw, err := sc.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) { f(int(fd)) })
	}
}

// processGone reports that no process has the pid, or only its remains.
func processGone(pid int) bool {
	if err := syscall.Kill(pid, 0); err != nil {
		return errors.Is(err, syscall.ESRCH)
	}
	return zombie(pid)
}
