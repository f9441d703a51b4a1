package tool

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

func init() {
	children["starter that is killed"] = func() {
		StartGroup(os.Args[0], []string{"/bin/echo", "I ran"}, nil, "/", os.Stdin, os.Stdout, func(int) {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
		})
	}
}

func TestGroupIsHeld(t *testing.T) {
	t.Parallel()
	t.Run("RT-105 of a starter that is killed before it could write the process down, the program never runs", func(t *testing.T) {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "TOOL_TEST_CHILD=starter that is killed")
		out, err := cmd.Output() // to the end of the pipe, which the held process has too
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("the starter: %v", err)
		}
		if len(out) > 0 {
			t.Errorf("it said %q", out)
		}
	})
	t.Run("the program has its own arguments and environment, and no file but the standard ones", func(t *testing.T) {
		noted := 0
		said, g := started(t, []string{"/bin/sh", "-c", `echo "$$ $1 $A $AGENT_HELPER"; true <&3 || echo closed 3; true <&4 || echo closed 4`, "x", "a  b"}, []string{"A=1"}, &noted)
		text, _ := io.ReadAll(said)
		g.Finish()
		if want := fmt.Sprintf("%d a  b 1 \n", noted); noted == 0 || noted != g.PID() || !strings.HasPrefix(string(text), want) ||
			!strings.Contains(string(text), "closed 3") || !strings.Contains(string(text), "closed 4") {
			t.Errorf("noted %d, it said %q", noted, text)
		}
	})
	for name, row := range map[string]struct {
		program string
		want    error
	}{
		"a program that is not there": {"/does/not/exist", syscall.ENOENT},
		"one that nobody may run":     {"/etc/passwd", syscall.EACCES},
		"a folder":                    {"/", syscall.EACCES},
	} {
		t.Run(name+" is an error, and nothing is left", func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			_, err = StartGroup(os.Args[0], []string{row.program}, nil, "/", w, w, func(int) {})
			w.Close()
			if !errors.Is(err, row.want) {
				t.Errorf("error %v", err)
			}
			if text, err := io.ReadAll(r); err != nil || len(text) > 0 {
				t.Errorf("it said %q", text)
			}
		})
	}
}

// started starts a program and gives what it says.
func started(t *testing.T, argv, env []string, noted *int) (*os.File, *Group) {
	t.Helper()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	g, err := StartGroup(os.Args[0], argv, env, "/", null, w, func(pid int) { *noted = pid })
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	return r, g
}
