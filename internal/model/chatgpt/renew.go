package chatgpt

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"agent/internal/model"
	"agent/internal/model/wire"
)

const (
	issuerTime  = 30 * time.Second
	answerLimit = 256 << 10
)

// renewal is one under way, which any number of calls wait for. It goes on when
// they are gone: an issuer's answer that nobody takes would end the sign-in.
type renewal struct {
	done chan struct{}
	got  *SignIn      // once done, without an error
	err  *model.Error // once done
}

func (r *renewal) wait(ctx context.Context) error {
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// failure is a copy of the error for one caller, who may add to it.
func (r *renewal) failure() *model.Error {
	e := *r.err
	return &e
}

// passing reports a failure that may pass by itself.
func (r *renewal) passing() bool { return r.err.Code == "provider_connection_failed" }

// join gives the renewal under way, or begins one of have. The lock is held.
func (l *Login) join(have *SignIn) *renewal {
	if l.running == nil {
		l.running = &renewal{done: make(chan struct{})}
		go l.renew(l.running, have)
	}
	return l.running
}

func (l *Login) renew(r *renewal, have *SignIn) {
	got, at, err := l.exchange(have)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
		l.hold(got, at)
	case err.Code == "provider_login_expired":
		l.over = at
	default:
		l.failed = l.now()
	}
	r.got, r.err = got, err
	l.running = nil
	close(r.done)
}

// exchange has the file's sign-in renewed, unless another process did that
// since have was read. It gives what the file holds then, and which file that
// is; with provider_login_expired, the file that is over.
func (l *Login) exchange(have *SignIn) (*SignIn, os.FileInfo, *model.Error) {
	lock, err := l.file.Lock(context.Background())
	if err != nil {
		return nil, nil, passing("the sign-in cannot be renewed: %v", err)
	}
	defer lock.Close()
	now, at, err := l.file.Read()
	if err != nil {
		return nil, nil, err.(*model.Error)
	}
	if now.Access != have.Access || now.Account != have.Account {
		return now, at, nil
	}
	next, fail := l.next(now)
	if fail != nil {
		return nil, at, fail
	}
	if err := l.file.Write(next); err != nil {
		l.unsaved = &renewed{of: now.Access, next: next}
		return nil, nil, passing("the renewed sign-in cannot be written to %s: %v", l.file.Path, reason(err))
	}
	l.unsaved = nil
	at, err = os.Lstat(l.file.Path)
	if err != nil {
		return nil, nil, passing("%s cannot be read: %v", l.file.Path, reason(err))
	}
	return next, at, nil
}

// next is what comes after a sign-in: what was fetched for it already, else
// what the issuer gives. Only the renewal under way calls it.
func (l *Login) next(now *SignIn) (*SignIn, *model.Error) {
	if l.unsaved != nil && l.unsaved.of == now.Access {
		return l.unsaved.next, nil
	}
	next, fail := l.ask(now)
	if fail == nil {
		l.know(next.secrets()...)
	}
	return next, fail
}

// ask sends the one request of a renewal.
func (l *Login) ask(s *SignIn) (*SignIn, *model.Error) {
	ctx, cancel := context.WithTimeout(context.Background(), issuerTime)
	defer cancel()
	body := model.AppendString([]byte(`{"client_id":`), ClientID)
	body = append(body, `,"grant_type":"refresh_token","refresh_token":`...)
	body = append(model.AppendString(body, s.Refresh.Reveal()), '}')
	status, answer, err := Post(ctx, l.send, s.issuer(), "application/json", body, l.version)
	if err != nil {
		return nil, passing("the sign-in cannot be renewed: %v", err)
	}
	if status != http.StatusOK {
		return nil, l.refusal(s, status, answer)
	}
	var in Tokens
	if err := json.Unmarshal(answer, &in); err != nil {
		return nil, passing("the sign-in cannot be renewed: what %s answered is no JSON of tokens", s.issuer())
	}
	for _, t := range []string{in.Access.Reveal(), in.Refresh.Reveal(), in.ID.Reveal()} {
		if t != "" && !printable(t) {
			return nil, passing("the sign-in cannot be renewed: %s answered with a token that no header can hold", s.issuer())
		}
	}
	return s.renewed(in.Access.Reveal(), in.Refresh.Reveal(), in.ID.Reveal(), l.now()), nil
}

// Tokens are what an issuer answers with; what it leaves out is empty.
type Tokens struct {
	Access  token `json:"access_token"`
	Refresh token `json:"refresh_token"`
	ID      token `json:"id_token"`
}

// ended are the words of an issuer for a sign-in that nothing renews.
var ended = []string{"refresh_token_expired", "refresh_token_reused", "refresh_token_invalidated", "invalid_grant"}

// refusal is the error of an answer that is no success.
func (l *Login) refusal(s *SignIn, status int, answer []byte) *model.Error {
	f := wire.ParseFailure(answer, "application/json")
	if (status == http.StatusBadRequest || status == http.StatusUnauthorized) && (f.Says(ended...) || slices.Contains(ended, f.Message)) {
		return l.expired()
	}
	detail := strings.TrimSuffix(fmt.Sprintf("the sign-in cannot be renewed: %s answered with HTTP %d: %s", s.issuer(), status, f.Message), ": ")
	return &model.Error{Code: "provider_connection_failed", Detail: detail}
}

// passing is the error of a renewal that may work at another time.
func passing(format string, args ...any) *model.Error {
	return model.Errorf("provider_connection_failed", format, args...)
}

// Post sends a body to an issuer's token endpoint and gives the answer, of at
// most 256 KiB. Its errors name no part of the body.
func Post(ctx context.Context, send func(*http.Request) (*http.Response, error), issuer, contentType string, body []byte, version string) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(issuer, "/")+"/oauth/token", strings.NewReader(string(body)))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("content-type", contentType)
	req.Header.Set("accept", "application/json")
	req.Header.Set("user-agent", "agent/"+version)
	resp, err := send(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, answerLimit+1))
	if err != nil {
		return 0, nil, err
	}
	if len(answer) > answerLimit {
		return 0, nil, fmt.Errorf("%s answered with more than %d KiB", issuer, answerLimit>>10)
	}
	return resp.StatusCode, answer, nil
}
