package sandbox

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// launcher is one that works here; a machine without a sandbox fails the test.
func launcher(t *testing.T) *Launcher {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	l := &Launcher{Helper: self}
	if err := l.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	return l
}

// run runs a script confined by a plan.
func (l *lab) run(launch *Launcher, p *Plan, script string) (out string, code int) {
	l.t.Helper()
	env := []string{"PATH=/usr/bin:/bin", "HOME=" + l.path("home"), "LAB=" + l.dir}
	c, err := launch.Prepare(l.t.Context(), p, []string{"/bin/bash", "-c", script}, env)
	if err != nil {
		l.t.Fatal(err)
	}
	defer c.Close()
	cmd := exec.CommandContext(l.t.Context(), c.Argv[0], c.Argv[1:]...)
	cmd.Env, cmd.Dir = c.Env, c.Dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var b bytes.Buffer
	cmd.Stdout, cmd.Stderr = &b, &b
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	c.Started()
	cmd.Wait()
	return b.String(), cmd.ProcessState.ExitCode()
}

func TestConfinedCommand(t *testing.T) {
	launch := launcher(t)
	if tried, err := launch.State(); !tried || err != nil {
		t.Errorf("the state is %v, %v", tried, err)
	}
	l := newLab(t)
	git := l.gitFolder("home/ws/.git")
	l.mkdir("home/ws/sub")
	p := l.must(func(s *Setting, _ *Call) { s.Roots = []string{git} })
	if out, code := l.run(launch, p, "pwd; echo hi > f; cat f; exit 3"); code != 3 || out != l.ws+"\nhi\n" {
		t.Errorf("got %q and %d", out, code)
	}
	for name, script := range map[string]string{
		"SB-2 a sibling":                            "echo x > ../x",
		"SB-4 a hook of the git folder":             "echo x > .git/hooks/x",
		"SB-5 a .git in another root":               "mkdir $LAB/tmp/.git",
		"SB-6 .agents":                              "mkdir .agents",
		"SB-12 the workspace renamed":               "mv $LAB/home/ws $LAB/tmp/w",
		"SB-15 a commondir":                         "echo x > .git/commondir",
		"SB-16 a config.worktree in other letters":  "echo x > .git/CONFIG.worktree",
		"SB-21 a hard link to the configuration":    "ln .git/config link && echo x >> link",
		"SB-42 a hidden folder":                     "ls $LAB/home/.agent/run",
		"SB-62 the store":                           "echo x >> $LAB/home/.agent/state.sqlite",
		"SB-89 a .GIT where the file system folds":  "mkdir $LAB/tmp/.GIT",
		"SB-89 .agents with a letter beyond ASCII":  "mkdir .agent\u017f",
		"SB-47 a listener on the host, network off": "exec 3<>/dev/tcp/127.0.0.1/" + listening(t),
	} {
		t.Run(name, func(t *testing.T) {
			out, code := l.run(launch, p, script)
			if code == 0 || !strings.Contains(out, "peration not permitted") {
				t.Errorf("got %q and %d", out, code)
			}
		})
	}
	if out, code := l.run(launch, p, "echo x > .git/index && mv sub sub2 && echo x > sub2/f && echo x > $LAB/tmp/f"); code != 0 {
		t.Errorf("got %q and %d", out, code)
	}
}

// listening is the port of a server on the loopback.
func listening(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	return port
}
