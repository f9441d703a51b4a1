package daemon

import (
	"net"

	"golang.org/x/sys/unix"
)

// peerPID is the process at the other end of a connection, 0 where that cannot
// be told.
func peerPID(c *net.UnixConn) (pid int) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0
	}
	raw.Control(func(fd uintptr) {
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(cred.Pid)
		}
	})
	return pid
}
