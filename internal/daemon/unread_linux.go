package daemon

import (
	"net"

	"golang.org/x/sys/unix"
)

// unreadBytes is how much of what was written to a socket its peer has not read
// yet, -1 when that cannot be told.
func unreadBytes(c net.Conn) int {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return -1
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return -1
	}
	n := -1
	raw.Control(func(fd uintptr) {
		if v, err := unix.IoctlGetInt(int(fd), unix.TIOCOUTQ); err == nil {
			n = v
		}
	})
	return n
}
