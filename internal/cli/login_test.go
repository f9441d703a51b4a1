package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"agent/internal/model/chatgpt/chatgpttest"

	"github.com/rogpeppe/go-internal/testscript"
)

// person is a browser with somebody in front of it: it signs in at the address
// it is given and follows the redirect.
func person() {
	back, err := consent(os.Args[1])
	if err == nil {
		_, err = follow1(back)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// consent is the sign-in server's page: where it sends the browser.
func consent(address string) (*url.URL, error) {
	once := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := once.Get(address)
	if err != nil {
		return nil, err
	}
	resp.Body.Close()
	return resp.Location()
}

// follow1 opens the redirect's address: localhost is 127.0.0.1.
func follow1(back *url.URL) (string, error) {
	to := *back
	to.Host = "127.0.0.1:" + back.Port()
	resp, err := http.Get(to.String())
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	return string(page), err
}

// cmdIssuer starts a sign-in server: AGENT_CHATGPT_ISSUER is its address and
// PORT a free port for the callback.
func cmdIssuer(t *testing.T) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, _ bool, _ []string) {
		ts.Setenv("AGENT_CHATGPT_ISSUER", chatgpttest.New(t).URL)
		ts.Setenv("PORT", freePort(t))
	}
}

// freePort is one that nobody has now.
func freePort(t *testing.T) string {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

func TestTheSignInsListener(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		end  os.Signal // nil: the sign-in succeeds
		want int
	}{{"PO-10 CL-75 a sign-in listens on 127.0.0.1 alone, while it lasts", nil, 0}, {"one that Ctrl-C ends", syscall.SIGINT, 130}, {"one that is terminated", syscall.SIGTERM, 143}} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := chatgpttest.New(t)
			g := newGround(t, "AGENT_CHATGPT_ISSUER="+s.URL)
			port := freePort(t)
			cmd := g.command("login", "chatgpt", "--no-browser", "--port", port)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
			lines := bufio.NewReader(out)
			var opened struct{ Event, URL string }
			first, err := lines.ReadString('\n')
			if err != nil || json.Unmarshal([]byte(first), &opened) != nil || opened.Event != "open" {
				t.Fatalf("%q, %v", first, err)
			}
			for _, host := range []string{"127.0.0.2", "::1"} {
				if c, err := net.Dial("tcp", net.JoinHostPort(host, port)); err == nil {
					c.Close()
					t.Errorf("it listens on %s", host)
				}
			}
			back, err := consent(opened.URL)
			if err != nil {
				t.Fatal(err)
			}
			if row.end != nil {
				cmd.Process.Signal(row.end)
			} else if page, err := follow1(back); err != nil || !strings.Contains(page, "Signed in") {
				t.Errorf("%s, %v", page, err)
			}
			rest, _ := io.ReadAll(lines)
			cmd.Wait()
			if got := cmd.ProcessState.ExitCode(); got != row.want {
				t.Errorf("exit status %d, want %d: %s", got, row.want, rest)
			}
			if c, err := net.Dial("tcp4", "127.0.0.1:"+port); err == nil {
				c.Close()
				t.Error("the listener is still there")
			}
			_, err = os.Stat(filepath.Join(g.home, ".agent", "chatgpt.json"))
			if (err == nil) != (row.end == nil) {
				t.Errorf("the file: %v", err)
			}
		})
	}
}

func TestASignInByPasting(t *testing.T) {
	t.Parallel()
	s := chatgpttest.New(t)
	g := newGround(t, "AGENT_CHATGPT_ISSUER="+s.URL)
	cmd := g.command("login", "chatgpt", "--paste", "--pretty")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	lines := bufio.NewScanner(out)
	address := ""
	for address == "" && lines.Scan() {
		if text := strings.TrimSpace(lines.Text()); strings.HasPrefix(text, s.URL) {
			address = text
		}
	}
	back, err := consent(address)
	if err != nil {
		t.Fatal(err)
	}
	if back.Host != "localhost:1455" {
		t.Errorf("the redirect is to %s", back.Host)
	}
	fmt.Fprintln(in, back)
	for !strings.HasPrefix(lines.Text(), "Signed in to the account acc-1.") {
		if !lines.Scan() {
			t.Fatal("the output ended")
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
