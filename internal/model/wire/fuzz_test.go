package wire

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"testing"
	"time"

	"agent/internal/model"
)

// Whatever a provider lists: each model has an id, no count is negative, and
// the whole fits or is refused by a code.
func FuzzModelList(f *testing.F) {
	for _, seed := range []string{
		`{"data":[{"id":"a","created":1700000000},{"id":"b","created":1700000001,"context_length":8192,"top_provider":{"max_completion_tokens":10}}]}`,
		`{"data":[{"type":"model","id":"claude-test-1","display_name":"Claude Test","max_input_tokens":200000,"max_tokens":64000}],"has_more":true,"last_id":"claude-test-1"}`,
		`{"models":[{"slug":"gpt-test-1","visibility":"hide"},{"slug":"gpt-test-2","visibility":"list","context_window":1e999}]}`,
		`{"data":[{"id":"m","meta":{"n_ctx_train":4096},"max_model_len":-1}]}`,
		`{"data":[{"id":1}]}`, `{"data":null}`, `[]`, "\xff",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		p, err := parsePage(body)
		var refused *model.Error
		if err != nil {
			if !errors.As(err, &refused) || refused.Code != "invalid_provider_response" {
				t.Fatalf("%v", err)
			}
			return
		}
		models, err := finishList(p.models)
		if err != nil {
			if !errors.As(err, &refused) || refused.Code != "provider_models_limit" {
				t.Fatalf("%v", err)
			}
			return
		}
		for _, m := range models {
			if m.ID == "" || m.Name == m.ID || m.ContextTokens < 0 || m.OutputTokens < 0 {
				t.Fatalf("%q lists %+v", body, m)
			}
		}
		if text, err := json.Marshal(models); err != nil || len(text) > listResult || len(models) != len(p.models) {
			t.Fatalf("%d models, %d bytes, %v", len(models), len(text), err)
		}
	})
}

// Whatever the headers say: a delay is between nothing and the longest.
func FuzzRetryAfter(f *testing.F) {
	for _, seed := range []struct{ after, ms string }{
		{"2", ""}, {"1.5", ""}, {"", "250"}, {"Wed, 21 Oct 2026 07:28:00 GMT", ""}, {"-1", "-1"}, {"1e300", "NaN"}, {"Inf", "0x1p70"}, {" 3 ", "\x00"},
	} {
		f.Add(seed.after, seed.ms)
	}
	now := time.Date(2026, 10, 21, 7, 27, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, after, ms string) {
		h := http.Header{"Retry-After": {after}, "Retry-After-Ms": {ms}}
		if d := RetryAfter(h, now); d < 0 || d > longestDelay {
			t.Fatalf("%q and %q: %v", after, ms, d)
		}
		if n, ok := Figure(after); ok && (n < 0 || math.IsNaN(n) || math.IsInf(n, 0)) {
			t.Fatalf("%q is the figure %v", after, n)
		}
	})
}
