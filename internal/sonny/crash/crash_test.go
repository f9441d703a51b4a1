package crash

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// guarded runs a function as a goroutine of the screen runs, and gives what is said of
// its crash, the report, and the status of the process.
func guarded(t *testing.T, f func()) (said, report string, status int) {
	t.Helper()
	status = -1
	var out strings.Builder
	restored := false
	g := &Guard{
		Dir: filepath.Join(t.TempDir(), "sonny"), Version: "1.2.3", Out: &out,
		Restore: func() { restored = out.Len() == 0 },
		Exit:    func(n int) { status = n },
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		catch := g.Catch
		defer catch()
		f()
	}()
	<-done
	files, err := filepath.Glob(filepath.Join(g.Dir, "crash-*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if status != -1 && !restored {
		t.Error("the terminal was not given back before anything was printed")
	}
	for _, path := range files {
		body, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
			t.Errorf("the report's mode is %v", info.Mode())
		}
		if !strings.Contains(out.String(), path) {
			t.Errorf("the path is not said: %q", &out)
		}
		report += string(body)
	}
	return out.String(), report, status
}

func TestACrashIsReported(t *testing.T) {
	t.Parallel()
	const secret = "the person's own words"
	for _, row := range []struct {
		name, want string
		f          func()
	}{
		{"a panic with a text", "panic with a string", func() { panic(secret) }},
		{"a panic with an error", "panic with a *errors.errorString", func() { panic(errors.New(secret)) }},
		{"a fault of memory", "panic: runtime error: invalid memory address or nil pointer dereference", func() {
			var p *struct{ n int }
			p.n++
		}},
		{"an index out of range", "panic: runtime error: index out of range [22] with length 22", func() {
			n := len(secret)
			_ = secret[n:][0:0]
			_ = []byte(secret)[n]
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			_, report, status := guarded(t, row.f)
			if status != 1 || !strings.Contains(report, row.want) || !strings.Contains(report, "sonny 1.2.3") || !strings.Contains(report, "crash_test.go") {
				t.Errorf("status %d: %s", status, report)
			}
			if strings.Contains(report, secret) {
				t.Errorf("the report holds what was said: %s", report)
			}
		})
	}

	t.Run("what does not crash is not reported", func(t *testing.T) {
		t.Parallel()
		if said, report, status := guarded(t, func() {}); said != "" || report != "" || status != -1 {
			t.Errorf("%q, %q, %d", said, report, status)
		}
	})
}
