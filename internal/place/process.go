package place

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Group is a process group as it can be written down: its leader, and what tells that
// process from every other of its number.
type Group struct {
	PID  int    `json:"pid"`
	Born string `json:"born"`
}

// GroupOf is the group that a process leads, as long as it lives; the zero Group
// otherwise.
func GroupOf(pid int) Group {
	born, ok := BornAt(pid)
	if group, err := unix.Getpgid(pid); !ok || err != nil || group != pid {
		return Group{}
	}
	return Group{pid, born}
}

// Kill ends all of the group, when it is still that one: a leader that is another
// process has taken the number over, and no process can take the number of a group
// that has members.
func (g Group) Kill() error {
	if g.PID <= 1 || !thisBoot(g.Born) {
		return nil
	}
	if born, ok := BornAt(g.PID); ok && born != g.Born {
		return nil
	}
	if err := unix.Kill(-g.PID, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) && !errors.Is(err, unix.EPERM) {
		return err
	}
	return nil
}
