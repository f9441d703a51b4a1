package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"agent/client"
	"agent/protocol"

	"github.com/rogpeppe/go-internal/testscript"
)

// The test program plays agent: by that name in scripts, and by its first
// argument where the command starts itself as a daemon.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-test.") && !slices.Contains([]string{"person", "elder"}, filepath.Base(os.Args[0])) {
		os.Exit(Main())
	}
	testscript.Main(m, map[string]func(){"agent": func() { os.Exit(Main()) }, "person": person, "elder": elder})
}

func TestScripts(t *testing.T) {
	root := workRoot(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", WorkdirRoot: root, RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, "home")
			env.Setenv("HOME", home)
			env.Setenv("MODELS", modelsFile(t))
			env.Setenv("GORACE", raceOptions)
			env.Defer(func() { stopDaemons(t, env.WorkDir) })
			return os.Mkdir(home, 0o700)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": cmdExits, "usage": cmdUsage, "mode": cmdMode, "names": cmdNames, "capture": cmdCapture, "awaits": cmdAwaits,
			"says": cmdSays, "issuer": cmdIssuer(t),
		},
	})
}

// raceOptions keep a command under the race detector from sleeping a second
// before it exits.
const raceOptions = "atexit_sleep_ms=0"

// workRoot is a folder whose path leaves room for a socket's address.
func workRoot(t testing.TB) string {
	t.Helper()
	root, err := os.MkdirTemp("/tmp", "ac")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	return root
}

func modelsFile(t testing.TB) string {
	t.Helper()
	path, err := filepath.Abs("testdata/models.json")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// stopDaemons ends the daemons of the stores below dir, which are this test's
// own, each by the process id it announces.
func stopDaemons(t testing.TB, dir string) {
	filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".sqlite") {
			return nil
		}
		target, err := client.Resolve(path, "")
		if err != nil {
			t.Errorf("%s: %v", path, err)
			return nil
		}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		c := &client.Client{Target: target}
		defer c.Close()
		if err := c.Shutdown(ctx, 0); err != nil && !errors.Is(err, protocol.DaemonUnavailable) {
			t.Errorf("the daemon of %s was not stopped: %v", path, err)
		}
		return nil
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

// usage expects a line to be refused before anything is touched: exit 2, an
// error on stderr that matches, nothing on stdout, nothing below HOME.
func cmdUsage(ts *testscript.TestScript, neg bool, args []string) {
	cmdExits(ts, neg, append([]string{"2", "agent"}, args[1:]...))
	var e struct{ Error, Detail string }
	if err := json.Unmarshal([]byte(ts.ReadFile("stderr")), &e); err != nil || e.Error != "usage" {
		ts.Fatalf("stderr is no usage error: %s", ts.ReadFile("stderr"))
	}
	if !regexp.MustCompile(args[0]).MatchString(e.Detail) {
		ts.Fatalf("the detail %q does not match %q", e.Detail, args[0])
	}
	if out := ts.ReadFile("stdout"); out != "" {
		ts.Fatalf("stdout: %s", out)
	}
}

// names expects the error's code on stderr: names CODE.
func cmdNames(ts *testscript.TestScript, neg bool, args []string) {
	var e struct{ Error string }
	text := ts.ReadFile("stderr")
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		ts.Fatalf("stderr is no error line: %q", text)
	}
	if (e.Error == args[0]) == neg {
		ts.Fatalf("the error is %s, not %s", e.Error, args[0])
	}
}

// mode expects a file's permissions: mode 0600 FILE.
func cmdMode(ts *testscript.TestScript, neg bool, args []string) {
	info, err := os.Lstat(ts.MkAbs(args[1]))
	ts.Check(err)
	want, err := strconv.ParseUint(args[0], 8, 32)
	ts.Check(err)
	if uint64(info.Mode().Perm()) != want {
		ts.Fatalf("%s has mode %o, want %o", args[1], info.Mode().Perm(), want)
	}
}

// capture sets a variable to what a pattern's group finds in stdout or stderr:
// capture NAME stdout PATTERN.
func cmdCapture(ts *testscript.TestScript, neg bool, args []string) {
	found := regexp.MustCompile(args[2]).FindStringSubmatch(ts.ReadFile(args[1]))
	if len(found) < 2 {
		ts.Fatalf("%s does not match %s", args[1], args[2])
	}
	ts.Setenv(args[0], found[1])
}

// awaits follows a bot until an event of a kind has come: awaits BOT KIND.
func cmdAwaits(ts *testscript.TestScript, neg bool, args []string) {
	target, err := client.Resolve(filepath.Join(ts.Getenv("HOME"), ".agent", "state.sqlite"), "")
	ts.Check(err)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	c := &client.Client{Target: target}
	defer c.Close()
	for e, err := range c.Follow(ctx, args[0], client.FollowOptions{}) {
		ts.Check(err)
		if e.Kind == args[1] {
			return
		}
	}
	ts.Fatalf("no %s of %s", args[1], args[0])
}

// says expects what a bot has said last to match a pattern: says BOT PATTERN.
// What run prints need not hold it: deltas that came before it followed do not
// come again.
func cmdSays(ts *testscript.TestScript, neg bool, args []string) {
	if err := ts.Exec("agent", "history", "--bot", args[0], "--limit", "1"); err != nil {
		ts.Fatalf("%v", err)
	}
	if text := ts.ReadFile("stdout"); regexp.MustCompile(args[1]).MatchString(text) == neg {
		ts.Fatalf("%s said %s", args[0], text)
	}
}

// place to run the command in, for tests that no script can express.
type ground struct {
	t    testing.TB
	dir  string
	home string
	env  []string
}

func newGround(t testing.TB, env ...string) *ground {
	t.Helper()
	dir := workRoot(t)
	g := &ground{t: t, dir: dir, home: filepath.Join(dir, "home")}
	if err := os.Mkdir(g.home, 0o700); err != nil {
		t.Fatal(err)
	}
	g.env = append([]string{"HOME=" + g.home, "PATH=" + os.Getenv("PATH"), "GORACE=" + raceOptions, "AGENT_PROVIDER=t=scripted," + modelsFile(t)}, env...)
	t.Cleanup(func() { stopDaemons(t, dir) })
	return g
}

func (g *ground) store() string { return filepath.Join(g.home, ".agent", "state.sqlite") }

// client is a Go client on the ground's daemon, which runs.
func (g *ground) client() *client.Client {
	target, err := client.Resolve(g.store(), "")
	if err != nil {
		g.t.Fatal(err)
	}
	c := &client.Client{Target: target}
	g.t.Cleanup(func() { c.Close() })
	return c
}

// command is agent with arguments, not yet started.
func (g *ground) command(args ...string) *exec.Cmd {
	g.t.Helper()
	path, err := exec.LookPath("agent")
	if err != nil {
		g.t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Env, cmd.Dir = g.env, g.dir
	return cmd
}

type ran struct {
	stdout, stderr string
	status         int
}

// code is the error's code on stderr.
func (r ran) code() string {
	var e struct{ Error string }
	json.Unmarshal([]byte(r.stderr), &e)
	return e.Error
}

func (g *ground) run(args ...string) ran {
	g.t.Helper()
	return finish(g.t, g.command(args...))
}

// must is run for what has to succeed.
func (g *ground) must(args ...string) string {
	g.t.Helper()
	r := g.run(args...)
	if r.status != 0 {
		g.t.Fatalf("agent %s: exit %d: %s", strings.Join(args, " "), r.status, r.stderr)
	}
	return r.stdout
}

// finish runs a command to its end, from any goroutine.
func finish(t testing.TB, cmd *exec.Cmd) ran {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Error(err)
		return ran{status: -1}
	}
	return ran{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}
