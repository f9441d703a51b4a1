package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// openTerminal gives the two ends of a pseudo-terminal.
func openTerminal(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ours.Close(); theirs.Close() })
	return ours, theirs
}

// onTerminal makes cmd's three streams a terminal that it controls.
func onTerminal(cmd *exec.Cmd, theirs *os.File) {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, theirs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
}

func TestTerminal(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, ours *os.File){
		"is closed": func(*testing.T, *os.File) {},
		"has Ctrl+C typed": func(t *testing.T, ours *os.File) {
			ours.Write([]byte{3})
			until(t, ours, "^C") // the terminal has taken it, and signalled
		},
	} {
		t.Run("CL-95 the terminal that started a daemon "+name, func(t *testing.T) {
			t.Parallel()
			g := newGround(t)
			if err := syscall.Mkfifo(filepath.Join(g.dir, "gate"), 0o600); err != nil {
				t.Fatal(err)
			}
			ours, theirs := openTerminal(t)
			// A shell that leads the terminal's session and outlives the command,
			// so that closing the terminal hangs it up.
			cmd := exec.Command("sh", "-c", "agent run --detach --new --bot Bob --model t/hold hold; echo started; cat")
			cmd.Env, cmd.Dir = g.env, g.dir
			onTerminal(cmd, theirs)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			until(t, ours, "started")
			c := g.client()
			ready, err := c.Ready(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if sid, err := unix.Getsid(ready.PID); err != nil || sid != ready.PID {
				t.Errorf("the daemon %d is in session %d, %v", ready.PID, sid, err)
			}
			end(t, ours)
			theirs.Close()
			ours.Close()
			cmd.Wait()
			release(g)
			if got := ended(g, 1); got != "completed" {
				t.Errorf("the turn ended %s", got)
			}
			if err := syscall.Kill(ready.PID, 0); err != nil {
				t.Errorf("the daemon is gone: %v", err)
			}
		})
	}
	t.Run("thinking and calls are dim on a terminal, unless NO_COLOR or TERM say no", func(t *testing.T) {
		t.Parallel()
		for env, dim := range map[string]bool{"TERM=xterm": true, "TERM=dumb": false, "NO_COLOR=1": false} {
			g := newGround(t, env)
			ours, theirs := openTerminal(t)
			cmd := g.command("run", "--pretty", "--new", "--bot", "Bob", "--model", "t/where", "hi")
			onTerminal(cmd, theirs)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			shown := until(t, ours, "completed")
			cmd.Wait()
			if got := strings.Contains(shown, "\x1b[2m▸ shell pwd\x1b[0m"); got != dim {
				t.Errorf("%s: %q", env, shown)
			}
		}
	})
}

// until reads a terminal up to a word.
func until(t *testing.T, from io.Reader, word string) string {
	t.Helper()
	var seen bytes.Buffer
	buf := make([]byte, 4096)
	for !strings.Contains(seen.String(), word) {
		n, err := from.Read(buf)
		seen.Write(buf[:n])
		if err != nil {
			t.Fatalf("%v after %q", err, seen.String())
		}
	}
	return seen.String()
}
