package tool

import "golang.org/x/sys/unix"

// groupWatch looks for members of a process group whose leader has ended. A
// signal 0 would not tell: the leader is not reaped yet, and counts.
type groupWatch struct{ pgid int }

// zombieState is the state of a process that has ended and is not reaped (SZOMB).
const zombieState = 5

// lives reports whether a member of the group has not ended. Where that cannot
// be seen it reports that one has not, so that the group has its full time.
func (g *groupWatch) lives() bool {
	members, err := unix.SysctlKinfoProcSlice("kern.proc.pgrp", g.pgid)
	if err != nil {
		return true
	}
	for i := range members {
		if members[i].Proc.P_stat != zombieState {
			return true
		}
	}
	return false
}
