package chat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"agent/internal/model"
	"agent/internal/model/modeltest"
	"agent/internal/model/wire"
)

// decoding runs this family's decoder as Complete does.
func decoding(req *model.Request) modeltest.Decoding {
	return func(r io.Reader) (o modeltest.Outcome) {
		var rep model.Report
		d := newDecoder(req, &rep)
		sink := func(e model.Event) { o.Events = append(o.Events, e) }
		frames := wire.NewSSE(r)
		frames.OnDone(d.Done)
		defer frames.Close()
		for {
			data, err := frames.Next()
			if err == io.EOF {
				break
			}
			if err == nil {
				_, err = d.Event(data, sink)
			}
			if err != nil {
				o.Err, o.Usage = err, rep.Usage
				return o
			}
		}
		if !d.Ended() {
			o.Err, o.Usage = model.Errorf("missing_completion", ""), rep.Usage
			return o
		}
		o.Completion, o.Err = d.finish()
		o.Usage = rep.Usage
		return o
	}
}

func decode(stream string) modeltest.Outcome {
	return decoding(modeltest.Request("qwen-test"))(strings.NewReader(stream))
}

func frames(events ...string) string {
	return "data: " + strings.Join(events, "\n\ndata: ") + "\n\n"
}

// part is a chunk with a delta, end one with a finish reason.
func part(delta string) string { return `{"choices":[{"index":0,"delta":` + delta + `}]}` }

func end(reason string) string {
	return `{"choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}`
}

func text(s string) string { return part(`{"content":` + string(model.AppendString(nil, s)) + `}`) }

func calls(list string) string { return part(`{"tool_calls":[` + list + `]}`) }

func TestPV34FixtureC2InAnySplit(t *testing.T) {
	t.Parallel()
	want := string(modeltest.File(t, "C2.item"))
	modeltest.EverySplit(modeltest.File(t, "C2.sse"), decoding(modeltest.Request("qwen-test")), func(split string, o modeltest.Outcome) {
		if o.Err != nil {
			t.Fatalf("%s: %v", split, o.Err)
		}
		if len(o.Completion.Items) != 1 || string(o.Completion.Items[0]) != want {
			t.Fatalf("%s: stored %s", split, o.Completion.Items)
		}
		if c := o.Completion.Calls; len(c) != 1 || c[0].ID != "call_a" || c[0].Name != "shell" || string(c[0].Arguments) != `{"command":"ls"}` || c[0].Invalid != "" {
			t.Fatalf("%s: calls %+v", split, c)
		}
		if u := o.Usage; u.Input != 30 || u.Output != 12 || u.Cached != 8 || u.HasReasoning || u.HasCacheWrite || u.Estimated {
			t.Fatalf("%s: usage %+v", split, u)
		}
		if modeltest.Text(o.Events, model.EventText) != "Looking." || modeltest.Text(o.Events, model.EventThinking) != "ls it" {
			t.Fatalf("%s: events %+v", split, o.Events)
		}
	})
}

func TestFixtureC3InAnySplit(t *testing.T) {
	t.Parallel()
	modeltest.EverySplit(modeltest.File(t, "C3.sse"), decoding(modeltest.Request("qwen-test")), func(split string, o modeltest.Outcome) {
		if code, detail := modeltest.Code(o.Err); code != "provider_http_502" || detail != "upstream died" {
			t.Fatalf("%s: %v", split, o.Err)
		}
	})
}

func TestPV36CallsWithoutIndexOrID(t *testing.T) {
	t.Parallel()
	o := decode(frames(
		calls(`{"type":"function","function":{"name":"shell","arguments":"{\"comm"}}`),
		calls(`{"function":{"arguments":"and\":\"ls\"}"}}`),
		end("tool_calls"), "[DONE]"))
	if o.Err != nil || len(o.Completion.Calls) != 1 {
		t.Fatalf("%+v, %v", o.Completion, o.Err)
	}
	c := o.Completion.Calls[0]
	if c.ID != "call_000000000001" || string(c.Arguments) != `{"command":"ls"}` || c.Name != "shell" {
		t.Errorf("call %+v", c)
	}
	d, err := Codec{}.Describe(o.Completion.Items[0])
	if err != nil || len(d.Calls) != 1 || d.Calls[0].ID != c.ID {
		t.Errorf("stored %s", o.Completion.Items[0])
	}
}

func TestCalls(t *testing.T) {
	t.Parallel()
	const one, two = `{"index":0,"id":"a","function":{"name":"shell","arguments":"{\"x\":1}"}}`, `{"index":1,"id":"b","function":{"name":"read","arguments":"{}"}}`
	for _, row := range []struct {
		name   string
		stream string
		want   string // id name arguments, a call each
	}{
		{"two in one chunk, whole", frames(calls(one+","+two), end("tool_calls")), `a shell {"x":1}|b read {}`},
		{"pieces of two that are mixed", frames(
			calls(`{"index":0,"id":"a","function":{"name":"shell","arguments":"{\"x\""}},{"index":1,"id":"b","function":{"name":"read","arguments":"{"}}`),
			calls(`{"index":1,"function":{"arguments":"}"}}`), calls(`{"index":0,"function":{"arguments":":1}"}}`), end("tool_calls")), `a shell {"x":1}|b read {}`},
		{"the index of all is 0, the ids and names tell", frames(calls(one), calls(strings.Replace(two, `"index":1`, `"index":0`, 1)), end("stop")), `a shell {"x":1}|b read {}`},
		{"an id in each piece of one call", frames(
			calls(`{"index":0,"id":"a","function":{"name":"shell","arguments":"{"}}`), calls(`{"index":0,"id":"z","function":{"arguments":"}"}}`), end("tool_calls")), `a shell {}`},
		{"no index, an id begins another", frames(
			calls(`{"id":"a","function":{"name":"shell","arguments":"{"}}`), calls(`{"function":{"arguments":"}"}}`),
			calls(`{"id":"b","function":{"name":"read","arguments":"{}"}}`), end("tool_calls")), `a shell {}|b read {}`},
		{
			"no index and no ids, a name begins another", frames(
				calls(`{"function":{"name":"shell","arguments":"{}"}},{"function":{"name":"read","arguments":"{}"}}`), end("tool_calls")),
			`call_000000000001 shell {}|call_000000000002 read {}`,
		},
		{"blank arguments run as an object", frames(calls(`{"index":0,"id":"a","function":{"name":"shell","arguments":" "}}`), end("tool_calls")), `a shell {}`},
		{"no arguments", frames(calls(`{"index":0,"id":"a","function":{"name":"shell","arguments":null}}`), end("tool_calls")), `a shell {}`},
		{"arguments as an object", frames(calls(`{"index":0,"id":"a","function":{"name":"shell","arguments":{"x": 1}}}`), end("tool_calls")), `a shell {"x": 1}`},
		{"the finish reason says stop", frames(calls(one), end("stop")), `a shell {"x":1}`},
		{"no finish reason, [DONE] came", frames(calls(one), "[DONE]"), `a shell {"x":1}`},
		{"PV-70 one id for two calls", frames(calls(one+","+strings.Replace(two, `"b"`, `"a"`, 1)), end("tool_calls")), `a shell {"x":1}|call_000000000002 read {}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			o := decode(row.stream)
			if o.Err != nil {
				t.Fatal(o.Err)
			}
			var got []string
			for _, c := range o.Completion.Calls {
				if c.Invalid != "" {
					t.Errorf("invalid: %s", c.Invalid)
				}
				got = append(got, c.ID+" "+c.Name+" "+string(c.Arguments))
			}
			if s := strings.Join(got, "|"); s != row.want {
				t.Errorf("got %s", s)
			}
			if !strings.HasPrefix(string(o.Completion.Items[0]), `{"role":"assistant","content":"","tool_calls":[{"id":`) {
				t.Errorf("stored %s", o.Completion.Items[0])
			}
		})
	}
}

func TestPV71ArgumentsThatAreNoObject(t *testing.T) {
	t.Parallel()
	for _, args := range []string{`"null"`, `"[1]"`, `"{\"a\":"`, `"{\"a\":\"` + "\xff" + `\"}"`, `"5"`} {
		o := decode(frames(calls(`{"index":0,"id":"a","function":{"name":"shell","arguments":`+args+`}}`), end("tool_calls")))
		if o.Err != nil {
			t.Fatalf("%s: %v", args, o.Err)
		}
		c := o.Completion.Calls[0]
		if c.Invalid == "" || string(c.Arguments) != "{}" || !strings.Contains(string(o.Completion.Items[0]), `"arguments":"{}"`) || !json.Valid(o.Completion.Items[0]) {
			t.Errorf("%s: %+v in %s", args, c, o.Completion.Items[0])
		}
	}
}

func TestWhatIsKept(t *testing.T) {
	t.Parallel()
	const call = `{"index":0,"id":"a","function":{"name":"shell","arguments":"{}"}`
	const stored = `"tool_calls":[{"id":"a","type":"function","function":{"name":"shell","arguments":"{}"}`
	for _, row := range []struct{ name, stream, want string }{
		{"a text alone", frames(text("Hi <b> & é"), end("stop")), `{"role":"assistant","content":"Hi <b> & é"}`},
		{
			"both names of thinking, which is shown once", frames(part(`{"reasoning_content":"t","reasoning":"t"}`), text("x"), end("stop")),
			`{"role":"assistant","content":"x","reasoning_content":"t","reasoning":"t"}`,
		},
		{"reasoning alone", frames(part(`{"reasoning":"t"}`), text("x"), end("stop")), `{"role":"assistant","content":"x","reasoning":"t"}`},
		{
			"a field of a call, the last value", frames(calls(call+`,"extra_content":{"a": 1}}`), calls(`{"index":0,"extra_content":{"b": [1.0]},"x":null}`), end("tool_calls")),
			`{"role":"assistant","content":"",` + stored + `,"extra_content":{"b": [1.0]},"x":null}]}`,
		},
		{
			"a field that a strict server refuses is left out", frames(calls(call+`,"x":{"a":1,"a":2},"y":1}`), end("tool_calls")),
			`{"role":"assistant","content":"",` + stored + `,"y":1}]}`,
		},
		{
			"nor one that nests too deep, or a number past every float", frames(
				calls(call+`,"x":`+strings.Repeat("[", 101)+strings.Repeat("]", 101)+`,"y":1e999}`),
				part(`{"reasoning_details":[{"n":1e999},{"n":`+strings.Repeat("[", 101)+strings.Repeat("]", 101)+`}]}`), end("tool_calls")),
			`{"role":"assistant","content":"",` + stored + `}]}`,
		},
		{
			"details as they came", frames(part(`{"reasoning_details":[{"type":"reasoning.encrypted", "data":"a+/=","id":null}]}`), text("x"), end("stop")),
			`{"role":"assistant","content":"x","reasoning_details":[{"type":"reasoning.encrypted", "data":"a+/=","id":null}]}`,
		},
		{
			"details that go on", frames(
				part(`{"reasoning_details":[{"type":"reasoning.text","text":"One ","index":0,"signature":null},{"type":"reasoning.summary","summary":"s","index":0}]}`),
				part(`{"reasoning_details":[{"type":"reasoning.text","text":"two","index":0,"signature":"c2ln","format":"f"},{"type":"reasoning.summary","summary":"t","index":1}]}`),
				text("x"), end("stop")),
			`{"role":"assistant","content":"x","reasoning_details":[{"type":"reasoning.text","text":"One two","index":0,"signature":"c2ln","format":"f"},{"type":"reasoning.summary","summary":"s","index":0},{"type":"reasoning.summary","summary":"t","index":1}]}`,
		},
		{
			"details without an index stay apart", frames(part(`{"reasoning_details":[{"type":"t","text":"a"},{"type":"t","text":"b"}]}`), text("x"), end("stop")),
			`{"role":"assistant","content":"x","reasoning_details":[{"type":"t","text":"a"},{"type":"t","text":"b"}]}`,
		},
		{
			"a call's half of a surrogate pair is mended", frames(calls(call+`,"x":"\ud800"}`), end("tool_calls")),
			`{"role":"assistant","content":"",` + stored + `,"x":"\ufffd"}]}`,
		},
		{
			"other choices do not count", frames(`{"choices":[{"index":1,"delta":{"content":"no"}},{"index":0,"delta":{"content":"yes"}}]}`, end("stop")),
			`{"role":"assistant","content":"yes"}`,
		},
		{
			"members of unknown types are ignored", frames(`{"id":5,"choices":[{"index":0,"delta":{"role":"assistant","content":"x","reasoning":{"a":1},"refusal":null,"audio":{}},"logprobs":{}}],"usage":null}`, end("stop")),
			`{"role":"assistant","content":"x"}`,
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			o := decode(row.stream)
			if o.Err != nil || len(o.Completion.Items) != 1 {
				t.Fatalf("%+v, %v", o.Completion, o.Err)
			}
			if got := string(o.Completion.Items[0]); got != row.want {
				t.Errorf("got  %s\nwant %s", got, row.want)
			}
			if s := modeltest.Text(o.Events, model.EventThinking); strings.Contains(row.want, `"reasoning":"t"`) && s != "t" {
				t.Errorf("shown %q", s)
			}
		})
	}
}

func TestEnds(t *testing.T) {
	t.Parallel()
	failure := func(e string) string { return frames(text("half"), `{"error":`+e+`,"choices":[]}`) }
	for _, row := range []struct{ name, stream, code, detail string }{
		{"no finish reason, no [DONE]", frames(text("x")), "missing_completion", ""},
		{"[DONE] and nothing else", frames("[DONE]"), "missing_completion", ""},
		{"PV-72 a call and half of another, cut", frames(
			calls(`{"index":0,"id":"a","function":{"name":"s","arguments":"{}"}},{"index":1,"id":"b","function":{"name":"s","arguments":"{"}}`)), "missing_completion", ""},
		{"a length", frames(text("x"), end("length")), "provider_incomplete", "length"},
		{"a filter", frames(text("x"), end("content_filter")), "provider_refusal", "content_filter"},
		{"a refusal", frames(part(`{"refusal":"I "}`), part(`{"refusal":"won't"}`), end("stop")), "provider_refusal", "I won't"},
		{"an unknown reason", frames(text("x"), end("tired")), "provider_incomplete", "tired"},
		{"nothing said", frames(text(""), end("stop"), "[DONE]"), "empty_completion", "the response holds no text and no call"},
		{"a blank said", frames(text(" \n"), end("stop")), "empty_completion", "the response holds no text and no call"},
		{"nothing but thinking", frames(part(`{"reasoning":"t"}`), end("stop")), "empty_completion", "the response holds no text and no call"},
		{"content that is no text", frames(part(`{"content":[{"type":"audio"}]}`)), "unsupported_content", "the message's content is no text"},
		{"an error with a number", failure(`{"code":429,"message":"try again in 2s"}`), "provider_http_429", "try again in 2s"},
		{"an error whose number is a text", failure(`{"code":"503","message":"m"}`), "provider_http_503", "m"},
		{"no credits", failure(`{"code":402,"message":"m"}`), "provider_quota_exhausted", "m"},
		{"no quota", failure(`{"code":429,"type":"insufficient_quota","message":"m"}`), "provider_quota_exhausted", "m"},
		{"a full context", failure(`{"code":400,"type":"exceed_context_size_error","message":"m"}`), "provider_context_exceeded", "m"},
		{"a full context by its code", failure(`{"code":"context_length_exceeded","message":"m"}`), "provider_context_exceeded", "m"},
		{"a full context by its message", failure(`{"code":400,"message":"This model's maximum context length is 9 tokens."}`), "provider_context_exceeded", "This model's maximum context length is 9 tokens."},
		{"a rate", failure(`{"type":"rate_limit_exceeded","message":"try again in 1.5s"}`), "provider_rate_limited", "try again in 1.5s"},
		{"a server that is full", failure(`{"type":"server_error","message":"m"}`), "provider_http_503", "m"},
		{"an error as a text", failure(`"out of memory"`), "provider_incomplete", "out of memory"},
		{"an error of a kind unknown", failure(`{"message":"m"}`), "provider_incomplete", "m"},
		{"an error of the choice", frames(`{"choices":[{"index":0,"error":{"code":502,"message":"m"},"delta":{},"finish_reason":"error"}]}`), "provider_http_502", "m"},
		{"an error of the oldest kind", frames(`{"object":"error","message":"m","code":500}`), "provider_http_500", "m"},
		{"an end by an error that says nothing", frames(end("error")), "provider_incomplete", "error"},
		{"a frame that is no JSON", frames(`{`), "invalid_provider_response", "a stream event cannot be read: jsontext: unexpected EOF after offset 1"},
		{"too many calls", frames(calls(strings.TrimSuffix(strings.Repeat(`{"function":{"name":"n"}},`, 65), ","))), "provider_output_limit", "the response has more than 64 calls"},
		{"too many fields", frames(calls(`{"id":"a"` + many(65) + `}`)), "provider_output_limit", "an object of the response has more than 64 fields"},
		{"too long a text", frames(text(strings.Repeat("x", 512<<10)), text(strings.Repeat("y", 300<<10)), end("stop")), "provider_output_limit", "the response's output is longer than 768 KiB"},
		{"a text that is too long as it is stored", frames(text(strings.Repeat("\x01", 200<<10)), end("stop")), "provider_output_limit", "the response's output is longer than 768 KiB"},
		{"too much thinking", frames(part(`{"reasoning":"`+strings.Repeat("t", 769<<10)+`"}`), end("stop")), "provider_output_limit", "the response's output is longer than 768 KiB"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			o := decode(row.stream)
			if code, detail := modeltest.Code(o.Err); code != row.code || detail != row.detail {
				t.Errorf("got %s: %s", code, detail)
			}
		})
	}
}

func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"f%d":1`, i)
	}
	return b.String()
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		usage string
		want  *model.Usage
	}{
		"all figures": {
			`{"prompt_tokens":30,"completion_tokens":12,"prompt_tokens_details":{"cached_tokens":8,"cache_write_tokens":4},"completion_tokens_details":{"reasoning_tokens":5}}`,
			&model.Usage{Input: 30, Output: 12, Cached: 8, CacheWrite: 4, HasCacheWrite: true, Reasoning: 5, HasReasoning: true},
		},
		"the cache in its older spelling": {`{"prompt_tokens":30,"completion_tokens":1,"prompt_cache_hit_tokens":20}`, &model.Usage{Input: 30, Output: 1, Cached: 20}},
		"none, in words":                  {`null`, nil},
		"none that is known":              {`{"prompt_tokens":"30"}`, nil},
		"details of another type":         {`{"prompt_tokens":3,"completion_tokens":1,"prompt_tokens_details":null,"completion_tokens_details":7}`, &model.Usage{Input: 3, Output: 1}},
	} {
		for place, stream := range map[string]string{
			"behind the last chunk": frames(text("x"), end("stop"), `{"choices":[],"usage":`+row.usage+`}`, "[DONE]"),
			"on the last chunk":     frames(text("x"), strings.TrimSuffix(end("stop"), "}")+`,"usage":`+row.usage+`}`),
		} {
			o := decode(stream)
			if o.Err != nil || (o.Usage == nil) != (row.want == nil) || o.Usage != nil && fmt.Sprint(*o.Usage) != fmt.Sprint(*row.want) {
				t.Errorf("%s, %s: %+v, %v", name, place, o.Usage, o.Err)
			}
		}
	}
	if o := decode(frames(text("x"), `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1}}`)); o.Err == nil || o.Usage == nil || o.Usage.Input != 9 {
		t.Errorf("PV-75 the usage of a cut response: %+v, %v", o.Usage, o.Err)
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	d := newDecoder(modeltest.Request("m"), &model.Report{})
	sink := func(model.Event) {}
	for frame, want := range map[string]bool{
		`{"choices":[]}`: false,
		`{"choices":[{"index":0,"delta":{},"finish_reason":null}]}`:     false,
		part(`{"role":"assistant"}`):                                    false,
		part(`{"content":null}`):                                        false,
		part(`{"content":null,"tool_calls":[],"reasoning_details":[]}`): false,
		part(`null`):                    false,
		`{"choices":[null]}`:            false,
		`{"choices":null,"usage":null}`: false,
		`{"choices":[{"index":1,"delta":{"content":"x"}}]}`: false,
		text(""):                          true,
		text("x"):                         true,
		part(`{"reasoning_content":"x"}`): true,
		calls(`{"index":0,"function":{"arguments":""}}`):                   true,
		`{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}`: true,
	} {
		if content, err := d.Event([]byte(frame), sink); err != nil || content != want {
			t.Errorf("%s: %v, %v", frame, content, err)
		}
	}
}

func FuzzStream(f *testing.F) {
	for _, name := range []string{"C2.sse", "C3.sse"} {
		f.Add(modeltest.File(f, name))
	}
	f.Add([]byte(frames(calls(`{"function":{"name":"a.b","arguments":"[1]"},"x":"\ud800"}`), end("stop"))))
	f.Add([]byte(frames(part(`{"reasoning_details":[{"type":"t","index":0,"text":"a","x":null},{"type":"t","index":0,"text":"b","x":1},5]}`), text("x"), "[DONE]")))
	f.Add([]byte(frames(part(`{"reasoning":"t","reasoning_content":"u"}`), text("x"), `{"choices":[],"usage":{"prompt_tokens":1e9}}`, end("stop"))))
	f.Fuzz(func(t *testing.T, stream []byte) {
		o := decoding(modeltest.Request("qwen-test"))(bytes.NewReader(stream))
		if (o.Err == nil) != (o.Completion != nil) {
			t.Fatalf("%+v, %v", o.Completion, o.Err)
		}
		if o.Err != nil {
			return
		}
		item := o.Completion.Items[0]
		c := Codec{}
		if len(o.Completion.Items) != 1 || !json.Valid(item) || len(item) > outputLimit || c.RoleOf(item) != "assistant" {
			t.Fatalf("stored %q", o.Completion.Items)
		}
		d, err := c.Describe(item)
		if err != nil || d.Role != "assistant" || len(d.Calls) != len(o.Completion.Calls) {
			t.Fatalf("%q: %+v, %v", item, d, err)
		}
		for i, call := range d.Calls {
			if want := o.Completion.Calls[i]; call.ID != want.ID || !bytes.Equal(call.Arguments, want.Arguments) {
				t.Fatalf("stored %q, called %+v", item, want)
			}
		}
		cut := c.WithoutThinking(nil, item)
		if len(item)-len(cut) != c.ThinkingBytes(item) || !json.Valid(cut) {
			t.Fatalf("%q without thinking is %q", item, cut)
		}
		if again, err := c.Describe(cut); err != nil || again.Text != d.Text || len(again.Calls) != len(d.Calls) || c.ThinkingBytes(cut) != 0 {
			t.Fatalf("%q without thinking is %q", item, cut)
		}
	})
}
