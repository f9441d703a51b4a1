package doctor_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agent/internal/sonny/doctor"
	"agent/internal/sonny/sonnytest"
)

func TestShadowedKey(t *testing.T) {
	t.Parallel()
	const held, hidden = "sk-" + "proj-HeldHeldHeldHeld0123456789", "sk-" + "proj-HiddenHiddenHidden0123456789"
	fresh := sonnytest.Fresh(t)
	fresh.Write(".agent/env", "AGENT_PROVIDER=scripted\nOPENAI_API_KEY="+hidden+"\n")
	h := fresh.With("OPENAI_API_KEY=" + held)
	start(t, h)
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", h.DaemonPID()))
	if err != nil {
		t.Fatal(err)
	}
	t.Run("SO-105 the daemon has the environment's value", func(t *testing.T) {
		if all := "\x00" + string(environ); !strings.Contains(all, "\x00OPENAI_API_KEY="+held+"\x00") || strings.Contains(all, hidden) {
			t.Error("it has another")
		}
	})
	t.Run("SO-105 env.shadowed warns and prints neither value", func(t *testing.T) {
		e := examine(t, h, "--offline")
		e.wants(t, "env.shadowed", doctor.Warn, "OPENAI_API_KEY")
		plain := h.Sonny("doctor", "--offline")
		if all := e.Stdout + e.Stderr + plain.Stdout + plain.Stderr; strings.Contains(all, held) || strings.Contains(all, hidden) || strings.Contains(all, "Held") || strings.Contains(all, "Hidden") {
			t.Errorf("it prints one:\n%s", all)
		}
		if e.Exit != 0 {
			t.Errorf("exit %d", e.Exit)
		}
	})
	t.Run("without the variable nothing is hidden", func(t *testing.T) {
		e := examine(t, fresh, "--offline")
		e.wants(t, "env.shadowed", doctor.OK)
	})
}

// programs is a folder with this test's sonny, and an agent that is built to find its
// sandbox at a place of the test's.
func programs(t *testing.T, launcher string) string {
	t.Helper()
	dir := t.TempDir()
	build := exec.Command("go", "build", "-buildvcs=false", "-ldflags", "-X agent/internal/sandbox.bwrapPath="+launcher, "-o", dir+"/agent", "agent/cmd/agent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	sonny, err := os.ReadFile(filepath.Join(sonnytest.Programs(t), "sonny"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "sonny"), sonny, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestSandboxThatIsNone(t *testing.T) {
	t.Parallel()
	// Not below /tmp, whose folder anybody may write: a launcher there is not trusted.
	ground, err := os.MkdirTemp("/var/tmp", "doctor-bwrap-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(ground) })
	launcher := filepath.Join(ground, "bwrap")
	bin := programs(t, launcher)
	h := sonnytest.Fresh(t)
	for _, row := range []struct {
		name, script string
		mode         os.FileMode
		program, run doctor.Status
		says         []string
	}{
		{"no launcher", "", 0, doctor.Fail, doctor.Skip, []string{"no bubblewrap at", "install the package bubblewrap"}},
		{"a launcher that others may write", "exit 0\n", 0o777, doctor.Fail, doctor.Skip, []string{"may be written by others"}},
		{"a launcher that is too old", "echo bubblewrap 0.4.1\n", 0o700, doctor.Fail, doctor.Skip, []string{"0.5.0 or newer"}},
		{"user namespaces that are off", `case $1 in --version) echo bubblewrap 0.8.0;; --help) ;; *) echo 'bwrap: No permissions to create a new namespace' >&2; exit 1;; esac` + "\n", 0o700, doctor.OK, doctor.Fail, []string{"user namespaces are off, or held back by AppArmor", "load a profile for bwrap that allows userns"}},
		{"a launcher that confines nothing", `case $1 in --version) echo bubblewrap 0.8.0;; --help) ;; *) echo '{"effective":"1ff","seccomp":0}';; esac` + "\n", 0o700, doctor.OK, doctor.Fail, []string{"confines too little", "capabilities"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			os.Remove(launcher)
			if row.script != "" {
				if err := os.WriteFile(launcher, []byte("#!/bin/sh\n"+row.script), 0o700); err != nil {
					t.Fatal(err)
				}
				chmod(t, launcher, row.mode)
			}
			e := examined{Ran: h.Run(filepath.Join(bin, "sonny"), "doctor", "--json", "--offline"), checks: map[string]doctor.Check{}}
			e.read(t)
			failing := map[bool]string{true: "sandbox.program", false: "sandbox.run"}[row.program == doctor.Fail]
			e.wants(t, "sandbox.program", row.program)
			e.wants(t, "sandbox.run", row.run)
			e.wants(t, "sandbox.network", doctor.Skip)
			e.wants(t, failing, doctor.Fail, row.says...)
			if e.Exit != 1 || e.checks[failing].Remedy == "" && row.name != "a launcher that confines nothing" {
				t.Errorf("exit %d, %+v", e.Exit, e.checks[failing])
			}
		})
	}
}

func TestWithoutAgent(t *testing.T) {
	t.Parallel()
	h := sonnytest.Fresh(t)
	dir := h.Path("alone")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	sonny, err := os.ReadFile(filepath.Join(sonnytest.Programs(t), "sonny"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "sonny"), sonny, 0o700); err != nil {
		t.Fatal(err)
	}
	e := examined{Ran: h.With("PATH="+dir).Run(filepath.Join(dir, "sonny"), "doctor", "--json"), checks: map[string]doctor.Check{}}
	e.read(t)
	e.wants(t, "version", doctor.Fail, "no agent program", "install agent")
	e.wants(t, "sandbox.run", doctor.Fail, "no agent program")
	e.wants(t, "providers.reach", doctor.Fail)
	e.wants(t, "git", doctor.Warn, "install git")
	e.wants(t, "rg", doctor.Warn, "install ripgrep")
}

func TestFullDisk(t *testing.T) {
	t.Parallel()
	h := sonnytest.Fresh(t)
	h.Write(".agents/AGENTS.md", "Be brief.\n")
	agentDir := h.Path(".agent")
	kept := h.Path("kept")
	if err := os.Rename(agentDir, kept); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(agentDir, 0o700); err != nil {
		t.Fatal(err)
	}
	// A file system of 4 MiB for ~/.agent, filled to its last byte.
	script := "cp -a " + kept + "/. " + agentDir + " && { cat /dev/zero > " + agentDir + "/fill 2>/dev/null; true; } && exec sonny doctor --json --offline"
	ran := h.Run("/usr/bin/bwrap", "--dev-bind", "/", "/", "--perms", "0700", "--size", "4194304", "--tmpfs", agentDir, "--", "/bin/sh", "-c", script)
	e := examined{Ran: ran, checks: map[string]doctor.Check{}}
	e.read(t)
	e.wants(t, "disk", doctor.Warn, "0 bytes free, less than 1 GiB", "make room")
	e.wants(t, "home.mode", doctor.OK)
	e.wants(t, "env.mode", doctor.OK)
	e.wants(t, "models", doctor.OK)
}

// A ~/.agent that cannot be written keeps every daemon from starting, so doctor fails.
func TestAHomeThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	h := sonnytest.Fresh(t)
	agent := h.Path(".agent")
	ran := h.Run("/usr/bin/bwrap", "--dev-bind", "/", "/", "--ro-bind", agent, agent, "--",
		sonnytest.Programs(t)+"/sonny", "doctor", "--offline", "--json")
	if ran.Exit == 0 || !strings.Contains(ran.Stdout, `"home.mode","status":"fail","summary":"~/.agent cannot be written: read-only file system"`) {
		t.Errorf("exit %d: %.400s%s", ran.Exit, ran.Stdout, ran.Stderr)
	}
}
