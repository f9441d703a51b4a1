package sonnytest

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"agent/client"
	"agent/protocol"
)

// Script is the scripted model's file of sonny.md 34: the models sonny, judge-allow,
// judge-deny, judge-unclear and judge-silent.
//
//go:embed testdata/scripts/sonny.json
var Script string

// FrozenClock, in a command's environment, stops the times that Sonny shows (golden
// screens).
const FrozenClock = "SONNY_CLOCK=2026-03-04T05:06:07Z"

// config is the config.toml of a fresh home (sonny.md 35).
const config = `model = "scripted/sonny"
judge_model = "scripted/judge-allow"
trust_folders = "always"
`

// Home is a person's home below /tmp, with a short path, since sockets have their
// addresses in it. It is no one's but this test's; what is copied from it by In and
// With is the same home. It may be used by several goroutines.
type Home struct {
	Dir string   // what HOME says
	Env []string // what every command gets, and nothing else

	t     testing.TB
	root  string // what is taken away at the end; Dir is in it
	cwd   string
	grace time.Duration // for what ends with the daemon to be gone
}

// Option changes what a fresh home holds.
type Option func(*parts)

type parts struct{ env, models, config, script string }

// NoEnv leaves out ~/.agent/env, and with it every provider.
func NoEnv(p *parts) { p.env = "" }

// NoModels leaves out ~/.agent/models.
func NoModels(p *parts) { p.models = "" }

// NoConfig leaves out ~/.agent/config.toml.
func NoConfig(p *parts) { p.config = "" }

// Config puts another text in the place of config.toml's.
func Config(text string) Option { return func(p *parts) { p.config = text } }

// Judge names another of the judges: deny, unclear, silent.
func Judge(name string) Option {
	return func(p *parts) { p.config = strings.Replace(p.config, "judge-allow", "judge-"+name, 1) }
}

// OwnScript puts another script file in the place of Script.
func OwnScript(text string) Option { return func(p *parts) { p.script = text } }

// hearHangups has programs started here end with their terminal also where the tests run
// with SIGHUP ignored, as below nohup: what is ignored is inherited, what is heard is not.
var hearHangups = sync.OnceFunc(func() {
	if signal.Ignored(syscall.SIGHUP) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
})

// Fresh makes the fresh home of sonny.md 35: a 0700 ~/.agent with an env that names the
// scripted provider, a models file and a config.toml, and no bots. At the test's end
// the daemon is shut down; what then still runs in this home is ended, and a fault.
func Fresh(t testing.TB, options ...Option) *Home {
	t.Helper()
	hearHangups()
	root, err := os.MkdirTemp("/tmp", "so")
	if err != nil {
		t.Fatal(err)
	}
	h := &Home{t: t, root: root, Dir: filepath.Join(root, "h"), grace: 10 * time.Second}
	h.cwd = h.Dir
	h.Env = []string{
		"HOME=" + h.Dir, "PATH=" + Programs(t) + string(filepath.ListSeparator) + os.Getenv("PATH"),
		"LANG=C.UTF-8", "SHELL=/bin/sh", "USER=" + os.Getenv("USER"), "GIT_CONFIG_NOSYSTEM=1",
		"GORACE=atexit_sleep_ms=0", // a command under the race detector does not wait a second before it exits
	}
	t.Cleanup(func() { h.end() })
	script := filepath.Join(root, "sonny.json")
	p := &parts{script: Script, env: "AGENT_PROVIDER=scripted=scripted," + script + "\n", models: "scripted/sonny\n", config: config}
	for _, option := range options {
		option(p)
	}
	h.put(script, p.script)
	h.put(h.Path(".gitconfig"), "[user]\n\tname = Ada\n\temail = ada@example.com\n[init]\n\tdefaultBranch = main\n")
	for name, text := range map[string]string{"env": p.env, "models": p.models, "config.toml": p.config} {
		if text != "" {
			h.put(h.Path(".agent", name), text)
		}
	}
	h.folder(h.Path(".agent"))
	return h
}

// Path is a path below the home.
func (h *Home) Path(elem ...string) string {
	return filepath.Join(append([]string{h.Dir}, elem...)...)
}

// In is the home with another folder for its commands to start in, by default ~.
func (h *Home) In(dir string) *Home {
	other := *h
	other.cwd = dir
	return &other
}

// With is the home with more variables, NAME=VALUE, in the environment of its commands.
func (h *Home) With(env ...string) *Home {
	other := *h
	other.Env = append(h.Env[:len(h.Env):len(h.Env)], env...)
	return &other
}

// Write writes a 0600 file at a path below the home, and the 0700 folders on its way.
func (h *Home) Write(path, text string) string {
	h.t.Helper()
	path = h.Path(path)
	h.put(path, text)
	return path
}

func (h *Home) put(path, text string) {
	h.t.Helper()
	h.folder(filepath.Dir(path))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

func (h *Home) folder(path string) {
	h.t.Helper()
	if err := os.MkdirAll(path, 0o700); err != nil {
		h.t.Fatal(err)
	}
}

// Repo makes a git repository in the folder of that name below the home, with the files
// (path and text) in one commit on the branch main, and returns its path.
func (h *Home) Repo(name string, files map[string]string) string {
	h.t.Helper()
	dir := h.Path(name)
	h.folder(dir)
	for path, text := range files {
		h.put(filepath.Join(dir, path), text)
	}
	h.Git(dir, "init", "--quiet")
	h.Git(dir, "add", "--all")
	h.Git(dir, "commit", "--quiet", "--allow-empty", "--message", "begin")
	return dir
}

// Git runs git in a folder and returns what it printed, without the last line break.
func (h *Home) Git(dir string, args ...string) string {
	h.t.Helper()
	r := h.In(dir).Run("git", args...)
	if r.Exit != 0 {
		h.t.Fatalf("git %s: exit %d: %s", strings.Join(args, " "), r.Exit, r.Stderr)
	}
	return strings.TrimSuffix(r.Stdout, "\n")
}

// Ran is a command that has ended. Exit is -1 when a signal ended it.
type Ran struct {
	Stdout, Stderr string
	Exit           int
}

// Sonny runs sonny to its end.
func (h *Home) Sonny(args ...string) Ran { h.t.Helper(); return h.Run("sonny", args...) }

// Agent runs agent to its end.
func (h *Home) Agent(args ...string) Ran { h.t.Helper(); return h.Run("agent", args...) }

// Run runs a program by its path, or its name on the home's PATH, to its end, with an
// empty stdin.
func (h *Home) Run(name string, args ...string) Ran {
	h.t.Helper()
	return h.Feed("", name, args...)
}

// Feed is Run with a text on stdin. One that has not ended within a minute is killed,
// and fails the test.
func (h *Home) Feed(stdin, name string, args ...string) Ran {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := h.command(ctx, name, args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	err := cmd.Run()
	if ctx.Err() != nil {
		h.t.Fatalf("%s %s has not ended within %s; it printed\n%s\n%s", name, strings.Join(args, " "), patience, &out, &errs)
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		h.t.Fatal(err)
	}
	return Ran{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

// command is a program in the home, not yet started.
func (h *Home) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	if own := filepath.Join(Programs(h.t), name); name == "sonny" || name == "agent" {
		name = own
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env, cmd.Dir = h.Env, h.cwd
	cmd.WaitDelay = time.Second // a child of its that lives on does not hold its output
	return cmd
}

// Client is a Go client of the home's daemon; it starts none.
func (h *Home) Client() *client.Client {
	h.t.Helper()
	target, err := client.Resolve(h.Path(".agent", "state.sqlite"), "")
	if err != nil {
		h.t.Fatal(err)
	}
	c := &client.Client{Target: target}
	h.t.Cleanup(func() { c.Close() })
	return c
}

// DaemonPID is the process of the home's daemon, 0 while there is none.
func (h *Home) DaemonPID() int {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ready, err := h.Client().Ready(ctx)
	if errors.Is(err, protocol.DaemonUnavailable) {
		return 0
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return ready.PID
}

// KillDaemon ends the home's daemon as a crash would, and returns when it is gone.
func (h *Home) KillDaemon() {
	h.t.Helper()
	pid := h.DaemonPID()
	if pid == 0 {
		h.t.Fatal("no daemon runs in this home")
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		h.t.Fatal(err)
	}
	h.until("the daemon's end", func() bool { return !alive(h.Dir, pid) })
}

// Until waits for a condition that nothing announces, looking fifty times a second.
func (h *Home) Until(what string, holds func() bool) { h.t.Helper(); h.until(what, holds) }

func (h *Home) until(what string, holds func() bool) {
	h.t.Helper()
	if !poll(patience, holds) {
		h.t.Fatalf("%s did not come within %s", what, patience)
	}
}

// poll reports whether a condition came to hold within a limit.
func poll(limit time.Duration, holds func() bool) bool {
	late := time.Now().Add(limit)
	for tick := time.Tick(20 * time.Millisecond); !holds(); <-tick {
		if time.Now().After(late) {
			return false
		}
	}
	return true
}

// end shuts the daemon down, sees to it that nothing is left, and takes the home away.
func (h *Home) end() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := h.Client().Shutdown(ctx, 0); err != nil && !errors.Is(err, protocol.DaemonUnavailable) {
		h.t.Errorf("the daemon was not shut down: %v", err)
	}
	poll(h.grace, func() bool { return len(processes(h.Dir)) == 0 })
	for pid, line := range processes(h.Dir) {
		h.t.Errorf("process %d of this home is left, and is ended: %s", pid, line)
		syscall.Kill(pid, syscall.SIGKILL)
	}
	if err := os.RemoveAll(h.root); err != nil {
		h.t.Errorf("the home was not taken away: %v", err)
	}
}

// alive reports whether a process of the home at dir still runs.
func alive(dir string, pid int) bool {
	_, there := processes(dir)[pid]
	return there
}
