package anthropic

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"agent/internal/model"
	"agent/internal/model/modeltest"
)

func TestRefresh(t *testing.T) {
	t.Parallel()
	answers := []struct {
		status int
		body   string
	}{
		{200, `{"content":[],"usage":{"input_tokens":2,"cache_read_input_tokens":900,"cache_creation_input_tokens":0,"output_tokens":0}}`},
		{529, `{"type":"error","error":{"type":"overloaded_error","message":"later"}}`},
		{200, `{"content":[],"usage":` + strings.Repeat(" ", refreshBytes) + `{}}`},
		{200, `<html>`},
	}
	s := modeltest.Serve(t, func(w http.ResponseWriter, r *http.Request, n int) {
		w.Header().Set("content-type", "application/json")
		w.WriteHeader(answers[n-1].status)
		io.WriteString(w, answers[n-1].body)
	})
	req := modeltest.Request("claude-test-1", Codec{}.User("hi", nil))
	req.Instructions = "Be brief."
	ask := func(p *Provider) (*model.Report, string) {
		rep := &model.Report{}
		err := p.Refresh(context.Background(), req, rep)
		var e *model.Error
		if err != nil && !errors.As(err, &e) {
			t.Fatalf("error %v", err)
		}
		if e != nil {
			return rep, e.Code
		}
		return rep, ""
	}
	p := provider(t, s.URL+"/v1")
	rep, code := ask(p)
	if code != "" || rep.Usage == nil || rep.Usage.Input != 902 || rep.Usage.Cached != 900 || !rep.Dispatched || rep.SentMS == 0 {
		t.Errorf("a refresh gave %s, %+v", code, rep)
	}
	r, sent := s.Request(0)
	whole := body(t, req, false)
	want := strings.Replace(strings.Replace(whole, `"max_tokens":128000`, `"max_tokens":0`, 1), `"stream":true`, `"stream":false`, 1)
	if string(sent) != want || r.Header.Get("accept") != "application/json" || r.Header.Get("anthropic-version") != version {
		t.Errorf("sent %s with %v", sent, r.Header)
	}
	if _, code := ask(p); code != "provider_http_529" {
		t.Errorf("a refusal gave %q", code)
	}
	if err := p.Refresh(context.Background(), req, &model.Report{}); !errors.Is(err, model.ErrPaced) {
		t.Errorf("a pool closed by a refresh gave %v", err)
	}
	for i, want := range []string{2: "provider_response_limit", 3: "invalid_provider_response"} {
		if want == "" {
			continue
		}
		if _, code := ask(provider(t, s.URL+"/v1")); code != want {
			t.Errorf("answer %d gave %q, want %q", i, code, want)
		}
	}
}

func TestRefreshes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, model, reasoning, ttl string
		bedrock, want               bool
	}{
		{"a cache of five minutes is kept", "claude-test-1", "high", "5m", false, true},
		{"one of an hour needs no keeping", "claude-test-1", "", "1h", false, false},
		{"Bedrock has no refresh", "claude-test-1", "", "5m", true, false},
		{"a thinking budget needs output", "claude-sonnet-4-5", "low", "5m", false, false},
		{"without a level there is no budget", "claude-sonnet-4-5", "", "5m", false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req := &model.Request{Model: tt.model, Reasoning: tt.reasoning, CacheTTL: tt.ttl}
			if got := (&Provider{bedrock: tt.bedrock}).Refreshes(req); got != tt.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
