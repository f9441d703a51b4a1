package daemon_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"agent/internal/model/chatgpt"
	"agent/internal/model/chatgpt/chatgpttest"
	"agent/protocol"
)

// chatGPT gives the host a sign-in whose access token ends at expires, and the
// provider chatgpt at the server that it is of.
func (h *host) chatGPT(s *chatgpttest.Server, expires time.Time) chatgpt.File {
	h.t.Helper()
	dir := filepath.Join(h.dir, ".agent")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		h.t.Fatal(err)
	}
	file := chatgpt.File{Path: filepath.Join(dir, "chatgpt.json")}
	if err := file.Write(s.SignIn(expires)); err != nil {
		h.t.Fatal(err)
	}
	h.set.Providers = []string{"chatgpt=responses," + s.URL + "/backend-api/codex"}
	return file
}

func (k *conn) gbot(name, workspace string) {
	k.t.Helper()
	k.ask(nil, "create", fmt.Sprintf(`"bot":%q,"model":"chatgpt/gpt-test","instructions":"","tools":["shell"],"workspace":%q`, name, workspace))
}

func TestChatGPT(t *testing.T) {
	t.Parallel()
	h := newHost(t, "")
	s := chatgpttest.New(t)
	s.Backend = func(w http.ResponseWriter, r *http.Request, n int) {
		w.Header().Set("x-codex-turn-state", fmt.Sprint("state-", n))
		w.Header().Set("x-codex-primary-used-percent", "12.5")
		w.Header().Set("x-codex-primary-window-minutes", "300")
		w.Header().Set("x-codex-primary-reset-at", "1767323045")
		switch n {
		case 1:
			chatgpttest.Call(w, "call_1", "shell", `{"command":"cat ~/.agent/chatgpt.json"}`)
		case 2: // a refusal for pace, past which the turn is parked
			w.Header().Set("retry-after", "1")
			w.Header().Set("content-type", "application/json")
			w.WriteHeader(http.StatusTooManyRequests)
			io.WriteString(w, `{"error":{"message":"slow down"}}`)
		case 5:
			w.Header().Set("content-type", "application/json")
			w.WriteHeader(http.StatusTooManyRequests)
			io.WriteString(w, `{"error":{"type":"usage_limit_reached","message":"You are out of it.","plan_type":"plus","resets_at":1767323045}}`)
		default:
			chatgpttest.Say(w, "Done.")
		}
	}
	file := h.chatGPT(s, time.Now().Add(-time.Hour))
	output := int64(4096)
	h.set.Limits.OutputTokens = &output
	p := h.start()
	if got := p.ready.Providers["chatgpt"]; got.Auth != "chatgpt" || !got.Plaintext || holdsAny(string(p.dial().ready), "eyJ", "refresh-token") {
		t.Errorf("ready shows %+v", got)
	}
	k := p.dial()
	k.gbot("Ada", h.workspace)
	k.follow("Ada", 0)
	sub := k.submit("Ada", "r1", "look", "")
	seen := k.until("turn_finished", sub.Turn)
	if o := k.result("Ada", sub.Turn); o.Status != "completed" || o.Text != "Done." {
		t.Fatalf("outcome %+v, %s", o, *o.Detail)
	}
	t.Run("PV-43 the ended token was renewed, once, and is in the file", func(t *testing.T) {
		if tokens, _, refused := s.Counts(); tokens != 1 || refused != 0 {
			t.Errorf("%d token requests, %d calls refused", tokens, refused)
		}
		held, _, err := file.Read()
		if err != nil || held.Refresh.Reveal() != "refresh-token-2" {
			t.Errorf("the file: %v", err)
		}
	})
	t.Run("PO-81 PO-84 what a tool reads of the file is masked", func(t *testing.T) {
		items := k.itemsOf("Ada", seen)
		if !strings.Contains(items, "[REDACTED]") || strings.Contains(items, "refresh-token") || strings.Contains(items, "eyJ") {
			t.Errorf("the result: %s", items)
		}
	})
	t.Run("a call is what the backend takes", func(t *testing.T) {
		header, text := s.Call(0)
		var body map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &body); err != nil {
			t.Fatal(err)
		}
		if string(body["instructions"]) != `" "` || body["max_output_tokens"] != nil || string(body["store"]) != "false" || string(body["stream"]) != "true" {
			t.Errorf("the body: %s", text)
		}
		if header.Get("session-id") == "" || header.Get("session-id") != strings.Trim(string(body["prompt_cache_key"]), `"`) {
			t.Errorf("the session is %q", header.Get("session-id"))
		}
	})
	t.Run("the turn's token is kept within the turn, through its parking", func(t *testing.T) {
		if o := k.run("Ada", "r2", "again"); o.Status != "completed" {
			t.Fatalf("outcome %+v", o)
		}
		for n, want := range []string{"", "state-1", "state-1", ""} {
			if header, _ := s.Call(n); header.Get("x-codex-turn-state") != want {
				t.Errorf("call %d carries %q, want %q", n, header.Get("x-codex-turn-state"), want)
			}
		}
	})
	t.Run("the plan is in stats", func(t *testing.T) {
		var st protocol.Stats
		k.ask(&st, "stats", "")
		if got, want := string(st.Providers["chatgpt"].Plan), `{"primary":{"used_percent":12.5,"window_minutes":300,"reset_at":1767323045}}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
	t.Run("a plan that is used up ends the turn and says until when", func(t *testing.T) {
		o := k.run("Ada", "r3", "again")
		if o.Error == nil || *o.Error != protocol.ProviderQuotaExhausted || *o.Detail != "You are out of it; the limit resets at 2026-01-02T03:04:05Z" {
			t.Errorf("outcome %+v, %s", o, *o.Detail)
		}
		if _, calls, _ := s.Counts(); calls != 5 {
			t.Errorf("%d calls", calls)
		}
	})
	t.Run("PV-45 a refused token is renewed and the call is made again at once", func(t *testing.T) {
		s.Revoke()
		k.follow("Ada", 0)
		sub := k.submit("Ada", "r4", "again", "")
		var retry line
		for _, l := range k.until("turn_finished", sub.Turn) {
			if l.str("event") == "retry" {
				retry = l
			}
		}
		if o := k.result("Ada", sub.Turn); o.Status != "completed" {
			t.Fatalf("outcome %+v", o)
		}
		if retry.str("error") != "provider_login_refreshed" || retry.num("delay_ms") != 0 {
			t.Errorf("retried as %s", retry.raw)
		}
	})
	t.Run("a sign-in that goes and comes is noticed at once", func(t *testing.T) {
		if removed, err := file.Remove(); !removed || err != nil {
			t.Fatal(removed, err)
		}
		if o := k.run("Ada", "r5", "again"); o.Error == nil || *o.Error != protocol.ProviderLoginUnavailable || !strings.Contains(*o.Detail, "agent login chatgpt") {
			t.Errorf("outcome %+v", o)
		}
		if err := file.Write(s.SignIn(time.Now().Add(time.Hour))); err != nil {
			t.Fatal(err)
		}
		if o := k.run("Ada", "r6", "again"); o.Status != "completed" {
			t.Errorf("outcome %+v", o)
		}
	})
	if log := p.stderr.String(); strings.Contains(log, "eyJ") || strings.Contains(log, "refresh-token") {
		t.Error("PO-88 the log holds a token")
	}
}

func holdsAny(text string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}
