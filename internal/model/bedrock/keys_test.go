package bedrock

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"agent/internal/model"
	"agent/internal/secret"
)

// command is an aws command on PATH that answers with a file and counts.
type command struct {
	t     *testing.T
	dir   string
	known secret.Values
}

func newCommand(t *testing.T) *command {
	t.Helper()
	c := &command{t: t, dir: t.TempDir()}
	script := `#!/bin/sh
[ "$*" = "configure export-credentials --format process" ] || { echo "called with $*" >&2; exit 9; }
[ -z "$(cat)" ] || exit 8
echo x >> '` + c.dir + `/count'
. '` + c.dir + `/answer'
`
	if err := os.WriteFile(filepath.Join(c.dir, "aws"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", c.dir+":"+os.Getenv("PATH"))
	return c
}

// answer sets what the command does: a piece of shell.
func (c *command) answer(shell string) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, "answer"), []byte(shell+"\n"), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// keys has it answer with keys that end after life; 0: never.
func (c *command) keys(id string, life time.Duration) {
	expiration := ""
	if life != 0 {
		expiration = `,"Expiration":"` + time.Now().Add(life).UTC().Format(time.RFC3339) + `"`
	}
	c.answer(fmt.Sprintf(`echo '{"Version":1,"AccessKeyId":"%s","SecretAccessKey":"secret-of-%s","SessionToken":"token-of-%s"%s}'`, id, id, id, expiration))
}

func (c *command) runs() int {
	count, _ := os.ReadFile(filepath.Join(c.dir, "count"))
	return strings.Count(string(count), "x")
}

func (c *command) open() *Keys {
	return Open(func(string) string { return "" }, func(n ...secret.Named) { c.known.Add(n...) },
		func(s string) string { return string(c.known.Bytes([]byte(s))) }, time.Minute)
}

func (c *command) id(k *Keys) string {
	c.t.Helper()
	p, err := k.get(c.t.Context())
	if err != nil {
		return err.Error()
	}
	return p.id.Reveal()
}

// at gives the keys a clock that stands d after now.
func at(k *Keys, d time.Duration) {
	then := time.Now().Add(d)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.now = func() time.Time { return then }
}

func TestKeysThatEndSoon(t *testing.T) {
	t.Run("PV-49 keys that end soon are renewed once, and kept while they work", func(t *testing.T) {
		c := newCommand(t)
		c.keys("AKID-FIRST", 4*time.Minute)
		k := c.open()
		if source, unresolved := k.Source(); source != FromCommand || unresolved != nil || c.runs() != 1 {
			t.Fatalf("got %s, %v after %d runs", source, unresolved, c.runs())
		}
		c.keys("AKID-SECOND", 4*time.Minute)
		var group sync.WaitGroup
		for range 20 {
			group.Go(func() {
				if got := c.id(k); got != "AKID-SECOND" {
					t.Errorf("got %s", got)
				}
			})
		}
		group.Wait()
		if n := c.runs(); n != 2 {
			t.Errorf("the command ran %d times", n)
		}
		c.answer("echo 'the session has ended' >&2; exit 255")
		at(k, 20*time.Second)
		if got := c.id(k); got != "AKID-SECOND" || c.runs() != 3 {
			t.Errorf("after a failed renewal: %s, %d runs", got, c.runs())
		}
		if got := c.id(k); got != "AKID-SECOND" || c.runs() != 3 {
			t.Errorf("a moment later: %s, %d runs", got, c.runs())
		}
		at(k, 5*time.Minute)
		got := c.id(k)
		if !strings.HasPrefix(got, "provider_aws_credentials_unavailable: ") || !strings.Contains(got, "the session has ended") {
			t.Errorf("when they have ended: %s", got)
		}
		for _, text := range []string{"AKID-FIRST", "secret-of-AKID-SECOND", "token-of-AKID-SECOND"} {
			if string(c.known.Bytes([]byte(text))) != secret.Mark {
				t.Errorf("%s is not masked", text)
			}
		}
	})
}

func TestKeysWithoutAnEndAreAskedForOnce(t *testing.T) {
	c := newCommand(t)
	c.keys("AKID-LASTING", 0)
	k := c.open()
	at(k, 1000*time.Hour)
	if got := c.id(k); got != "AKID-LASTING" || c.runs() != 1 {
		t.Errorf("got %s after %d runs", got, c.runs())
	}
}

func TestKeysThatAreNotThereAtTheStart(t *testing.T) {
	c := newCommand(t)
	c.answer("echo 'sign in with secret-of-AKID-KNOWN' >&2; exit 1")
	c.known.Add(secret.Named{Value: secret.NewValue("secret-of-AKID-KNOWN")})
	k := c.open()
	source, unresolved := k.Source()
	if source != FromCommand || unresolved == nil || unresolved.Code != "provider_aws_credentials_unavailable" || !strings.Contains(unresolved.Detail, "sign in with [REDACTED]") {
		t.Fatalf("got %s, %v", source, unresolved)
	}
	c.keys("AKID-LATER", time.Hour)
	if got := c.id(k); !strings.HasPrefix(got, "provider_aws_credentials_unavailable") || c.runs() != 1 {
		t.Errorf("at once: %s, %d runs", got, c.runs())
	}
	at(k, 11*time.Second)
	if got := c.id(k); got != "AKID-LATER" || c.runs() != 2 {
		t.Errorf("ten seconds later: %s, %d runs", got, c.runs())
	}
	if _, unresolved := k.Source(); unresolved != nil {
		t.Errorf("still %v", unresolved)
	}
}

func TestRefusedKeysAreAskedForOnceMore(t *testing.T) {
	c := newCommand(t)
	c.keys("AKID-FIRST", time.Hour)
	k := c.open()
	credential := credentialFor(t, "https://bedrock-mantle.us-east-1.api.aws/anthropic/v1", k)
	send := func() *http.Request {
		req, _ := http.NewRequest(http.MethodGet, "https://bedrock-mantle.us-east-1.api.aws/v1/models", nil)
		if err := credential.Authorize(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		return req
	}
	old := send()
	if e := credential.Refused(t.Context(), old, http.StatusForbidden); e != nil || c.runs() != 2 {
		t.Errorf("unchanged keys: %v, %d runs", e, c.runs())
	}
	c.keys("AKID-SECOND", time.Hour)
	if e := credential.Refused(t.Context(), old, http.StatusForbidden); e != nil || c.runs() != 2 {
		t.Errorf("within ten seconds: %v, %d runs", e, c.runs())
	}
	at(k, 11*time.Second)
	for range 3 {
		e := credential.Refused(t.Context(), old, http.StatusUnauthorized)
		if e == nil || e.Code != "provider_login_refreshed" || c.runs() != 3 {
			t.Errorf("changed keys: %v, %d runs", e, c.runs())
		}
	}
	if got := send().Header.Get("authorization"); !strings.Contains(got, "AKID-SECOND/") {
		t.Errorf("signed with %s", got)
	}
}

func TestAnswersThatAreRefused(t *testing.T) {
	c := newCommand(t)
	for _, row := range []struct{ name, shell, want string }{
		{"no JSON", "echo secret-text", "not the JSON of keys"},
		{"another version", `echo '{"Version":2,"AccessKeyId":"secret-text","SecretAccessKey":"x"}'`, "version 2"},
		{"no secret key", `echo '{"Version":1,"AccessKeyId":"secret-text"}'`, "without usable keys"},
		{"an expiration that is none", `echo '{"Version":1,"AccessKeyId":"secret-text","SecretAccessKey":"x","Expiration":"soon"}'`, "no time"},
		{"an answer without end", "head -c 100000 /dev/zero | tr '\\0' a", "more than 64 KiB"},
		{"a failure that says nothing", "exit 3", "exit status 3"},
		{"a failure that says a lot", "head -c 100000 /dev/zero | tr '\\0' b >&2; exit 1", "(exit status 1): bbb"},
	} {
		c.answer(row.shell)
		_, err := export(t.Context(), func(s string) string { return s })
		if err == nil || err.Code != "provider_aws_credentials_unavailable" || !strings.Contains(err.Detail, row.want) ||
			strings.Contains(err.Detail, "secret-text") || len(err.Detail) > 600 {
			t.Errorf("%s: got %v", row.name, err)
		}
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := export(t.Context(), nil); err == nil || !strings.Contains(err.Detail, "no aws command on PATH") {
		t.Errorf("no command: %v", err)
	}
}

func TestTheEnvironmentsKeysComeFirst(t *testing.T) {
	c := newCommand(t)
	c.keys("AKID-OF-COMMAND", 0)
	env := map[string]string{"AWS_ACCESS_KEY_ID": " AKID-OF-ENVIRONMENT ", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": ""}
	k := Open(func(name string) string { return env[name] }, func(...secret.Named) {}, nil, 0)
	if source, unresolved := k.Source(); source != FromEnvironment || unresolved != nil {
		t.Errorf("got %s, %v", source, unresolved)
	}
	if got := c.id(k); got != "AKID-OF-ENVIRONMENT" || c.runs() != 0 {
		t.Errorf("got %s after %d runs", got, c.runs())
	}
	delete(env, "AWS_SECRET_ACCESS_KEY")
	k = Open(func(name string) string { return env[name] }, func(...secret.Named) {}, nil, time.Minute)
	if got := c.id(k); got != "AKID-OF-COMMAND" {
		t.Errorf("half the variables: %s", got)
	}
}

func TestACommandThatHangsDoesNotHoldTheStart(t *testing.T) {
	c := newCommand(t)
	c.answer("while [ ! -e '" + c.dir + "/go' ]; do sleep 0.01; done; echo '{\"Version\":1,\"AccessKeyId\":\"AKID-SLOW\",\"SecretAccessKey\":\"x\"}'")
	k := Open(func(string) string { return "" }, func(...secret.Named) {}, func(s string) string { return s }, 0)
	_, unresolved := k.Source()
	if unresolved == nil || !strings.Contains(unresolved.Detail, "not answered yet") {
		t.Errorf("got %v", unresolved)
	}
	got := make(chan string)
	go func() { got <- c.id(k) }()
	if err := os.WriteFile(filepath.Join(c.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if id := <-got; id != "AKID-SLOW" || c.runs() != 1 {
		t.Errorf("got %s after %d runs", id, c.runs())
	}
}

func TestOneErrorIsNotSharedByTwoCalls(t *testing.T) {
	c := newCommand(t)
	c.answer("exit 1")
	k := c.open()
	_, err := k.get(t.Context())
	var e *model.Error
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	e.Detail += " (through the proxy p)"
	if again := c.id(k); strings.Contains(again, "proxy") {
		t.Errorf("got %s", again)
	}
}
