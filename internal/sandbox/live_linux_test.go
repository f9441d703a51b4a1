package sandbox

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"agent/protocol"
)

// ended is what a confined command did.
type ended struct {
	out  string // both streams
	code int    // -1: killed
	ran  bool
}

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

// placeholders are the lab's, made at first use.
func (l *lab) placeholders() *Placeholders {
	l.t.Helper()
	if l.ph == nil {
		ph, err := OpenPlaceholders(l.path("home/.agent/state.sqlite.placeholders"))
		if err != nil {
			l.t.Fatal(err)
		}
		l.t.Cleanup(func() { ph.Close() })
		l.ph = ph
	}
	return l.ph.(*Placeholders)
}

// run runs a script confined by a plan.
func (l *lab) run(launch *Launcher, p *Plan, script string) ended {
	l.t.Helper()
	placed, changed, err := l.placeholders().Place(p)
	if err != nil || changed {
		l.t.Fatal(changed, err)
	}
	defer placed.Remove()
	env := []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + l.path("home"), "LAB=" + l.dir, "LC_ALL=C"}
	c, err := launch.Prepare(l.t.Context(), placed.Plan, []string{"/bin/bash", "-c", script}, env)
	if err != nil {
		l.t.Fatal(err)
	}
	defer c.Close()
	cmd := exec.CommandContext(l.t.Context(), c.Argv[0], c.Argv[1:]...)
	cmd.Env, cmd.Dir, cmd.ExtraFiles = c.Env, c.Dir, c.Files
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	c.Started()
	cmd.Wait()
	return ended{out: out.String(), code: cmd.ProcessState.ExitCode(), ran: c.Ran()}
}

// host is every path of the lab with its kind and content: what a command must
// not have changed.
func (l *lab) host() string {
	l.t.Helper()
	out, err := exec.Command("bash", "-c", "cd "+l.dir+" && find . -printf '%y %m %p %l\n' | sort && find . -type f -print0 | sort -z | xargs -0 sha256sum").CombinedOutput()
	if err != nil {
		l.t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

func TestProbe(t *testing.T) {
	l := launcher(t)
	if tried, err := l.State(); !tried || err != nil {
		t.Errorf("the state is %v, %v", tried, err)
	}
	t.Run("what is wrong is said", func(t *testing.T) {
		good := facts{Effective: "0000", Permitted: "0", Bounding: "00", NoNewPrivs: 1, Seccomp: 2, Pid: 2}
		if f := good.fault(); f != "" {
			t.Errorf("a good one: %s", f)
		}
		for want, spoil := range map[string]func(*facts){
			"capabilities": func(f *facts) { f.Bounding = "0000000000000200" }, "privileges": func(f *facts) { f.NoNewPrivs = 0 },
			"filter": func(f *facts) { f.Seccomp = 0 }, "processes": func(f *facts) { f.Pid = 4711 }, "write to /": func(f *facts) { f.WroteRoot = true },
			"core_pattern": func(f *facts) { f.OpenedCorePattern = true }, "cgroup": func(f *facts) { f.LeftCgroups = true },
		} {
			f := good
			spoil(&f)
			if got := f.fault(); !strings.Contains(got, want) {
				t.Errorf("%s: got %q", want, got)
			}
		}
	})
	t.Run("SB-65 without a launcher nothing is confined", func(t *testing.T) {
		saved := bwrapPlaces
		defer func() { bwrapPlaces = saved }()
		bwrapPlaces = []string{t.TempDir() + "/bwrap"}
		l := &Launcher{Helper: "/proc/self/exe"}
		err := l.Probe(t.Context())
		e, ok := err.(*protocol.Error)
		if !ok || e.Code != protocol.SandboxUnavailable || !strings.Contains(e.Detail, "install the package bubblewrap") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a launcher that others may write is not used", func(t *testing.T) {
		saved := bwrapPlaces
		defer func() { bwrapPlaces = saved }()
		dir := t.TempDir()
		if err := os.WriteFile(dir+"/bwrap", []byte("#!/bin/sh\necho bubblewrap 9.9.9\n"), 0o777); err != nil {
			t.Fatal(err)
		}
		os.Chmod(dir+"/bwrap", 0o777)
		bwrapPlaces = []string{dir + "/bwrap"}
		if err := (&Launcher{}).Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "may be written by others") {
			t.Errorf("got %v", err)
		}
	})
	for version, want := range map[string]bool{"bubblewrap 0.5.0": true, "bubblewrap 0.4.9": false, "bubblewrap 1.0": true, "": false, "x": false, "bubblewrap 0.11.0\n": true} {
		if got := atLeast(version, 0, 5); got != want {
			t.Errorf("%q: %v", version, got)
		}
	}
}

func TestConfinedCommand(t *testing.T) {
	launch := launcher(t)
	l := newLab(t)
	p, err := l.plan(nil)
	if err != nil {
		t.Fatal(err)
	}
	e := l.run(launch, p, "pwd; echo hi > f; cat f; exit 3")
	if e.code != 3 || !e.ran || e.out != l.ws+"\nhi\n" {
		t.Errorf("got %+v", e)
	}
	if e = l.run(launch, p, "kill -9 $$"); e.code != 137 || !e.ran {
		t.Errorf("killed: %+v", e)
	}
	if e = l.run(launch, p, "env | cut -d= -f1 | sort | tr '\n' ' '"); !strings.HasPrefix(e.out, "HOME LAB LC_ALL PATH PWD SHLVL _") {
		t.Errorf("the environment is %q", e.out)
	}
}
