package sonnytest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestAFreshHome(t *testing.T) {
	t.Parallel()
	t.Run("it holds what the scenarios begin with", func(t *testing.T) {
		t.Parallel()
		h := Fresh(t)
		if info, err := os.Stat(h.Path(".agent")); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%v %v", info, err)
		}
		for name, want := range map[string]string{
			"env":         "AGENT_PROVIDER=scripted=scripted,",
			"models":      "scripted/sonny\n",
			"config.toml": "model = \"scripted/sonny\"\njudge_model = \"scripted/judge-allow\"\ntrust_folders = \"always\"\n",
		} {
			text, err := os.ReadFile(h.Path(".agent", name))
			info, _ := os.Stat(h.Path(".agent", name))
			if err != nil || !strings.HasPrefix(string(text), want) || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %q %v", name, text, err)
			}
		}
		if r := h.Agent("start"); r.Exit != 0 {
			t.Errorf("%+v", r)
		}
		if r := h.Agent("ls"); r.Exit != 0 || strings.TrimSpace(r.Stdout) != "[]" {
			t.Errorf("%+v", r)
		}
		h.Agent("models", "--discover")
		if text, err := os.ReadFile(h.Path(".agent", "models")); err != nil || strings.Count(string(text), "\nscripted/judge-") != 4 {
			t.Errorf("%s %v", text, err)
		}
	})
	t.Run("parts are left out", func(t *testing.T) {
		t.Parallel()
		h := Fresh(t, NoEnv, NoModels, NoConfig)
		if names, err := os.ReadDir(h.Path(".agent")); err != nil || len(names) != 0 {
			t.Errorf("%v %v", names, err)
		}
	})
	t.Run("parts are others", func(t *testing.T) {
		t.Parallel()
		own := `{"version":1,"models":{"sonny":{"scripts":[{"match":{"any":true},"steps":[{"text":"mine"}]}]}}}`
		h := Fresh(t, OwnScript(own), Judge("deny"))
		if text, err := os.ReadFile(h.Path(".agent", "config.toml")); err != nil || !strings.Contains(string(text), "scripted/judge-deny") {
			t.Errorf("%s %v", text, err)
		}
		if r := h.Agent("run", "--new", "--bot", "a", "--model", "scripted/sonny", "hello"); r.Exit != 0 {
			t.Errorf("%+v", r)
		}
		if r := h.Agent("result", "--bot", "a", "--turn", "1"); !strings.Contains(r.Stdout, `"text":"mine"`) {
			t.Errorf("%+v", r)
		}
	})
}

func TestCommandsOfAHome(t *testing.T) {
	t.Parallel()
	h := Fresh(t)
	version := h.Sonny("--version")
	if version.Exit != 0 || version.Stdout == "" {
		t.Errorf("%+v", version)
	}
	if r := h.Sonny("--no-such-flag"); r.Exit != 2 || r.Stderr == "" {
		t.Errorf("%+v", r)
	}
	at := h.Path("somewhere")
	h.folder(at)
	if r := h.In(at).With("ONE=1").Run("sh", "-c", "pwd; echo $ONE $HOME; cat"); r.Stdout != at+"\n1 "+h.Dir+"\n" {
		t.Errorf("%+v", r)
	}
	if r := h.Feed("from stdin", "cat"); r.Stdout != "from stdin" {
		t.Errorf("%+v", r)
	}
	if r := h.Run("sh", "-c", "kill -9 $$"); r.Exit != -1 {
		t.Errorf("%+v", r)
	}
	// It ends at a key: tmux can lose the words of what ends at once.
	program := []string{"-c", "sonny --version; read key"}
	for name, open := range map[string]func() display{
		"tmux":     func() display { return h.Tmux(80, 24, "sh", program...) },
		"emulator": func() display { return h.Screen(Terminal{Width: 80, Height: 24}, "sh", program...) },
	} {
		d := open()
		d.WaitFor(strings.TrimSpace(version.Stdout))
		d.Keys("Enter")
		if status := d.Exit(); status != 0 {
			t.Errorf("%s: status %d", name, status)
		}
	}
}

func TestTheDaemonOfAHome(t *testing.T) {
	t.Parallel()
	h := Fresh(t)
	if pid := h.DaemonPID(); pid != 0 {
		t.Fatalf("process %d", pid)
	}
	h.Agent("start")
	first := h.DaemonPID()
	if !alive(h.Dir, first) {
		t.Errorf("no process %d", first)
	}
	h.KillDaemon()
	if alive(h.Dir, first) || h.DaemonPID() != 0 {
		t.Errorf("process %d is there", first)
	}
	h.Agent("start")
	if second := h.DaemonPID(); second == first || !alive(h.Dir, second) {
		t.Errorf("process %d, then %d", first, second)
	}
}

func TestAHomeLeavesNothing(t *testing.T) {
	t.Parallel()
	watched := &failing{TB: t}
	h := Fresh(watched)
	h.grace = 0
	h.Agent("start")
	daemon := h.DaemonPID()
	stray := exec.Command("sleep", "600")
	stray.Env = h.Env
	if err := stray.Start(); err != nil {
		t.Fatal(err)
	}
	h.Until("the stray", func() bool { return alive(h.Dir, stray.Process.Pid) })
	began := time.Now()
	h.end()
	if !watched.failed {
		t.Error("a process that is left is no fault")
	}
	if err := stray.Wait(); err == nil || time.Since(began) > patience {
		t.Errorf("the stray was not ended: %v", err)
	}
	if alive(h.Dir, daemon) {
		t.Errorf("the daemon %d is left", daemon)
	}
	if _, err := os.Stat(filepath.Dir(h.Dir)); !os.IsNotExist(err) {
		t.Errorf("the home is left: %v", err)
	}
}
