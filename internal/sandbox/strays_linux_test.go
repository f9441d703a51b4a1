package sandbox

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"agent/internal/place"
)

// likeness is the first argument of this program where it has a launcher's arguments
// and is none: it waits for the end of its input.
func init() {
	parts[mark("x")[0]] = func([]string) int {
		os.Stdout.WriteString("here\n")
		os.Stdin.Read(make([]byte, 1))
		return 0
	}
}

// ownedBy is a launcher that works here and says whose it is.
func ownedBy(t *testing.T, owner string) *Launcher {
	t.Helper()
	launch := launcher(t)
	launch = &Launcher{Helper: launch.Helper, Owner: owner}
	if err := launch.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	return launch
}

// stuck starts a launcher that is killed while the first process of its sandbox waits
// for it, and gives that process.
func (l *lab) stuck(owner string) (pid int) {
	l.t.Helper()
	p, err := l.plan(nil)
	if err != nil {
		l.t.Fatal(err)
	}
	c, err := ownedBy(l.t, owner).Prepare(l.t.Context(), p.forHelper(), []string{"/bin/bash", "-c", "touch began"}, l.env())
	if err != nil {
		l.t.Fatal(err)
	}
	defer c.Close()
	// The launcher waits for this pipe before it lets that process go on.
	waits, lets, err := os.Pipe()
	if err != nil {
		l.t.Fatal(err)
	}
	defer lets.Close()
	fd, _ := c.give(waits, nil)
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	info, err := c.give(null, err) // the other flag needs it
	if err != nil {
		l.t.Fatal(err)
	}
	args := slices.Insert(c.Argv, slices.Index(c.Argv, "--args"), "--userns-block-fd", strconv.Itoa(fd), "--info-fd", strconv.Itoa(info))
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env, cmd.Dir, cmd.ExtraFiles = c.Env, c.Dir, c.Files
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	c.Started()
	var said struct {
		Pid int `json:"child-pid"`
	}
	if err := json.NewDecoder(c.status).Decode(&said); err != nil || said.Pid <= 1 {
		l.t.Fatal(said, err)
	}
	l.t.Cleanup(func() { unix.Kill(said.Pid, unix.SIGKILL) })
	cmd.Process.Kill()
	cmd.Wait()
	if _, lives := place.BornAt(said.Pid); !lives {
		l.t.Fatal("the sandbox's first process did not outlive the launcher")
	}
	return said.Pid
}

func lives(pid int) bool {
	_, ok := place.BornAt(pid)
	return ok
}

func TestStrays(t *testing.T) {
	t.Parallel()
	t.Run("SB-57 what a launcher had begun when it was killed with its daemon", func(t *testing.T) {
		l := newLab(t)
		mine, others := l.stuck(l.dir), l.stuck(l.dir+"/other")
		if ended, left := EndStrays(l.dir); ended != 1 || len(left) > 0 || lives(mine) {
			t.Errorf("ended %d, left %v", ended, left)
		}
		if !lives(others) {
			t.Error("another daemon's has ended")
		}
		if ended, left := EndStrays(l.dir); ended != 0 || len(left) > 0 {
			t.Errorf("once more: ended %d, left %v", ended, left)
		}
		if exists(l.ws + "/began") {
			t.Error("a command began")
		}
	})
	t.Run("SB-57 a sandbox that stands, with all in it", func(t *testing.T) {
		l := newLab(t)
		p, err := l.plan(nil)
		if err != nil {
			t.Fatal(err)
		}
		script := "trap '' TERM INT HUP; echo up; read line; echo $line"
		mine, others := l.start(ownedBy(t, l.dir), p, script), l.start(ownedBy(t, l.dir+"/other"), p, script)
		mine.says("up")
		others.says("up")
		command := mine.c.Pid()
		if ended, left := EndStrays(l.dir); ended < 1 || len(left) > 0 {
			t.Errorf("ended %d, left %v", ended, left)
		}
		for lives(mine.cmd.Process.Pid) || lives(command) { // killed with the first process of its namespace
			runtime.Gosched()
		}
		if got := mine.end(); got.code != -1 {
			t.Errorf("it ended with %+v", got)
		}
		others.tell("still here")
		others.says("still here")
		others.end()
	})
	t.Run("no program that only has such arguments", func(t *testing.T) {
		l := newLab(t)
		path := l.copySelf("bwrap")
		bubblewrap, err := findBubblewrap(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(path)
		cmd.Args = append([]string{bubblewrap.path}, mark(l.dir)...)
		in, err1 := cmd.StdinPipe()
		out, err2 := cmd.StdoutPipe()
		if err := errorsOf(err1, err2, cmd.Start()); err != nil {
			t.Fatal(err)
		}
		read(t, out, make([]byte, len("here\n")))
		if ended, left := EndStrays(l.dir); ended != 0 || len(left) > 0 {
			t.Errorf("ended %d, left %v", ended, left)
		}
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("it ended with %v", err)
		}
	})
	t.Run("a command does not see whose its launcher is", func(t *testing.T) {
		l := newLab(t)
		p, err := l.plan(nil)
		if err != nil {
			t.Fatal(err)
		}
		got := l.run(ownedBy(t, l.dir), p, "env; tr '\\0' ' ' < /proc/$$/environ")
		if got.code != 0 || strings.Contains(got.out, ownerVar) || !strings.Contains(got.out, "LAB="+l.dir) {
			t.Errorf("got %+v", got)
		}
	})
}

// A start looks at every process; BenchmarkEndStrays is what that takes where none is
// to be ended.
func BenchmarkEndStrays(b *testing.B) {
	owner := filepath.Join(b.TempDir(), "none")
	for b.Loop() {
		if ended, left := EndStrays(owner); ended != 0 || len(left) > 0 {
			b.Fatal(ended, left)
		}
	}
}
