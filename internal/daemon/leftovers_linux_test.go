package daemon_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agent/internal/place"
	"agent/internal/sandbox"
	"agent/protocol"
)

// leftoverRounds is how many daemons TestKilledSandboxes kills; more with the long tests.
var leftoverRounds = 5

// owner is what a daemon of the host's store is told by in its launchers' arguments.
func (h *host) owner() string {
	h.t.Helper()
	info, err := os.Stat(h.set.Store + ".owner-lock")
	if err != nil {
		h.t.Fatal(err)
	}
	s := info.Sys().(*syscall.Stat_t)
	return fmt.Sprintf("%d:%d", s.Dev, s.Ino)
}

// launchersOf are the processes that have an owner in their arguments, each with its own
// arguments.
func launchersOf(owner string) (found []string) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range all {
		words, _ := os.ReadFile(path)
		if bytes.Contains(words, []byte("\x00"+owner+"\x00")) {
			found = append(found, path+" "+string(bytes.ReplaceAll(words, []byte{0}, []byte{' '})))
		}
	}
	return found
}

// stuck leaves the first process of a sandbox that does not stand yet, as a daemon that is
// killed at that moment does: it waits for its launcher, which is dead.
func (h *host) stuck(owner string) (pid int) {
	h.t.Helper()
	launch := &sandbox.Launcher{Helper: os.Args[0], Owner: owner}
	plan, err := sandbox.NewPlan(&sandbox.World{}, &sandbox.Setting{Mode: protocol.SandboxReadOnly, Workspace: h.workspace}, sandbox.Call{Cwd: h.workspace})
	if err != nil {
		h.t.Fatal(err)
	}
	c, err := launch.Prepare(h.t.Context(), plan, []string{"/bin/true"}, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	defer c.Close()
	waits, lets, err := os.Pipe()
	if err != nil {
		h.t.Fatal(err)
	}
	defer lets.Close()
	info, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		h.t.Fatal(err)
	}
	c.Files = append(c.Files, waits, info)
	last := 2 + len(c.Files)
	args := slices.Insert(c.Argv, slices.Index(c.Argv, "--args"), "--userns-block-fd", strconv.Itoa(last-1), "--info-fd", strconv.Itoa(last))
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env, cmd.Dir, cmd.ExtraFiles = c.Env, c.Dir, c.Files
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	c.Started()
	for end := time.Now().Add(20 * time.Second); pid == 0; time.Sleep(time.Millisecond) {
		if pid = c.Pid(); pid == 0 && time.Now().After(end) {
			h.t.Fatal("the launcher began nothing")
		}
	}
	h.t.Cleanup(func() { unix.Kill(pid, unix.SIGKILL) })
	cmd.Process.Kill()
	cmd.Wait()
	if _, lives := place.BornAt(pid); !lives {
		h.t.Fatal("what the launcher began has ended with it")
	}
	return pid
}

func TestLeftOfSandboxes(t *testing.T) {
	t.Parallel()
	t.Run("SB-57 a start ends what was left of a sandbox of its store before it is ready", func(t *testing.T) {
		t.Parallel()
		h := newHost(t, boxScript)
		h.start().kill()
		mine, others := h.stuck(h.owner()), h.stuck(h.owner()+"0")
		p := h.start()
		if _, lives := place.BornAt(mine); lives {
			t.Error("its own store's lives on")
		}
		if _, lives := place.BornAt(others); !lives {
			t.Error("another store's has ended")
		}
		p.kill()
	})
	t.Run("empty files in the places of the socket and the store's files are no hindrance", func(t *testing.T) {
		t.Parallel()
		h := newHost(t, boxScript)
		p := h.start()
		p.kill()
		if err := os.Remove(h.set.Socket); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{h.set.Socket, h.set.Store + "-journal", h.set.Store + ".placeholders"} {
			if err := os.WriteFile(path, nil, 0o444); err != nil {
				t.Fatal(err)
			}
		}
		p = h.start()
		p.dial().ask(nil, "stats", "")
		if info, err := os.Lstat(h.set.Socket); err != nil || info.Mode() != os.ModeSocket|0o600 {
			t.Errorf("at the socket's path: %v, %v", info, err)
		}
		if _, err := os.Lstat(h.set.Store + "-journal"); err == nil {
			t.Error("the empty journal stays")
		}
		p.kill()
	})
	t.Run("a start whose locks a dead daemon's child still holds waits for them", func(t *testing.T) {
		t.Parallel()
		h := newHost(t, boxScript)
		h.start().kill()
		// Such a child has the listening socket, too: who connects there shows that the
		// start has met the lock.
		if err := os.Remove(h.set.Socket); err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("unix", h.set.Socket)
		if err != nil {
			t.Fatal(err)
		}
		l.(*net.UnixListener).SetUnlinkOnClose(false)
		var locks []*place.OwnerLock
		for _, path := range []string{h.set.Socket, h.set.Store} {
			lock, err := place.Lock(path+".owner-lock", "held")
			if err != nil {
				t.Fatal(err)
			}
			locks = append(locks, lock)
		}
		file, err := l.(*net.UnixListener).File()
		if err != nil {
			t.Fatal(err)
		}
		p := h.launch()
		for asked := -1; asked < 0; {
			asked, err = unix.Poll([]unix.PollFd{{Fd: int32(file.Fd()), Events: unix.POLLIN}}, 20_000)
			if asked == 0 || err != nil && err != unix.EINTR {
				t.Fatal("the start did not look who answers: ", err)
			}
		}
		for _, lock := range locks {
			lock.Close()
		}
		file.Close()
		l.Close()
		line, err := p.stdout.ReadBytes('\n')
		if err != nil || !bytes.Contains(line, []byte(`"protocol"`)) {
			t.Errorf("it said %q, %v: %s", line, err, p.stderr.String())
		}
		go func() {
			p.cmd.Wait()
			close(p.exited)
		}()
	})
}

// TestKilledSandboxes has daemons that are killed while many sandboxes are being made,
// with the store loose in a folder that they may write to. Each next one starts at once,
// and in the end nothing is left.
func TestKilledSandboxes(t *testing.T) {
	t.Parallel()
	const bots = 16
	h := newHost(t, boxScript)
	h.set.Socket = h.set.Store + ".sock"
	p := h.start()
	k := p.dial()
	for i := range bots {
		k.ask(nil, "create", fmt.Sprintf(`"bot":"b%d","model":"s/m","instructions":"","tools":["shell"],"workspace":%q,"sandbox":"workspace-write"`, i, h.workspace))
	}
	newest := int64(0)
	for round := range leftoverRounds {
		k.ask(nil, "follow", fmt.Sprintf(`"bot":"*","after":%d`, newest))
		for i := range bots {
			k.ask(nil, "submit", fmt.Sprintf(`"bot":"b%d","request_id":"r%d","prompt":"run true","delivery":"queue"`, i, round))
		}
		for seen := 0; seen <= round*bots/leftoverRounds; {
			l := k.note()
			if l.fields["cursor"] != nil {
				newest = max(newest, l.num("cursor"))
			}
			if l.str("event") == "tool_started" {
				seen++
			}
		}
		p.kill()
		p = h.start() // which fails the test where it is refused
		k = p.dial()
	}
	k.ask(nil, "shutdown", "")
	if code := p.wait(); code != 0 {
		t.Errorf("it ended with %d: %s", code, p.stderr.String())
	}
	if left := launchersOf(h.owner()); len(left) > 0 {
		t.Errorf("processes are left:\n%s", strings.Join(left, "\n"))
	}
	var names []string
	for _, dir := range []string{h.dir, h.workspace} {
		list, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			names = append(names, e.Name())
		}
	}
	want := "script.json state.sqlite state.sqlite.owner-lock state.sqlite.placeholders state.sqlite.sock.d state.sqlite.sock.owner-lock tmp w"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("on the disk: %s\nwant:        %s", got, want)
	}
}
