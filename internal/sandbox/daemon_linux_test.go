package sandbox

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"agent/protocol"
)

// daemonVerb is this program's first argument where it plays a daemon that runs
// one confined command after the other until it is killed; see playDaemon.
const daemonVerb = "__daemon"

func init() { parts[daemonVerb] = playDaemon }

// playDaemon opens the placeholders of a lab, and runs a script in its workspace
// over and over. It prints a line as it starts it, and the script has its standard
// error. The arguments are the lab's folder, the workspace, the mode and the
// script.
func playDaemon(args []string) int {
	if err := daemon(args[0], args[1], args[2], args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func daemon(dir, workspace, mode, script string) error {
	agent := dir + "/home/.agent"
	world := &World{Home: dir + "/home", AgentDir: agent, Store: agent + "/state.sqlite", SocketDir: agent + "/state.sqlite.sock.d", Tmp: dir + "/tmp"}
	ph, err := OpenPlaceholders(world.Store + ".placeholders")
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	launch := &Launcher{Helper: self, Owner: dir}
	for {
		plan, err := NewPlan(world, &Setting{Mode: mode, Workspace: workspace}, Call{Cwd: workspace})
		if err != nil {
			return err
		}
		placed, changed, err := ph.Place(plan)
		if err != nil || changed {
			return fmt.Errorf("%v, %w", changed, err)
		}
		c, err := launch.Prepare(context.Background(), placed.Plan, []string{"/bin/bash", "-c", script}, nil)
		if err != nil {
			return err
		}
		cmd := exec.Command(c.Argv[0], c.Argv[1:]...)
		cmd.Env, cmd.Dir, cmd.ExtraFiles = c.Env, c.Dir, c.Files
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			return err
		}
		fmt.Println("started")
		c.Started()
		cmd.Wait()
		placed.Remove()
		c.Close()
	}
}

// read fills b.
func read(t *testing.T, r io.Reader, b []byte) bool {
	t.Helper()
	_, err := io.ReadFull(r, b)
	if err != nil {
		t.Error(err)
	}
	return err == nil
}

// drained reads to the end.
func drained(t *testing.T, w io.Writer, r io.Reader) bool {
	t.Helper()
	_, err := io.Copy(w, r)
	if err != nil {
		t.Error(err)
	}
	return err == nil
}

// killedCalls is how many calls TestNothingIsLeft makes; more with the long tests.
var killedCalls = 100

// TestNothingIsLeft is SB-91 with a daemon that is killed at any moment: the next
// one's start leaves nothing on the host.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	l := socketLab(t)
	l.repository("home/ws")
	journal := l.path("home/.agent/state.sqlite.placeholders")
	l.placeholders()
	before := l.host()
	for calls := 0; calls < killedCalls; {
		cmd := exec.Command(self, daemonVerb, l.dir, l.ws, protocol.SandboxWorkspace, ":")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for range 1 + rand.IntN(20) {
			if !lines.Scan() {
				t.Fatal("the daemon ended: ", lines.Err())
			}
			calls++
		}
		kill := time.AfterFunc(rand.N(30*time.Millisecond), func() { cmd.Process.Kill() })
		for lines.Scan() { // up to its death
			calls++
		}
		cmd.Wait()
		kill.Stop()
		if _, left := EndStrays(l.dir); len(left) > 0 {
			t.Fatal("launchers that do not end: ", left)
		}
		ph, err := OpenPlaceholders(journal)
		if err != nil {
			t.Fatal(err)
		}
		if err := ph.Close(); err != nil {
			t.Fatal(err)
		}
		compareHosts(t, before, l.host(), nil)
	}
}

// BenchmarkCall is what a sandbox adds to a command: ns/op is a confined true from
// the plan to its end, and outside-ns/op the same command without.
func BenchmarkCall(b *testing.B) {
	dir, err := os.MkdirTemp("", "sb")
	if err != nil {
		b.Fatal(err)
	}
	defer os.RemoveAll(dir)
	world, ws := benchWorld(b, dir)
	ph, err := OpenPlaceholders(world.Store + ".placeholders")
	if err != nil {
		b.Fatal(err)
	}
	defer ph.Close()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	launch := &Launcher{Helper: self}
	if err := launch.Probe(context.Background()); err != nil {
		b.Fatal(err)
	}
	var inside, outside []time.Duration
	for b.Loop() {
		start := time.Now()
		if err := callTrue(launch, ph, world, ws); err != nil {
			b.Fatal(err)
		}
		middle := time.Now()
		if err := exec.Command("/bin/true").Run(); err != nil {
			b.Fatal(err)
		}
		inside, outside = append(inside, middle.Sub(start)), append(outside, time.Since(middle))
	}
	b.ReportMetric(float64(median(inside).Microseconds())/1000, "inside-median-ms")
	b.ReportMetric(float64(median(outside).Microseconds())/1000, "outside-median-ms")
	b.ReportMetric(float64((median(inside)-median(outside)).Microseconds())/1000, "added-median-ms")
}

func callTrue(launch *Launcher, ph *Placeholders, world *World, ws string) error {
	mounts, err := HostMounts()
	if err != nil {
		return err
	}
	plan, err := NewPlan(world, &Setting{Mode: protocol.SandboxWorkspace, Workspace: ws}, Call{Cwd: ws, Mounts: mounts})
	if err != nil {
		return err
	}
	placed, changed, err := ph.Place(plan)
	if err != nil || changed {
		return fmt.Errorf("%v, %w", changed, err)
	}
	defer placed.Remove()
	c, err := launch.Prepare(context.Background(), placed.Plan, []string{"/bin/true"}, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	cmd := exec.Command(c.Argv[0], c.Argv[1:]...)
	cmd.Env, cmd.Dir, cmd.ExtraFiles = c.Env, c.Dir, c.Files
	return cmd.Run()
}

func median(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[len(list)/2]
}

// benchWorld is a world with a workspace.
func benchWorld(b *testing.B, dir string) (*World, string) {
	b.Helper()
	agent := dir + "/home/.agent"
	for _, d := range []string{agent + "/run", agent + "/state.sqlite.sock.d", dir + "/tmp", dir + "/home/ws/.git"} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			b.Fatal(err)
		}
	}
	return &World{
		Home: dir + "/home", AgentDir: agent, Store: agent + "/state.sqlite", SocketDir: agent + "/state.sqlite.sock.d",
		Walls: []string{agent + "/run"}, Tmp: dir + "/tmp",
	}, dir + "/home/ws"
}

// BenchmarkPlan plans a call in a workspace of 50,000 files.
func BenchmarkPlan(b *testing.B) {
	dir := b.TempDir()
	world, ws := benchWorld(b, dir)
	for d := range 50 {
		folder := fmt.Sprintf("%s/d%d", ws, d)
		if err := os.Mkdir(folder, 0o755); err != nil {
			b.Fatal(err)
		}
		for f := range 1000 {
			if err := os.WriteFile(fmt.Sprintf("%s/f%d", folder, f), nil, 0o644); err != nil {
				b.Fatal(err)
			}
		}
	}
	setting := &Setting{Mode: protocol.SandboxWorkspace, Workspace: ws}
	for b.Loop() {
		mounts, err := HostMounts()
		if err != nil {
			b.Fatal(err)
		}
		if _, err := NewPlan(world, setting, Call{Cwd: ws, Mounts: mounts}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPlaceholders makes a call's five placeholders, and takes them away.
func BenchmarkPlaceholders(b *testing.B) {
	world, ws := benchWorld(b, b.TempDir())
	ph, err := OpenPlaceholders(world.Store + ".placeholders")
	if err != nil {
		b.Fatal(err)
	}
	defer ph.Close()
	plan, err := NewPlan(world, &Setting{Mode: protocol.SandboxWorkspace, Workspace: ws}, Call{Cwd: ws})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		placed, changed, err := ph.Place(plan)
		if err != nil || changed {
			b.Fatal(changed, err)
		}
		placed.Remove()
	}
}
