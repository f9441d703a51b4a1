package sandbox

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"agent/internal/place"
	"agent/protocol"
)

// ended is what a confined command did.
type ended struct {
	out  string // both streams
	code int    // -1: killed
	ran  bool

	changed []string // protected entries that were replaced
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

// running is a confined script that goes on.
type running struct {
	l      *lab
	cmd    *exec.Cmd
	c      *Command
	placed *Placed
	in     io.WriteCloser
	out    *bufio.Reader
	err    bytes.Buffer
}

// start starts a script confined by a plan.
func (l *lab) start(launch *Launcher, p *Plan, script string) *running {
	l.t.Helper()
	placed, changed, err := l.placeholders().Place(p)
	if err != nil || changed {
		l.t.Fatal(changed, err)
	}
	r := &running{l: l, placed: placed}
	r.c, err = launch.Prepare(l.t.Context(), placed.Plan, []string{"/bin/bash", "-c", script}, l.env())
	if err != nil {
		placed.Remove()
		l.t.Fatal(err)
	}
	r.cmd = exec.CommandContext(l.t.Context(), r.c.Argv[0], r.c.Argv[1:]...)
	r.cmd.Env, r.cmd.Dir, r.cmd.ExtraFiles = r.c.Env, r.c.Dir, r.c.Files
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err1 := r.cmd.StdoutPipe()
	in, err2 := r.cmd.StdinPipe()
	r.in, r.out, r.cmd.Stderr = in, bufio.NewReader(out), &r.err
	if err := errors.Join(err1, err2, r.cmd.Start()); err != nil {
		l.t.Fatal(err)
	}
	r.c.Started()
	return r
}

// env is the environment of the lab's commands.
func (l *lab) env() []string {
	return []string{
		"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME=" + l.path("home"), "LAB=" + l.dir, "LC_ALL=C",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org",
	}
}

// says waits for a line.
func (r *running) says(want string) {
	r.l.t.Helper()
	if line, err := r.out.ReadString('\n'); err != nil || line != want+"\n" {
		rest, _ := io.ReadAll(r.out)
		r.cmd.Wait()
		r.l.t.Fatalf("it said %q%q, not %q: %v: %s", line, rest, want, err, r.err.String())
	}
}

// tell gives it a line.
func (r *running) tell(line string) {
	r.l.t.Helper()
	if _, err := io.WriteString(r.in, line+"\n"); err != nil {
		r.l.t.Fatal(err)
	}
}

// end waits for its end.
func (r *running) end() ended {
	r.in.Close()
	rest, _ := io.ReadAll(r.out)
	r.cmd.Wait()
	defer r.placed.Remove()
	defer r.c.Close()
	return ended{out: string(rest) + r.err.String(), code: r.cmd.ProcessState.ExitCode(), ran: r.c.Ran(), changed: r.placed.Changed()}
}

// run runs a script confined by a plan, to its end.
func (l *lab) run(launch *Launcher, p *Plan, script string) ended {
	l.t.Helper()
	return l.start(launch, p, script).end()
}

// host is every path of the lab with its kind, mode and content: what a command
// must not have changed.
func (l *lab) host() string {
	l.t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(l.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content := ""
		switch {
		case strings.HasSuffix(path, ".placeholders") && info.Size() == 0:
			return nil // the journal is made when the first placeholder is
		case info.Mode().IsRegular():
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			content = ExpectContent(text)
		case info.Mode()&fs.ModeSymlink != 0:
			if content, err = os.Readlink(path); err != nil {
				return err
			}
		}
		fmt.Fprintf(&b, "%v .%s %s\n", info.Mode(), strings.TrimPrefix(path, l.dir), content)
		return nil
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return b.String()
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
		saved := place.Bubblewraps
		defer func() { place.Bubblewraps = saved }()
		place.Bubblewraps = []string{t.TempDir() + "/bwrap"}
		l := &Launcher{Helper: "/proc/self/exe"}
		err := l.Probe(t.Context())
		e, ok := err.(*protocol.Error)
		if !ok || e.Code != protocol.SandboxUnavailable || !strings.Contains(e.Detail, "install the package bubblewrap") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a launcher that others may write is not used", func(t *testing.T) {
		saved := place.Bubblewraps
		defer func() { place.Bubblewraps = saved }()
		dir := t.TempDir()
		if err := os.WriteFile(dir+"/bwrap", []byte("#!/bin/sh\necho bubblewrap 9.9.9\n"), 0o777); err != nil {
			t.Fatal(err)
		}
		os.Chmod(dir+"/bwrap", 0o777)
		place.Bubblewraps = []string{dir + "/bwrap"}
		want := "may be written by others"
		if os.Geteuid() != 0 {
			want = "is not owned by root"
		}
		if err := (&Launcher{}).Probe(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
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
	if e = l.run(launch, p, "env | cut -d= -f1 | grep -v ^GIT_ | sort | tr '\n' ' '"); !strings.HasPrefix(e.out, "HOME LAB LC_ALL PATH PWD SHLVL _") {
		t.Errorf("the environment is %q", e.out)
	}
}
