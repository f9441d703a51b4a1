// Package signin is the ChatGPT sign-in itself: an authorization code with PKCE
// through the person's browser, as Codex does it (providers.md 10.1, cli.md 14).
// It opens the one TCP listener of the product, on 127.0.0.1, in the process of
// the command and for as long as the sign-in takes. The daemon does not link it.
package signin

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"agent/internal/model"
	"agent/internal/model/chatgpt"
	"agent/internal/model/wire"
	"agent/internal/place"
	"agent/internal/secret"
)

const (
	scope        = "openid profile email offline_access"
	callback     = "/auth/callback"
	patience     = 10 * time.Minute
	exchangeTime = 30 * time.Second
	detailLimit  = 512
)

// ports are those that the sign-in server knows, in the order they are tried.
var ports = []int{1455, 1457}

// Options is one sign-in.
type Options struct {
	File    chatgpt.File
	Issuer  string // "": the usual one; else checked by chatgpt.CheckIssuer
	Port    int    // of the callback; 0: the registered ones in turn
	Version string
	// Opened is told the address that the person opens, once the answer can be
	// taken.
	Opened func(address string) error
}

// flow is a sign-in under way. Its secrets never leave it but to the issuer.
type flow struct {
	secret.Hidden
	Options
	redirect string
	state    string
	verifier string
	known    *secret.Values // what no message may hold
	send     func(*http.Request) (*http.Response, error)
}

func newFlow(o Options) *flow {
	f := &flow{Options: o, state: random(32), verifier: random(64), known: &secret.Values{}}
	f.know(f.state, f.verifier)
	f.send = wire.NewTransports(wire.Options{Connections: 1}).RoundTrip
	if f.Issuer == "" {
		f.Issuer = chatgpt.Issuer
	}
	f.Issuer = strings.TrimRight(f.Issuer, "/")
	return f
}

// know keeps texts out of every message.
func (f *flow) know(texts ...string) {
	for _, text := range texts {
		f.known.Add(secret.Named{Value: secret.NewValue(text)})
	}
}

// random is n random bytes as base64url.
func random(n int) string {
	b := make([]byte, n)
	if _, err := rand.Read(b); err != nil {
		panic(err) // the system's source does not fail
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// challenge is the S256 challenge of a verifier.
func challenge(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// address is where the person signs in.
func (f *flow) address() string {
	q := url.Values{
		"response_type": {"code"}, "client_id": {chatgpt.ClientID}, "redirect_uri": {f.redirect},
		"scope": {scope}, "code_challenge": {challenge(f.verifier)}, "code_challenge_method": {"S256"},
		"id_token_add_organizations": {"true"}, "codex_cli_simplified_flow": {"true"},
		"state": {f.state}, "originator": {"agent"},
	}
	// A scope's blanks are spelled %20, which every server reads.
	return f.Issuer + "/oauth/authorize?" + strings.ReplaceAll(q.Encode(), "+", "%20")
}

func redirectOf(port int) string { return "http://localhost:" + strconv.Itoa(port) + callback }

// Run signs in through a listener and keeps what came of it in the file. Codes:
// login_port_unavailable, login_timeout, login_refused, login_failed,
// login_no_account; ctx's cause when it ends.
func Run(ctx context.Context, o Options) (*chatgpt.SignIn, error) {
	f := newFlow(o)
	try := ports
	if f.Port != 0 {
		try = []int{f.Port}
	}
	listener, err := listen(try)
	if err != nil {
		return nil, err
	}
	f.redirect = redirectOf(listener.port)
	server := f.serve(listener)
	defer server.close()
	if err := o.Opened(f.address()); err != nil {
		return nil, err
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case answer := <-server.answers:
		s, err := f.finish(ctx, answer)
		server.outcome <- err
		return s, err
	case <-timer.C:
		return nil, model.Errorf("login_timeout", "nobody signed in within %s; run agent login chatgpt again", patience)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// finish turns the query of a redirect, whose state was right, into a sign-in
// that is kept.
func (f *flow) finish(ctx context.Context, q url.Values) (*chatgpt.SignIn, error) {
	code := q.Get("code")
	f.know(code)
	switch {
	case q.Get("error") != "":
		return nil, f.fail("login_refused", refusal(q))
	case code == "":
		return nil, f.fail("login_refused", "the sign-in server sent no code back")
	}
	s, err := f.exchange(ctx, code)
	if err != nil {
		return nil, err
	}
	return s, f.keep(ctx, s)
}

// refusal is why the sign-in server refused.
func refusal(q url.Values) string {
	why, description := q.Get("error"), q.Get("error_description")
	if why == "access_denied" && strings.Contains(description, "missing_codex_entitlement") {
		return "the workspace has no access to Codex; ask its administrator, or sign in to another workspace"
	}
	if description == "" {
		return why
	}
	return description
}

// fail makes an error whose detail holds no secret of the flow.
func (f *flow) fail(code, detail string) *model.Error {
	detail = string(f.known.Bytes([]byte(strings.ToValidUTF8(detail, ""))))
	if runes := []rune(detail); len(runes) > detailLimit {
		detail = string(runes[:detailLimit])
	}
	return model.Errorf(code, "%s", detail)
}

// exchange gets the tokens for a code.
func (f *flow) exchange(ctx context.Context, code string) (*chatgpt.SignIn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, exchangeTime, errors.New("no answer came in 30 s"))
	defer cancel()
	form := url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {f.redirect},
		"client_id": {chatgpt.ClientID}, "code_verifier": {f.verifier},
	}
	status, answer, err := chatgpt.Post(ctx, f.send, f.Issuer, "application/x-www-form-urlencoded", []byte(form.Encode()), f.Version)
	if ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, f.fail("login_failed", "the sign-in server did not give the tokens: "+err.Error())
	}
	if status != http.StatusOK {
		said := wire.ParseFailure(answer, "application/json")
		return nil, f.fail("login_failed", strings.TrimSuffix(fmt.Sprintf("the sign-in server answered with HTTP %d: %s", status, said.Message), ": "))
	}
	var t chatgpt.Tokens
	if json.Unmarshal(answer, &t) != nil {
		return nil, f.fail("login_failed", "the sign-in server's answer is no JSON of tokens")
	}
	access, refresh, id := t.Access.Reveal(), t.Refresh.Reveal(), t.ID.Reveal()
	f.know(access, refresh, id)
	for name, text := range map[string]string{"access_token": access, "refresh_token": refresh, "id_token": id} {
		if !headerSafe(text) {
			return nil, f.fail("login_failed", "the sign-in server's answer has no usable "+name)
		}
	}
	s := chatgpt.New(access, refresh, id, time.Now())
	if !headerSafe(s.Account) {
		return nil, f.fail("login_no_account", "the sign-in is of no ChatGPT account; sign in with one that has a plan")
	}
	if f.Issuer != chatgpt.Issuer {
		s.Issuer = f.Issuer
	}
	return s, nil
}

// headerSafe reports a text that may stand in a header.
func headerSafe(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool { return r < '!' || r > '~' })
}

// keep writes the sign-in to the file.
func (f *flow) keep(ctx context.Context, s *chatgpt.SignIn) error {
	if _, err := place.MakeAgentDir(); err != nil {
		return err
	}
	lock, err := f.File.Lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Close()
	return f.File.Write(s)
}

// stateIs compares in constant time.
func (f *flow) stateIs(state string) bool {
	return subtle.ConstantTimeCompare([]byte(state), []byte(f.state)) == 1
}
