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

func TestConfinedFiles(t *testing.T) {
	t.Parallel()
	// there is what a path in the workspace holds; "-" where nothing is.
	there := func(env *Env, path string) string {
		b, err := os.ReadFile(filepath.Join(env.Workspace, path))
		if err != nil {
			return "-"
		}
		return string(b)
	}
	fresh := func(t *testing.T) *Env {
		t.Helper()
		t.Parallel()
		env, _ := newEnv(t)
		confine(t, env, protocol.SandboxWorkspace)
		for path, text := range map[string]string{"a": "one\n", "sub/b": "two\n", "../outside": "mine\n"} {
			file := filepath.Join(env.Workspace, path)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o640); err != nil {
				t.Fatal(err)
			}
		}
		return env
	}
	refused := func(t *testing.T, r Result, code protocol.Code) {
		t.Helper()
		if !r.Failed || !strings.Contains(r.Output, `"error":"`+string(code)+`"`) {
			t.Errorf("got %s, want %s", r.Output, code)
		}
	}
	write := func(env *Env, path, content string) Result {
		return callContext(t, context.Background(), env, "write", map[string]any{"path": path, "content": content})
	}
	patch := func(env *Env, lines ...string) Result {
		text := "*** Begin Patch\n" + strings.Join(lines, "\n") + "\n*** End Patch\n"
		return callContext(t, context.Background(), env, "apply_patch", map[string]any{"patch": text})
	}
	t.Run("files are written, edited, patched, moved and deleted inside", func(t *testing.T) {
		env := fresh(t)
		for _, r := range []Result{
			write(env, "new/deep/file", "x\n"),
			callContext(t, t.Context(), env, "edit", map[string]any{"path": "a", "old": "one", "new": "1"}),
			patch(env, "*** Add File: added/c", "+three", "*** Update File: sub/b", "@@", "-two", "+2"),
			patch(env, "*** Update File: sub/b", "*** Move to: moved/b"),
			patch(env, "*** Delete File: added/c"),
		} {
			if r.Failed {
				t.Error(r.Output)
			}
		}
		for path, want := range map[string]string{"new/deep/file": "x\n", "a": "1\n", "sub/b": "-", "moved/b": "2\n", "added/c": "-"} {
			if got := there(env, path); got != want {
				t.Errorf("%s holds %q, want %q", path, got, want)
			}
		}
		if info, err := os.Stat(filepath.Join(env.Workspace, "a")); err != nil || info.Mode().Perm() != 0o640 {
			t.Errorf("the mode is %v", info.Mode())
		}
		if info, err := os.Stat(filepath.Join(env.Workspace, "moved/b")); err != nil || info.Mode().Perm() != 0o640 {
			t.Errorf("the moved file's mode is %v", info.Mode())
		}
	})
	t.Run("SB-94 a write outside the folders", func(t *testing.T) {
		env := fresh(t)
		refused(t, write(env, "../new", "x"), protocol.EscalationRefused)
		refused(t, callContext(t, t.Context(), env, "edit", map[string]any{"path": "../outside", "old": "mine", "new": "yours"}), protocol.EscalationRefused)
		refused(t, write(env, ".git/hooks/pre-commit", "x"), protocol.EscalationRefused)
		refused(t, write(env, ".agents/skills/x", "x"), protocol.EscalationRefused)
		refused(t, write(env, "../agent/run/x", "x"), protocol.EscalationRefused)
		if there(env, "../outside") != "mine\n" || there(env, "../new") != "-" || there(env, ".git/hooks/pre-commit") != "-" {
			t.Error("something was written outside")
		}
	})
	t.Run("SB-3 a link in the workspace that leads outside", func(t *testing.T) {
		env := fresh(t)
		os.Symlink("../outside", filepath.Join(env.Workspace, "link"))
		os.Symlink("..", filepath.Join(env.Workspace, "up"))
		refused(t, write(env, "link", "x"), protocol.EscalationRefused)
		refused(t, write(env, "up/new", "x"), protocol.EscalationRefused)
		refused(t, patch(env, "*** Update File: link", "@@", "-mine", "+yours"), protocol.EscalationRefused)
		if there(env, "../outside") != "mine\n" || there(env, "../new") != "-" {
			t.Error("something was written outside")
		}
	})
	t.Run("SB-69 a patch of ten files with one outside writes nothing", func(t *testing.T) {
		env := fresh(t)
		var lines []string
		for _, name := range strings.Fields("1 2 3 4 5 6 7 8 9") {
			lines = append(lines, "*** Add File: n"+name, "+x")
		}
		refused(t, patch(env, append(lines, "*** Add File: ../n10", "+x")...), protocol.EscalationRefused)
		refused(t, patch(env, "*** Add File: n1", "+x", "*** Update File: a", "*** Move to: ../a"), protocol.EscalationRefused)
		if list, _ := filepath.Glob(env.Workspace + "/n*"); len(list) != 0 || there(env, "a") != "one\n" {
			t.Errorf("written: %v", list)
		}
	})
	t.Run("a link that is deleted goes itself", func(t *testing.T) {
		env := fresh(t)
		os.Symlink("a", filepath.Join(env.Workspace, "link"))
		if r := patch(env, "*** Delete File: link"); r.Failed {
			t.Error(r.Output)
		}
		if _, err := os.Lstat(filepath.Join(env.Workspace, "link")); err == nil || there(env, "a") != "one\n" {
			t.Error("the link is there, or its end is gone")
		}
	})
	t.Run("SB-1 read-only writes nothing", func(t *testing.T) {
		env := fresh(t)
		env.Confinement.Setting = &sandbox.Setting{Mode: protocol.SandboxReadOnly, Workspace: env.Workspace}
		refused(t, write(env, "n", "x"), protocol.EscalationRefused)
		if there(env, "n") != "-" {
			t.Error("a file was written")
		}
	})
	t.Run("SB-68 a pipe is refused at once", func(t *testing.T) {
		env := fresh(t)
		if err := unix.Mkfifo(filepath.Join(env.Workspace, "pipe"), 0o600); err != nil {
			t.Fatal(err)
		}
		refused(t, write(env, "pipe", "x"), protocol.FileNotRegular)
	})
	t.Run("SB-9 a protected name that is a link refuses every change", func(t *testing.T) {
		env := fresh(t)
		os.Symlink("/etc", filepath.Join(env.Workspace, ".codex"))
		refused(t, write(env, "n", "x"), protocol.SandboxDenied)
	})
	t.Run("SB-66 a target that is swapped for a link after the check", func(t *testing.T) {
		env := fresh(t)
		target := target{given: "a", path: filepath.Join(env.Workspace, "a")}
		os.Remove(target.path)
		os.Symlink("../outside", target.path)
		if _, err := env.putInside(t.Context(), target, []byte("x")); err == nil {
			t.Error("it was written")
		}
		os.Rename(filepath.Join(env.Workspace, "sub"), filepath.Join(env.Workspace, "was"))
		os.Symlink("..", filepath.Join(env.Workspace, "sub"))
		if _, err := env.putInside(t.Context(), filed(env, "sub/n"), []byte("x")); err == nil {
			t.Error("it was written through a folder")
		}
		if there(env, "../outside") != "mine\n" || there(env, "../n") != "-" {
			t.Error("something was written outside")
		}
	})
}

func filed(env *Env, path string) target {
	return target{given: path, path: filepath.Join(env.Workspace, path)}
}
