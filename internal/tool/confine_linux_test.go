package tool

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agent/internal/sandbox"
	"agent/protocol"
)

// confine puts a call's surroundings into a sandbox.
func confine(t testing.TB, env *Env, mode string) *Confinement {
	t.Helper()
	home := filepath.Dir(env.Workspace)
	for _, dir := range []string{"agent/run", "tmp"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	ph, err := sandbox.OpenPlaceholders(filepath.Join(home, "agent/state.placeholders"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ph.Close() })
	c := &Confinement{
		World: &sandbox.World{
			Home: home, AgentDir: filepath.Join(home, "agent"), Store: filepath.Join(home, "agent/state"),
			Walls: []string{filepath.Join(home, "agent/run")}, Tmp: filepath.Join(home, "tmp"),
		},
		Setting:  &sandbox.Setting{Mode: mode, Workspace: env.Workspace},
		Launcher: &sandbox.Launcher{Helper: env.SelfExe}, Placeholders: ph,
	}
	if err := c.Launcher.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	env.Confinement = c
	return c
}

func TestConfinedShell(t *testing.T) {
	t.Parallel()
	t.Run("a command writes its workspace and nothing else", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		confine(t, env, protocol.SandboxWorkspace)
		s, r := shell(t, env, "echo $AGENT_SANDBOX; echo in > in; echo out > ../out; echo $?")
		exited(t, s, 0)
		if s.Stdout != "workspace-write\n1\n" || !strings.Contains(s.Stderr, "Read-only file system") || strings.Contains(r.Output, "sandbox_hint") {
			t.Errorf("got %s", r.Output)
		}
		if _, err := os.Stat(filepath.Join(env.Workspace, "in")); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Join(env.Workspace, "../out")); err == nil {
			t.Error("a file was written outside")
		}
		if list, _ := os.ReadDir(env.Workspace); len(list) != 1 {
			t.Errorf("left behind: %v", list)
		}
	})
	t.Run("PR-90 what the sandbox was the cause of is said", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		c := confine(t, env, protocol.SandboxWorkspace)
		for script, want := range map[string]string{
			"echo x > ../x": "Only these folders are writable: " + env.Workspace,
			"echo 'Could not resolve host: x' >&2; exit 6":    "The network is off",
			"echo 'connect: Operation not permitted'; exit 1": "Unix sockets",
			"echo 'connect: Operation not permitted'":         "",
			"exit 1": "",
		} {
			s, r := shell(t, env, script)
			if (want == "") != !strings.Contains(r.Output, "sandbox_hint") || !strings.Contains(s.SandboxHint, want) {
				t.Errorf("%s: got %s", script, r.Output)
			}
		}
		c.Setting = &sandbox.Setting{Mode: protocol.SandboxWorkspace, Workspace: env.Workspace, Network: true}
		if s, _ := shell(t, env, "echo 'Could not resolve host: x'; exit 6"); s.SandboxHint != "" {
			t.Errorf("with the network on: %q", s.SandboxHint)
		}
	})
	t.Run("a sandbox that cannot be started runs nothing", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		confine(t, env, protocol.SandboxWorkspace)
		env.Shell = "/nonexistent/shell"
		r := callContext(t, t.Context(), env, "shell", map[string]any{"command": "true"})
		if !r.Failed || !strings.Contains(r.Output, `"error":"shell_spawn_failed"`) || !strings.Contains(r.Output, "nothing ran") {
			t.Errorf("got %s", r.Output)
		}
	})
	t.Run("a setting that cannot be kept refuses the call", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		confine(t, env, protocol.SandboxWorkspace)
		if err := os.Symlink("/etc", filepath.Join(env.Workspace, ".agents")); err != nil {
			t.Fatal(err)
		}
		r := callContext(t, t.Context(), env, "shell", map[string]any{"command": "touch ran"})
		if !strings.Contains(r.Output, `"error":"sandbox_denied"`) || !strings.Contains(r.Output, ".agents is a symbolic link") {
			t.Errorf("got %s", r.Output)
		}
		if _, err := os.Stat(filepath.Join(env.Workspace, "ran")); err == nil {
			t.Error("the command ran")
		}
	})
	t.Run("SB-110 a handler of TERM runs when the time is up", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		confine(t, env, protocol.SandboxWorkspace)
		s, _ := shell(t, env, "trap 'echo handled; exit 0' TERM; echo ready; sleep 60 & wait", "timeout_ms", 1500)
		if !s.TimedOut || s.Stdout != "ready\nhandled\n" {
			t.Errorf("got %+v", s)
		}
	})
	t.Run("RT-133 a launcher that is killed is a command that was killed", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		confine(t, env, protocol.SandboxWorkspace)
		fifo := filepath.Join(env.Workspace, "fifo")
		if err := unix.Mkfifo(fifo, 0o600); err != nil {
			t.Fatal(err)
		}
		c, f := startCommand(t.Context(), env, "echo before; echo > fifo; sleep 60")
		if f != nil {
			t.Fatal(f)
		}
		if _, err := os.ReadFile(fifo); err != nil { // returns once the command has written to it
			t.Fatal(err)
		}
		c.process.signalGroup(9)
		c.supervise(context.Background(), time.Minute)
		r := c.result()
		if !strings.Contains(r.Output, `"signal":"SIGKILL"`) || !strings.Contains(r.Output, `"stdout":"before\n"`) {
			t.Errorf("got %s", r.Output)
		}
	})
	t.Run("SB-56 what a command leaves running ends with it", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		confine(t, env, protocol.SandboxWorkspace)
		s, _ := shell(t, env, "(setsid sh -c 'sleep 2; touch late' >/dev/null 2>&1 &); echo done")
		exited(t, s, 0)
		if s.LeftRunning {
			t.Errorf("got %+v", s)
		}
	})
	t.Run("read-only", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		confine(t, env, protocol.SandboxReadOnly)
		s, _ := shell(t, env, "touch x; echo $?; echo hi > $TMPDIR/y && cat $TMPDIR/y; echo $TMPDIR")
		exited(t, s, 0)
		if s.Stdout != "1\nhi\n/dev/shm\n" {
			t.Errorf("got %+v", s)
		}
	})
}

func BenchmarkConfinedTrue(b *testing.B) {
	for _, mode := range []string{"", protocol.SandboxWorkspace} {
		b.Run("mode="+mode, func(b *testing.B) {
			env, _ := newEnv(b)
			if mode != "" {
				confine(b, env, mode)
			}
			for b.Loop() {
				c, f := startCommand(b.Context(), env, "true")
				if f != nil {
					b.Fatal(f)
				}
				c.supervise(b.Context(), time.Minute)
				c.result()
			}
		})
	}
}
