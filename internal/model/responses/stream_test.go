package responses

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
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
		o.Completion, o.Err = d.finish(sink)
		o.Usage = rep.Usage
		return o
	}
}

func decode(stream string) modeltest.Outcome {
	return decoding(modeltest.Request("gpt-test-1"))(strings.NewReader(stream))
}

func frames(events ...string) string {
	return "data: " + strings.Join(events, "\n\ndata: ") + "\n\n"
}

func done(item string) string { return `{"type":"response.output_item.done","item":` + item + `}` }

func textDelta(s string) string {
	return `{"type":"response.output_text.delta","delta":` + string(model.AppendString(nil, s)) + `}`
}

func message(text string) string {
	return `{"type":"message","role":"assistant","content":[{"type":"output_text","text":` + string(model.AppendString(nil, text)) + `}]}`
}

func callItem(id, args string) string {
	return fmt.Sprintf(`{"type":"function_call", "call_id":%q,"name":"shell","arguments":%s,"x":"<&>"}`, id, model.AppendString(nil, args))
}

const completed = `{"type":"response.completed","response":{"status":"completed","output":[],"usage":{"input_tokens":5,"output_tokens":2}}}`

func items(c *model.Completion) string { return string(bytes.Join(c.Items, []byte("|"))) }

func TestFixtures(t *testing.T) {
	t.Parallel()
	t.Run("PV-23 fixture R2 in any split", func(t *testing.T) {
		t.Parallel()
		stream := modeltest.File(t, "R2.sse")
		var want []string
		for _, line := range strings.Split(string(stream), "\n") {
			if _, item, ok := strings.Cut(line, `"item":`); ok {
				want = append(want, strings.TrimSuffix(item, "}"))
			}
		}
		modeltest.EverySplit(stream, decoding(modeltest.Request("gpt-test-1")), func(split string, o modeltest.Outcome) {
			if o.Err != nil {
				t.Fatalf("%s: %v", split, o.Err)
			}
			if got := items(o.Completion); len(want) != 3 || got != strings.Join(want, "|") {
				t.Fatalf("%s: stored %s", split, got)
			}
			if c := o.Completion.Calls; len(c) != 1 || c[0].ID != "call_1" || c[0].Name != "shell" || string(c[0].Arguments) != `{"command":"ls"}` {
				t.Fatalf("%s: calls %+v", split, c)
			}
			u := o.Usage
			if u.Input != 40 || u.Output != 21 || u.Cached != 16 || u.Reasoning != 9 || !u.HasReasoning || !u.HasCacheWrite || u.CacheWrite != 0 {
				t.Fatalf("%s: usage %+v", split, u)
			}
			if modeltest.Text(o.Events, model.EventText) != "Looking." || modeltest.Text(o.Events, model.EventThinking) != "Need a listing." {
				t.Fatalf("%s: events %+v", split, o.Events)
			}
		})
	})
	for file, want := range map[string]struct {
		code  string
		input int64
	}{
		"R3-failed.sse":     {"provider_rate_limited", -1},
		"R3-incomplete.sse": {"provider_incomplete", 40},
	} {
		t.Run("fixture "+file+" in any split", func(t *testing.T) {
			t.Parallel()
			modeltest.EverySplit(modeltest.File(t, file), decoding(modeltest.Request("gpt-test-1")), func(split string, o modeltest.Outcome) {
				code, _ := modeltest.Code(o.Err)
				if code != want.code || (o.Usage == nil) != (want.input < 0) || o.Usage != nil && o.Usage.Input != want.input {
					t.Fatalf("%s: %v, usage %+v", split, o.Err, o.Usage)
				}
			})
		})
	}
	t.Run("fixture S2 in any split", func(t *testing.T) {
		t.Parallel()
		s2 := modeltest.File(t, "S2.sse")
		want := `{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"go 1.26"}}`
		stream := append([]byte(frames(`{"type":"response.web_search_call.searching","item_id":"ws_1"}`)), s2...)
		modeltest.EverySplit(append(stream, frames(completed)...), decoding(modeltest.Request("gpt-test-1")), func(split string, o modeltest.Outcome) {
			if o.Err != nil || items(o.Completion) != want || !o.Completion.External {
				t.Fatalf("%s: %+v, %v", split, o.Completion, o.Err)
			}
			if len(o.Events) != 2 || o.Events[0].Status != "searching" || o.Events[1].Query != "go 1.26" || o.Events[1].Status != "completed" {
				t.Fatalf("%s: events %+v", split, o.Events)
			}
		})
	})
}

func TestItems(t *testing.T) {
	t.Parallel()
	odd := `{"type":"reasoning","id":"r" , "summary":[],"encrypted_content":"a+/=","new":{"a":1,"b":"\u00e9\/"}}`
	for _, c := range []struct {
		name   string
		events []string
		want   []string
	}{
		{"unknown fields and spacing stay", []string{done(odd), done(message("a")), textDelta("a"), completed}, []string{odd, message("a")}},
		{"reasoning that nothing follows is left out", []string{done(odd), done(message("a")), textDelta("a"), done(odd), done(odd), completed}, []string{odd, message("a")}},
		{"a message without a part is left out", []string{
			done(`{"type":"message","role":"assistant","content":[]}`), done(message("a")), textDelta("a"),
			done(`{"type":"message","role":"assistant","content":null}`), completed,
		}, []string{message("a")}},
		{
			"half a surrogate pair is mended",
			[]string{done(strings.Replace(message("a"), "a\"}", `a\ud800"}`, 1)), `{"type":"response.output_text.delta","delta":"a\ud800"}`, completed},
			[]string{strings.Replace(message("a"), "a\"}", `a\ufffd"}`, 1)},
		},
		{
			"a field twice stays once, the last",
			[]string{done(strings.Replace(message("a"), `{"type":"message"`, `{"new":1,"type":"message","new":2`, 1)), textDelta("a"), completed},
			[]string{strings.Replace(message("a"), `{"type":"message"`, `{"new":2,"type":"message"`, 1)},
		},
		{"PV-25 items only at the end are used", []string{
			textDelta("a"),
			`{"type":"response.completed","response":{"status":"completed","output":[` + odd + ` , ` + message("a") + `]}}`,
		}, []string{odd, message("a")}},
		{"PV-25 given both, each exists once", []string{
			textDelta("a"), done(message("a")),
			`{"type":"response.completed","response":{"status":"completed","output":[` + message("a") + `]}}`,
		}, []string{message("a")}},
		{"text that no delta brought is taken", []string{done(message("a")), completed}, []string{message("a")}},
		{"a null output is none", []string{textDelta("a"), done(message("a")), `{"type":"response.completed","response":{"status":"completed","output":null}}`}, []string{message("a")}},
		{"a response may name no status", []string{textDelta("a"), done(message("a")), `{"type":"response.completed","response":{}}`}, []string{message("a")}},
		{"progress and unknown events are ignored", []string{
			`{"type":"response.queued"}`, `{"type":"response.audio.delta","delta":{"x":1}}`,
			`{"type":"keepalive"}`, textDelta("a"), done(message("a")), completed,
		}, []string{message("a")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := decode(frames(c.events...))
			if o.Err != nil || items(o.Completion) != strings.Join(c.want, "|") {
				t.Fatalf("got %+v, %v", o.Completion, o.Err)
			}
			for _, e := range c.want {
				if e == message("a") && modeltest.Text(o.Events, model.EventText) != "a" {
					t.Errorf("followers saw %+v", o.Events)
				}
			}
		})
	}
}

func TestCallsMadeSafe(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, item string
		want       string // stored
		args       string
		invalid    string
	}{
		{"a good call stays byte for byte", callItem("c1", `{"a": "\u00e9"}`), callItem("c1", `{"a": "\u00e9"}`), `{"a": "\u00e9"}`, ""},
		{"PV-71 null", callItem("c1", "null"), callItem("c1", "{}"), "{}", "null"},
		{"PV-71 an array", callItem("c1", "[1]"), callItem("c1", "{}"), "{}", "an array"},
		{"PV-71 truncated JSON", callItem("c1", `{"a`), callItem("c1", "{}"), "{}", "not valid JSON"},
		{"PV-71 invalid UTF-8", strings.Replace(callItem("c1", `{"a":"?"}`), "?", "\xff", 1), callItem("c1", "{}"), "{}", "UTF-8"},
		{"PV-71 blank arguments are an empty object and run", callItem("c1", ""), callItem("c1", "{}"), "{}", ""},
		{"arguments that are missing", `{"type":"function_call","call_id":"c1","name":"n"}`, `{"type":"function_call","call_id":"c1","name":"n","arguments":"{}"}`, "{}", ""},
		{"arguments that are an object", `{"type":"function_call","call_id":"c1","name":"n","arguments":{"a":1}}`, `{"type":"function_call","call_id":"c1","name":"n","arguments":"{\"a\":1}"}`, `{"a":1}`, ""},
		{"PV-70 an empty id gets ours", callItem("", `{}`), callItem("call_000000000001", `{}`), "{}", ""},
		{"PV-70 a missing id gets ours", `{"type":"function_call","name":"n","arguments":"{}"}`, `{"type":"function_call","name":"n","arguments":"{}","call_id":"call_000000000001"}`, "{}", ""},
		{"an id that is no text gets ours", `{"type":"function_call","call_id":5,"name":"n","status":7,"action":"x","arguments":"{}"}`, `{"type":"function_call","call_id":"call_000000000001","name":"n","status":7,"action":"x","arguments":"{}"}`, "{}", ""},
		{"an id that no provider takes back gets ours", callItem("a b", `{}`), callItem("call_000000000001", `{}`), "{}", ""},
		{"an id of 65 bytes gets ours", callItem(strings.Repeat("L", 65), `{}`), callItem("call_000000000001", `{}`), "{}", ""},
		{"a name that no provider takes back", `{"type":"function_call","call_id":"c","name":"my.tool","arguments":"{}"}`, `{"type":"function_call","call_id":"c","name":"my_tool","arguments":"{}"}`, "{}", ""},
		{
			"doubled names are one", `{"type":"function_call","call_id":"q1","call_id":"q2","name":"a","x":1,"name":"b","arguments":"[]","arguments":"{\"t\":1}"}`,
			`{"type":"function_call","call_id":"q2","name":"b","x":1,"arguments":"{\"t\":1}"}`, `{"t":1}`, "",
		},
		{
			"half a surrogate pair beside the call", `{"type":"function_call","call_id":"c","name":"n","arguments":"{}","x":"\ud800"}`,
			`{"type":"function_call","call_id":"c","name":"n","arguments":"{}","x":"\ufffd"}`, "{}", "",
		},
		{"PV-70 an id used before gets ours", callItem("used", `{}`), callItem("call_000000000001", `{}`), "{}", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			req := modeltest.Request("gpt-test-1")
			req.IDTaken = func(id string) (bool, error) { return id == "used", nil }
			o := decoding(req)(strings.NewReader(frames(done(c.item), completed)))
			if o.Err != nil {
				t.Fatal(o.Err)
			}
			call := o.Completion.Calls[0]
			if items(o.Completion) != c.want || string(call.Arguments) != c.args || (call.Invalid == "") != (c.invalid == "") || !strings.Contains(call.Invalid, c.invalid) {
				t.Errorf("stored %s, call %+v", items(o.Completion), call)
			}
		})
	}
	t.Run("PV-70 two calls of one id", func(t *testing.T) {
		t.Parallel()
		o := decode(frames(done(callItem("c", `{"a":1}`)), done(callItem("c", `{"a":2}`)), completed))
		if o.Err != nil || items(o.Completion) != callItem("c", `{"a":1}`)+"|"+callItem("call_000000000002", `{"a":2}`) || o.Completion.Calls[1].ProviderID != "c" {
			t.Errorf("got %+v, %v", o.Completion, o.Err)
		}
	})
}

func TestFailures(t *testing.T) {
	t.Parallel()
	var many, long []string
	for range 65 {
		many = append(many, done(`{"type":"reasoning"}`))
	}
	for range 13 {
		long = append(long, textDelta(strings.Repeat("x", 64<<10)))
	}
	failed := func(code, message string) []string {
		return []string{fmt.Sprintf(`{"type":"response.failed","response":{"status":"failed","error":{"code":%q,"message":%q}}}`, code, message)}
	}
	for _, c := range []struct {
		name         string
		events       []string
		code, detail string
	}{
		{"PV-24 a message that differs from the stream", []string{textDelta("a"), done(message("b")), completed}, "stream_terminal_mismatch", ""},
		{"PV-24 a stream without its message", []string{textDelta("a"), done(`{"type":"reasoning"}`), completed}, "stream_terminal_mismatch", ""},
		{"no last event", []string{textDelta("a"), done(message("a"))}, "missing_completion", ""},
		{"no items", []string{completed}, "empty_completion", "the response holds no item"},
		{"another status", []string{done(message("a")), `{"type":"response.completed","response":{"status":"cancelled"}}`}, "provider_incomplete", "cancelled"},
		{"nothing but reasoning", []string{done(`{"type":"reasoning","encrypted_content":"x"}`), completed}, "empty_completion", ""},
		{"a refusal", []string{done(`{"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"no"}]}`), completed}, "provider_refusal", "no"},
		{"a user's message", []string{done(`{"type":"message","role":"user","content":[]}`)}, "unsupported_output_item", "a message of role user"},
		{"an unknown part", []string{done(`{"type":"message","role":"assistant","content":[{"type":"hologram"}]}`)}, "unsupported_output_item", "a message part of type hologram"},
		{"an unknown item", []string{done(`{"type":"hologram"}`)}, "unsupported_output_item", "an item of type hologram"},
		{"a call without a name", []string{done(`{"type":"function_call","call_id":"c","arguments":"{}"}`)}, "invalid_provider_response", ""},
		{"an item that is not UTF-8", []string{done("{\"type\":\"reasoning\",\"x\":\"\xff\"}"), textDelta("a"), done(message("a")), completed}, "invalid_provider_response", ""},
		{
			"an item that nests too deep for others",
			[]string{done(`{"type":"reasoning","x":` + strings.Repeat("[", 101) + strings.Repeat("]", 101) + `}`), textDelta("a"), done(message("a")), completed},
			"invalid_provider_response", "the fields of a reasoning item nest deeper than 100 levels",
		},
		{
			"an item with a number past every float",
			[]string{done(`{"type":"reasoning","x":1e999}`), textDelta("a"), done(message("a")), completed},
			"invalid_provider_response", "the fields of a reasoning item hold a number that is out of range",
		},
		{
			"an item with a name twice inside",
			[]string{done(`{"type":"reasoning","x":{"a":1,"a":2}}`), textDelta("a"), done(message("a")), completed},
			"invalid_provider_response", "the fields of a reasoning item name a member twice",
		},
		{"an event after the last", []string{textDelta("a"), done(message("a")), completed, textDelta("b")}, "event_after_completion", ""},
		{"an event that is no JSON", []string{"[1"}, "invalid_provider_response", ""},
		{"an item that is missing", []string{`{"type":"response.output_item.done"}`}, "invalid_provider_response", ""},
		{"65 items", many, "provider_output_limit", ""},
		{"more than 768 KiB of text", long, "provider_output_limit", ""},
		{"more than 768 KiB of items", []string{done(`{"type":"reasoning","x":"` + strings.Repeat("x", outputLimit) + `"}`)}, "provider_output_limit", ""},
		{"a rate limit by its detail", failed("x", "Rate limit reached for m"), "provider_rate_limited", "Rate limit reached for m"},
		{"no quota", failed("insufficient_quota", "pay"), "provider_quota_exhausted", "pay"},
		{"a full context", failed("context_length_exceeded", "long"), "provider_context_exceeded", "long"},
		{"a server's error", failed("server_error", "oops"), "provider_http_503", "oops"},
		{"another failure", failed("x", "oops"), "provider_incomplete", "oops"},
		{"an incomplete response", []string{`{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}`}, "provider_incomplete", "max_output_tokens"},
		{"an error event with its words on top", []string{`{"type":"error","code":"slow_down","message":"slow"}`}, "provider_http_503", "slow"},
		{"an error event with an error object", []string{`{"type":"error","error":{"type":"usage_limit_reached","message":"used up"}}`}, "provider_quota_exhausted", "used up"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := decode(frames(c.events...))
			code, detail := modeltest.Code(o.Err)
			if code != c.code || c.detail != "" && detail != c.detail || o.Completion != nil {
				t.Errorf("got %s: %s", code, detail)
			}
		})
	}
}

func TestAbsurdUsage(t *testing.T) {
	t.Parallel()
	const big = "9223372036854775807"
	for _, c := range []struct {
		name, usage string
		want        model.Usage
	}{
		{
			"the largest number there is", `{"input_tokens":` + big + `,"output_tokens":` + big + `,"input_tokens_details":{"cached_tokens":` + big + `}}`,
			model.Usage{Input: model.MaxCount, Output: model.MaxCount, Cached: model.MaxCount},
		},
		{
			"less than nothing", `{"input_tokens":5,"input_tokens_details":{"cached_tokens":-3,"cache_write_tokens":-1},"output_tokens":-1}`,
			model.Usage{Input: 5, HasCacheWrite: true},
		},
		{"more cached than there was", `{"input_tokens":5,"input_tokens_details":{"cached_tokens":9},"output_tokens":1}`, model.Usage{Input: 5, Cached: 5, Output: 1}},
		{"fractions, texts and nulls", `{"input_tokens":"5","output_tokens":2,"input_tokens_details":{"cached_tokens":0.5},"output_tokens_details":null}`, model.Usage{Output: 2}},
		{"parts of other types", `{"input_tokens":5,"input_tokens_details":[],"output_tokens":2,"output_tokens_details":7}`, model.Usage{Input: 5, Output: 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := decode(frames(textDelta("a"), done(message("a")), `{"type":"response.completed","response":{"status":"completed","error":5,"incomplete_details":"x","usage":`+c.usage+`}}`))
			if o.Err != nil || !reflect.DeepEqual(*o.Usage, c.want) {
				t.Errorf("got %+v, %v", o.Usage, o.Err)
			}
		})
	}
	for _, none := range []string{`"none"`, `{}`, `{"input_tokens":null,"output_tokens":null}`, `{"input_tokens":"5","output_tokens":1.5}`} {
		o := decode(frames(textDelta("a"), done(message("a")), `{"type":"response.completed","response":{"status":"completed","usage":`+none+`}}`))
		if o.Err != nil || o.Usage != nil {
			t.Errorf("PV-37 %s is no report: %+v, %v", none, o.Usage, o.Err)
		}
	}
}

func TestKeepAlive(t *testing.T) {
	t.Parallel()
	d := newDecoder(modeltest.Request("m"), &model.Report{})
	if content, err := d.Event([]byte(`{"type":"keepalive"}`), nil); content || err != nil {
		t.Errorf("keepalive: %v, %v", content, err)
	}
	if content, err := d.Event([]byte(`{"type":"response.in_progress"}`), nil); !content || err != nil {
		t.Errorf("in_progress: %v, %v", content, err)
	}
}

func FuzzStream(f *testing.F) {
	for _, name := range []string{"R2.sse", "R3-failed.sse", "R3-incomplete.sse"} {
		f.Add(modeltest.File(f, name))
	}
	f.Add([]byte(frames(done(callItem("", "[1]")), done(callItem("c", "")), completed)))
	f.Add([]byte(frames(done(`{"type":"function_call","name":"n"}`), completed)))
	f.Add([]byte(frames(done(`{"type":"function_call","name":"a.b","name":"c d","call_id":5,"x":"\ud800"}`), completed)))
	f.Fuzz(func(t *testing.T, stream []byte) {
		o := decoding(modeltest.Request("gpt-test-1"))(bytes.NewReader(stream))
		if (o.Err == nil) != (o.Completion != nil) {
			t.Fatalf("%+v, %v", o.Completion, o.Err)
		}
		if o.Err != nil {
			return
		}
		calls := 0
		for _, item := range o.Completion.Items {
			if !json.Valid(item) || !bytes.Contains(stream, item) && !bytes.Contains(item, []byte("function_call")) && !bytes.Contains(item, []byte(`\ufffd`)) {
				t.Fatalf("stored %q", item)
			}
			d, err := Codec{}.Describe(item)
			if err != nil {
				t.Fatalf("%q: %v", item, err)
			}
			for _, call := range d.Calls {
				if want := o.Completion.Calls[calls]; call.ID != want.ID || !bytes.Equal(call.Arguments, want.Arguments) {
					t.Fatalf("stored %q, called %+v", item, want)
				}
				calls++
			}
		}
		if calls != len(o.Completion.Calls) {
			t.Fatalf("%d calls stored of %d", calls, len(o.Completion.Calls))
		}
	})
}
