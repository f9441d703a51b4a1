// Package bedrock signs what goes to Amazon Bedrock: where the AWS keys come
// from, when they are asked for again, and the signature itself (providers.md
// 11). The wire is the families' own.
package bedrock

import (
	"context"
	"strings"
	"sync"
	"time"

	"agent/internal/model"
	"agent/internal/secret"
)

const (
	// renewBefore is how long before their end keys are asked for again.
	renewBefore = 5 * time.Minute
	// askPause is the least time between two runs of the aws command that calls
	// ask for, all calls of a daemon taken together.
	askPause = 10 * time.Second
)

// Where keys come from, as ready shows it.
const (
	FromEnvironment = "environment"
	FromCommand     = "aws-cli"
)

// Variables are those that may hold a key of AWS. No command of a bot gets them
// where a Bedrock provider is registered.
var Variables = []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK"}

// pair is one set of keys. It is never changed once made.
type pair struct {
	secret.Hidden
	id, key, token secret.Value
	expires        time.Time // zero: never, as far as is known
}

func (p *pair) secrets() []secret.Named {
	return []secret.Named{
		{Name: "the AWS access key id", Value: p.id},
		{Name: "the AWS secret access key", Value: p.key},
		{Name: "the AWS session token", Value: p.token},
	}
}

// due reports keys that end within five minutes.
func (p *pair) due(now time.Time) bool {
	return !p.expires.IsZero() && !now.Before(p.expires.Add(-renewBefore))
}

func (p *pair) valid(now time.Time) bool { return p.expires.IsZero() || now.Before(p.expires) }

// Keys are the AWS keys of a daemon, for all its Bedrock providers. They are
// safe for concurrent use.
type Keys struct {
	secret.Hidden
	static bool                                        // from the environment: never asked for again
	fetch  func(context.Context) (*pair, *model.Error) // runs the aws command
	know   func(...secret.Named)
	now    func() time.Time

	mu      sync.Mutex
	held    *pair        // nil while none were had
	fail    *model.Error // why none were had the last time; nil otherwise
	asked   time.Time    // when a call had the command run last
	running *run         // nil while none is under way
}

// run is one of the aws command, which any number of calls wait for.
type run struct {
	done chan struct{}
	err  *model.Error // once done
}

// Open finds the keys: both key variables that getenv gives, read once, else
// what the aws command says. The command is begun here and waited for as long
// as patience; keys that are not there by then are not an error: calls ask for
// them again. Every key is given to know before it is used. redact masks what
// the command says when it fails.
func Open(getenv func(string) string, know func(...secret.Named), redact func(string) string, patience time.Duration) *Keys {
	k := &Keys{know: know, now: time.Now}
	id, key := strings.TrimSpace(getenv(Variables[0])), strings.TrimSpace(getenv(Variables[1]))
	if id != "" && key != "" {
		k.static = true
		k.held = &pair{id: secret.NewValue(id), key: secret.NewValue(key), token: secret.NewValue(strings.TrimSpace(getenv(Variables[2])))}
		know(k.held.secrets()...)
		return k
	}
	k.fetch = func(ctx context.Context) (*pair, *model.Error) { return export(ctx, redact) }
	k.fail = unavailable("the aws command has not answered yet")
	k.mu.Lock()
	r := k.join(false)
	k.mu.Unlock()
	select {
	case <-r.done:
	case <-time.After(patience):
	}
	return k
}

// Source is where the keys come from, and why there are none now; nil while
// there are.
func (k *Keys) Source() (source string, unresolved *model.Error) {
	if k.static {
		return FromEnvironment, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.held != nil && k.held.valid(k.now()) {
		return FromCommand, nil
	}
	return FromCommand, k.failure()
}

// failure is a copy of the error for one caller, who may add to it. The lock is
// held.
func (k *Keys) failure() *model.Error {
	if k.fail == nil {
		return model.Errorf("provider_aws_credentials_expired", "the AWS keys have ended; sign in again, as with aws sso login")
	}
	e := *k.fail
	return &e
}

// join gives the run under way, or begins one. asked says that a call wants it.
// The lock is held.
func (k *Keys) join(asked bool) *run {
	if k.running == nil {
		k.running = &run{done: make(chan struct{})}
		go k.resolve(k.running, asked)
	}
	return k.running
}

// resolve runs the command, whoever waits for it or no longer does.
func (k *Keys) resolve(r *run, asked bool) {
	got, err := k.fetch(context.Background())
	if got != nil {
		k.know(got.secrets()...)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil {
		k.held = got
	}
	k.fail, r.err = err, err
	if asked || err != nil {
		k.asked = k.now()
	}
	k.running = nil
	close(r.done)
}

// get is the keys to sign with now.
func (k *Keys) get(ctx context.Context) (*pair, error) {
	k.mu.Lock()
	held, now := k.held, k.now()
	usable := held != nil && held.valid(now)
	if usable && (k.static || !held.due(now)) {
		k.mu.Unlock()
		return held, nil
	}
	if k.running == nil && !k.asked.IsZero() && now.Sub(k.asked) < askPause {
		defer k.mu.Unlock()
		if usable {
			return held, nil
		}
		return nil, k.failure()
	}
	r := k.join(true)
	k.mu.Unlock()
	select {
	case <-r.done:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.held != nil && k.held.valid(k.now()) {
		return k.held, nil
	}
	return nil, k.failure()
}

// renew asks for the keys once more after those of used were refused, and
// reports whether there are others now.
func (k *Keys) renew(ctx context.Context, used func(*pair) bool) bool {
	if k.static {
		return false
	}
	k.mu.Lock()
	if k.held != nil && !used(k.held) {
		k.mu.Unlock()
		return true
	}
	if k.running == nil && !k.asked.IsZero() && k.now().Sub(k.asked) < askPause {
		k.mu.Unlock()
		return false
	}
	r := k.join(true)
	k.mu.Unlock()
	select {
	case <-r.done:
	case <-ctx.Done():
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return r.err == nil && !used(k.held)
}

// unavailable is provider_aws_credentials_unavailable.
func unavailable(format string, args ...any) *model.Error {
	return model.Errorf("provider_aws_credentials_unavailable", format, args...)
}
