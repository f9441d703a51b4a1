package responses

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"agent/internal/model"
	"agent/internal/model/modeltest"
)

var shell = model.ToolDef{
	Name: "shell", Description: "Run a command",
	Parameters: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}`),
}

func body(t *testing.T, req *model.Request) string {
	t.Helper()
	r, err := req.Items.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	items, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	b := append(append(prefix(req, false), items...), suffix...)
	if !json.Valid(b) {
		t.Fatalf("no JSON: %s", b)
	}
	return string(b)
}

func TestRequest(t *testing.T) {
	t.Parallel()
	codec := Codec{}
	user := codec.User("List files", nil)
	t.Run("fixture R1 byte for byte", func(t *testing.T) {
		t.Parallel()
		req := modeltest.Request("gpt-test-1", user)
		req.Instructions, req.Reasoning, req.CacheKey, req.Tools = "Be brief.", "low", "st1-7", codec.Tools([]model.ToolDef{shell})
		if got := body(t, req); got != string(modeltest.File(t, "R1.req.json")) {
			t.Errorf("got %s", got)
		}
	})
	t.Run("PV-23 stored items are sent again unchanged", func(t *testing.T) {
		t.Parallel()
		stream := string(modeltest.File(t, "R2.sse"))
		o := decode(stream)
		result := codec.Result(model.Result{CallID: o.Completion.Calls[0].ID, Output: "a.txt\n"})
		got := body(t, modeltest.Request("gpt-test-1", append(append([][]byte{user}, o.Completion.Items...), result)...))
		for _, item := range o.Completion.Items {
			if !strings.Contains(got, string(item)) || !strings.Contains(stream, string(item)) {
				t.Errorf("%s is missing", item)
			}
		}
		if !strings.HasSuffix(got, `{"type":"function_call_output","call_id":"call_1","output":"a.txt\n"}]}`) {
			t.Errorf("got %s", got)
		}
	})
	for _, c := range []struct {
		name  string
		set   func(r *model.Request)
		has   string
		lacks []string
	}{
		{
			"nothing asked for", func(r *model.Request) {}, `"instructions":"","stream":true,"store":false,"include":["reasoning.encrypted_content"],"tools":[],"input"`,
			[]string{"reasoning\":", "prompt_cache_key", "tool_choice", "max_output_tokens", "previous_response_id"},
		},
		{"an output cap", func(r *model.Request) { r.MaxOutput = 4096 }, `"max_output_tokens":4096,"tools"`, nil},
		{"calls disabled", func(r *model.Request) { r.Tools, r.AllowTools = codec.Tools([]model.ToolDef{shell}), false }, `],"tool_choice":"none",`, nil},
		{"calls disabled without tools", func(r *model.Request) { r.AllowTools = false }, `"tools":[],`, []string{"tool_choice"}},
		{"web search", func(r *model.Request) { r.WebSearch = "live" }, `"tools":[{"type":"web_search"}],`, nil},
		{
			"cached web search after the tools", func(r *model.Request) { r.WebSearch, r.Tools = "cached", codec.Tools([]model.ToolDef{shell}) },
			`"strict":false},{"type":"web_search","external_web_access":false}],`, nil,
		},
		{"a level is passed through", func(r *model.Request) { r.Reasoning = "xhigh" }, `"reasoning":{"effort":"xhigh","summary":"auto"}`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			req := modeltest.Request("gpt-test-1", user)
			c.set(req)
			got := body(t, req)
			if !strings.Contains(got, c.has) {
				t.Errorf("%s is missing in %s", c.has, got)
			}
			for _, part := range c.lacks {
				if strings.Contains(got, part) {
					t.Errorf("%s stands in %s", part, got)
				}
			}
		})
	}
}

func TestBedrockServesNoWebSearch(t *testing.T) {
	t.Parallel()
	req := modeltest.Request("openai.gpt-test-1")
	req.WebSearch = "live"
	if got := string(prefix(req, true)); strings.Contains(got, "web_search") {
		t.Errorf("got %s", got)
	}
	const url = "https://bedrock-mantle.us-east-1.api.aws/openai/v1"
	if p := provider(t, url); p.ServesWebSearch("live") || !provider(t, "http://127.0.0.1:1").ServesWebSearch("cached") {
		t.Error("who serves a web search is wrong")
	}
}

func TestCodec(t *testing.T) {
	t.Parallel()
	c := Codec{}
	picture := model.Picture{Hash: [32]byte{1}, MediaType: "image/png", Bytes: 3}
	image := `{"type":"input_image","image_url":"data:image/png;base64,` + picture.Placeholder() + `","detail":"auto"}`
	for name, got := range map[string][2]string{
		"user":              {string(c.User("<a>", nil)), `{"role":"user","content":[{"type":"input_text","text":"<a>"}]}`},
		"user with picture": {string(c.User("a", []model.Picture{picture})), `{"role":"user","content":[{"type":"input_text","text":"a"},` + image + `]}`},
		"marked":            {string(c.UserMarked("a", "1h")), string(c.User("a", nil))},
		"result":            {string(c.Result(model.Result{CallID: "i", Output: "o", Failed: true})), `{"type":"function_call_output","call_id":"i","output":"o"}`},
		"result with picture": {
			string(c.Result(model.Result{CallID: "i", Output: "o", Pictures: []model.Picture{picture}})),
			`{"type":"function_call_output","call_id":"i","output":[{"type":"input_text","text":"o"},` + image + `]}`,
		},
		"no tools":         {string(c.Tools(nil)), ""},
		"without thinking": {string(c.WithoutThinking(nil, []byte(`{"type":"reasoning"}`))), `{"type":"reasoning"}`},
	} {
		if got[0] != got[1] {
			t.Errorf("%s: got %s", name, got[0])
		}
	}
	for item, want := range map[string]model.Described{
		string(c.User("hi", []model.Picture{picture})): {Role: "user", Text: "hi"},
		message("hello"): {Role: "assistant", Text: "hello"},
		string(c.Result(model.Result{CallID: "i", Output: "o"})):                                     {Role: "tool", Text: "o", CallID: "i"},
		string(c.Result(model.Result{CallID: "i", Output: "o", Pictures: []model.Picture{picture}})): {Role: "tool", Text: "o", CallID: "i"},
		`{"type":"reasoning","summary":[]}`:                                                          {Role: "reasoning"},
		`{"type":"web_search_call","id":"w"}`:                                                        {Role: "other"},
		`{"role":"developer","content":"plain"}`:                                                     {Role: "other", Text: "plain"},
		`{"role":"user","content":"a plain string"}`:                                                 {Role: "user", Text: "a plain string"},
	} {
		got, err := c.Describe([]byte(item))
		if err != nil || got.Role != want.Role || got.Text != want.Text || got.CallID != want.CallID {
			t.Errorf("%s: got %+v, %v", item, got, err)
		}
	}
	d, err := c.Describe([]byte(callItem("c", `{"a":1}`)))
	if err != nil || d.Role != "assistant" || len(d.Calls) != 1 || d.Calls[0].ID != "c" || d.Calls[0].Name != "shell" || string(d.Calls[0].Arguments) != `{"a":1}` {
		t.Errorf("a call: got %+v, %v", d, err)
	}
	if n := c.ThinkingBytes([]byte(`{"type":"reasoning"}`)); n != 0 {
		t.Errorf("%d thinking bytes", n)
	}
}

const key = "sk-0123456789abcdef"

func provider(t *testing.T, base string) *Provider {
	t.Helper()
	env := modeltest.Env(t, map[string]string{"K": key})
	p, err := New("p", modeltest.Spec(t, "p=responses,"+base+",K", env), env)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestComplete(t *testing.T) {
	t.Parallel()
	s := modeltest.Serve(t, func(w http.ResponseWriter, r *http.Request, n int) {
		w.Header().Set("x-request-id", "req_9")
		w.Header().Set("x-ratelimit-limit-requests", "60")
		w.Header().Set("x-ratelimit-remaining-requests", "59")
		w.Header().Set("x-ratelimit-reset-requests", "6m0s")
		modeltest.WriteSSE(w, modeltest.File(t, "R2.sse"))
	})
	p := provider(t, s.URL)
	req := modeltest.Request("gpt-test-1-2026-01-02", Codec{}.User("hi", nil))
	req.CacheKey = "st1-7"
	o, rep := modeltest.Complete(t, p, req)
	if o.Err != nil || len(o.Completion.Items) != 3 || rep.RequestID != "req_9" || !rep.Dispatched {
		t.Fatalf("got %+v, %+v", o, rep)
	}
	r, body := s.Request(0)
	for name, want := range map[string]string{
		"authorization": "Bearer " + key, "session-id": "st1-7",
		"content-type": "application/json", "accept": "text/event-stream", "user-agent": "agent/1.2.3",
	} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if r.URL.Path != "/responses" || r.ContentLength != int64(len(body)) {
		t.Errorf("%s of %d bytes: %s", r.URL, r.ContentLength, body)
	}
	if got := string(p.Status()); !strings.Contains(got, `"gpt-test-1":{"requests_per_minute":60,"requests_available":59`) {
		t.Errorf("status %s", got)
	}
}

func TestHTTPErrors(t *testing.T) {
	t.Parallel()
	written := func(file string) func(w http.ResponseWriter) {
		return func(w http.ResponseWriter) { modeltest.WriteHTTP(w, modeltest.File(t, file)) }
	}
	stream := func(file string) func(w http.ResponseWriter) {
		return func(w http.ResponseWriter) { modeltest.WriteSSE(w, modeltest.File(t, file)) }
	}
	for _, c := range []struct {
		name         string
		answer       func(w http.ResponseWriter)
		code, detail string
		retryable    bool
		park         time.Duration
	}{
		{"fixture R3, 429", written("R3-429.http"), "provider_http_429", "Rate limit reached for gpt-test-1.", true, time.Second},
		{"PV-26 no quota, with headers that would close a pool", func(w http.ResponseWriter) {
			w.Header().Set("x-ratelimit-limit-requests", "1")
			w.Header().Set("x-ratelimit-remaining-requests", "0")
			w.Header().Set("retry-after", "60")
			modeltest.WriteHTTP(w, modeltest.File(t, "R3-quota.http"))
		}, "provider_quota_exhausted", "You exceeded your current quota.", false, 0},
		{"PV-26 fixture R3, no quota", written("R3-quota.http"), "provider_quota_exhausted", "You exceeded your current quota.", false, 0},
		{"PV-27 fixture R3, failed inside the stream", stream("R3-failed.sse"), "provider_rate_limited", "Rate limit reached for gpt-test-1: try again in 1.5s.", true, 1500 * time.Millisecond},
		{"fixture R3, incomplete", stream("R3-incomplete.sse"), "provider_incomplete", "max_output_tokens", false, 0},
		{"a full context", func(w http.ResponseWriter) {
			w.WriteHeader(400)
			fmt.Fprint(w, `{"error":{"message":"long","code":"context_length_exceeded"}}`)
		}, "provider_context_exceeded", "long", false, 0},
		{"an unknown model", func(w http.ResponseWriter) {
			w.WriteHeader(404)
			fmt.Fprint(w, `{"error":{"message":"no such model","code":"model_not_found"}}`)
		}, "provider_http_404", "no such model", false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := modeltest.Serve(t, func(w http.ResponseWriter, r *http.Request, n int) { c.answer(w) })
			p := provider(t, s.URL)
			o, _ := modeltest.Complete(t, p, modeltest.Request("gpt-test-1"))
			var e *model.Error
			if !errors.As(o.Err, &e) || e.Code != c.code || e.Detail != c.detail || e.Retryable() != c.retryable {
				t.Fatalf("got %+v", o.Err)
			}
			o, rep := modeltest.Complete(t, p, modeltest.Request("gpt-test-1"))
			if c.park == 0 {
				if o.Err == model.ErrPaced || s.Count() != 2 {
					t.Errorf("the pool closed: %v", o.Err)
				}
				return
			}
			if o.Err != model.ErrPaced || rep.ParkFor > c.park || rep.ParkFor < c.park/2 || s.Count() != 1 {
				t.Errorf("then: %v, %+v", o.Err, rep)
			}
		})
	}
}

func TestModelList(t *testing.T) {
	t.Parallel()
	s := modeltest.Serve(t, func(w http.ResponseWriter, r *http.Request, n int) {
		if r.URL.RequestURI() != "/models" || r.Header.Get("authorization") != "Bearer "+key {
			t.Errorf("asked %s with %v", r.URL, r.Header)
		}
		fmt.Fprint(w, `{"data":[{"id":"old","created":1},{"id":"new","created":3,"context_length":1000,"top_provider":{"max_completion_tokens":10}},
			{"id":"hidden","visibility":"hide"},{"slug":"mid","created":2,"name":"Mid","context_window":null,"meta":{"n_ctx_train":8192}}]}`)
	})
	got, err := provider(t, s.URL).Models(t.Context())
	want := []model.Model{{ID: "new", ContextTokens: 1000, OutputTokens: 10}, {ID: "mid", Name: "Mid", ContextTokens: 8192}, {ID: "old"}}
	if err != nil || len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestBlankText(t *testing.T) {
	t.Parallel()
	c := Codec{}
	picture := model.Picture{MediaType: "image/png", Bytes: 3}
	for _, row := range []struct{ name, item string }{
		{"a user's message", string(c.User(" \n", nil))},
		{"an empty one", string(c.User("", nil))},
		{"a message with a picture", string(c.User(" ", []model.Picture{picture}))},
		{"a result with a picture", string(c.Result(model.Result{CallID: "c", Output: "\t", Pictures: []model.Picture{picture}}))},
	} {
		if strings.Contains(row.item, `"text":" `) || strings.Contains(row.item, `"text":""`) || strings.Contains(row.item, `"text":"\t`) {
			t.Errorf("%s has a blank part: %s", row.name, row.item)
		}
	}
}
