package chat

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

func body(t *testing.T, req *model.Request, to server) string {
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
	b := append(append(prefix(req, to), items...), suffix...)
	if !json.Valid(b) {
		t.Fatalf("no JSON: %s", b)
	}
	return string(b)
}

func TestRequest(t *testing.T) {
	t.Parallel()
	codec := Codec{}
	user := codec.User("List files", nil)
	t.Run("fixture C1 byte for byte", func(t *testing.T) {
		t.Parallel()
		req := modeltest.Request("qwen-test", user)
		req.Instructions, req.Tools, req.CacheKey = "Be brief.", codec.Tools([]model.ToolDef{shell}), "st1-7"
		if got := body(t, req, other); got != string(modeltest.File(t, "C1.req.json")) {
			t.Errorf("got %s", got)
		}
	})
	t.Run("PV-35 a stored item is sent again unchanged, its result behind it", func(t *testing.T) {
		t.Parallel()
		o := decode(string(modeltest.File(t, "C2.sse")))
		result := codec.Result(model.Result{CallID: o.Completion.Calls[0].ID, Output: "a.txt\n"})
		got := body(t, modeltest.Request("qwen-test", user, o.Completion.Items[0], result), other)
		want := string(modeltest.File(t, "C2.item")) + "," + string(modeltest.File(t, "C2-next.item")) + suffix
		if !strings.HasSuffix(got, want) {
			t.Errorf("got %s", got)
		}
	})
	t.Run("PV-35 without its thinking the rest of it stays", func(t *testing.T) {
		t.Parallel()
		item := modeltest.File(t, "C2.item")
		want := strings.Replace(string(item), `,"reasoning_content":"ls it"`, "", 1)
		if got := string(codec.WithoutThinking(nil, item)); got != want || codec.ThinkingBytes(item) != len(item)-len(want) {
			t.Errorf("got %s", got)
		}
	})
	tools := codec.Tools([]model.ToolDef{shell})
	for _, c := range []struct {
		name  string
		to    server
		set   func(r *model.Request)
		has   string
		lacks []string
	}{
		{
			"nothing asked for", other, func(*model.Request) {}, `{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user"`,
			[]string{"reasoning", "prompt_cache_key", "tool", "max_", "system", "plugins", "temperature"},
		},
		{"an output cap", other, func(r *model.Request) { r.MaxOutput = 4096 }, `},"max_tokens":4096,"messages"`, nil},
		{"an output cap at OpenAI", openAI, func(r *model.Request) { r.MaxOutput = 4096 }, `},"max_completion_tokens":4096,"messages"`, []string{`"max_tokens"`}},
		{"calls disabled", other, func(r *model.Request) { r.Tools, r.AllowTools = tools, false }, `}}],"tool_choice":"none","messages"`, nil},
		{"calls disabled without tools", other, func(r *model.Request) { r.AllowTools = false }, `"messages"`, []string{"tool_choice"}},
		{"a level", other, func(r *model.Request) { r.Reasoning = "low" }, `,"reasoning_effort":"low","messages"`, nil},
		{"a level that few know", other, func(r *model.Request) { r.Reasoning = "xhigh" }, `,"reasoning_effort":"high","messages"`, nil},
		{"the highest level", other, func(r *model.Request) { r.Reasoning = "max" }, `,"reasoning_effort":"high","messages"`, nil},
		{"the highest level at OpenAI", openAI, func(r *model.Request) { r.Reasoning = "max" }, `,"reasoning_effort":"max","messages"`, nil},
		{"a level at OpenRouter", openRouter, func(r *model.Request) { r.Reasoning = "xhigh" }, `,"reasoning":{"effort":"xhigh"},"messages"`, []string{"reasoning_effort"}},
		{"a cache key", other, func(r *model.Request) { r.CacheKey = "k" }, `"messages"`, []string{"cache_key"}},
		{"a cache key at OpenAI", openAI, func(r *model.Request) { r.CacheKey = "k" }, `,"prompt_cache_key":"k","messages"`, nil},
		{"PV-69 a web search at a local server", other, func(r *model.Request) { r.WebSearch = "live" }, `"messages"`, []string{"plugins", "web"}},
		{"a web search at OpenAI", openAI, func(r *model.Request) { r.WebSearch = "live" }, `"messages"`, []string{"plugins", "web"}},
		{"a web search at OpenRouter", openRouter, func(r *model.Request) { r.WebSearch = "live" }, `,"plugins":[{"id":"web"}],"messages"`, nil},
		{"a cached web search at OpenRouter", openRouter, func(r *model.Request) { r.WebSearch = "cached" }, `"messages"`, []string{"plugins"}},
		{"blank instructions", other, func(r *model.Request) { r.Instructions = " " }, `"messages":[{"role":"user"`, nil},
		{"instructions and no item", other, func(r *model.Request) { r.Instructions, r.Items = "i", modeltest.Items() }, `"messages":[{"role":"system","content":"i"}]}`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			req := modeltest.Request("m", user)
			c.set(req)
			got := body(t, req, c.to)
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

func TestServers(t *testing.T) {
	t.Parallel()
	for spec, search := range map[string]bool{
		"p=chat,https://openrouter.ai/api/v1": true, "p=chat,https://api.openai.com/v1": false, "ollama": false,
		"p=chat,https://openrouter.ai.example/v1": false, "p=chat,http://127.0.0.1:1/openrouter.ai": false,
	} {
		env := modeltest.Env(t, nil)
		p, err := New("p", modeltest.Spec(t, spec, env), env)
		if err != nil {
			t.Fatal(err)
		}
		if p.ServesWebSearch("live") != search || p.ServesWebSearch("cached") || p.ServesWebSearch("") {
			t.Errorf("%s: who serves a web search is wrong", spec)
		}
	}
	for id, want := range map[string]string{"gpt-test-1-2026-01-02": "gpt-test-1", "m": "m", "m-2026-01-0x": "m-2026-01-0x", "-2026-01-02": "-2026-01-02", "": ""} {
		if got := poolKey(id); got != want {
			t.Errorf("the pool of %q is %q", id, got)
		}
	}
}

func TestCodec(t *testing.T) {
	t.Parallel()
	c := Codec{}
	picture := model.Picture{Hash: [32]byte{1}, MediaType: "image/png", Bytes: 3}
	image := `{"type":"image_url","image_url":{"url":"data:image/png;base64,` + picture.Placeholder() + `"}}`
	thought := `{"role":"assistant","content":"a","reasoning_content":"b,\"reasoning\":","reasoning":"c","reasoning_details":[1],"tool_calls":[]}`
	for name, got := range map[string][2]string{
		"user":                   {string(c.User("<a>", nil)), `{"role":"user","content":"<a>"}`},
		"a blank user":           {string(c.User(" ", nil)), `{"role":"user","content":"(blank)"}`},
		"user with pictures":     {string(c.User("a", []model.Picture{picture, picture})), `{"role":"user","content":[{"type":"text","text":"a"},` + image + `,` + image + `]}`},
		"user with picture only": {string(c.User(" ", []model.Picture{picture})), `{"role":"user","content":[` + image + `]}`},
		"marked":                 {string(c.UserMarked("a", "1h")), string(c.User("a", nil))},
		"result":                 {string(c.Result(model.Result{CallID: "i", Output: "o", Failed: true})), `{"role":"tool","tool_call_id":"i","content":"o"}`},
		"PV-39 a result's picture stays out": {
			string(c.Result(model.Result{CallID: "i", Output: "o", Pictures: []model.Picture{picture}})), `{"role":"tool","tool_call_id":"i","content":"o"}`,
		},
		"no tools":          {string(c.Tools(nil)), ""},
		"without thinking":  {string(c.WithoutThinking([]byte("x"), []byte(thought))), `x{"role":"assistant","content":"a","reasoning_details":[1],"tool_calls":[]}`},
		"what cannot think": {string(c.WithoutThinking(nil, []byte(`{"role":"user","content":"a","reasoning":"b"}`))), `{"role":"user","content":"a","reasoning":"b"}`},
	} {
		if got[0] != got[1] {
			t.Errorf("%s: got %s", name, got[0])
		}
	}
	for item, want := range map[string]model.Described{
		string(c.User("hi", []model.Picture{picture})): {Role: "user", Text: "hi"},
		string(c.User("hi", nil)):                      {Role: "user", Text: "hi"},
		thought:                                        {Role: "assistant", Text: "a"},
		string(c.Result(model.Result{CallID: "i", Output: "o"})): {Role: "tool", Text: "o", CallID: "i"},
		`{"role":"developer","content":"plain"}`:                 {Role: "other", Text: "plain"},
	} {
		got, err := c.Describe([]byte(item))
		if err != nil || got.Role != want.Role || got.Text != want.Text || got.CallID != want.CallID {
			t.Errorf("%s: got %+v, %v", item, got, err)
		}
		if got := c.RoleOf([]byte(item)[:model.PlacedHead]); got != want.Role && want.Role != "other" {
			t.Errorf("%s: who wrote it is wrong", item)
		}
	}
	d, err := c.Describe(modeltest.File(t, "C2.item"))
	if err != nil || len(d.Calls) != 1 || d.Calls[0].ID != "call_a" || d.Calls[0].Name != "shell" || string(d.Calls[0].Arguments) != `{"command":"ls"}` {
		t.Errorf("a call: got %+v, %v", d, err)
	}
}

const key = "sk-0123456789abcdef"

func provider(t *testing.T, base string) *Provider {
	t.Helper()
	env := modeltest.Env(t, map[string]string{"K": key})
	p, err := New("p", modeltest.Spec(t, "p=chat,"+base+",K", env), env)
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
		modeltest.WriteSSE(w, modeltest.File(t, "C2.sse"))
	})
	req := modeltest.Request("gpt-test-1-2026-01-02", Codec{}.User("hi", nil))
	p := provider(t, s.URL+"/v1")
	o, rep := modeltest.Complete(t, p, req)
	if o.Err != nil || len(o.Completion.Items) != 1 || rep.RequestID != "req_9" || !rep.Dispatched || o.Usage.Input != 30 || o.Completion.External {
		t.Fatalf("got %+v, %+v", o, rep)
	}
	r, body := s.Request(0)
	for name, want := range map[string]string{
		"authorization": "Bearer " + key, "content-type": "application/json", "accept": "text/event-stream", "user-agent": "agent/1.2.3",
	} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if r.URL.Path != "/v1/chat/completions" || r.ContentLength != int64(len(body)) {
		t.Errorf("%s of %d bytes: %s", r.URL, r.ContentLength, body)
	}
	if got := string(p.Status()); !strings.Contains(got, `"gpt-test-1":{"requests_per_minute":60,"requests_available":59`) {
		t.Errorf("status %s", got)
	}
}

func TestASearchIsOutsideContent(t *testing.T) {
	t.Parallel()
	s := modeltest.Serve(t, func(w http.ResponseWriter, r *http.Request, n int) {
		modeltest.WriteSSE(w, modeltest.File(t, "C2.sse"))
	})
	p := provider(t, s.URL)
	p.server = openRouter // which a test does not reach
	for mode, external := range map[string]bool{"live": true, "cached": false, "": false} {
		req := modeltest.Request("m", Codec{}.User("hi", nil))
		req.WebSearch = mode
		if o, _ := modeltest.Complete(t, p, req); o.Err != nil || o.Completion.External != external {
			t.Errorf("%q: %+v", mode, o)
		}
	}
}

func TestNoKeyIsSentToALocalServer(t *testing.T) {
	t.Parallel()
	s := modeltest.Serve(t, func(w http.ResponseWriter, r *http.Request, n int) {
		modeltest.WriteSSE(w, modeltest.File(t, "C2.sse"))
	})
	env := modeltest.Env(t, map[string]string{"OPENAI_API_KEY": key})
	p, err := New("openai", modeltest.Spec(t, "openai=chat,"+s.URL, env), env)
	if err != nil {
		t.Fatal(err)
	}
	if o, _ := modeltest.Complete(t, p, modeltest.Request("m", Codec{}.User("hi", nil))); o.Err != nil {
		t.Fatal(o.Err)
	}
	if r, _ := s.Request(0); r.Header.Get("authorization") != "" {
		t.Error("a key was sent")
	}
}

func TestAnAnswerThatComesAtOnce(t *testing.T) {
	t.Parallel()
	message := func(m, reason string) string {
		return `{"id":"c","object":"chat.completion","choices":[{"index":0,"message":` + m + `,"finish_reason":` + reason + `}],"usage":{"prompt_tokens":7,"completion_tokens":2}}`
	}
	for _, row := range []struct{ name, body, item, code, detail string }{
		{
			"a text and a call", message(`{"role":"assistant","content":"Looking.","reasoning":"t","tool_calls":[{"id":"a","type":"function","function":{"name":"shell","arguments":"{}"}}]}`, `"tool_calls"`),
			`{"role":"assistant","content":"Looking.","reasoning":"t","tool_calls":[{"id":"a","type":"function","function":{"name":"shell","arguments":"{}"}}]}`, "", "",
		},
		{"no finish reason", message(`{"content":"x"}`, "null"), `{"role":"assistant","content":"x"}`, "", ""},
		{
			"two calls without ids", message(`{"content":null,"tool_calls":[{"function":{"name":"a","arguments":"{}"}},{"function":{"name":"b","arguments":"{}"}}]}`, `"stop"`),
			`{"role":"assistant","content":"","tool_calls":[{"id":"call_000000000001","type":"function","function":{"name":"a","arguments":"{}"}},{"id":"call_000000000002","type":"function","function":{"name":"b","arguments":"{}"}}]}`, "", "",
		},
		{"nothing said", message(`{"content":null}`, "null"), "", "empty_completion", "the answer holds no text and no call"},
		{"a length", message(`{"content":"x"}`, `"length"`), "", "provider_incomplete", "length"},
		{"PV-62 another object", `{"error":{"message":"no stream here"}}`, "", "provider_expected_sse", "HTTP 200, content-type application/json: no stream here"},
		{"no object", `<html>`, "", "provider_expected_sse", "HTTP 200, content-type application/json"},
		{"more than a mebibyte", message(`{"content":"`+strings.Repeat("x", 1<<20)+`"}`, `"stop"`), "", "provider_response_limit", "the answer, which came at once, is longer than 1 MiB"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := modeltest.Serve(t, func(w http.ResponseWriter, r *http.Request, n int) {
				w.Header().Set("content-type", "application/json")
				io.WriteString(w, row.body)
			})
			o, _ := modeltest.Complete(t, provider(t, s.URL), modeltest.Request("m", Codec{}.User("hi", nil)))
			if row.code != "" {
				if code, detail := modeltest.Code(o.Err); code != row.code || detail != row.detail {
					t.Errorf("got %v", o.Err)
				}
				return
			}
			if o.Err != nil || string(o.Completion.Items[0]) != row.item || o.Usage.Input != 7 {
				t.Errorf("got %+v", o)
			}
		})
	}
}

func TestHTTPErrors(t *testing.T) {
	t.Parallel()
	answer := func(status int, body string, header ...string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set("content-type", "application/json")
			for i := 0; i+1 < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(status)
			io.WriteString(w, body)
		}
	}
	for _, c := range []struct {
		name         string
		answer       func(http.ResponseWriter)
		code, detail string
		retryable    bool
		park         time.Duration
	}{
		{"fixture C3", func(w http.ResponseWriter) { modeltest.WriteHTTP(w, modeltest.File(t, "C3-400.http")) }, "provider_context_exceeded", "the request exceeds the available context size", false, 0},
		{"a full context at vLLM", answer(400, `{"object":"error","message":"This model's maximum context length is 9 tokens. However","type":"BadRequestError","code":400}`), "provider_context_exceeded", "This model's maximum context length is 9 tokens. However", false, 0},
		{"PV-38 a model that loads", answer(503, `{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`), "provider_http_503", "Loading model", true, 0},
		{"PV-76 a server that names a delay", answer(503, `{}`, "retry-after", "3"), "provider_http_503", "", true, 3 * time.Second},
		{"no credits", answer(402, `{"error":{"code":402,"message":"Insufficient credits"}}`), "provider_quota_exhausted", "Insufficient credits", false, 0},
		{"no quota", answer(429, `{"error":{"message":"m","type":"insufficient_quota"}}`, "retry-after", "60"), "provider_quota_exhausted", "m", false, 0},
		{"a rate", answer(429, `{"error":{"message":"slower","code":429}}`, "retry-after", "1"), "provider_http_429", "slower", true, time.Second},
		{"a model that is not there", answer(404, `{"error":{"message":"model \"x\" not found, try pulling it first"}}`), "provider_http_404", `model "x" not found, try pulling it first`, false, 0},
		{"an error as a text", answer(500, `{"error":"out of memory"}`), "provider_http_500", "out of memory", true, 0},
		{"a detail", answer(422, `{"detail":"wrong"}`), "provider_http_422", "wrong", false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := modeltest.Serve(t, func(w http.ResponseWriter, r *http.Request, n int) { c.answer(w) })
			p := provider(t, s.URL)
			o, _ := modeltest.Complete(t, p, modeltest.Request("m"))
			var e *model.Error
			if !errors.As(o.Err, &e) || e.Code != c.code || e.Detail != c.detail || e.Retryable() != c.retryable {
				t.Fatalf("got %+v", o.Err)
			}
			o, rep := modeltest.Complete(t, p, modeltest.Request("m"))
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

func TestTheUsageMayComeAfterTheFinishReason(t *testing.T) {
	t.Parallel()
	// The stream stays open behind its usage and [DONE]; the call is over soon.
	s := modeltest.Serve(t, func(w http.ResponseWriter, r *http.Request, n int) {
		w.Header().Set("content-type", "text/event-stream")
		fmt.Fprint(w, frames(text("x"), end("stop")))
		w.(http.Flusher).Flush()
		fmt.Fprint(w, frames(`{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1}}`, "[DONE]"))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	o, _ := modeltest.Complete(t, provider(t, s.URL), modeltest.Request("m", Codec{}.User("hi", nil)))
	if o.Err != nil || o.Usage == nil || o.Usage.Input != 9 {
		t.Errorf("got %+v", o)
	}
}

func TestModelList(t *testing.T) {
	t.Parallel()
	s := modeltest.Serve(t, func(w http.ResponseWriter, r *http.Request, n int) {
		if r.URL.RequestURI() != "/models" {
			t.Errorf("asked %s", r.URL)
		}
		fmt.Fprint(w, `{"object":"list","data":[{"id":"qwen","object":"model","created":1,"meta":{"n_ctx_train":8192}},{"id":"served","created":2,"max_model_len":4096}]}`)
	})
	got, err := provider(t, s.URL).Models(t.Context())
	want := []model.Model{{ID: "served", ContextTokens: 4096}, {ID: "qwen", ContextTokens: 8192}}
	if err != nil || len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %+v, %v", got, err)
	}
}
