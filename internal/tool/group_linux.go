package tool

import (
	"bytes"
	"os"
	"strconv"
	"sync"
	"time"
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
	asked := time.Now()
	groups.mu.Lock()
	defer groups.mu.Unlock()
	if !groups.begun.After(asked) {
		groups.look()
	}
	g.known = groups.members[g.pgid]
	return g.known != 0 || len(groups.members) == 0
}

// groups is the newest look at all processes. It serves everyone who asked
// before it began: when a thousand commands are ended at once, a look for each
// would read a million files.
var groups groupLook

type groupLook struct {
	mu      sync.Mutex
	begun   time.Time
	members map[int]int // one that has not ended, by its group; empty when /proc cannot be read
}

func (l *groupLook) look() {
	l.begun, l.members = time.Now(), map[int]int{}
	proc, err := os.Open("/proc")
	if err != nil {
		return
	}
	defer proc.Close()
	for {
		names, err := proc.Readdirnames(256)
		for _, name := range names {
			if pid, err := strconv.Atoi(name); err == nil {
				if pgid := groupOf(pid); pgid != 0 {
					l.members[pgid] = pid
				}
			}
		}
		if err != nil {
			return
		}
	}
}

// member reports whether a process is of the group and has not ended.
func (g *groupWatch) member(pid int) bool { return groupOf(pid) == g.pgid }

// groupOf is the group of a process that has not ended, 0 for one that has.
func groupOf(pid int) int {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	// The name, in parentheses, may hold anything: state, parent and group
	// follow its end.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 3 || fields[0][0] == 'Z' || fields[0][0] == 'X' {
		return 0
	}
	pgid, _ := strconv.Atoi(string(fields[2]))
	return pgid
}
