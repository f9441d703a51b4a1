package sandbox

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// daemonVerb is this program's first argument where it plays a daemon that runs
// one confined command after the other until it is killed; see playDaemon.
const daemonVerb = "__daemon"

func init() { parts[daemonVerb] = playDaemon }

// playDaemon opens the placeholders of a lab, and runs a script in its workspace
// over and over, with its own output. The arguments are the lab's folder, the
// workspace, the mode and the script.
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
	launch := &Launcher{Helper: self}
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
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Start(); err != nil {
			return err
		}
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
