package daemon

import (
	"fmt"
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
		if n, err := unix.GetsockoptInt(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERPID); err == nil {
			pid = n
		}
	})
	return pid
}

// bornAt tells a process from every other that has or had its number. It is not
// there when the process has ended, reaped or not.
func bornAt(pid int) (born string, ok bool) {
	const zombie = 5 // SZOMB of sys/proc.h
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(info.Proc.P_pid) != pid || info.Proc.P_stat == zombie {
		return "", false
	}
	return fmt.Sprintf("%d.%06d", info.Proc.P_starttime.Sec, info.Proc.P_starttime.Usec), true
}
