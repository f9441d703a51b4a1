package docs

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// unit is the unit file of OPERATIONS.md, installed in a home of its own with
// the program and a provider that needs no key.
func unit(t *testing.T) (home, file string) {
	t.Helper()
	m := regexp.MustCompile("(?s)```ini file=agent.service\n(.*?)```").FindStringSubmatch(read(t, "OPERATIONS.md"))
	if m == nil {
		t.Fatal("OPERATIONS.md has no unit file")
	}
	home, err := os.MkdirTemp("/var/tmp", "agent-unit-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	bin := filepath.Join(home, ".local", "bin")
	for _, dir := range []string{bin, filepath.Join(home, ".agent")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(program, "agent"), filepath.Join(bin, "agent")); err != nil {
		t.Fatal(err)
	}
	return home, strings.Replace(m[1], "--provider anthropic", "--provider scripted", 1)
}

// command is a command line of the unit, for a home.
func command(t *testing.T, file, key, home string) *exec.Cmd {
	t.Helper()
	m := regexp.MustCompile(`(?m)^` + key + `=(.*)$`).FindStringSubmatch(file)
	if m == nil {
		t.Fatalf("the unit has no %s", key)
	}
	words := strings.Fields(strings.ReplaceAll(m[1], "%h", home))
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
	return cmd
}

// TestTheUnitStartsAndStops runs the unit's own lines: the daemon comes up, its
// stop ends it, and so does the signal that follows a stop.
func TestTheUnitStartsAndStops(t *testing.T) {
	t.Parallel()
	home, file := unit(t)
	for name, stop := range map[string]func(*exec.Cmd) error{
		"by ExecStop":  func(*exec.Cmd) error { return command(t, file, "ExecStop", home).Run() },
		"by a SIGTERM": func(serve *exec.Cmd) error { return serve.Process.Signal(syscall.SIGTERM) },
	} {
		t.Run(name, func(t *testing.T) {
			serve := command(t, file, "ExecStart", home)
			out, err := serve.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := serve.Start(); err != nil {
				t.Fatal(err)
			}
			overdue := time.AfterFunc(patience, func() { serve.Process.Kill() })
			defer overdue.Stop()
			if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.HasPrefix(line, `{"event":"ready"`) {
				t.Errorf("it is not ready: %v: %s", err, line)
			}
			if err := stop(serve); err != nil {
				t.Error(err)
			}
			if err := serve.Wait(); err != nil {
				t.Errorf("it did not end well: %v", err)
			}
		})
	}
}

// TestTheUnitIsOne asks systemd where it is, and looks at the form elsewhere.
func TestTheUnitIsOne(t *testing.T) {
	t.Parallel()
	home, file := unit(t)
	form := regexp.MustCompile(`^(\[(Unit|Service|Install)\]|[A-Z][A-Za-z]+=\S.*|)$`)
	for _, line := range strings.Split(file, "\n") {
		if !form.MatchString(line) {
			t.Errorf("this line is none of a unit: %s", line)
		}
	}
	systemd, err := exec.LookPath("systemd-analyze")
	if err != nil {
		return
	}
	path := filepath.Join(home, "agent.service")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(file, "%h", home)), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(systemd, "verify", "--man=no", path)
	if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), path) {
		t.Errorf("systemd says: %v: %s", err, out)
	}
}
