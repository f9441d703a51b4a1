package chatgpt

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"agent/internal/model"
	"agent/internal/model/wire"
	"agent/internal/secret"
)

const (
	// failurePause is how long tokens that still work are used without another
	// try at their renewal, after one that failed.
	failurePause = 10 * time.Second
	// refusedPause is how long a token that was fetched for a refused one is not
	// itself renewed when it is refused, too.
	refusedPause = 5 * time.Minute
)

// Login is the sign-in as the requests of a daemon carry it. One serves all
// providers of a daemon; it is safe for concurrent use.
type Login struct {
	secret.Hidden
	file    File
	send    func(*http.Request) (*http.Response, error)
	know    func(...secret.Named)
	version string
	now     func() time.Time

	mu      sync.Mutex
	held    *SignIn
	heldAt  os.FileInfo // the file that held is of
	over    os.FileInfo // the file whose sign-in the issuer has ended; nil: none
	failed  time.Time   // when a renewal failed for a reason that may pass
	running *renewal    // nil while none is under way
	unsaved *renewed    // nil: what was fetched is in the file
	fetched secret.Value
	forced  time.Time // when fetched came for a token that was refused
}

var _ wire.Credential = (*Login)(nil)

// renewed is a sign-in that replaces the one with the access token of, and that
// could not be written yet. The issuer takes no token for renewal twice, so it
// is all there is.
type renewed struct {
	secret.Hidden
	of   secret.Value
	next *SignIn
}

// Open reads the sign-in of a file, which must be there:
// provider_login_unavailable. Every token it ever holds is given to know before
// it is used. send makes one request and follows no redirect.
func Open(file File, send func(*http.Request) (*http.Response, error), know func(...secret.Named), version string) (*Login, error) {
	l := &Login{file: file, send: send, know: know, version: version, now: time.Now}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := l.look()
	return l, err
}

// Authorize puts the access token and the account into a request, which must be
// one to the backend: provider_login_unavailable otherwise. Tokens that end
// within five minutes are renewed first.
func (l *Login) Authorize(ctx context.Context, req *http.Request) error {
	s, err := l.fresh(ctx)
	if err != nil {
		return err
	}
	if err := l.serves(s, req.URL); err != nil {
		return err
	}
	req.Header.Set("authorization", bearer(s))
	req.Header.Set("chatgpt-account-id", s.Account)
	req.Header.Set("originator", "agent")
	return nil
}

// Check fails with provider_login_unavailable when the tokens do not go to a
// URL.
func (l *Login) Check(u *url.URL) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, err := l.look()
	if err != nil {
		return err
	}
	return l.serves(s, u)
}

func (l *Login) serves(s *SignIn, u *url.URL) error {
	if s.Serves(u) {
		return nil
	}
	return unavailable("the sign-in in %s is of the issuer %s, and its tokens do not go to %s", l.file.Path, s.issuer(), origin(u))
}

func bearer(s *SignIn) string { return "Bearer " + s.Access.Reveal() }

// Refused renews the tokens after a 401, once for each token. A 403 is about
// what the account may do, and no token changes that.
func (l *Login) Refused(ctx context.Context, req *http.Request, status int) *model.Error {
	if status != http.StatusUnauthorized {
		return nil
	}
	l.mu.Lock()
	held, err := l.look()
	switch {
	case err != nil:
		l.mu.Unlock()
		return err.(*model.Error)
	case !carried(req, held):
		l.mu.Unlock()
		return refreshed()
	case same(l.over, l.heldAt):
		l.mu.Unlock()
		return l.expired()
	case held.Access == l.fetched && l.now().Sub(l.forced) < refusedPause:
		l.mu.Unlock()
		return l.rejected()
	}
	r := l.join(held)
	l.mu.Unlock()
	if r.wait(ctx) != nil {
		return nil // who asked is gone
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case r.err != nil:
		return r.failure()
	case carried(req, r.got):
		return l.rejected()
	}
	l.fetched, l.forced = r.got.Access, l.now()
	return refreshed()
}

// carried reports that a request had this sign-in's token and account.
func carried(req *http.Request, s *SignIn) bool {
	return req.Header.Get("authorization") == bearer(s) && req.Header.Get("chatgpt-account-id") == s.Account
}

func refreshed() *model.Error {
	return model.Errorf("provider_login_refreshed", "the sign-in was renewed")
}

func (l *Login) expired() *model.Error {
	return model.Errorf("provider_login_expired", "the sign-in in %s has ended; run agent login chatgpt", l.file.Path)
}

func (l *Login) rejected() *model.Error {
	return model.Errorf("provider_login_rejected", "the backend refuses the sign-in in %s; run agent login chatgpt", l.file.Path)
}

// look takes up the file's content when it is another than the held one's. The
// lock is held.
func (l *Login) look() (*SignIn, error) {
	if info, err := os.Lstat(l.file.Path); err == nil && same(info, l.heldAt) {
		return l.held, nil
	}
	s, info, err := l.file.Read()
	if err != nil {
		l.held, l.heldAt = nil, nil
		return nil, err
	}
	l.hold(s, info)
	return s, nil
}

// hold makes s the sign-in in use. The lock is held.
func (l *Login) hold(s *SignIn, info os.FileInfo) {
	l.know(s.secrets()...)
	l.held, l.heldAt = s, info
	l.failed = time.Time{}
}

// fresh is the sign-in to use now.
func (l *Login) fresh(ctx context.Context) (*SignIn, error) {
	l.mu.Lock()
	held, err := l.look()
	switch {
	case err != nil:
		l.mu.Unlock()
		return nil, err
	case !held.due(l.now()):
		l.mu.Unlock()
		return held, nil
	case same(l.over, l.heldAt):
		l.mu.Unlock()
		return nil, l.expired()
	case held.valid(l.now()) && l.now().Sub(l.failed) < failurePause:
		l.mu.Unlock()
		return held, nil
	}
	r := l.join(held)
	l.mu.Unlock()
	if err := r.wait(ctx); err != nil {
		return nil, err
	}
	switch {
	case r.err == nil:
		return r.got, nil
	case r.passing() && held.valid(l.now()):
		return held, nil
	}
	return nil, r.failure()
}
