// Package chatgpt is the ChatGPT sign-in as a daemon uses it: the file that
// holds its tokens, their renewal, and the headers that carry them
// (providers.md 10). The sign-in itself, which opens a listener, is in the
// folder below and is for the command alone.
//
// Three rules hold it together. The tokens go to the ChatGPT backend alone, or
// to the origin of the issuer that a test's file names. A renewed token is in
// the file before it is used. And the file is written under a lock, since a
// token for renewal works once and a second daemon has the same one.
package chatgpt

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"agent/internal/model"
	"agent/internal/place"
	"agent/internal/secret"
)

const (
	// Issuer is the sign-in server.
	Issuer = "https://auth.openai.com"
	// ClientID is the public client that the sign-in server knows Codex by.
	ClientID = "app_EMoamEEZ73f0CkXaXp7hrann"
	// Backend is where the tokens are good for.
	Backend = "https://chatgpt.com/backend-api/codex"

	// renewBefore is how long before their end tokens are renewed; tokens whose
	// end is unknown are renewed at renewAge.
	renewBefore = 5 * time.Minute
	renewAge    = 8 * 24 * time.Hour
)

// SignIn is what the file holds. It is never changed once made: a renewal makes
// another one.
type SignIn struct {
	secret.Hidden
	Account string
	Access  secret.Value
	Refresh secret.Value
	ID      secret.Value
	// ExpiresAt is when Access ends, Unix seconds; 0: unknown.
	ExpiresAt   int64
	LastRefresh time.Time
	// Issuer is another issuer than the usual one, "" otherwise. Its tokens go
	// to its own origin alone.
	Issuer string
}

// New makes a sign-in of the three tokens an issuer gave at now. The account is
// "" when neither token names one.
func New(access, refresh, id string, now time.Time) *SignIn {
	of := claimsOf(access)
	account := claimsOf(id).Auth.Account
	if account == "" {
		account = of.Auth.Account
	}
	return &SignIn{
		Account: account,
		Access:  secret.NewValue(access), Refresh: secret.NewValue(refresh), ID: secret.NewValue(id),
		ExpiresAt: of.expiry(), LastRefresh: now.UTC().Truncate(time.Second),
	}
}

// renewed is the sign-in after a renewal; what the answer left out stays.
func (s *SignIn) renewed(access, refresh, id string, now time.Time) *SignIn {
	keep := func(text string, old secret.Value) string {
		if text == "" {
			return old.Reveal()
		}
		return text
	}
	next := New(keep(access, s.Access), keep(refresh, s.Refresh), keep(id, s.ID), now)
	if next.Account == "" {
		next.Account = s.Account
	}
	next.Issuer = s.Issuer
	return next
}

// secrets are what must be masked from now on.
func (s *SignIn) secrets() []secret.Named {
	return []secret.Named{
		{Name: "the ChatGPT access token", Value: s.Access},
		{Name: "the ChatGPT refresh token", Value: s.Refresh},
		{Name: "the ChatGPT id token", Value: s.ID},
	}
}

// due reports that the access token should be renewed before it is used.
func (s *SignIn) due(now time.Time) bool {
	if s.ExpiresAt == 0 {
		return now.Sub(s.LastRefresh) >= renewAge
	}
	return !now.Before(time.Unix(s.ExpiresAt, 0).Add(-renewBefore))
}

// valid reports that the access token has not ended, as far as is known.
func (s *SignIn) valid(now time.Time) bool {
	return s.ExpiresAt == 0 || now.Before(time.Unix(s.ExpiresAt, 0))
}

// issuer is the URL that renews the tokens.
func (s *SignIn) issuer() string {
	if s.Issuer == "" {
		return Issuer
	}
	return s.Issuer
}

// Serves reports whether the tokens may go to a URL.
func (s *SignIn) Serves(u *url.URL) bool {
	if s.Issuer != "" {
		issuer, err := url.Parse(s.Issuer)
		return err == nil && origin(u) == origin(issuer)
	}
	backend, err := url.Parse(Backend)
	return err == nil && origin(u) == origin(backend) &&
		(u.Path == backend.Path || strings.HasPrefix(u.Path, backend.Path+"/"))
}

// origin is scheme, host and port; a socket's scheme counts as its HTTP's.
func origin(u *url.URL) string {
	scheme, port := u.Scheme, u.Port()
	switch scheme {
	case "wss":
		scheme = "https"
	case "ws":
		scheme = "http"
	}
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[scheme]
	}
	return scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// CheckIssuer says what is wrong with another issuer's URL, "" for a good one:
// https, or http to a loopback address.
func CheckIssuer(issuer string) string {
	u, err := url.Parse(issuer)
	switch {
	case err != nil || u.Hostname() == "" || u.Opaque != "":
		return "it is no absolute URL"
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "it must hold no user information, query or fragment"
	case u.Scheme == "https":
		return ""
	case u.Scheme != "http":
		return "it must begin with https://"
	}
	if ip := net.ParseIP(u.Hostname()); ip == nil || !ip.IsLoopback() {
		return "http is for a loopback address alone; use https"
	}
	return ""
}

// claims are what the program reads of a token; nobody's signature is checked,
// since nothing is decided by them but when to renew and which account to name.
type claims struct {
	Exp  json.Number `json:"exp"`
	Auth struct {
		Account string `json:"chatgpt_account_id"`
	} `json:"https://api.openai.com/auth"`
}

// claimsOf reads the payload of a JWT; empty claims when it is none.
func claimsOf(token string) (c claims) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return claims{}
	}
	payload, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil || json.Unmarshal(payload, &c) != nil {
		return claims{}
	}
	return c
}

// expiry is the token's end in Unix seconds, 0 when it is unknown.
func (c claims) expiry() int64 {
	at, err := c.Exp.Float64()
	if err != nil || at < 1 || at > 1<<40 {
		return 0
	}
	return int64(at)
}

// CodexSignedIn reports whether Codex has a sign-in of its own. Its file is
// looked at for existence and never opened (PO-81).
func CodexSignedIn() bool {
	folder := os.Getenv("CODEX_HOME")
	if folder == "" {
		home, err := place.Home()
		if err != nil {
			return false
		}
		folder = filepath.Join(home, ".codex")
	}
	_, err := os.Lstat(filepath.Join(folder, "auth.json"))
	return err == nil
}

// unavailable is provider_login_unavailable with what to do.
func unavailable(format string, args ...any) *model.Error {
	return model.Errorf("provider_login_unavailable", format+"; run agent login chatgpt", args...)
}

// Reason is the code and the detail of an error of the sign-in; code is "" for
// any other.
func Reason(err error) (code, detail string) {
	var e *model.Error
	if !errors.As(err, &e) {
		return "", ""
	}
	return e.Code, e.Detail
}
