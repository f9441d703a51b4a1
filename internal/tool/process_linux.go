package tool

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// watchable asks for a pidfd of the child.
func watchable(sys *syscall.SysProcAttr) *int {
	fd := -1
	sys.PidFD = &fd
	return &fd
}

// dieWithUs has the child killed when the daemon dies. What it starts is its own
// to see to.
func dieWithUs(sys *syscall.SysProcAttr) { sys.Pdeathsig = syscall.SIGKILL }

// awaitEnd returns once the process has ended, and leaves it unreaped. It waits
// in the poller; a thread is blocked only where the kernel has no pidfd.
func awaitEnd(pid, pidfd int) {
	if pidfd >= 0 && polledEnd(pidfd) {
		return
	}
	waitUnreaped(unix.P_PID, pid, 0)
}

func polledEnd(pidfd int) bool {
	if err := unix.SetNonblock(pidfd, true); err != nil {
		_ = unix.Close(pidfd)
		return false
	}
	f := os.NewFile(uintptr(pidfd), "pidfd")
	defer f.Close()
	conn, err := f.SyscallConn()
	if err != nil {
		return false
	}
	return conn.Read(func(fd uintptr) bool {
		return waitUnreaped(unix.P_PIDFD, int(fd), unix.WNOHANG)
	}) == nil
}

// waitUnreaped reports whether the process has ended, after waiting for that
// unless flags say otherwise.
func waitUnreaped(kind, id, flags int) bool {
	for {
		var info unix.Siginfo
		err := unix.Waitid(kind, id, &info, unix.WEXITED|unix.WNOWAIT|flags, nil)
		if !errors.Is(err, unix.EINTR) {
			return err != nil || info.Signo != 0
		}
	}
}
