package fakemodel

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"agent/internal/model"
)

const (
	anth = model.FamilyAnthropic
	resp = model.FamilyResponses
)

func TestFixturesAccepted(t *testing.T) {
	t.Parallel()
	t.Run("A1, A2 and A3", func(t *testing.T) {
		t.Parallel()
		s := start(t, Options{Identity: ByModel, Keep: 4})
		s.Queue(replyA2(), Say("Done."))
		good(t, s, anth, reqA1)
		good(t, s, anth, with(reqA1, itemA2, itemA3))
		s.Verify(t)
		r := s.Requests()[1]
		if r.Prompt != "List files & say <done>" || r.Result != "a.txt\n" || r.Rounds != 1 || !r.AfterResult || r.Items != 3 ||
			r.System != "Be brief." || r.Effort != "low" || r.Model != "claude-test-1" || len(r.Tools) != 1 {
			t.Errorf("request %+v", r)
		}
	})
	t.Run("R1 and R2", func(t *testing.T) {
		t.Parallel()
		s := start(t, Options{Identity: ByCacheKey, Keep: 4, Bodies: true})
		s.Queue(replyR2(), Say("Done."))
		good(t, s, resp, reqR1)
		second := with(reqR1, itemR2a, itemR2b, itemR2c, itemR3)
		good(t, s, resp, second)
		s.Verify(t)
		r := s.Requests()[1]
		if string(r.Body) != second || r.Rounds != 1 || r.CacheKey != "st1-7" || r.Identity != "st1-7" || r.Result != "a.txt\n" {
			t.Errorf("request %+v", r)
		}
	})
	t.Run("fields in any order", func(t *testing.T) {
		t.Parallel()
		s := start(t, Options{})
		s.Queue(Say("x"), Say("x"))
		good(t, s, anth, `{"messages":[`+say("hi")+`], "stream" : true,"max_tokens":5,"model":"m"}`)
		good(t, s, resp, `{"input":[`+sayR("hi")+`],"tools":[],"include":["reasoning.encrypted_content"],"store":false,"stream":true,"instructions":"","model":"m"}`)
		s.Verify(t)
	})
	t.Run("a refresh of the cache", func(t *testing.T) {
		t.Parallel()
		s := start(t, Options{Identity: ByModel})
		body := strings.Replace(strings.Replace(reqA1, "128000", "0", 1), `"stream":true`, `"stream":false`, 1)
		resp := post(t, s, anth, body, func(r *http.Request) { r.Header.Set("accept", "application/json") })
		if out := read(t, resp); resp.StatusCode != 200 || !strings.Contains(out, `"cache_read_input_tokens"`) {
			t.Errorf("%d %s", resp.StatusCode, out)
		}
		if s.Stats().Refreshes != 1 {
			t.Errorf("%+v", s.Stats())
		}
		s.Verify(t)
	})
}

func TestHTTPRefusals(t *testing.T) {
	t.Parallel()
	set := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	del := func(name string) func(*http.Request) { return func(r *http.Request) { r.Header.Del(name) } }
	path := func(p string) func(*http.Request) { return func(r *http.Request) { r.URL.Path = p } }
	rows := []struct {
		name   string
		family model.Family
		key    string
		reason string
		edit   func(*http.Request)
	}{
		{"another method", anth, "", "wrong_method", func(r *http.Request) { r.Method = "PUT" }},
		{"another path", anth, "", "wrong_path", path("/v1/message")},
		{"a path without the version", resp, "", "wrong_path", path("/responses")},
		{"a query", anth, "", "wrong_path", func(r *http.Request) { r.URL.RawQuery = "beta=true" }},
		{"a chunked body", anth, "", "chunked_body", func(r *http.Request) { r.ContentLength = -1; r.GetBody = nil; r.Body = io.NopCloser(r.Body) }},
		{"another content type", resp, "", "wrong_content_type", set("content-type", "application/json; charset=utf-8")},
		{"no accept", anth, "", "wrong_accept", set("accept", "*/*")},
		{"compression", anth, "", "compression_asked", set("accept-encoding", "gzip")},
		{"no version", anth, "", "wrong_version", del("anthropic-version")},
		{"another version", anth, "", "wrong_version", set("anthropic-version", "2024-01-01")},
		{"no beta for the binding", anth, "", "missing_beta", del("anthropic-beta")},
		{"a key nobody named", anth, "", "unexpected_credential", set("x-api-key", "k")},
		{"a bearer key at Anthropic", anth, "k", "unexpected_credential", set("authorization", "Bearer k")},
		{"no key", anth, "k", "wrong_credential", nil},
		{"another key", resp, "k", "wrong_credential", set("authorization", "Bearer x")},
		{"a key of another scheme", resp, "k", "wrong_credential", set("authorization", "k")},
		{"a session that is not the cache key", resp, "", "wrong_session_id", set("session-id", "st1-8")},
		{"no session", resp, "", "wrong_session_id", del("session-id")},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, Options{Key: row.key})
			s.Queue(Say("never"))
			body := reqA1
			if row.family == resp {
				body = reqR1
			}
			edit := row.edit
			if edit == nil {
				edit = func(*http.Request) {}
			}
			refused(t, s, row.family, body, row.reason, edit)
		})
	}
	t.Run("the right keys are accepted", func(t *testing.T) {
		t.Parallel()
		s := start(t, Options{Key: "k"})
		s.Queue(Say("x"), Say("x"))
		if r := post(t, s, anth, reqA1, set("x-api-key", "k")); r.StatusCode != 200 {
			t.Error(r.Status)
		}
		if r := post(t, s, resp, reqR1, set("authorization", "Bearer k")); r.StatusCode != 200 {
			t.Error(r.Status)
		}
		s.Verify(t)
	})
}

// brokenVariants are requests after fixture A2 or R2 has been answered.
var brokenVariants = []struct {
	name   string
	family model.Family
	reason string
	body   string
}{
	// JSON and fields.
	{"no JSON", anth, "invalid_json", `{"model":`},
	{"no object", anth, "invalid_json", `[]`},
	{"not UTF-8", anth, "invalid_json", strings.Replace(reqA1, "List", "\xff", 1)},
	{"half a surrogate pair", anth, "invalid_json", strings.Replace(reqA1, "List", `\ud800`, 1)},
	{"bytes after the body", anth, "trailing_bytes", reqA1 + "{}"},
	{"a comma too many", anth, "invalid_json", strings.Replace(reqA1, `]}]}`, `]},]}`, 1)},
	{"a field twice", anth, "duplicate_field", strings.Replace(reqA1, `{"model"`, `{"stream":true,"model"`, 1)},
	{"a field twice in a block", anth, "duplicate_field", strings.Replace(reqA1, `{"type":"text","text":"List`, `{"type":"text","type":"text","text":"List`, 1)},
	{"an unknown field", anth, "unknown_field", strings.Replace(reqA1, `{"model"`, `{"temperature":1,"model"`, 1)},
	{"an unknown field of a message", anth, "unknown_field", strings.Replace(reqA1, `{"role":"user"`, `{"id":"x","role":"user"`, 1)},
	{"no model", anth, "missing_field", strings.Replace(reqA1, `"model":"claude-test-1",`, ``, 1)},
	{"an empty model", anth, "invalid_value", strings.Replace(reqA1, `claude-test-1`, ``, 1)},
	{"a broken limit", anth, "invalid_value", strings.Replace(reqA1, `128000`, `"128000"`, 1)},
	{"no stream", anth, "invalid_value", strings.Replace(reqA1, `"stream":true`, `"stream":false`, 1)},
	{"an empty system", anth, "invalid_value", strings.Replace(reqA1, `[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}]`, `[]`, 1)},
	{"an empty system text", anth, "empty_text", strings.Replace(reqA1, `Be brief.`, ``, 1)},
	{"an empty list of tools", anth, "invalid_value", `{"model":"m","max_tokens":5,"stream":true,"tools":[],"messages":[` + say("x") + `]}`},
	{"a choice without tools", anth, "tool_choice_without_tools", `{"model":"m","max_tokens":5,"stream":true,"tool_choice":{"type":"none"},"messages":[` + say("x") + `]}`},
	{"another choice", anth, "invalid_value", strings.Replace(reqA1, `"thinking":`, `"tool_choice":{"type":"auto"},"thinking":`, 1)},
	{"a tool in another family's form", anth, "invalid_tool", strings.Replace(reqA1, `{"name":"shell","description":"Run a command","input_schema"`, `{"type":"function","name":"shell"},{"name":"x","description":"","input_schema"`, 1)},
	{"a schema that is no object's", anth, "invalid_tool", strings.Replace(reqA1, `"input_schema":{"type":"object"`, `"input_schema":{"type":"array"`, 1)},
	{"a tool twice", anth, "duplicate_tool", strings.Replace(reqA1, `"tools":[`, `"tools":[{"name":"shell","description":"x","input_schema":{"type":"object"}},`, 1)},
	{"effort without adaptive thinking", anth, "invalid_value", strings.Replace(reqA1, `{"type":"adaptive"`, `{"type":"enabled","budget_tokens":2048`, 1)},
	{"a budget over the limit", anth, "invalid_value", strings.Replace(reqA1, `{"type":"adaptive"`, `{"type":"enabled","budget_tokens":128000`, 1)},
	{"another binding", anth, "invalid_value", strings.Replace(reqA1, `drop_block`, `error`, 1)},
	{"an unknown level", anth, "invalid_value", strings.Replace(reqA1, `"effort":"low"`, `"effort":"lowest"`, 1)},
	{"fallbacks without the beta", anth, "missing_beta", strings.Replace(reqA1, `"messages":`, `"fallbacks":"default","messages":`, 1)},
	{"another cache mark", anth, "invalid_value", strings.Replace(reqA1, `"cache_control":{"type":"ephemeral"},"tools"`, `"cache_control":{"type":"ephemeral","ttl":"2h"},"tools"`, 1)},
	{"five cache marks", anth, "too_many_cache_marks", only(reqA1, strings.Repeat(`{"role":"user","content":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}]},`, 2)+`{"role":"user","content":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}]}`)},

	// Messages.
	{"no messages", anth, "no_items", only(reqA1)},
	{"messages that are no list", anth, "wrong_type", strings.Replace(reqA1, `"messages":[`, `"messages":{"x":[`, 1) + "}"},
	{"the assistant first", anth, "first_not_user", only(reqA1, itemA2, itemA3)},
	{"a system message", anth, "invalid_value", only(reqA1, `{"role":"system","content":[{"type":"text","text":"x"}]}`)},
	{"an empty text", anth, "empty_text", only(reqA1, say(""))},
	{"an empty string", anth, "empty_text", only(reqA1, `{"role":"user","content":""}`)},
	{"an empty content", anth, "empty_content", only(reqA1, `{"role":"user","content":[]}`)},
	{"an unknown block", anth, "invalid_block", only(reqA1, `{"role":"user","content":[{"type":"video"}]}`)},
	{"a call by the user", anth, "invalid_block", only(reqA1, `{"role":"user","content":[{"type":"tool_use","id":"a","name":"b","input":{}}]}`)},
	{"a placeholder in place of a picture", anth, "invalid_picture", only(reqA1, `{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"`+model.Picture{}.Placeholder()+`"}}]}`)},
	{"a picture of another type", anth, "invalid_picture", only(reqA1, `{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/bmp","data":"AAAA"}}]}`)},

	// Calls, results and history.
	{"no result", anth, "tool_result_missing", with(reqA1, itemA2)},
	{"text in place of the result", anth, "tool_result_missing", with(reqA1, itemA2, say("x"))},
	{"text before the result", anth, "tool_result_missing", with(reqA1, itemA2, `{"role":"user","content":[{"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"toolu_01","content":"a"}]}`)},
	{"a result twice", anth, "tool_result_misplaced", with(reqA1, itemA2, itemA3, itemA3)},
	{"a result for no call", anth, "tool_result_unknown", with(reqA1, itemA2, strings.Replace(itemA3, "toolu_01", "toolu_02", 1))},
	{"a result before its call", anth, "tool_result_unknown", with(reqA1, itemA3, itemA2)},
	{"an empty text in a result", anth, "empty_text", with(reqA1, itemA2, strings.Replace(itemA3, `"a.txt\n"`, `[{"type":"text","text":""}]`, 1))},
	{"an unknown field of a result", anth, "unknown_field", with(reqA1, itemA2, strings.Replace(itemA3, `"content":"a`, `"status":"ok","content":"a`, 1))},
	{"another word for failed", anth, "wrong_type", with(reqA1, itemA2, strings.Replace(itemA3, `"content":"a`, `"is_error":"yes","content":"a`, 1))},
	{"a call id twice", anth, "duplicate_call_id", with(reqA1, strings.Replace(itemA2, `{"type":"text","text":"Looking."}`, `{"type":"tool_use","id":"toolu_01","name":"shell","input":{}}`, 1), itemA3)},
	{"an empty call id", anth, "invalid_call_id", with(reqA1, strings.Replace(itemA2, `toolu_01`, ``, 1))},
	{"a call id of 65 bytes", anth, "invalid_call_id", with(reqA1, strings.ReplaceAll(itemA2, `toolu_01`, strings.Repeat("a", 65)))},
	{"a call id with a dot", anth, "invalid_call_id", with(reqA1, strings.ReplaceAll(itemA2, `toolu_01`, `a.b`))},
	{"a tool's name with a blank", anth, "invalid_tool", with(reqA1, strings.ReplaceAll(itemA2, `"shell"`, `"the shell"`))},
	{"a tool's name of 65 bytes", anth, "invalid_tool", with(reqA1, strings.ReplaceAll(itemA2, `"shell"`, `"`+strings.Repeat("a", 65)+`"`))},
	{"an input with a name twice", anth, "input_not_strict", with(reqA1, strings.Replace(itemA2, `{"command": "ls"}`, `{"a":1,"a":2}`, 1))},
	{"an input with a number past every float", anth, "input_not_strict", with(reqA1, strings.Replace(itemA2, `{"command": "ls"}`, `{"a":1e999}`, 1))},
	{"a blank text", anth, "empty_text", only(reqA1, say(`\n `))},
	{"a blank text of the assistant", anth, "empty_text", with(reqA1, strings.Replace(itemA2, `Looking.`, ` `, 1), itemA3)},
	{"an answer that ends with thinking", anth, "ends_with_thinking", with(reqA1, `{"role":"assistant","content":[{"type":"thinking","thinking":"Use <ls> & stop","signature":"c2lnLTE+/w=="}]}`, say("x"))},
	{"thinking without a signature", anth, "thinking_unsigned", with(reqA1, strings.Replace(itemA2, `c2lnLTE+/w==`, ``, 1), itemA3)},
	{"a call id of Responses with a blank", resp, "invalid_call_id", with(reqR1, itemR2a, itemR2b, strings.Replace(itemR2c, `"call_1"`, `"call 1"`, 1))},
	{"a tool's name of Responses with a dot", resp, "invalid_tool", with(reqR1, itemR2a, itemR2b, strings.Replace(itemR2c, `"shell"`, `"my.shell"`, 1))},
	{"an answer without a part", resp, "empty_content", with(reqR1, itemR2a, `{"type":"message","role":"assistant","content":[]}`)},
	{"an input that is a string", anth, "input_not_object", with(reqA1, strings.Replace(itemA2, `{"command": "ls"}`, `"ls"`, 1))},
	{"an input in other bytes", anth, "item_not_issued", with(reqA1, strings.Replace(itemA2, `{"command": "ls"}`, `{"command":"ls"}`, 1), itemA3)},
	{"another input", anth, "item_not_issued", with(reqA1, strings.Replace(itemA2, `"ls"}`, `"la"}`, 1), itemA3)},
	{"another text", anth, "item_not_issued", with(reqA1, strings.Replace(itemA2, `Looking.`, `Looking`, 1), itemA3)},
	{"an empty text of the assistant", anth, "empty_text", with(reqA1, strings.Replace(itemA2, `Looking.`, ``, 1), itemA3)},
	{"thinking left out", anth, "item_changed", with(reqA1, strings.Replace(itemA2, `{"type":"thinking","thinking":"Use <ls> & stop","signature":"c2lnLTE+/w=="},`, ``, 1), itemA3)},
	{"other thinking", anth, "thinking_changed", with(reqA1, strings.Replace(itemA2, `Use <ls>`, `Use ls`, 1), itemA3)},
	{"a signature escaped for HTML", anth, "thinking_changed", with(reqA1, strings.Replace(itemA2, `c2lnLTE+/w==`, `c2lnLTE+/w`, 1), itemA3)},
	{"a signature left out", anth, "missing_field", with(reqA1, strings.Replace(itemA2, `,"signature":"c2lnLTE+/w=="`, ``, 1), itemA3)},
	{"a changed prompt", anth, "history_changed", strings.Replace(with(reqA1, itemA2, itemA3), "List files", "List all files", 1)},
	{"an item slipped in", anth, "history_changed", with(reqA1, say("more"), itemA2, itemA3)},
	{"the answer left out", anth, "answer_lost", with(reqA1, say("go on"))},
	{"an answer nobody gave", anth, "item_not_issued", with(reqA1, itemA2, itemA3, `{"role":"assistant","content":[{"type":"text","text":"Made up."}]}`, say("x"))},
	{"a conversation that starts over", anth, "history_not_continued", only(reqA1, say("hello"))},

	// Responses.
	{"a previous response", resp, "unknown_field", strings.Replace(reqR1, `"input":`, `"previous_response_id":"resp_1","input":`, 1)},
	{"no instructions", resp, "missing_field", strings.Replace(reqR1, `"instructions":"Be brief.",`, ``, 1)},
	{"no tools", resp, "missing_field", only(`{"model":"m","instructions":"","stream":true,"store":false,"include":["reasoning.encrypted_content"],"input":[]}`, sayR("x"))},
	{"a stored response", resp, "invalid_value", strings.Replace(reqR1, `"store":false`, `"store":true`, 1)},
	{"nothing included", resp, "invalid_value", strings.Replace(reqR1, `["reasoning.encrypted_content"]`, `[]`, 1)},
	{"a strict tool", resp, "invalid_value", strings.Replace(reqR1, `"strict":false`, `"strict":true`, 1)},
	{"a tool in another family's form of Responses", resp, "unknown_field", strings.Replace(reqR1, `"parameters":`, `"input_schema":{},"parameters":`, 1)},
	{"no summary", resp, "missing_field", strings.Replace(reqR1, `,"summary":"auto"`, ``, 1)},
	{"too small a limit", resp, "invalid_value", strings.Replace(reqR1, `"tools":`, `"max_output_tokens":1,"tools":`, 1)},
	{"another choice of Responses", resp, "invalid_value", strings.Replace(reqR1, `"reasoning":{`, `"tool_choice":"auto","reasoning":{`, 1)},
	{"an empty input", resp, "no_items", only(reqR1)},
	{"a text as content", resp, "wrong_type", only(reqR1, `{"role":"user","content":"x"}`)},
	{"a part of the other family", resp, "invalid_block", only(reqR1, `{"role":"user","content":[{"type":"text","text":"x"}]}`)},
	{"an unknown item", resp, "invalid_item", only(reqR1, `{"type":"computer_call"}`)},
	{"a picture that is no data", resp, "invalid_picture", only(reqR1, `{"role":"user","content":[{"type":"input_image","image_url":"https://example.com/x.png","detail":"auto"}]}`)},
	{"no output for a call", resp, "tool_result_missing", with(reqR1, itemR2a, itemR2b, itemR2c)},
	{"a message before the output", resp, "tool_result_missing", with(reqR1, itemR2a, itemR2b, itemR2c, sayR("x"), itemR3)},
	{"an output twice", resp, "tool_result_misplaced", with(reqR1, itemR2a, itemR2b, itemR2c, itemR3, itemR3)},
	{"an output for no call", resp, "tool_result_unknown", with(reqR1, itemR3)},
	{"a call twice", resp, "duplicate_call_id", with(reqR1, itemR2a, itemR2b, itemR2c, itemR2c, itemR3)},
	{"arguments that are an object", resp, "wrong_type", with(reqR1, itemR2a, itemR2b, strings.Replace(itemR2c, `"{\"command\":\"ls\"}"`, `{"command":"ls"}`, 1), itemR3)},
	{"arguments that hold a list", resp, "arguments_not_object", with(reqR1, itemR2a, itemR2b, strings.Replace(itemR2c, `"{\"command\":\"ls\"}"`, `"[]"`, 1), itemR3)},
	{"arguments cut short", resp, "arguments_not_object", with(reqR1, itemR2a, itemR2b, strings.Replace(itemR2c, `\"ls\"}"`, `\"ls\""`, 1), itemR3)},
	{"reasoning without its output", resp, "reasoning_without_output", with(reqR1, itemR2a, sayR("x"))},
	{"reasoning at the end", resp, "reasoning_without_output", with(reqR1, itemR2a)},
	{"other encrypted content", resp, "reasoning_changed", with(reqR1, strings.Replace(itemR2a, `+/ex`, `+/ey`, 1), itemR2b, itemR2c, itemR3)},
	{"encrypted content left out", resp, "missing_field", with(reqR1, strings.Replace(itemR2a, `,"encrypted_content":"gAAAAB+/ex=="`, ``, 1), itemR2b, itemR2c, itemR3)},
	{"another summary", resp, "item_not_issued", with(reqR1, strings.Replace(itemR2a, `Need a`, `Need the`, 1), itemR2b, itemR2c, itemR3)},
	{"reasoning left out", resp, "item_changed", with(reqR1, itemR2b, itemR2c, itemR3)},
	{"an id left out of a message", resp, "item_not_issued", with(reqR1, itemR2a, strings.Replace(itemR2b, `"id":"msg_1",`, ``, 1), itemR2c, itemR3)},
	{"a call without its status", resp, "item_not_issued", with(reqR1, itemR2a, itemR2b, strings.Replace(itemR2c, `,"status":"completed"`, ``, 1), itemR3)},
}

// answered is a server that has answered both fixtures' first requests.
func answered(t *testing.T) *Server {
	s := start(t, Options{Identity: ByModel})
	s.Queue(replyA2(), replyR2())
	good(t, s, anth, reqA1)
	good(t, s, resp, reqR1)
	s.Verify(t)
	return s
}

func TestBrokenVariantsRefused(t *testing.T) {
	t.Parallel()
	for _, row := range brokenVariants {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			refused(t, answered(t), row.family, row.body, row.reason)
		})
	}
}

func FuzzRequest(f *testing.F) {
	f.Add(true, reqA1)
	f.Add(false, reqR1)
	f.Add(true, with(reqA1, itemA2, itemA3))
	f.Add(false, with(reqR1, itemR2a, itemR2b, itemR2c, itemR3))
	for _, row := range brokenVariants {
		f.Add(row.family == anth, row.body)
	}
	f.Fuzz(func(t *testing.T, anthropic bool, body string) {
		s := &Server{history: newHistory(), busy: map[string]*exchange{}}
		seed := &Request{Family: resp, prefix: chain(key{}, sum([]byte(sayR("List files"))))}
		path, items := "/v1/responses", replyR2().Stored
		if anthropic {
			seed.Family, seed.prefix = anth, chain(key{}, sum([]byte(say("List files & say <done>"))))
			path, items = "/v1/messages", replyA2().Stored
		}
		s.history.issue(seed, items, nil, false)
		r := httptest.NewRequest("POST", path, strings.NewReader(body))
		r.Header.Set("content-type", "application/json")
		r.Header.Set("accept", "text/event-stream")
		if anthropic {
			r.Header.Set("anthropic-version", "2023-06-01")
			r.Header.Set("anthropic-beta", bindingBeta)
		} else {
			r.Header.Set("session-id", "st1-7")
		}
		req, err := s.check(r)
		if err == nil {
			if req.Items == 0 || req.Model == "" {
				t.Fatalf("accepted %q as %+v", body, req)
			}
			return
		}
		v, ok := err.(*Violation)
		if !ok || v.Reason == "" || v.Request != 1 {
			t.Fatalf("error %v", err)
		}
	})
}
