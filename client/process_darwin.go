package client

import (
	"net"

	"golang.org/x/sys/unix"
)

// peerPID is the process at the other end, 0 where the system does not say.
func peerPID(conn net.Conn) int {
	pid := 0
	onSocket(conn, func(fd int) {
		if n, err := unix.GetsockoptInt(fd, unix.SOL_LOCAL, unix.LOCAL_PEERPID); err == nil {
			pid = n
		}
	})
	return pid
}

// zombie reports that a process has ended and only waits for its parent.
func zombie(pid int) bool {
	const sZOMB = 5 // from sys/proc.h
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	return err == nil && info.Proc.P_stat == sZOMB
}
