package fakemodel

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"agent/internal/model"
)

const (
	chat = model.FamilyChat

	reqC1  = `{"model":"qwen-test","stream":true,"stream_options":{"include_usage":true},"tools":[{"type":"function","function":{"name":"shell","description":"Run a command","parameters":{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}}}],"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"List files"}]}`
	itemC2 = `{"role":"assistant","content":"Looking.","reasoning_content":"ls it","tool_calls":[{"id":"call_a","type":"function","function":{"name":"shell","arguments":"{\"command\":\"ls\"}"},"extra_content":{"google":{"thought_signature":"c2ln"}}}]}`
	bareC2 = `{"role":"assistant","content":"Looking.","tool_calls":[{"id":"call_a","type":"function","function":{"name":"shell","arguments":"{\"command\":\"ls\"}"},"extra_content":{"google":{"thought_signature":"c2ln"}}}]}`
	itemC3 = `{"role":"tool","tool_call_id":"call_a","content":"a.txt\n"}`
	image  = `{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}`
	shown  = `{"role":"user","content":[{"type":"text","text":"[shown by the tools above, in this order: a.png]"},` + image + `]}`
)

func replyC2() Reply {
	return Reply{Raw: []byte("data: [DONE]\n\n"), Stored: [][]byte{[]byte(itemC2)}}
}

func sayC(text string) string { return `{"role":"user","content":"` + text + `"}` }

func TestChatFixturesAccepted(t *testing.T) {
	t.Parallel()
	t.Run("C1, C2 and the next round, then a turn without the thinking", func(t *testing.T) {
		t.Parallel()
		s := start(t, Options{Identity: ByModel, Keep: 4, Bodies: true})
		s.Queue(replyC2(), Say("Done."), Say("Yes."))
		good(t, s, chat, reqC1)
		second := with(reqC1, itemC2, itemC3)
		good(t, s, chat, second)
		good(t, s, chat, with(reqC1, bareC2, itemC3, `{"role":"assistant","content":"Done."}`, sayC("and now")))
		s.Verify(t)
		r := s.Requests()[1]
		if string(r.Body) != second || r.Rounds != 1 || r.Result != "a.txt\n" || r.System != "Be brief." || r.Prompt != "List files" || r.Items != 3 || !r.AfterResult {
			t.Errorf("request %+v", r)
		}
	})
	t.Run("what a tool showed is no user's word", func(t *testing.T) {
		t.Parallel()
		s := start(t, Options{Identity: ByModel, Keep: 4})
		s.Queue(replyC2(), Say("Done."))
		good(t, s, chat, reqC1)
		good(t, s, chat, with(reqC1, bareC2, itemC3, shown))
		s.Verify(t)
		if r := s.Requests()[1]; r.Prompt != "List files" || r.Rounds != 1 {
			t.Errorf("request %+v", r)
		}
	})
}

// brokenChat are requests after fixture C2 has been answered.
var brokenChat = []struct{ name, reason, body string }{
	{"a field of another server", "unknown_field", strings.Replace(reqC1, `{"model"`, `{"max_completion_tokens":5,"model"`, 1)},
	{"a cache key", "unknown_field", strings.Replace(reqC1, `{"model"`, `{"prompt_cache_key":"k","model"`, 1)},
	{"a plugin", "unknown_field", strings.Replace(reqC1, `{"model"`, `{"plugins":[{"id":"web"}],"model"`, 1)},
	{"no usage asked for", "missing_field", strings.Replace(reqC1, `"stream_options":{"include_usage":true},`, ``, 1)},
	{"no stream", "invalid_value", strings.Replace(reqC1, `"stream":true`, `"stream":false`, 1)},
	{"an empty list of tools", "empty_tools", `{"model":"m","stream":true,"stream_options":{"include_usage":true},"tools":[],"messages":[` + sayC("x") + `]}`},
	{"a choice without tools", "tool_choice_without_tools", `{"model":"m","stream":true,"stream_options":{"include_usage":true},"tool_choice":"none","messages":[` + sayC("x") + `]}`},
	{"a tool in another family's form", "unknown_field", strings.Replace(reqC1, `"function":{"name":"shell"`, `"name":"shell","x":{"name":"shell"`, 1)},
	{"a level that few know", "invalid_value", strings.Replace(reqC1, `"messages"`, `"reasoning_effort":"max","messages"`, 1)},
	{"no messages", "no_items", only(reqC1)},
	{"nothing but instructions", "no_items", only(reqC1, `{"role":"system","content":"x"}`)},
	{"instructions that do not stand first", "system_not_first", with(reqC1, `{"role":"system","content":"x"}`)},
	{"blank instructions", "empty_text", strings.Replace(reqC1, `Be brief.`, ` `, 1)},
	{"an unknown role", "invalid_value", only(reqC1, `{"role":"developer","content":"x"}`)},
	{"an unknown field of a message", "unknown_field", only(reqC1, `{"role":"user","content":"x","name":"y"}`)},
	{"a blank text", "empty_text", only(reqC1, sayC(" "))},
	{"no content", "wrong_type", only(reqC1, `{"role":"user","content":null}`)},
	{"parts that hold a text alone", "parts_without_picture", only(reqC1, `{"role":"user","content":[{"type":"text","text":"x"}]}`)},
	{"a part of another family", "invalid_block", only(reqC1, `{"role":"user","content":[{"type":"input_text","text":"x"}]}`)},
	{"a picture that is no data", "invalid_picture", only(reqC1, `{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://example.com/x.png"}}]}`)},
	{"a picture with a detail", "unknown_field", only(reqC1, strings.Replace(shown, `{"url"`, `{"detail":"auto","url"`, 1))},
	{"a placeholder in place of a picture", "invalid_picture", only(reqC1, strings.Replace(shown, "AAAA", model.Picture{}.Placeholder(), 1))},

	{"no result", "tool_result_missing", with(reqC1, itemC2)},
	{"text in place of the result", "tool_result_missing", with(reqC1, bareC2, sayC("x"))},
	{"a picture before the result", "tool_result_missing", with(reqC1, bareC2, shown, itemC3)},
	{"a result twice", "tool_result_misplaced", with(reqC1, itemC2, itemC3, itemC3)},
	{"a result for no call", "tool_result_unknown", with(reqC1, itemC3)},
	{"a result with parts", "wrong_type", with(reqC1, itemC2, strings.Replace(itemC3, `"a.txt\n"`, `[`+image+`]`, 1))},
	{"a result with a name", "unknown_field", with(reqC1, itemC2, strings.Replace(itemC3, `"content"`, `"name":"shell","content"`, 1))},
	{"a call id twice", "duplicate_call_id", with(reqC1, strings.Replace(itemC2, `"tool_calls":[`, `"tool_calls":[{"id":"call_a","type":"function","function":{"name":"shell","arguments":"{}"}},`, 1), itemC3)},
	{"an empty call id", "invalid_call_id", with(reqC1, strings.ReplaceAll(itemC2, "call_a", ""))},
	{"a call of no type", "invalid_value", with(reqC1, strings.Replace(itemC2, `"type":"function",`, ``, 1), itemC3)},
	{"arguments that are an object", "wrong_type", with(reqC1, strings.Replace(itemC2, `"{\"command\":\"ls\"}"`, `{"command":"ls"}`, 1), itemC3)},
	{"arguments cut short", "arguments_not_object", with(reqC1, strings.Replace(itemC2, `\"ls\"}"`, `\"ls\""`, 1), itemC3)},
	{"a tool's name with a dot", "invalid_tool", with(reqC1, strings.Replace(itemC2, `"shell"`, `"my.shell"`, 1), itemC3)},
	{"an answer whose content is null", "wrong_type", with(reqC1, strings.Replace(itemC2, `"Looking."`, `null`, 1), itemC3)},
	{"an answer that says nothing", "empty_content", with(reqC1, `{"role":"assistant","content":""}`, sayC("x"))},
	{"an answer with an empty list of calls", "empty_calls", with(reqC1, `{"role":"assistant","content":"x","tool_calls":[]}`, sayC("x"))},
	{"an answer with an unknown field", "unknown_field", with(reqC1, strings.Replace(itemC2, `"content"`, `"refusal":null,"content"`, 1), itemC3)},
	{"an answer at the end", "ends_with_assistant", with(reqC1, itemC2, itemC3, itemC2x)},

	{"the thinking left out where it is wanted", "thinking_changed", with(reqC1, bareC2, itemC3)},
	{"other thinking", "thinking_changed", with(reqC1, strings.Replace(itemC2, "ls it", "ls", 1), itemC3)},
	{"the thinking under another name", "thinking_changed", with(reqC1, strings.Replace(itemC2, "reasoning_content", "reasoning", 1), itemC3)},
	{"thinking before a user's message", "thinking_before_user", with(reqC1, itemC2, itemC3, sayC("x"))},
	{"thinking before what a tool showed", "thinking_before_user", with(reqC1, itemC2, itemC3, shown)},
	{"what a server wanted back left out", "item_not_issued", with(reqC1, strings.Replace(itemC2, `,"extra_content":{"google":{"thought_signature":"c2ln"}}`, ``, 1), itemC3)},
	{"another text", "item_not_issued", with(reqC1, strings.Replace(itemC2, `Looking.`, `Looking`, 1), itemC3)},
	{"other arguments", "item_not_issued", with(reqC1, strings.Replace(itemC2, `ls\"}`, `la\"}`, 1), itemC3)},
	{"the answer left out", "answer_lost", with(reqC1, sayC("go on"))},
	{"a conversation that starts over", "history_not_continued", only(reqC1, sayC("hello"))},
}

const itemC2x = `{"role":"assistant","content":"Done."}`

func TestBrokenChatRefused(t *testing.T) {
	t.Parallel()
	for _, row := range brokenChat {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			opts := Options{Identity: ByModel}
			if row.name == "an answer at the end" {
				opts.Foreign = true
			}
			s := start(t, opts)
			s.Queue(replyC2())
			good(t, s, chat, reqC1)
			refused(t, s, chat, row.body, row.reason)
		})
	}
}

func TestChatHTTPRefusals(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Key: "k"})
	for reason, edit := range map[string]func(*http.Request){
		"wrong_credential":      func(r *http.Request) { r.Header.Set("authorization", "Bearer x") },
		"unexpected_credential": func(r *http.Request) { r.Header.Set("x-api-key", "k") },
		"wrong_accept": func(r *http.Request) {
			r.Header.Set("authorization", "Bearer k")
			r.Header.Set("accept", "*/*")
		},
	} {
		refused(t, s, chat, reqC1, reason, edit)
	}
}

func TestChatReplies(t *testing.T) {
	t.Parallel()
	call := Call("shell", `{"x":1}`)
	for _, row := range []struct {
		name  string
		reply Reply
		has   []string
		lacks []string
	}{
		{
			"a whole answer",
			Reply{Blocks: []Block{Thinking("hm"), Redacted(), Text("Hi there"), call}, DeltaSize: 4},
			[]string{
				`"delta":{"role":"assistant","content":""}`, `{"reasoning_content":"hm"}`, `{"reasoning_details":[{"type":"reasoning.encrypted","data":"`, `{"content":"Hi t"}`,
				`{"tool_calls":[{"index":0,"id":"call_f`, `{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\""}}]}`, `"finish_reason":"tool_calls"`, `"choices":[],"usage":{"prompt_tokens":`, "[DONE]",
			},
			nil,
		},
		{"another name for thinking", Reply{Blocks: []Block{Thinking("hm"), Text("x")}, Chat: ChatQuirks{Reasoning: true}}, []string{`{"reasoning":"hm"}`, `"finish_reason":"stop"`}, nil},
		{
			"calls that come whole, without an index or ids",
			Reply{Blocks: []Block{CallID("", "shell", `{}`), CallID("", "shell", `{"a":1}`)}, Chat: ChatQuirks{WholeCalls: true, NoIndex: true}},
			[]string{`{"tool_calls":[{"type":"function","function":{"name":"shell","arguments":"{}"}},{"type":"function","function":{"name":"shell","arguments":"{\"a\":1}"}}]}`},
			[]string{`"index":0,"id"`, `"id":""`},
		},
		{"no usage and no [DONE]", Reply{Blocks: []Block{Text("x")}, Chat: ChatQuirks{NoUsage: true, NoDone: true}}, []string{`"finish_reason":"stop"`}, []string{"usage", "[DONE]"}},
		{"an error", Reply{Blocks: []Block{Text("x")}, Fail: &Failure{Type: "502", Message: "m"}}, []string{`"error":{"message":"m","type":"502","code":502}`, `"finish_reason":"error"`}, []string{"[DONE]"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, Options{})
			s.Queue(row.reply)
			out := good(t, s, chat, reqC1)
			for _, part := range row.has {
				if !strings.Contains(out, part) {
					t.Errorf("%s is missing in %s", part, out)
				}
			}
			for _, part := range row.lacks {
				if strings.Contains(out, part) {
					t.Errorf("%s stands in %s", part, out)
				}
			}
		})
	}
	t.Run("all at once", func(t *testing.T) {
		t.Parallel()
		s := start(t, Options{})
		s.Queue(Reply{Blocks: []Block{Text("x"), CallID("a", "shell", `{}`)}, Usage: &Usage{Input: 7}, Chat: ChatQuirks{AtOnce: true}})
		resp := post(t, s, chat, reqC1)
		want := `{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"qwen-test","choices":[{"index":0,"message":{"role":"assistant","content":"x","tool_calls":[{"id":"a","type":"function","function":{"name":"shell","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":7,"completion_tokens":0,"total_tokens":7,"prompt_tokens_details":{"cached_tokens":0,"cache_write_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}}`
		if out := read(t, resp); out != want || resp.Header.Get("content-type") != "application/json" {
			t.Errorf("got %s", out)
		}
	})
}

func FuzzChatRequest(f *testing.F) {
	f.Add(reqC1)
	f.Add(with(reqC1, itemC2, itemC3))
	for _, row := range brokenChat {
		f.Add(row.body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		s := &Server{history: newHistory(), busy: map[string]*exchange{}}
		seed := &Request{Family: chat, prefix: chain(key{}, sum([]byte(sayC("List files"))))}
		s.history.issue(seed, replyC2().Stored, nil, false)
		r := httptest.NewRequest("POST", chatPath, strings.NewReader(body))
		r.Header.Set("content-type", "application/json")
		r.Header.Set("accept", "text/event-stream")
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
