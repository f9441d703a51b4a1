package place

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// BornAt tells a process from every other that has or had its number. It is not
// there when the process has ended, reaped or not.
func BornAt(pid int) (born string, ok bool) {
	const zombie = 5 // SZOMB of sys/proc.h
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(info.Proc.P_pid) != pid || info.Proc.P_stat == zombie {
		return "", false
	}
	return fmt.Sprintf("%d.%06d", info.Proc.P_starttime.Sec, info.Proc.P_starttime.Usec), true
}

// thisBoot reports whether a process of that birth ran since the system was started.
func thisBoot(born string) bool {
	up, err := unix.SysctlTimeval("kern.boottime")
	var seconds int64
	_, scanned := fmt.Sscanf(born, "%d.", &seconds)
	return err == nil && scanned == nil && seconds >= up.Sec
}
