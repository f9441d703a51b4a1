package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"agent/client"
	"agent/protocol"
)

// TestADeadDaemonAndItsBotsShell plays the command in a confined shell whose
// daemon has died: the environment is the shell's own. The sandbox itself goes
// with its daemon, so that what is left to hold is the command.
func TestADeadDaemonAndItsBotsShell(t *testing.T) {
	t.Parallel()
	g := newGround(t, "AGENT_MODEL=t/do")
	t.Run("CL-67 no daemon is started on the bot's socket", func(t *testing.T) {
		g.must("run", "--new", "--bot", "Bob", "--sandbox", "workspace-write", "--network", "on", "hi")
		env := g.environment("Bob")
		c := g.client()
		ready, err := c.Ready(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		kill(t, ready.PID)
		log, err := os.ReadFile(g.store() + ".log")
		if err != nil {
			t.Fatal(err)
		}
		cmd := g.command("run", "--detach", "--new", "--bot", "Ann", "--", "hi")
		cmd.Env = append(env, "AGENT_PROVIDER=t=scripted,"+modelsFile(t))
		if r := finish(t, cmd); r.status != 1 || r.code() != string(protocol.DaemonUnavailable) {
			t.Errorf("exit %d: %s%s", r.status, r.stdout, r.stderr)
		}
		again := &client.Client{Target: client.Target{Store: g.store(), Socket: g.store() + ".sock"}}
		defer again.Close()
		if ready, err := again.Ready(t.Context()); protocol.CodeOf(err) != protocol.DaemonUnavailable {
			t.Errorf("there is a daemon: %v, %v", ready, err)
		}
		if now, err := os.ReadFile(g.store() + ".log"); err != nil || string(now) != string(log) {
			t.Errorf("the log has %s", now)
		}
	})
}

// kill ends a process and returns when it has ended, though its parent may not
// have asked yet.
func kill(t *testing.T, pid int) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for {
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 20_000)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
}

// TestNoHome takes HOME away and gives the password database a folder of the
// test's own, which only a mount of its own can.
func TestNoHome(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	t.Run("CL-93 walls and protected paths lie below the password database's home", func(t *testing.T) {
		uid := strconv.Itoa(os.Getuid())
		passwd := g.write("passwd", "person:x:"+uid+":"+uid+"::"+g.home+":/bin/sh\n")
		agent := g.command("run", "--new", "--bot", "Ada", "--model", "t/echo", "--store", filepath.Join(g.dir, "s.sqlite"), "hi")
		cmd := g.command()
		bwrap, err := exec.LookPath("bwrap")
		if err != nil {
			t.Fatal(err)
		}
		cmd.Path, cmd.Args = bwrap, append([]string{bwrap, "--dev-bind", "/", "/", "--ro-bind", passwd, "/etc/passwd", "--unsetenv", "HOME", agent.Path}, agent.Args[1:]...)
		if r := finish(t, cmd); r.status != 0 {
			t.Fatalf("exit %d: %s", r.status, r.stderr)
		}
		target, err := client.Resolve(filepath.Join(g.dir, "s.sqlite"), "")
		if err != nil {
			t.Fatal(err)
		}
		c := &client.Client{Target: target}
		defer c.Close()
		ready, err := c.Ready(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		walls, protected := strings.Join(ready.Walls, " "), strings.Join(ready.Protected, " ")
		if walls != filepath.Join(g.home, ".agent", "run") || protected != filepath.Join(g.home, ".agent", "rules") {
			t.Errorf("walls %s, protected %s", walls, protected)
		}
	})
}
