package tool

import (
	"bytes"
	"os"
	"strconv"
)

// groupWatch looks for members of a process group whose leader has ended. A
// signal 0 would not tell: the leader is not reaped yet, and counts.
type groupWatch struct {
	pgid  int
	known int // a member that lived when last looked at; 0 for none
}

// lives reports whether a member of the group has not ended. Where that cannot
// be seen it reports that one has not, so that the group has its full time.
func (g *groupWatch) lives() bool {
	if g.known != 0 && g.member(g.known) {
		return true
	}
	g.known = 0
	proc, err := os.Open("/proc")
	if err != nil {
		return true
	}
	defer proc.Close()
	seen := false
	for {
		names, err := proc.Readdirnames(256)
		for _, name := range names {
			pid, nerr := strconv.Atoi(name)
			if nerr != nil {
				continue
			}
			seen = true
			if g.member(pid) {
				g.known = pid
				return true
			}
		}
		if err != nil {
			return !seen
		}
	}
}

// member reports whether a process is of the group and has not ended.
func (g *groupWatch) member(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	// The name, in parentheses, may hold anything: state, parent and group
	// follow its end.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	return len(fields) > 2 && fields[0][0] != 'Z' && fields[0][0] != 'X' &&
		string(fields[2]) == strconv.Itoa(g.pgid)
}
