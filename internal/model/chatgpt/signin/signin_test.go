package signin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agent/internal/model"
	"agent/internal/model/chatgpt"
	"agent/internal/model/chatgpt/chatgpttest"
)

func TestTheChallengeOfAVerifier(t *testing.T) {
	t.Parallel()
	if got := challenge("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"); got != "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM" {
		t.Errorf("got %s", got)
	}
	one, other := random(32), random(32)
	if len(random(64)) != 86 || len(one) != 43 || one == other {
		t.Error("the random texts are not what they should be")
	}
}

// trial is a sign-in under way.
type trial struct {
	t       *testing.T
	server  *chatgpttest.Server
	file    chatgpt.File
	port    int
	address chan string
	done    chan error
	got     *chatgpt.SignIn
	cancel  context.CancelFunc
}

// freePort is one that nobody has now.
func freePort(t *testing.T) int {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func begin(t *testing.T, change func(*chatgpttest.Server)) *trial {
	t.Helper()
	w := &trial{t: t, server: chatgpttest.New(t), port: freePort(t), address: make(chan string, 1), done: make(chan error, 1)}
	if change != nil {
		change(w.server)
	}
	w.file = chatgpt.File{Path: filepath.Join(os.Getenv("HOME"), "chatgpt-"+strconv.Itoa(w.port)+".json")}
	ctx, cancel := context.WithCancel(t.Context())
	w.cancel = cancel
	go func() {
		var err error
		w.got, err = Run(ctx, w.options())
		w.done <- err
	}()
	return w
}

func (w *trial) options() Options {
	return Options{File: w.file, Issuer: w.server.URL, Port: w.port, Version: "test", Opened: func(a string) error {
		w.address <- a
		return nil
	}}
}

// browser follows no redirect.
var browser = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// signIn is the person on the sign-in server's page: the address to go back to.
func (w *trial) signIn() *url.URL {
	w.t.Helper()
	resp, err := browser.Get(<-w.address)
	if err != nil {
		w.t.Fatal(err)
	}
	resp.Body.Close()
	back, err := resp.Location()
	if err != nil {
		w.t.Fatal(err)
	}
	return back
}

// visit asks the listener for something; host "" leaves the address's own.
func (w *trial) visit(method string, to *url.URL, host string) (int, string, http.Header) {
	w.t.Helper()
	at := *to
	at.Host = strings.Replace(at.Host, "localhost", "127.0.0.1", 1)
	req, err := http.NewRequest(method, at.String(), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	req.Host = to.Host
	if host != "" {
		req.Host = host
	}
	resp, err := browser.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.StatusCode, string(page), resp.Header
}

func with(u *url.URL, path string, change func(url.Values)) *url.URL {
	n := *u
	if path != "" {
		n.Path = path
	}
	if change != nil {
		q := n.Query()
		change(q)
		n.RawQuery = q.Encode()
	}
	return &n
}

func code(err error) string {
	var e *model.Error
	if !errors.As(err, &e) {
		return fmt.Sprint(err)
	}
	return e.Code
}

// home gives the tests of this package a home of their own: ~/.agent is made
// there.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "agent")
	if err != nil {
		panic(err)
	}
	os.Setenv("HOME", dir)
	status := m.Run()
	os.RemoveAll(dir)
	os.Exit(status)
}

func TestCallbacks(t *testing.T) {
	t.Parallel()
	t.Run("PV-41 what is no answer does not end the wait", func(t *testing.T) {
		w := begin(t, nil)
		back := w.signIn()
		for _, row := range []struct {
			name, method string
			to           *url.URL
			host         string
			want         int
		}{
			{"another state", "GET", with(back, "", func(q url.Values) { q.Set("state", "x") }), "", 400},
			{"no state", "GET", with(back, "", func(q url.Values) { q.Del("state") }), "", 400},
			{"an error with another state", "GET", with(back, "", func(q url.Values) { q.Set("state", "x"); q.Set("error", "access_denied") }), "", 400},
			{"another host", "GET", back, "attacker.test", 400},
			{"another port of the host", "GET", back, "localhost:1", 400},
			{"another path", "GET", with(back, "/", nil), "", 404},
			{"another method", "POST", back, "", 405},
		} {
			status, page, header := w.visit(row.method, row.to, row.host)
			if status != row.want || header.Get("connection") == "keep-alive" || strings.Contains(page, "script") {
				t.Errorf("%s: HTTP %d: %s", row.name, status, page)
			}
		}
		if _, _, err := w.file.Read(); err == nil {
			t.Error("something was written")
		}
		status, page, header := w.visit("GET", back, "")
		if err := <-w.done; err != nil || status != 200 || !strings.Contains(page, "Signed in") {
			t.Fatalf("the right one: HTTP %d, %v: %s", status, err, page)
		}
		for _, secret := range []string{w.got.Access.Reveal(), w.got.Refresh.Reveal(), back.Query().Get("code"), back.Query().Get("state")} {
			if strings.Contains(page+fmt.Sprint(header), secret) {
				t.Error("the page holds a secret")
			}
		}
		kept, _, err := w.file.Read()
		if err != nil || kept.Access != w.got.Access || kept.Account != chatgpttest.Account || kept.Issuer != w.server.URL || kept.ExpiresAt == 0 {
			t.Errorf("kept %v", err)
		}
		if _, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(w.port))); err == nil {
			t.Error("the listener is still there")
		}
	})
}

func TestHowASignInFails(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		server func(*chatgpttest.Server)
		answer func(url.Values)
		code   string
		says   string
		hides  string
	}{
		{"the person refuses", nil, func(q url.Values) {
			q.Set("error", "access_denied")
			q.Set("error_description", "You said no.")
		}, "login_refused", "You said no.", ""},
		{"a workspace without access", nil, func(q url.Values) {
			q.Set("error", "access_denied")
			q.Set("error_description", "missing_codex_entitlement")
		}, "login_refused", "workspace has no access", ""},
		{"no code", nil, func(q url.Values) { q.Del("code") }, "login_refused", "no code", ""},
		{"a code that is none", nil, func(q url.Values) { q.Set("code", "code-of-somebody-else") }, "login_failed", "HTTP 401: refused", ""},
		{
			"a server that fails and quotes the code", func(s *chatgpttest.Server) {
				s.Refuse = func(int) (int, string) { return 500, `{"error":{"message":"no code-of-sign-in-1 here"}}` }
			},
			nil, "login_failed", "HTTP 500: no [REDACTED] here", "code-of-sign-in-1",
		},
		{
			"an answer without a token", func(s *chatgpttest.Server) {
				s.Refuse = func(int) (int, string) { return 200, `{"access_token":"a","id_token":"i"}` }
			},
			nil, "login_failed", "refresh_token", "",
		},
		{"no account", func(s *chatgpttest.Server) { s.NoAccount = true }, nil, "login_no_account", "account", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := begin(t, row.server)
			back := w.signIn()
			status, page, _ := w.visit("GET", with(back, "", row.answer), "")
			err := <-w.done
			if status != 200 || !strings.Contains(page, "Not signed in") {
				t.Errorf("HTTP %d: %s", status, page)
			}
			if code(err) != row.code || !strings.Contains(err.Error(), row.says) || row.hides != "" && strings.Contains(err.Error(), row.hides) {
				t.Errorf("got %v", err)
			}
			if _, err := os.Lstat(w.file.Path); err == nil {
				t.Error("something was written")
			}
		})
	}
}

func TestASignInThatIsInterrupted(t *testing.T) {
	t.Parallel()
	w := begin(t, nil)
	<-w.address
	w.cancel()
	if err := <-w.done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(w.port))); err == nil {
		t.Error("the listener is still there")
	}
}

func TestNobodySignsIn(t *testing.T) {
	o := Options{Port: freePort(t), Issuer: "https://id.example.test", Opened: func(string) error { return nil }}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, err := Paste(t.Context(), o, blocked{t.Context()}, func(string) {})
		if code(err) != "login_timeout" || time.Since(began) != 10*time.Minute {
			t.Errorf("got %v after %v", err, time.Since(began))
		}
	})
}

// blocked is an input that nothing comes from.
type blocked struct{ ctx context.Context }

func (b blocked) Read([]byte) (int, error) { <-b.ctx.Done(); return 0, io.EOF }

func TestBusyPorts(t *testing.T) {
	t.Run("PV-42 both ports are busy", func(t *testing.T) {
		for _, port := range ports {
			if l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
				defer l.Close() // else somebody else has it, which does as well
			}
		}
		_, err := Run(t.Context(), Options{Opened: func(string) error { t.Error("an address was shown"); return nil }})
		if code(err) != "login_port_unavailable" {
			t.Fatalf("got %v", err)
		}
		for _, part := range []string{"1455", "1457", "--paste"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%v does not name %s", err, part)
			}
		}
		taken, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer taken.Close()
		busy, free := taken.Addr().(*net.TCPAddr).Port, freePort(t)
		if _, err := listen([]int{busy}); code(err) != "login_port_unavailable" {
			t.Errorf("a stated port: %v", err)
		}
		second, err := listen([]int{busy, free})
		if err != nil || second.port != free {
			t.Fatalf("the second port: %v", err)
		}
		second.Close()
	})
}

func TestPastedAddresses(t *testing.T) {
	t.Parallel()
	w := &trial{t: t, server: chatgpttest.New(t), port: freePort(t), address: make(chan string, 1)}
	w.file = chatgpt.File{Path: filepath.Join(t.TempDir(), "chatgpt.json")}
	in, terminal := io.Pipe()
	var wrong []string
	done := make(chan error, 1)
	go func() {
		var err error
		w.got, err = Paste(t.Context(), w.options(), in, func(why string) { wrong = append(wrong, why) })
		done <- err
	}()
	back := w.signIn()
	for _, line := range []string{"", "what?", "https://example.test/auth/callback?code=x", with(back, "", func(q url.Values) { q.Set("state", "x") }).String(), back.String()} {
		fmt.Fprintln(terminal, line)
	}
	if err := <-done; err != nil || w.got.Account != chatgpttest.Account {
		t.Fatalf("got %v", err)
	}
	if len(wrong) != 3 || !strings.Contains(wrong[2], "another sign-in") {
		t.Errorf("said %q", wrong)
	}
	if _, err := Paste(t.Context(), w.options(), strings.NewReader("x\n"), func(string) {}); code(err) != "login_refused" {
		t.Errorf("an input that ends: %v", err)
	}
}

func TestNoPrintShowsAFlow(t *testing.T) {
	t.Parallel()
	f := newFlow(Options{})
	encoded, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	shown := fmt.Sprintf("%v %+v %#v %v %+v", f, f, f, *f, *f) + string(encoded) + f.LogValue().String()
	if strings.Contains(shown, f.state) || strings.Contains(shown, f.verifier) {
		t.Error(shown)
	}
}
