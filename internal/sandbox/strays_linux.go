package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"agent/internal/place"
)

// ownerVar tells in a launcher's arguments whose it is. They stay to be read in each of
// its processes until that becomes the command, whose environment is made without it.
const ownerVar = "AGENT_LAUNCHER_OF"

// mark are the arguments that say whose a launcher is.
func mark(owner string) []string {
	if owner == "" {
		return nil
	}
	return []string{"--setenv", ownerVar, owner}
}

// endStrays kills until a look at all processes finds none: a launcher may have begun
// another process behind the look.
func endStrays(owner string, end time.Time) (ended int, left []int) {
	search := newStraySearch(owner)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		found, unsure := search.look()
		for _, pid := range found {
			if search.kill(pid, end) {
				ended++
			}
		}
		switch {
		case len(found) == 0 && !unsure:
			return ended, nil
		case !time.Now().Before(end):
			return ended, found
		case len(found) == 0:
			time.Sleep(pause)
		}
	}
}

// straySearch knows the launchers of one owner when it sees them.
type straySearch struct {
	programs []string // where bubblewrap is, real
	heads    [][]byte // how their arguments begin
}

func newStraySearch(owner string) *straySearch {
	s := &straySearch{}
	for _, at := range append(slices.Clone(place.Bubblewraps), bwrapPath) {
		path, err := filepath.EvalSymlinks(at)
		if err != nil || slices.Contains(s.programs, path) {
			continue
		}
		s.programs = append(s.programs, path)
		words := append([]string{path}, mark(owner)...)
		s.heads = append(s.heads, []byte(strings.Join(words, "\x00")+"\x00"))
	}
	return s
}

// look finds the owner's launchers. unsure says that there is one which has no
// arguments yet.
func (s *straySearch) look() (found []int, unsure bool) {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil, false
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		is, maybe := s.is(pid)
		if is {
			found = append(found, pid)
		}
		unsure = unsure || maybe
	}
	return found, unsure
}

// is reports whether a process is a launcher of the owner's, or one of this user's that
// is too young to tell. Only of processes with the name of one are the arguments read:
// for those of others that may take as long as a file system that hangs.
func (s *straySearch) is(pid int) (is, maybe bool) {
	if !s.named(nameOf(pid)) {
		return false, false
	}
	words, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || !s.runs(pid) || !ownProcess(pid) {
		return false, false
	}
	starts := slices.ContainsFunc(s.heads, func(head []byte) bool { return bytes.HasPrefix(words, head) })
	return starts, len(words) == 0
}

// named reports whether the kernel would give a launcher that name.
func (s *straySearch) named(name string) bool {
	return slices.ContainsFunc(s.programs, func(program string) bool {
		base := filepath.Base(program)
		return name == base[:min(len(base), 15)]
	})
}

// nameOf is the name that the kernel gives a process, "" for one that is gone. It is
// asked of every process there is, at each start of a daemon: hence no os.ReadFile.
func nameOf(pid int) string {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/comm", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	name := make([]byte, 64)
	n, err := unix.Read(fd, name)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(name[:n]), "\n")
}

// runs reports whether a process runs bubblewrap. Where bubblewrap is setuid the kernel
// does not say, and the arguments have to do.
func (s *straySearch) runs(pid int) bool {
	program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return errors.Is(err, fs.ErrPermission)
	}
	return slices.Contains(s.programs, strings.TrimSuffix(program, " (deleted)")) // replaced by an update
}

// ownProcess reports whether this user started the process.
func ownProcess(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return false
	}
	_, ids, _ := strings.Cut(string(status), "\nUid:")
	uid := strings.Fields(ids)
	return len(uid) > 0 && uid[0] == strconv.Itoa(os.Getuid())
}

// kill ends a launcher and waits for its end, which is that of all in its sandbox. It
// reports false where there is none any more, or it has not ended in time.
func (s *straySearch) kill(pid int, end time.Time) bool {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	// The number may be another's since the look; now it cannot become that.
	if is, _ := s.is(pid); !is || unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) != nil {
		return false
	}
	for {
		wait := max(time.Until(end), 0)
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(wait.Milliseconds()))
		if !errors.Is(err, unix.EINTR) {
			return n == 1
		}
	}
}
