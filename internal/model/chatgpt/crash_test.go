package chatgpt_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agent/internal/model"
	"agent/internal/model/chatgpt"
	"agent/internal/model/chatgpt/chatgpttest"
	"agent/internal/secret"
)

// The test program plays a daemon that renews a sign-in, so that it can be
// killed in the middle, or find that the disk is full.

const (
	fileVar  = "AGENT_TEST_SIGN_IN"
	stopVar  = "AGENT_TEST_STOP_AT"
	limitVar = "AGENT_TEST_FILE_LIMIT"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(fileVar); path != "" {
		os.Exit(renewer(path))
	}
	os.Exit(m.Run())
}

// renewer authorises one request, and stops for good at a step of the write
// when it is told to.
func renewer(path string) int {
	unix.Umask(0)
	stop := os.Getenv(stopVar)
	file := chatgpt.File{Path: path}.WithStep(func(step string) {
		if step == stop {
			fmt.Println("at " + step)
			select {}
		}
	})
	l, err := chatgpt.Open(file, http.DefaultTransport.RoundTrip, func(...secret.Named) {}, "test")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	limited := os.Getenv(limitVar) != ""
	for range 2 {
		if limited {
			setFileLimit(16)
		}
		req, _ := http.NewRequest(http.MethodGet, "http://"+os.Getenv("AGENT_TEST_HOST")+"/backend-api/codex/models", nil)
		err := l.Authorize(context.Background(), req)
		var e *model.Error
		switch {
		case errors.As(err, &e):
			fmt.Printf("%s: %s\n", e.Code, e.Detail)
		case err != nil:
			fmt.Println(err)
		default:
			fmt.Println("authorised")
		}
		if !limited {
			return 0
		}
		setFileLimit(1 << 30)
		limited = false
	}
	return 0
}

// setFileLimit bounds how long a file may be written: past it a write fails in
// the middle, as on a full disk.
func setFileLimit(bytes uint64) {
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &now); err != nil {
		panic(err)
	}
	now.Cur = bytes
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &now); err != nil {
		panic(err)
	}
}

// child starts the renewer on a place.
func (p *place) child(env ...string) (*exec.Cmd, *bufio.Reader) {
	p.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), append(env, fileVar+"="+p.file.Path, "AGENT_TEST_HOST="+strings.TrimPrefix(p.server.URL, "http://"))...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd, bufio.NewReader(out)
}

func (p *place) temps() []string {
	left, err := filepath.Glob(p.file.Path + ".*.tmp")
	if err != nil {
		p.t.Fatal(err)
	}
	return left
}

func TestARenewalThatIsKilled(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, step string
		left       int // temporary files
	}{
		{"between the issuer's answer and the write", "begin", 0},
		{"between the write and the rename", "written", 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, time.Now().Add(-time.Hour))
			before, err := os.ReadFile(p.file.Path)
			if err != nil {
				t.Fatal(err)
			}
			cmd, out := p.child(stopVar + "=" + row.step)
			if line, err := out.ReadString('\n'); line != "at "+row.step+"\n" {
				t.Fatalf("%q, %v", line, err)
			}
			cmd.Process.Kill()
			cmd.Wait()
			after, err := os.ReadFile(p.file.Path)
			if err != nil || string(after) != string(before) {
				t.Errorf("the file is not the old one, whole: %v", err)
			}
			if left := p.temps(); len(left) != row.left {
				t.Errorf("left behind: %v", left)
			}
			// The lock went with the process, and the issuer says what became of the
			// token that it took.
			l := p.open()
			if _, e := p.call(l); code(e) != "provider_login_expired" {
				t.Errorf("got %v", e)
			}
			p.put(p.server.SignIn(time.Now().Add(time.Hour)))
			if left := p.temps(); len(left) != 0 {
				t.Errorf("tokens stay behind in %v", left)
			}
			if status, e := p.call(l); status != http.StatusOK {
				t.Errorf("after a new sign-in: %d, %v", status, e)
			}
		})
	}
}

func TestARenewalOnAFullDisk(t *testing.T) {
	t.Parallel()
	p := newPlace(t, time.Now().Add(-time.Hour))
	before, err := os.ReadFile(p.file.Path)
	if err != nil {
		t.Fatal(err)
	}
	looked := make(chan string, 1)
	p.server.Set(func(s *chatgpttest.Server) {
		s.Answering = func(int) {
			now, _ := os.ReadFile(p.file.Path)
			looked <- string(now)
		}
	})
	_, out := p.child(limitVar + "=1")
	first, err := out.ReadString('\n')
	if err != nil || !strings.HasPrefix(first, "provider_connection_failed: the renewed sign-in cannot be written to "+p.file.Path) {
		t.Fatalf("%q, %v", first, err)
	}
	if <-looked != string(before) {
		t.Error("the file changed before the issuer had answered")
	}
	rest, err := io.ReadAll(out)
	if err != nil || string(rest) != "authorised\n" {
		t.Errorf("when there is room: %q, %v", rest, err)
	}
	if n := p.tokens(); n != 1 {
		t.Errorf("the issuer was asked %d times", n)
	}
	if p.held().Refresh.Reveal() != "refresh-token-2" || len(p.temps()) != 0 {
		t.Errorf("the file does not hold what was fetched, or %v is left", p.temps())
	}
	if info, err := os.Stat(p.file.Path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestARenewalInAnotherProcessIsTakenUp(t *testing.T) {
	t.Parallel()
	p := newPlace(t, time.Now().Add(-time.Hour))
	l := p.open()
	cmd, out := p.child()
	if text, err := io.ReadAll(out); string(text) != "authorised\n" || err != nil {
		t.Fatalf("%q, %v", text, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if status, e := p.call(l); status != http.StatusOK {
		t.Errorf("%d, %v", status, e)
	}
	if n := p.tokens(); n != 1 {
		t.Errorf("the issuer was asked %d times", n)
	}
	if info, err := os.Stat(p.file.Path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("PO-81 mode %v under a umask of 0, %v", info.Mode(), err)
	}
}
