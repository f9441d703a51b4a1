package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// patience bounds every command of the demo.
const patience = 30 * time.Second

// A stage is the throwaway home that the demo plays in.
type stage struct {
	ctx     context.Context
	out     io.Writer
	home    string
	project string
	agent   string // the program under show
	env     []string
	daemon  int // the newest daemon's pid, 0 before the first

	promised promises
}

// newStage makes the home. Nothing of the caller's is used but PATH and the
// compiler's cache: no key, no store, no settings.
func newStage(ctx context.Context, agent string, out io.Writer) (*stage, error) {
	agent, err := filepath.Abs(agent)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(agent); err != nil {
		return nil, fmt.Errorf("no program to show: %w; make build makes it", err)
	}
	cache, err := exec.CommandContext(ctx, "go", "env", "GOCACHE").Output()
	if err != nil {
		return nil, fmt.Errorf("go env GOCACHE: %w", err)
	}
	home, err := os.MkdirTemp("", "agent-demo-")
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(filepath.Join(home, "tmp"), 0o700); err != nil {
		return nil, err
	}
	s := &stage{ctx: ctx, out: out, home: home, agent: agent, project: filepath.Join(home, "project")}
	s.env = []string{
		"HOME=" + home, "PATH=" + filepath.Dir(agent) + string(os.PathListSeparator) + os.Getenv("PATH"),
		"TMPDIR=" + filepath.Join(home, "tmp"), "LANG=C.UTF-8", "NO_COLOR=1",
		// The confined bot finds the compiler's cache read-only. All that go must
		// write there, and not merely may, is an index of packages.
		"GODEBUG=goindex=0",
		"GOCACHE=" + strings.TrimSpace(string(cache)), "GOTOOLCHAIN=local", "GOFLAGS=", "GOWORK=off",
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"AGENT_PROVIDER=demo=scripted," + filepath.Join(home, "script.json"),
	}
	return s, nil
}

// close ends what the demo started, by pid, and removes its home.
func (s *stage) close() {
	s.ctx = context.WithoutCancel(s.ctx) // also after an interrupt
	s.stopSleeper()
	if s.daemon == 0 {
		// One may run whose pid was not learnt yet; most often none does, and
		// the command says so.
		_, _ = s.quiet("agent", "shutdown")
	} else {
		// A daemon that has already gone is what is wanted.
		_ = syscall.Kill(s.daemon, syscall.SIGTERM)
		if err := s.until("the daemon to end", func() bool { return !alive(s.daemon) }); err != nil {
			fmt.Fprintln(s.out, "demo:", err)
		}
	}
	if err := os.RemoveAll(s.home); err != nil {
		fmt.Fprintln(s.out, "demo: the throwaway home is still there:", err)
	}
}

// stopSleeper ends the command that a killed daemon left behind. Its pid is
// taken on its own word, so it is checked to lead its own group, as every
// command of a bot does.
func (s *stage) stopSleeper() {
	raw, err := os.ReadFile(filepath.Join(s.project, "running.pid"))
	if err != nil {
		return
	}
	var pid int
	if _, err := fmt.Sscan(string(raw), &pid); err != nil || pid <= 1 {
		return
	}
	if group, err := syscall.Getpgid(pid); err == nil && group == pid {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// alive reports whether a process still runs; one that only waits to be
// collected does not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	out, err := exec.Command("ps", "-o", "stat=", "-p", fmt.Sprint(pid)).Output()
	return err != nil || !strings.HasPrefix(strings.TrimSpace(string(out)), "Z")
}

// until waits for what has no event to wait for: a file of a command's, the
// end of a process that is not ours.
func (s *stage) until(what string, done func() bool) error {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if done() {
			return nil
		}
	}
	return fmt.Errorf("waited %v for %s", patience, what)
}

func (s *stage) heading(format string, args ...any) {
	fmt.Fprintf(s.out, "\n== "+format+"\n\n", args...)
}

func (s *stage) say(format string, args ...any) { fmt.Fprintf(s.out, format+"\n", args...) }

// A result is what a command printed, on both outputs in the order they came
// in, and how it ended.
type result struct {
	out  string
	code int
}

// command prepares a command in the project's folder.
func (s *stage) command(name string, args ...string) (*exec.Cmd, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	if name == "agent" {
		name = s.agent
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = s.project, s.env
	cmd.WaitDelay = time.Second // a daemon it started may hold the pipe
	return cmd, cancel
}

// quiet runs a command and shows nothing: for the demo's own checks.
func (s *stage) quiet(name string, args ...string) (result, error) {
	return s.run(io.Discard, name, args...)
}

// show prints the command line as typed, then what it prints as it prints it.
func (s *stage) show(name string, args ...string) (result, error) {
	words := []string{"$", name}
	for _, arg := range args {
		words = append(words, quoted(arg))
	}
	s.say("%s", strings.Join(words, " "))
	r, err := s.run(s.out, name, args...)
	s.say("")
	return r, err
}

func (s *stage) run(shown io.Writer, name string, args ...string) (result, error) {
	cmd, cancel := s.command(name, args...)
	defer cancel()
	var out bytes.Buffer
	both := io.MultiWriter(&out, shown)
	cmd.Stdout, cmd.Stderr = both, both // one pipe, as a terminal is one
	err := cmd.Run()
	r := result{out.String(), cmd.ProcessState.ExitCode()}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		return r, fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return r, s.ctx.Err()
}

// quoted is the word as a person would type it.
func quoted(word string) string {
	if word != "" && !strings.ContainsAny(word, " '\"$`\\;&|<>()*?[]#~!") {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// ask runs an agent command that must succeed and decodes its one JSON value.
func (s *stage) ask(into any, args ...string) error {
	r, err := s.quiet("agent", args...)
	if err != nil {
		return err
	}
	if r.code != 0 {
		return fmt.Errorf("agent %s: exit %d: %s", strings.Join(args, " "), r.code, r.out)
	}
	return decode(r.out, into)
}

func decode(text string, into any) error {
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return fmt.Errorf("not the JSON that was promised: %w in %q", err, text)
	}
	return nil
}
