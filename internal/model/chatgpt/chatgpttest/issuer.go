// Package chatgpttest is a sign-in server and a ChatGPT backend on loopback,
// for tests alone. It is strict: a token for renewal works once, a code once
// and with its verifier alone, and whatever is not as it should be is refused
// and remembered.
package chatgpttest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"agent/internal/model/chatgpt"
)

// Account is the account of every sign-in.
const Account = "acc-1"

// Server is both. Its fields are set before the first request.
type Server struct {
	*httptest.Server
	Life time.Duration // of an access token; 0: ten days
	// Refuse answers the n-th token request, from 1, with another status; 0
	// leaves it to the server.
	Refuse func(n int) (status int, body string)
	// Answering is called when a token request was taken and before it is
	// answered.
	Answering func(n int)
	// Backend answers the n-th call with the right credential, from 1; nil says
	// hello.
	Backend func(w http.ResponseWriter, r *http.Request, n int)
	// NoAccount leaves the account out of the tokens.
	NoAccount bool

	mu         sync.Mutex
	serial     int
	access     string
	refresh    string
	challenges map[string]url.Values // of codes
	tokens     int
	calls      int
	refused    int
	bodies     []string
	headers    []http.Header
	faults     []string
}

// New starts a server for the test's life, which fails the test when it was
// asked for something it should not have been.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{challenges: map[string]url.Values{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() {
		s.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, fault := range s.faults {
			t.Error("the sign-in server: " + fault)
		}
	})
	return s
}

// Set sets fields of a server that another process will ask.
func (s *Server) Set(set func(*Server)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	set(s)
}

// JWT is a token that says when it ends and whose it is; serial tells tokens
// apart.
func JWT(account string, expires time.Time, serial int) string {
	payload := map[string]any{"serial": serial}
	if !expires.IsZero() {
		payload["exp"] = expires.Unix()
	}
	if account != "" {
		payload["https://api.openai.com/auth"] = map[string]any{"chatgpt_account_id": account}
	}
	text, err := json.Marshal(payload)
	if err != nil {
		panic(err)
	}
	return "eyJhbGciOiJub25lIn0." + base64.RawURLEncoding.EncodeToString(text) + ".signature-" + fmt.Sprint(serial)
}

// SignIn is a sign-in of this server whose access token ends at expires.
func (s *Server) SignIn(expires time.Time) *chatgpt.SignIn {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.issue(expires)
	in := chatgpt.New(t["access_token"], t["refresh_token"], t["id_token"], time.Now())
	in.Issuer = s.URL
	return in
}

// issue makes new tokens and ends the old ones. The lock is held.
func (s *Server) issue(expires time.Time) map[string]string {
	s.serial++
	account := Account
	if s.NoAccount {
		account = ""
	}
	s.access = JWT(account, expires, s.serial)
	s.refresh = fmt.Sprintf("refresh-token-%d", s.serial)
	return map[string]string{
		"access_token": s.access, "refresh_token": s.refresh, "id_token": JWT(account, expires, -s.serial),
	}
}

// Revoke makes the backend refuse the access token from now on.
func (s *Server) Revoke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.access = ""
}

// Counts are the token requests, the calls the backend took and those it
// refused so far.
func (s *Server) Counts() (tokens, calls, refused int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tokens, s.calls, s.refused
}

// Call is the header and the body of the n-th call that the backend took, from
// 0.
func (s *Server) Call(n int) (http.Header, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.headers[n], s.bodies[n]
}

func (s *Server) fault(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, fmt.Sprintf(format, args...))
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/oauth/authorize" && r.Method == http.MethodGet:
		s.authorize(w, r)
	case r.URL.Path == "/oauth/token" && r.Method == http.MethodPost:
		s.token(w, r)
	case strings.HasPrefix(r.URL.Path, "/backend-api/codex/"):
		s.backend(w, r)
	default:
		s.fault("asked for %s %s", r.Method, r.URL.Path)
		http.NotFound(w, r)
	}
}

// authorize is the page that the person signs in on: it checks the address and
// redirects with a code.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	for name, want := range map[string]string{
		"response_type": "code", "client_id": chatgpt.ClientID, "scope": "openid profile email offline_access",
		"code_challenge_method": "S256", "id_token_add_organizations": "true", "codex_cli_simplified_flow": "true", "originator": "agent",
	} {
		if q.Get(name) != want {
			s.fault("%s is %q and not %q", name, q.Get(name), want)
		}
	}
	if len(q.Get("state")) != 43 || len(q.Get("code_challenge")) != 43 || len(q) != 10 {
		s.fault("the address %s is not whole", r.URL.RawQuery)
	}
	s.mu.Lock()
	code := fmt.Sprintf("code-of-sign-in-%d", len(s.challenges)+1)
	s.challenges[code] = q
	s.mu.Unlock()
	back := url.Values{"code": {code}, "state": {q.Get("state")}}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.tokens++
	n := s.tokens
	s.mu.Unlock()
	if s.Refuse != nil {
		if status, text := s.Refuse(n); status != 0 {
			w.Header().Set("content-type", "application/json")
			w.WriteHeader(status)
			io.WriteString(w, text)
			return
		}
	}
	answer := s.renew
	if r.Header.Get("content-type") == "application/x-www-form-urlencoded" {
		answer = s.redeem
	} else if r.Header.Get("content-type") != "application/json" {
		s.fault("a token request has the content-type %q", r.Header.Get("content-type"))
	}
	tokens, refusal := answer(body)
	if s.Answering != nil {
		s.Answering(n)
	}
	w.Header().Set("content-type", "application/json")
	if refusal != "" {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"error":{"code":%q,"message":"refused"}}`, refusal)
		return
	}
	json.NewEncoder(w).Encode(tokens)
}

// renew takes a token for renewal, once.
func (s *Server) renew(body []byte) (map[string]string, string) {
	var in map[string]string
	if err := json.Unmarshal(body, &in); err != nil || len(in) != 3 ||
		in["client_id"] != chatgpt.ClientID || in["grant_type"] != "refresh_token" {
		s.fault("a renewal asks with %s", body)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if in["refresh_token"] != s.refresh {
		return nil, "refresh_token_reused"
	}
	return s.issue(s.expiry()), ""
}

func (s *Server) expiry() time.Time {
	if s.Life == 0 {
		return time.Now().Add(10 * 24 * time.Hour)
	}
	return time.Now().Add(s.Life)
}

// redeem takes a code, once and with its verifier.
func (s *Server) redeem(body []byte) (map[string]string, string) {
	form, err := url.ParseQuery(string(body))
	if err != nil || len(form) != 5 || form.Get("client_id") != chatgpt.ClientID || form.Get("grant_type") != "authorization_code" {
		s.fault("a code is redeemed with %s", body)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	asked, ok := s.challenges[form.Get("code")]
	delete(s.challenges, form.Get("code"))
	sum := sha256.Sum256([]byte(form.Get("code_verifier")))
	if !ok || asked.Get("redirect_uri") != form.Get("redirect_uri") ||
		asked.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) || len(form.Get("code_verifier")) != 86 {
		return nil, "invalid_grant"
	}
	return s.issue(s.expiry()), ""
}

func (s *Server) backend(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	ok := s.access != "" && r.Header.Get("authorization") == "Bearer "+s.access &&
		r.Header.Get("chatgpt-account-id") == Account && r.Header.Get("originator") == "agent"
	if !ok {
		s.refused++
		s.mu.Unlock()
		w.Header().Set("content-type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		io.WriteString(w, `{"detail":"Unauthorized"}`)
		return
	}
	s.calls++
	n := s.calls
	s.headers, s.bodies = append(s.headers, r.Header), append(s.bodies, string(body))
	s.mu.Unlock()
	if s.Backend != nil {
		s.Backend(w, r, n)
		return
	}
	Say(w, "Hello.")
}

// Say answers with a stream of one message. It names no content type, as the
// backend does not.
func Say(w http.ResponseWriter, text string) {
	w.Header()["Content-Type"] = nil
	item := fmt.Sprintf(`{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":%q,"annotations":[]}]}`, text)
	fmt.Fprintf(w, "data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"content_index\":0,\"delta\":%q}\n\n", text)
	fmt.Fprintf(w, "data: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":%s}\n\n", item)
	io.WriteString(w, end)
}

// Call answers with a stream of one tool call.
func Call(w http.ResponseWriter, id, name, arguments string) {
	w.Header()["Content-Type"] = nil
	fmt.Fprintf(w, "data: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"function_call\",\"id\":\"fc_%s\",\"call_id\":%q,\"name\":%q,\"arguments\":%q,\"status\":\"completed\"}}\n\n",
		id, id, name, arguments)
	io.WriteString(w, end)
}

const end = `data: {"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[],"usage":{"input_tokens":4,"output_tokens":2,"total_tokens":6}}}

`
