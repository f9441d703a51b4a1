package client

import (
	"bytes"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// peerPID is the process at the other end, 0 where the system does not say.
func peerPID(conn net.Conn) int {
	pid := 0
	onSocket(conn, func(fd int) {
		if cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(cred.Pid)
		}
	})
	return pid
}

// zombie reports that a process has ended and only waits for its parent. The
// state follows the command's name, which is in parentheses and may itself
// hold some.
func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return os.IsNotExist(err) && hasProc()
	}
	i := bytes.LastIndexByte(stat, ')')
	return i >= 0 && len(stat) > i+2 && (stat[i+2] == 'Z' || stat[i+2] == 'X')
}

// hasProc tells a process that vanished from a system without /proc.
func hasProc() bool {
	_, err := os.Stat("/proc/self/stat")
	return err == nil
}
