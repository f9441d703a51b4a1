package anthropic

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"agent/internal/model"
	"agent/internal/model/modeltest"
)

const key = "sk-ant-0123456789"

func provider(t *testing.T, base string) *Provider {
	t.Helper()
	env := modeltest.Env(t, map[string]string{"K": key})
	p, err := New("p", modeltest.Spec(t, "p=anthropic,"+base+",K", env), env)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestComplete(t *testing.T) {
	t.Parallel()
	s := modeltest.Serve(t, func(w http.ResponseWriter, r *http.Request, n int) {
		w.Header().Set("request-id", "req_9")
		modeltest.WriteSSE(w, modeltest.File(t, "A2.sse"))
	})
	p := provider(t, s.URL+"/v1/")
	req := modeltest.Request("claude-test-1", Codec{}.User("hi", nil))
	o, rep := modeltest.Complete(t, p, req)
	if o.Err != nil || string(o.Completion.Items[0]) != string(modeltest.File(t, "A2.item")) || rep.RequestID != "req_9" {
		t.Fatalf("got %+v, %v", o, rep)
	}
	r, body := s.Request(0)
	for name, want := range map[string]string{
		"x-api-key": key, "anthropic-version": "2023-06-01", "authorization": "",
		"anthropic-beta": "thinking-binding-controls-2026-08-01", "content-type": "application/json", "accept": "text/event-stream",
	} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if r.URL.Path != "/v1/messages" || !strings.HasSuffix(string(body), `"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}`) {
		t.Errorf("%s: %s", r.URL, body)
	}
	req.Fallbacks = true
	modeltest.Complete(t, p, req)
	r, _ = s.Request(1)
	if got := r.Header.Get("anthropic-beta"); got != "thinking-binding-controls-2026-08-01,server-side-fallback-2026-07-01" {
		t.Errorf("PV-20: beta %q", got)
	}
	if info := p.Info(); info.Auth != "key" || info.KeyEnv != "K" || !info.Plaintext || info.Family != "anthropic" {
		t.Errorf("info %+v", info)
	}
	if text := fmt.Sprintf("%v %+v %#v %s", p.client, p.client, p.client, p.Status()); strings.Contains(text, key) {
		t.Error("a print shows the key")
	}
}

func TestCustomURL(t *testing.T) {
	t.Parallel()
	t.Run("PV-4 a custom URL is sent no key", func(t *testing.T) {
		t.Parallel()
		s := modeltest.Serve(t, func(w http.ResponseWriter, r *http.Request, n int) {
			modeltest.WriteSSE(w, modeltest.File(t, "A2.sse"))
		})
		env := modeltest.Env(t, map[string]string{"ANTHROPIC_API_KEY": key})
		p, err := New("anthropic", modeltest.Spec(t, "anthropic=anthropic,"+s.URL, env), env)
		if err != nil {
			t.Fatal(err)
		}
		modeltest.Complete(t, p, modeltest.Request("m"))
		if r, _ := s.Request(0); r.Header.Get("x-api-key") != "" || p.Info().Auth != "none" {
			t.Errorf("PV-4: the key was sent: %v", r.Header)
		}
	})
}

func TestUnusableKey(t *testing.T) {
	t.Parallel()
	t.Run("PV-5 an unset or unusable key fails and names the variable", func(t *testing.T) {
		t.Parallel()
		for _, value := range []string{"", " \n", "two words", "ümlaut"} {
			env := modeltest.Env(t, map[string]string{"K": value})
			_, err := New("p", model.Spec{Name: "p", URL: "http://127.0.0.1:1", Auth: model.AuthKey, KeyEnv: "K"}, env)
			if code, detail := modeltest.Code(err); code != "provider_key_unavailable" || !strings.Contains(detail, "K") ||
				strings.TrimSpace(value) != "" && strings.Contains(detail, value) {
				t.Errorf("%q: got %v", value, err)
			}
		}
	})
}

func TestHTTPErrors(t *testing.T) {
	t.Parallel()
	written := func(file string) func(w http.ResponseWriter) {
		return func(w http.ResponseWriter) { modeltest.WriteHTTP(w, modeltest.File(t, file)) }
	}
	says := func(status int, kind, message string) func(w http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"type":"error","error":{"type":%q,"message":%q}}`, kind, message)
		}
	}
	for _, c := range []struct {
		name         string
		answer       func(w http.ResponseWriter)
		code, detail string
		retry        time.Duration
		closes       bool
	}{
		{"fixture A4, 429", written("A4-429.http"), "provider_http_429", "Slow down.", 2 * time.Second, true},
		{"fixture A4, 529", written("A4-529.http"), "provider_http_529", "Overloaded", 0, true},
		{"a prompt too long", says(400, "invalid_request_error", "prompt is too long: 9 > 8"), "provider_context_exceeded", "prompt is too long: 9 > 8", 0, false},
		{"a bad request", says(400, "invalid_request_error", "no"), "provider_http_400", "no", 0, false},
		{"no credit", says(402, "billing_error", "pay"), "provider_quota_exhausted", "pay", 0, false},
		{"too large", says(413, "request_too_large", "big"), "provider_http_413", "big", 0, false},
		{"an API error", says(500, "api_error", "oops"), "provider_http_500", "oops", 0, false},
		{"PV-18 overloaded inside the stream", func(w http.ResponseWriter) {
			modeltest.WriteSSE(w, []byte(frames(started, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)))
		}, "provider_http_529", "Overloaded", 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := modeltest.Serve(t, func(w http.ResponseWriter, r *http.Request, n int) { c.answer(w) })
			p := provider(t, s.URL)
			o, rep := modeltest.Complete(t, p, modeltest.Request("claude-test-1"))
			var e *model.Error
			if !errors.As(o.Err, &e) || e.Code != c.code || e.Detail != c.detail || e.Retry != c.retry || !rep.Dispatched {
				t.Fatalf("got %+v", o.Err)
			}
			o, rep = modeltest.Complete(t, p, modeltest.Request("claude-test-1-20260101"))
			if closed := o.Err == model.ErrPaced; closed != c.closes || closed && rep.ParkFor < model500ms {
				t.Errorf("then: %v, %+v", o.Err, rep)
			}
		})
	}
}

const model500ms = 500 * time.Millisecond

func TestHeadersTeachThePool(t *testing.T) {
	t.Parallel()
	s := modeltest.Serve(t, func(w http.ResponseWriter, r *http.Request, n int) {
		h := w.Header()
		h.Set("anthropic-ratelimit-requests-limit", "50")
		h.Set("anthropic-ratelimit-requests-remaining", "49")
		h.Set("anthropic-ratelimit-input-tokens-limit", "80000")
		h.Set("anthropic-ratelimit-input-tokens-remaining", "70000")
		h.Set("anthropic-ratelimit-output-tokens-limit", "nonsense")
		modeltest.WriteSSE(w, modeltest.File(t, "A2.sse"))
	})
	p := provider(t, s.URL)
	modeltest.Complete(t, p, modeltest.Request("claude-test-1"))
	status := string(p.Status())
	for _, part := range []string{
		`"claude-test-1":{`, `"requests_per_minute":50`, `"requests_available":49`,
		`"input_tokens_per_minute":80000`, `"output_tokens_per_minute":null`, `"reserved_tokens":0`, `"blocked_ms":0`,
	} {
		if !strings.Contains(status, part) {
			t.Errorf("%s is missing in %s", part, status)
		}
	}
}

func TestModelList(t *testing.T) {
	t.Parallel()
	s := modeltest.Serve(t, func(w http.ResponseWriter, r *http.Request, n int) {
		if r.URL.Path != "/models" || r.URL.Query().Get("limit") != "1000" || r.Header.Get("x-api-key") != key ||
			r.Header.Get("anthropic-version") == "" || r.Header.Get("accept") != "application/json" {
			t.Errorf("asked %s with %v", r.URL, r.Header)
		}
		switch r.URL.Query().Get("after_id") {
		case "":
			fmt.Fprint(w, `{"data":[{"id":"a","display_name":"Model A","max_input_tokens":200000,"max_tokens":64000}],"has_more":true,"last_id":"a"}`)
		case "a":
			fmt.Fprint(w, `{"data":[{"id":"b","display_name":"b"}],"has_more":false}`)
		}
	})
	p := provider(t, s.URL)
	for range 3 {
		got, err := p.Models(context.Background())
		if err != nil || len(got) != 2 || got[0] != (model.Model{ID: "a", Name: "Model A", ContextTokens: 200000, OutputTokens: 64000}) || got[1] != (model.Model{ID: "b"}) {
			t.Errorf("got %+v, %v", got, err)
		}
	}
	if s.Count() != 2 {
		t.Errorf("%d requests", s.Count())
	}
	loop := modeltest.Serve(t, func(w http.ResponseWriter, r *http.Request, n int) {
		fmt.Fprint(w, `{"data":[],"has_more":true,"last_id":"a"}`)
	})
	if _, err := provider(t, loop.URL).Models(context.Background()); err == nil || loop.Count() != 2 {
		t.Errorf("a list without end: %v after %d", err, loop.Count())
	} else if code, _ := modeltest.Code(err); code != "invalid_provider_response" {
		t.Errorf("got %v", err)
	}
}

// A stream of 100,000 events, most of them empty, must not grow the heap.
func TestALongStreamDoesNotGrowTheHeap(t *testing.T) {
	const events = 100_000
	piece := []byte(frames(textDelta(0, "abcd")))
	s := modeltest.Serve(t, func(w http.ResponseWriter, r *http.Request, n int) {
		w.Header().Set("content-type", "text/event-stream")
		fmt.Fprint(w, frames(started, begin(0, textBlock)))
		for range events {
			w.Write(piece)
		}
		fmt.Fprint(w, frames(ended("end_turn"), stopped))
	})
	p := provider(t, s.URL)
	runtime.GC()
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	n, peak := 0, uint64(0)
	c, err := p.Complete(context.Background(), modeltest.Request("m"), func(model.Event) {
		if n++; n%10_000 == 0 {
			runtime.GC()
			runtime.ReadMemStats(&now)
			peak = max(peak, now.HeapAlloc)
		}
	}, &model.Report{})
	if err != nil || n != events || len(c.Items[0]) < 4*events {
		t.Fatalf("%d events, %v", n, err)
	}
	// What the item itself takes, twice for its growth, is not the stream's.
	if grown := int64(peak) - int64(before.HeapAlloc); grown > 2<<20 {
		t.Errorf("the heap grew by %d KiB", grown>>10)
	}
}
