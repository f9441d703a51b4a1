package responses

import (
	"io"
	"net/http"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"agent/internal/model"
	"agent/internal/model/chatgpt"
	"agent/internal/model/chatgpt/chatgpttest"
	"agent/internal/model/modeltest"
	"agent/internal/model/wire"
	"agent/internal/secret"
)

func TestChatGPTListsItsModels(t *testing.T) {
	t.Parallel()
	s := chatgpttest.New(t)
	s.Backend = func(w http.ResponseWriter, r *http.Request, _ int) {
		if r.URL.Path != "/backend-api/codex/models" || r.URL.RawQuery != "client_version=1.2%2B3" {
			t.Errorf("asked for %s", r.URL)
		}
		w.Header().Set("content-type", "application/json")
		io.WriteString(w, `{"models":[{"slug":"gpt-a","display_name":"A","visibility":"list","context_window":1000},{"slug":"gpt-b","visibility":"hide"}]}`)
	}
	file := chatgpt.File{Path: filepath.Join(t.TempDir(), "chatgpt.json")}
	if err := file.Write(s.SignIn(time.Now().Add(time.Hour))); err != nil {
		t.Fatal(err)
	}
	env := modeltest.Env(t, nil)
	env.Version = "1.2+3"
	login, err := chatgpt.Open(file, env.Transports.RoundTrip, func(...secret.Named) {}, env.Version)
	if err != nil {
		t.Fatal(err)
	}
	env.Credential = func(model.Spec) (wire.Credential, error) { return login, nil }
	spec := model.Spec{Name: "chatgpt", Family: model.FamilyResponses, Transport: model.TransportHTTP, URL: s.URL + "/backend-api/codex", Auth: model.AuthChatGPT}
	p, err := New("chatgpt", spec, env)
	if err != nil {
		t.Fatal(err)
	}
	s.Revoke() // a 401, which is renewed once
	models, err := p.Models(t.Context())
	if want := []model.Model{{ID: "gpt-a", Name: "A", ContextTokens: 1000}}; err != nil || !reflect.DeepEqual(models, want) {
		t.Errorf("got %+v, %v", models, err)
	}
	if tokens, calls, refused := s.Counts(); tokens != 1 || calls != 1 || refused != 1 {
		t.Errorf("%d token requests, %d calls, %d refused", tokens, calls, refused)
	}
}

func TestPlanHeaders(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		header map[string]string
		want   string
	}{
		{"none", map[string]string{"x-request-id": "r"}, ""},
		{
			"both windows",
			map[string]string{
				"x-codex-primary-used-percent": "12.5", "x-codex-primary-window-minutes": "300", "x-codex-primary-reset-at": "1767323045",
				"x-codex-secondary-used-percent": "0", "x-codex-secondary-window-minutes": "10080",
			},
			`{"primary":{"used_percent":12.5,"window_minutes":300,"reset_at":1767323045},"secondary":{"used_percent":0,"window_minutes":10080}}`,
		},
		{"what is no number", map[string]string{"x-codex-primary-used-percent": "much", "x-codex-secondary-used-percent": "1", "x-codex-secondary-reset-at": "1e300"}, `{"secondary":{"used_percent":1}}`},
	} {
		h := http.Header{}
		for name, value := range row.header {
			h.Set(name, value)
		}
		if got := string(plan(h)); got != row.want {
			t.Errorf("%s: got %s, want %s", row.name, got, row.want)
		}
	}
}

func TestTheTurnsToken(t *testing.T) {
	t.Parallel()
	answer := func(call *wire.Call, token string) {
		h := http.Header{}
		h.Set("x-codex-turn-state", token)
		call.Answered(h)
	}
	var state string
	first := &wire.Call{}
	keepTurn(first, &state)
	if first.Header != nil {
		t.Errorf("a turn's first call carries %v", first.Header)
	}
	answer(first, "one")
	second := &wire.Call{}
	keepTurn(second, &state)
	if second.Header.Get("x-codex-turn-state") != "one" || second.Answered != nil {
		t.Errorf("the second carries %v", second.Header)
	}
	var long string
	call := &wire.Call{}
	keepTurn(call, &long)
	answer(call, string(make([]byte, 10<<10)))
	if long != "" {
		t.Error("a token past every bound was kept")
	}
	keepTurn(&wire.Call{}, nil)
}
