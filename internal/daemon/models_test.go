package daemon_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"agent/internal/fakemodel"
	"agent/internal/model/modeltest"
	"agent/protocol"
)

func TestProviderModels(t *testing.T) {
	t.Parallel()
	h := newHost(t, echoScript)
	h.fake("anthropic", fakemodel.Options{Models: []string{"claude-a", "claude-b"}})
	down := modeltest.Serve(t, func(w http.ResponseWriter, _ *http.Request, _ int) {
		w.Header().Set("content-type", "application/json")
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, `{"error":{"message":"down for key-of-the-test-provider"}}`)
	})
	h.set.Providers = append(h.set.Providers, "down=responses,"+down.URL)
	p := h.start()
	k := p.dial()
	var list protocol.ProviderModels
	k.ask(&list, "provider_models", "")
	t.Run("every provider's list or refusal stands in one answer", func(t *testing.T) {
		if m := list.Providers["f"].Models; len(m) != 2 || m[0].ID != "claude-a" {
			t.Errorf("f: %+v", list.Providers["f"])
		}
		if m := list.Providers["s"].Models; len(m) != 1 || m[0].ID != "m" {
			t.Errorf("s: %+v", list.Providers["s"])
		}
		if d := list.Providers["down"]; d.Error != "provider_http_503" || d.Detail != "down for [REDACTED]" {
			t.Errorf("down: %+v", d)
		}
		if _, there := list.Providers["scripted"]; !there || len(list.Providers) != 4 {
			t.Errorf("the providers are %v", list.Providers)
		}
	})
	t.Run("PV-63 ten questions about a provider that is down are one request and ten equal errors", func(t *testing.T) {
		first := k.ask(nil, "provider_models", "")
		ids := make([]int, 9)
		for i := range ids {
			ids[i] = k.request("provider_models", "")
		}
		answers := map[string]line{}
		for range ids {
			l := k.read()
			answers[string(l.fields["id"])] = l
		}
		for _, id := range ids {
			if got := answers[fmt.Sprint(id)]; string(got.fields["result"]) != string(first.fields["result"]) {
				t.Errorf("answer %s, the first was %s", got.raw, first.raw)
			}
		}
		if down.Count() != 1 {
			t.Errorf("%d requests", down.Count())
		}
	})
	t.Run("the ready line announces it and the answer waits for nobody's commit", func(t *testing.T) {
		if !strings.Contains(string(k.ready), `"provider_models"`) {
			t.Errorf("ready %s", k.ready)
		}
	})
}

// A list that does not fit is refused by name and costs nobody else theirs.
func TestProviderModelsThatDoNotFit(t *testing.T) {
	t.Parallel()
	h := newHost(t, echoScript)
	long := modeltest.Serve(t, func(w http.ResponseWriter, _ *http.Request, _ int) {
		w.Header().Set("content-type", "application/json")
		entry := `{"id":"` + strings.Repeat("x", 990) + `"},`
		fmt.Fprintf(w, `{"data":[%s]}`, strings.TrimSuffix(strings.Repeat(entry, 600), ","))
	})
	h.set.Providers = append(h.set.Providers, "one=responses,"+long.URL, "two=responses,"+long.URL)
	k := h.start().dial()
	var list protocol.ProviderModels
	k.ask(&list, "provider_models", "")
	one, two := list.Providers["one"], list.Providers["two"]
	if len(one.Models) != 600 || two.Error != protocol.ProviderModelsLimit || len(list.Providers["s"].Models) != 1 {
		t.Errorf("one %d %s, two %d %s, s %+v", len(one.Models), one.Error, len(two.Models), two.Error, list.Providers["s"])
	}
}
