package cli

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"agent/internal/sonny/sonnytest"

	"github.com/rogpeppe/go-internal/testscript"
)

// The test program plays sonny in scripts, and itself where a test names no script.
func TestMain(m *testing.M) {
	testscript.Main(withPrograms{m}, map[string]func(){"sonny": func() { os.Exit(Main()) }})
}

// noRaceSleep keeps a command under the race detector from sleeping before it exits.
const noRaceSleep = "atexit_sleep_ms=0"

// withPrograms runs the tests with agent and sonny built for those that need both.
type withPrograms struct{ m *testing.M }

func (w withPrograms) Run() int { return sonnytest.Run(w.m) }

func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", RequireExplicitExec: true, RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, "home")
			env.Setenv("HOME", home)
			env.Setenv("GORACE", noRaceSleep)
			return os.Mkdir(home, 0o700)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": cmdExits, "fails": cmdFails, "mode": cmdMode,
		},
	})
}

// exits runs a program and expects its exit status: exits N PROGRAM ARGS…
func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(args[0])
	if neg || err != nil {
		ts.Fatalf("exits N PROGRAM ARGS…")
	}
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// fails expects sonny to fail with a status, a code and a text that matches, and with
// nothing on its standard output: fails N CODE PATTERN ARGS…
func cmdFails(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("fails N CODE PATTERN ARGS…")
	}
	cmdExits(ts, false, append([]string{args[0], "sonny"}, args[3:]...))
	said := strings.TrimSpace(ts.ReadFile("stderr"))
	last := said[strings.LastIndexByte(said, '\n')+1:]
	detail, ok := strings.CutPrefix(last, "sonny: "+args[1]+": ")
	if !ok || !regexp.MustCompile(args[2]).MatchString(detail) {
		ts.Fatalf("it says %q", said)
	}
	if out := ts.ReadFile("stdout"); out != "" {
		ts.Fatalf("stdout: %s", out)
	}
}

// mode expects a file's permissions: mode 0600 FILE.
func cmdMode(ts *testscript.TestScript, neg bool, args []string) {
	info, err := os.Lstat(ts.MkAbs(args[1]))
	ts.Check(err)
	want, err := strconv.ParseUint(args[0], 8, 32)
	ts.Check(err)
	if (uint64(info.Mode().Perm()) == want) == neg {
		ts.Fatalf("%s has mode %o", args[1], info.Mode().Perm())
	}
}
