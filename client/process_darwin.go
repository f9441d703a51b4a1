package client

import "golang.org/x/sys/unix"

// zombie reports that a process has ended and only waits for its parent.
func zombie(pid int) bool {
	const sZOMB = 5 // from sys/proc.h
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	return err == nil && info.Proc.P_stat == sZOMB
}
