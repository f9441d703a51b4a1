package docs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// patience bounds one example.
const patience = 30 * time.Second

// program is the folder of the freshly built command and examples, made by TestMain.
var program string

func TestMain(m *testing.M) {
	code, err := withProgram(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func withProgram(run func() int) (int, error) {
	dir, err := os.MkdirTemp("", "agent-docs-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "bin")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", program+"/", "../cmd/agent", "../cmd/sonny", "../examples/...")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("building the programs: %w\n%s", err, out)
	}
	return run(), nil
}

// TestExamples runs each guide from top to bottom as one session in a
// throwaway home: what a reader types, in the order of the page.
func TestExamples(t *testing.T) {
	t.Parallel()
	guides, err := filepath.Glob("*.md")
	if err != nil || len(guides) == 0 {
		t.Fatalf("no guide found: %v", err)
	}
	for _, guide := range append(guides, "../README.md") {
		t.Run(filepath.Base(guide), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(guide)
			if err != nil {
				t.Fatal(err)
			}
			blocks, err := parse(string(text))
			if err != nil {
				t.Fatalf("%s: %v", guide, err)
			}
			runGuide(t, blocks)
		})
	}
}

func runGuide(t *testing.T, blocks []block) {
	sh := newShell(t)
	for _, b := range blocks {
		if b.file != "" {
			if err := os.WriteFile(filepath.Join(sh.home, b.file), []byte(b.text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, step := range b.steps {
			out, code, err := sh.run(step.command)
			if err != nil {
				t.Fatalf("line %d: $ %s\n%v\nbefore that it printed:\n%s", step.line, step.command, err, out)
			}
			if code != 0 {
				t.Fatalf("line %d: $ %s\nexit %d:\n%s", step.line, step.command, code, out)
			}
			if step.checked && !matches(step.want, lines(out)) {
				t.Fatalf("line %d: $ %s\nthe page says:\n%s\nit printed:\n%s", step.line, step.command, strings.Join(step.want, "\n"), out)
			}
		}
	}
}

// A shell keeps its folder and its variables between the steps of a guide, as
// the reader's does.
type shell struct {
	home  string
	steps int
	stdin io.Writer
	lines chan string
}

func newShell(t *testing.T) *shell {
	home, err := os.MkdirTemp("/var/tmp", "agent-doc-") // not below /tmp, which a confined bot may write
	if err != nil {
		t.Fatal(err)
	}
	// Within the test's own limit, so that the daemon is ended even then.
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, "sh")
	cmd.Dir = home
	cmd.Env = environment(t, home)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &shell{home: home, stdin: stdin, lines: make(chan string)}
	done := make(chan struct{})
	go s.read(stdout, done)
	t.Cleanup(func() {
		s.leave(t)
		close(done)
		cancel()
		_ = cmd.Wait() // it was told to end
		if err := os.RemoveAll(home); err != nil {
			t.Error(err)
		}
	})
	return s
}

// environment holds nothing of the caller's but PATH and the caches that "go
// run" in a guide needs.
func environment(t *testing.T, home string) []string {
	out, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		t.Fatalf("go env: %v", err)
	}
	caches := strings.Fields(string(out))
	return []string{
		"HOME=" + home, "PATH=" + program + string(os.PathListSeparator) + os.Getenv("PATH"), "TMPDIR=" + home,
		"GOCACHE=" + caches[0], "GOMODCACHE=" + caches[1], "GOFLAGS=-buildvcs=false", "GOTOOLCHAIN=local", "CGO_ENABLED=0",
		"LANG=C.UTF-8", "TERM=dumb", "NO_COLOR=1",
	}
}

func (s *shell) read(from io.Reader, done <-chan struct{}) {
	defer close(s.lines)
	for r := bufio.NewReader(from); ; {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		select {
		case s.lines <- line:
		case <-done:
			return
		}
	}
}

// run plays one command from a file of its own, so that it cannot read the
// commands after it, and returns what it printed on both outputs.
func (s *shell) run(command string) (string, int, error) {
	s.steps++
	script := filepath.Join(s.home, fmt.Sprintf(".step-%d", s.steps))
	if err := os.WriteFile(script, []byte(command+"\n"), 0o600); err != nil {
		return "", 0, err
	}
	end := fmt.Sprintf("end of step %d: ", s.steps)
	if _, err := fmt.Fprintf(s.stdin, ". %q </dev/null 2>&1; printf '\\n%s%%d\\n' $?\n", script, end); err != nil {
		return "", 0, fmt.Errorf("the shell has ended: %w", err)
	}
	var out strings.Builder
	for limit := time.After(patience); ; {
		select {
		case line, ok := <-s.lines:
			if !ok {
				return out.String(), 0, errors.New("the shell ended")
			}
			if number, ok := strings.CutPrefix(line, end); ok {
				var code int
				_, err := fmt.Sscan(number, &code)
				return strings.TrimSuffix(out.String(), "\n"), code, err
			}
			out.WriteString(line)
		case <-limit:
			return out.String(), 0, fmt.Errorf("not done after %v", patience)
		}
	}
}

// leave ends the daemon a guide may have left running; a guide that ended it
// leaves nothing to do.
func (s *shell) leave(t *testing.T) {
	out, code, err := s.run("agent shutdown || [ $? -eq 1 ]")
	if err != nil || code != 0 {
		t.Errorf("ending the guide's daemon: exit %d: %v: %s", code, err, out)
	}
	if code, err := fmt.Fprintln(s.stdin, "exit"); err != nil {
		t.Errorf("ending the shell: %d, %v", code, err)
	}
}

func lines(text string) []string {
	text = strings.TrimRight(text, "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}
