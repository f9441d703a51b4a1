package chatgpt_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agent/internal/model"
	"agent/internal/model/chatgpt"
	"agent/internal/model/chatgpt/chatgpttest"
	"agent/internal/secret"
)

// place is a sign-in of a server, in a file.
type place struct {
	t      testing.TB
	server *chatgpttest.Server
	file   chatgpt.File
	known  secret.Values
}

func newPlace(t testing.TB, expires time.Time) *place {
	t.Helper()
	p := &place{t: t, server: chatgpttest.New(t)}
	p.file = chatgpt.File{Path: filepath.Join(t.TempDir(), "chatgpt.json")}
	p.put(p.server.SignIn(expires))
	return p
}

func (p *place) put(s *chatgpt.SignIn) {
	p.t.Helper()
	if err := p.file.Write(s); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) open() *chatgpt.Login {
	p.t.Helper()
	l, err := chatgpt.Open(p.file, http.DefaultTransport.RoundTrip, func(n ...secret.Named) { p.known.Add(n...) }, "test")
	if err != nil {
		p.t.Fatal(err)
	}
	return l
}

func (p *place) held() *chatgpt.SignIn {
	p.t.Helper()
	s, _, err := p.file.Read()
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

// request is one to the backend, authorised by l.
func (p *place) request(l *chatgpt.Login) (*http.Request, error) {
	req, err := http.NewRequest(http.MethodGet, p.server.URL+"/backend-api/codex/models", nil)
	if err != nil {
		p.t.Fatal(err)
	}
	return req, l.Authorize(p.t.Context(), req)
}

// call makes one call and gives the status and what the login says of a
// refusal.
func (p *place) call(l *chatgpt.Login) (int, *model.Error) {
	p.t.Helper()
	req, err := p.request(l)
	if err != nil {
		var e *model.Error
		if !errors.As(err, &e) {
			p.t.Fatal(err)
		}
		return 0, e
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		p.t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		return resp.StatusCode, nil
	}
	return resp.StatusCode, l.Refused(p.t.Context(), req, resp.StatusCode)
}

func code(e *model.Error) string {
	if e == nil {
		return ""
	}
	return e.Code
}

func (p *place) tokens() int {
	n, _, _ := p.server.Counts()
	return n
}

func TestTwoDaemonsRenewOnce(t *testing.T) {
	t.Parallel()
	t.Run("PV-43 two daemons with an ended token ask once, and both go on", func(t *testing.T) {
		p := newPlace(t, time.Now().Add(-time.Hour))
		daemons := []*chatgpt.Login{p.open(), p.open()}
		var group sync.WaitGroup
		for i := range 40 {
			group.Go(func() {
				if status, e := p.call(daemons[i%2]); status != http.StatusOK {
					t.Errorf("status %d, %v", status, e)
				}
			})
		}
		group.Wait()
		if n := p.tokens(); n != 1 {
			t.Errorf("%d renewals reached the issuer", n)
		}
		if got := p.held().Refresh.Reveal(); got != "refresh-token-2" {
			t.Errorf("the file holds %s", got)
		}
	})
}

func TestAnEndedSignIn(t *testing.T) {
	t.Parallel()
	t.Run("PV-44 a sign-in that is over is asked for once, until the file changes", func(t *testing.T) {
		for _, body := range []string{
			`{"error":{"code":"refresh_token_reused","message":"used"}}`, `{"error":"invalid_grant"}`,
			`{"code":"refresh_token_expired"}`, `{"error":"refresh_token_invalidated","error_description":"x"}`,
		} {
			p := newPlace(t, time.Now().Add(-time.Hour))
			p.server.Refuse = func(int) (int, string) { return http.StatusUnauthorized, body }
			l := p.open()
			for range 11 {
				_, e := p.call(l)
				if code(e) != "provider_login_expired" || !strings.Contains(e.Detail, "agent login chatgpt") || e.Retryable() {
					t.Fatalf("%s: got %v", body, e)
				}
			}
			if n := p.tokens(); n != 1 {
				t.Errorf("%s: the issuer was asked %d times", body, n)
			}
			p.put(p.server.SignIn(time.Now().Add(time.Hour)))
			if status, e := p.call(l); status != http.StatusOK {
				t.Errorf("after a new sign-in: %d, %v", status, e)
			}
		}
	})
}

func TestARefusedToken(t *testing.T) {
	t.Parallel()
	t.Run("PV-45 a refused token is renewed once", func(t *testing.T) {
		p := newPlace(t, time.Now().Add(time.Hour))
		l := p.open()
		p.server.Revoke()
		if _, e := p.call(l); code(e) != "provider_login_refreshed" || !e.Retryable() {
			t.Fatalf("got %v", e)
		}
		if status, e := p.call(l); status != http.StatusOK {
			t.Fatalf("the repeat: %d, %v", status, e)
		}
		p.server.Revoke()
		for range 3 {
			if _, e := p.call(l); code(e) != "provider_login_rejected" || !strings.Contains(e.Detail, p.file.Path) {
				t.Fatalf("got %v", e)
			}
		}
		if n := p.tokens(); n != 1 {
			t.Errorf("the issuer was asked %d times", n)
		}
		later := time.Now().Add(10 * time.Minute)
		l.SetNow(func() time.Time { return later })
		if _, e := p.call(l); code(e) != "provider_login_refreshed" {
			t.Errorf("ten minutes later: %v", e)
		}
	})
}

func TestConcurrentRefusalsReuseWhatIsInstalled(t *testing.T) {
	t.Parallel()
	p := newPlace(t, time.Now().Add(time.Hour))
	l := p.open()
	var sent []*http.Request
	for range 20 {
		req, err := p.request(l)
		if err != nil {
			t.Fatal(err)
		}
		sent = append(sent, req)
	}
	p.server.Revoke()
	var group sync.WaitGroup
	for _, req := range sent {
		group.Go(func() {
			if e := l.Refused(t.Context(), req, http.StatusUnauthorized); code(e) != "provider_login_refreshed" {
				t.Errorf("got %v", e)
			}
		})
	}
	group.Wait()
	if n := p.tokens(); n != 1 {
		t.Errorf("the issuer was asked %d times", n)
	}
	if e := l.Refused(t.Context(), sent[0], http.StatusForbidden); e != nil {
		t.Errorf("a 403 gave %v", e)
	}
}

func TestAFailureThatMayPass(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		status int
		body   string
	}{
		{"a server that is down", 503, `{"error":{"message":"later"}}`},
		{"a 400 of another kind", 400, `{"error":"invalid_request"}`},
		{"an answer that is no JSON", 200, `<html>`},
		{"a token that no header can hold", 200, `{"access_token":"a b"}`},
		{"a redirect", 307, ``},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, time.Now().Add(2*time.Minute))
			refuse := func(int) (int, string) { return row.status, row.body }
			p.server.Refuse = refuse
			l := p.open()
			for range 5 {
				if status, e := p.call(l); status != http.StatusOK {
					t.Fatalf("a token that still works was not used: %d, %v", status, e)
				}
			}
			if n := p.tokens(); n != 1 {
				t.Errorf("the issuer was asked %d times within ten seconds", n)
			}
			later := time.Now().Add(3 * time.Minute)
			l.SetNow(func() time.Time { return later })
			_, e := p.call(l)
			if code(e) != "provider_connection_failed" || !e.Retryable() || strings.Contains(e.Detail, "refresh-token") {
				t.Errorf("an ended token: %v", e)
			}
			e.Detail += " (through the proxy p)"
			if _, again := p.call(l); strings.Contains(again.Detail, "proxy") {
				t.Error("two calls share one error")
			}
		})
	}
}

func TestAnInterruptedCallDoesNotEndARenewal(t *testing.T) {
	t.Parallel()
	p := newPlace(t, time.Now().Add(-time.Hour))
	asked, answer := make(chan struct{}), make(chan struct{})
	p.server.Answering = func(int) { close(asked); <-answer }
	l := p.open()
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan error)
	go func() {
		req, _ := http.NewRequest(http.MethodGet, p.server.URL+"/backend-api/codex/models", nil)
		got <- l.Authorize(ctx, req)
	}()
	<-asked
	cancel()
	if err := <-got; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	close(answer)
	if status, e := p.call(l); status != http.StatusOK {
		t.Errorf("the next call: %d, %v", status, e)
	}
	if n := p.tokens(); n != 1 {
		t.Errorf("the issuer was asked %d times", n)
	}
}

func TestARenewalIsKnownToTheRedactorAndInTheFileBeforeUse(t *testing.T) {
	t.Parallel()
	p := newPlace(t, time.Now().Add(time.Hour))
	l := p.open()
	first := p.held()
	later := time.Now().Add(58 * time.Minute)
	l.SetNow(func() time.Time { return later })
	req, err := p.request(l)
	if err != nil {
		t.Fatal(err)
	}
	second := p.held()
	if req.Header.Get("authorization") != "Bearer "+second.Access.Reveal() || second.Access == first.Access {
		t.Error("the request does not carry what the file holds")
	}
	for _, s := range []*chatgpt.SignIn{first, second} {
		for _, v := range []secret.Value{s.Access, s.Refresh, s.ID} {
			text := "a " + v.Reveal() + " z"
			if got := string(p.known.Bytes([]byte(text))); got != "a [REDACTED] z" {
				t.Errorf("%s is not masked", got)
			}
		}
	}
}

func TestALogoutEndsTheUseAtOnce(t *testing.T) {
	t.Parallel()
	p := newPlace(t, time.Now().Add(time.Hour))
	l := p.open()
	if removed, err := p.file.Remove(); !removed || err != nil {
		t.Fatal(removed, err)
	}
	if _, e := p.call(l); code(e) != "provider_login_unavailable" {
		t.Errorf("got %v", e)
	}
	if _, calls, refused := p.server.Counts(); calls+refused != 0 {
		t.Error("a request was sent")
	}
	if removed, err := p.file.Remove(); removed || err != nil {
		t.Error(removed, err)
	}
}

func TestWhereTheTokensGo(t *testing.T) {
	t.Parallel()
	t.Run("PV-47 tokens go to the backend or to their own issuer", func(t *testing.T) {
		p := newPlace(t, time.Now().Add(time.Hour))
		usual := chatgpt.New(chatgpttest.JWT("acc-1", time.Now().Add(time.Hour), 1), "refresh-token", "", time.Now())
		for _, row := range []struct {
			url         string
			usual, test bool
		}{
			{"https://chatgpt.com/backend-api/codex/responses", true, false},
			{"https://chatgpt.com:443/backend-api/codex/models", true, false},
			{"wss://chatgpt.com/backend-api/codex/responses", true, false},
			{"http://chatgpt.com/backend-api/codex/responses", false, false},
			{"https://chatgpt.com:8443/backend-api/codex/responses", false, false},
			{"https://chatgpt.com/backend-api/codexx/responses", false, false},
			{"https://chatgpt.com/other", false, false},
			{"https://chatgpt.com.attacker.test/backend-api/codex/responses", false, false},
			{"https://attacker.test/backend-api/codex/responses", false, false},
			{p.server.URL + "/backend-api/codex/responses", false, true},
			{strings.Replace(p.server.URL, "http://", "ws://", 1) + "/x", false, true},
			{strings.Replace(p.server.URL, "http://", "https://", 1) + "/x", false, false},
			{"http://127.0.0.1:9/backend-api/codex/responses", false, false},
		} {
			u, err := url.Parse(row.url)
			if err != nil {
				t.Fatal(err)
			}
			if got := usual.Serves(u); got != row.usual {
				t.Errorf("%s: %v for the usual sign-in", row.url, got)
			}
			if got := p.held().Serves(u); got != row.test {
				t.Errorf("%s: %v for a test's", row.url, got)
			}
		}
		l := p.open()
		req, _ := http.NewRequest(http.MethodGet, "https://chatgpt.com/backend-api/codex/models", nil)
		err := l.Authorize(t.Context(), req)
		var e *model.Error
		if !errors.As(err, &e) || e.Code != "provider_login_unavailable" || len(req.Header) != 0 {
			t.Errorf("got %v and the headers %v", err, req.Header)
		}
	})
}

func TestWhenATokenIsDue(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, row := range []struct {
		name       string
		in         chatgpt.SignIn
		due, valid bool
	}{
		{"six minutes left", chatgpt.SignIn{ExpiresAt: now.Add(6 * time.Minute).Unix()}, false, true},
		{"five minutes left", chatgpt.SignIn{ExpiresAt: now.Add(5 * time.Minute).Unix()}, true, true},
		{"ended now", chatgpt.SignIn{ExpiresAt: now.Unix()}, true, false},
		{"no end known, a week old", chatgpt.SignIn{LastRefresh: now.Add(-7 * 24 * time.Hour)}, false, true},
		{"no end known, eight days old", chatgpt.SignIn{LastRefresh: now.Add(-8 * 24 * time.Hour)}, true, true},
	} {
		if got := row.in.Due(now); got != row.due {
			t.Errorf("%s: due is %v", row.name, got)
		}
		if got := row.in.Valid(now); got != row.valid {
			t.Errorf("%s: valid is %v", row.name, got)
		}
	}
}

func TestTokensAreReadForTheirEndAndAccount(t *testing.T) {
	t.Parallel()
	const fixture = "eyJhbGciOiJub25lIn0.eyJleHAiOjQxMDI0NDQ4MDAsImh0dHBzOi8vYXBpLm9wZW5haS5jb20vYXV0aCI6eyJjaGF0Z3B0X2FjY291bnRfaWQiOiJhY2MtMSIsImNoYXRncHRfcGxhbl90eXBlIjoicGx1cyJ9fQ.sig"
	for _, row := range []struct {
		name, access, id string
		account          string
		expires          int64
	}{
		{"both in the access token", fixture, "", "acc-1", 4102444800},
		{"the id token's account comes first", chatgpttest.JWT("acc-2", time.Unix(5000000000, 0), 1), fixture, "acc-1", 5000000000},
		{"tokens that are no JWT", "opaque", "also", "", 0},
		{"a payload that is no base64", "a.!!.c", "", "", 0},
		{"a payload that is no JSON", "a.YWJj.c", "", "", 0},
	} {
		s := chatgpt.New(row.access, "r", row.id, time.Now())
		if s.Account != row.account || s.ExpiresAt != row.expires {
			t.Errorf("%s: got %q and %d", row.name, s.Account, s.ExpiresAt)
		}
	}
}

func TestNoPrintShowsAToken(t *testing.T) {
	t.Parallel()
	p := newPlace(t, time.Now().Add(time.Hour))
	s, l := p.held(), p.open()
	for name, v := range map[string]any{
		"SignIn": *s, "*SignIn": s, "*Login": l, "in a struct": struct{ S *chatgpt.SignIn }{s},
		"in a slice": []chatgpt.SignIn{*s}, "Tokens": chatgpt.Tokens{},
	} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
			if got := fmt.Sprintf(verb, v); strings.Contains(got, "eyJ") || strings.Contains(got, "refresh-token") || !strings.Contains(got, "REDACTED") && name != "in a struct" {
				t.Errorf("%s as %s: %s", name, verb, got)
			}
		}
		encoded, err := json.Marshal(v)
		if err != nil || strings.Contains(string(encoded), "eyJ") || !strings.Contains(string(encoded), "REDACTED") {
			t.Errorf("%s as JSON: %s, %v", name, encoded, err)
		}
	}
	if s.LogValue().String() != secret.Mark || l.LogValue().String() != secret.Mark {
		t.Error("a log shows more than the mark")
	}
}

func TestTheFileOfCodex(t *testing.T) {
	t.Run("PV-46 PO-81 a file of Codex is looked at and not read", func(t *testing.T) {
		dir := t.TempDir()
		t.Setenv("CODEX_HOME", dir)
		codex := filepath.Join(dir, "auth.json")
		if err := os.WriteFile(codex, []byte(`{"tokens":{"access_token":"of-codex"}}`), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(codex, 0); err != nil {
			t.Fatal(err)
		}
		long := time.Now().Add(-24 * time.Hour).Truncate(time.Second)
		if err := os.Chtimes(codex, long, long); err != nil {
			t.Fatal(err)
		}
		file := chatgpt.File{Path: filepath.Join(dir, "chatgpt.json")}
		_, err := chatgpt.Open(file, nil, func(...secret.Named) {}, "test")
		if err == nil || !strings.Contains(err.Error(), "provider_login_unavailable") ||
			!strings.Contains(err.Error(), file.Path) || !strings.Contains(err.Error(), "Codex is signed in") || !strings.Contains(err.Error(), "agent login chatgpt") {
			t.Errorf("got %v", err)
		}
		if !chatgpt.CodexSignedIn() {
			t.Error("the sign-in of Codex was not seen")
		}
		if at := accessed(t, codex); !at.Equal(long) {
			t.Errorf("the file was read at %v", at)
		}
		os.Remove(codex)
		if chatgpt.CodexSignedIn() {
			t.Error("a sign-in of Codex was seen where none is")
		}
	})
}

func TestFilesThatAreRefused(t *testing.T) {
	t.Parallel()
	good := `{"version":1,"account_id":"acc-1","access_token":"a","refresh_token":"r","id_token":"i","expires_at":0,"last_refresh":"2026-01-02T03:04:05Z"}`
	for _, row := range []struct {
		name, text string
		mode       os.FileMode
		link       bool
		want       string // "" for one that is taken
	}{
		{"a good one", good, 0o600, false, ""},
		{"one that the group may read", good, 0o640, false, "mode 0640"},
		{"one that others may write", good, 0o602, false, "mode 0602"},
		{"a symlink", good, 0o600, true, "symlink"},
		{"another version", strings.Replace(good, `"version":1`, `"version":2`, 1), 0o600, false, "version 2"},
		{"no access token", strings.Replace(good, `"access_token":"a"`, `"access_token":""`, 1), 0o600, false, "lacks"},
		{"a token with a line break", strings.Replace(good, `"access_token":"a"`, `"access_token":"a\nb"`, 1), 0o600, false, "lacks"},
		{"no JSON", "secret-token", 0o600, false, "not the JSON"},
		{"an issuer in the clear", strings.Replace(good, `}`, `,"issuer":"http://example.test"}`, 1), 0o600, false, "issuer"},
		{"one that is too long", good + strings.Repeat(" ", 300<<10), 0o600, false, "longer than"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "chatgpt.json")
			real := path
			if row.link {
				real += ".real"
				if err := os.Symlink(real, path); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(real, []byte(row.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(real, row.mode); err != nil {
				t.Fatal(err)
			}
			_, _, err := chatgpt.File{Path: path}.Read()
			if row.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var e *model.Error
			if !errors.As(err, &e) || e.Code != "provider_login_unavailable" || !strings.Contains(e.Detail, row.want) ||
				strings.Contains(e.Detail, "secret-token") || !strings.Contains(e.Detail, "agent login chatgpt") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestCheckIssuer(t *testing.T) {
	t.Parallel()
	for issuer, good := range map[string]bool{
		"https://id.example.test": true, "http://127.0.0.1:9": true, "http://[::1]:9": true,
		"http://id.example.test": false, "http://localhost:9": false, "ftp://127.0.0.1": false, "127.0.0.1:9": false,
		"https://u:p@id.example.test": false, "https://id.example.test?x=1": false, "": false,
	} {
		if why := chatgpt.CheckIssuer(issuer); (why == "") != good {
			t.Errorf("%q: %q", issuer, why)
		}
	}
}

func TestALockedFileIsWaitedFor(t *testing.T) {
	t.Parallel()
	p := newPlace(t, time.Now().Add(-time.Hour))
	l := p.open()
	lock, err := p.file.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var done atomic.Bool
	got := make(chan *model.Error, 1)
	go func() {
		_, e := p.call(l)
		done.Store(true)
		got <- e
	}()
	// Another process renews meanwhile.
	p.put(p.server.SignIn(time.Now().Add(time.Hour)))
	if done.Load() && p.tokens() > 0 {
		t.Error("the lock was passed by")
	}
	lock.Close()
	if e := <-got; e != nil {
		t.Error(e)
	}
	if n := p.tokens(); n != 0 {
		t.Errorf("the issuer was asked %d times for what was in the file", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	lock, err = p.file.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if _, err := p.file.Lock(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
