package anthropic

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
		frames := wire.NewSSE(r)
		defer frames.Close()
		for {
			data, err := frames.Next()
			if err == io.EOF {
				break
			}
			if err == nil {
				_, err = d.Event(data, func(e model.Event) { o.Events = append(o.Events, e) })
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
	return decoding(modeltest.Request("claude-test-1"))(strings.NewReader(stream))
}

// frames writes events as an event stream.
func frames(events ...string) string {
	return "data: " + strings.Join(events, "\n\ndata: ") + "\n\n"
}

const (
	started = `{"type":"message_start","message":{"usage":{"input_tokens":10,"output_tokens":1}}}`
	stopped = `{"type":"message_stop"}`
)

func ended(reason string) string {
	return fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q},"usage":{"output_tokens":9}}`, reason)
}

func begin(i int, block string) string {
	return fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, i, block)
}

func delta(i int, delta string) string {
	return fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, i, delta)
}

const (
	textBlock = `{"type":"text","text":""}`
	useBlock  = `{"type":"tool_use","id":"toolu_1","name":"shell","input":{}}`
)

func textDelta(i int, s string) string {
	return delta(i, `{"type":"text_delta","text":`+string(model.AppendString(nil, s))+`}`)
}

func jsonDelta(i int, s string) string {
	return delta(i, `{"type":"input_json_delta","partial_json":`+string(model.AppendString(nil, s))+`}`)
}

func TestFixtures(t *testing.T) {
	t.Parallel()
	t.Run("PV-12 fixture A2 in any split", func(t *testing.T) {
		t.Parallel()
		want := modeltest.File(t, "A2.item")
		modeltest.EverySplit(modeltest.File(t, "A2.sse"), decoding(modeltest.Request("claude-test-1")), func(split string, o modeltest.Outcome) {
			if o.Err != nil {
				t.Fatalf("%s: %v", split, o.Err)
			}
			c := o.Completion
			if len(c.Items) != 1 || !bytes.Equal(c.Items[0], want) {
				t.Fatalf("%s: stored %s", split, c.Items)
			}
			if len(c.Calls) != 1 || c.Calls[0].ID != "toolu_01" || c.Calls[0].Name != "shell" ||
				string(c.Calls[0].Arguments) != `{"command": "ls"}` || c.Calls[0].Invalid != "" {
				t.Fatalf("%s: calls %+v", split, c.Calls)
			}
			u := *o.Usage
			if u.Input != 132 || u.Output != 31 || u.Cached != 100 || u.CacheWrite != 20 || u.CacheWrite1h != 0 || !u.HasCacheWrite {
				t.Fatalf("%s: usage %+v", split, u)
			}
			if modeltest.Text(o.Events, model.EventThinking) != "Use <ls> & stop" || modeltest.Text(o.Events, model.EventText) != "Looking." {
				t.Fatalf("%s: events %+v", split, o.Events)
			}
		})
	})
	t.Run("PV-20 fixture A5 in any split", func(t *testing.T) {
		t.Parallel()
		modeltest.EverySplit(modeltest.File(t, "A5.sse"), decoding(modeltest.Request("claude-test-1")), func(split string, o modeltest.Outcome) {
			if o.Err != nil {
				t.Fatalf("%s: %v", split, o.Err)
			}
			want := `{"role":"assistant","content":[{"type":"text","text":"Partly."},` +
				`{"type":"fallback","from":{"model":"claude-test-1"},"to":{"model":"claude-test-2"}},{"type":"text","text":"Answer."}]}`
			c := o.Completion
			if string(c.Items[0]) != want || len(c.Calls) != 0 {
				t.Fatalf("%s: stored %s, calls %+v", split, c.Items[0], c.Calls)
			}
			if !reflect.DeepEqual(c.Fallbacks, []model.Switch{{From: "claude-test-1", To: "claude-test-2"}}) {
				t.Fatalf("%s: switches %+v", split, c.Fallbacks)
			}
			if u := o.Usage; u.Input != 22 || u.Output != 13 || len(u.Models) != 2 || u.Models[1].Model != "claude-test-2" || u.Models[1].Input != 12 {
				t.Fatalf("%s: usage %+v", split, u)
			}
		})
	})
	t.Run("PV-66 fixture S1 is stored raw in any split", func(t *testing.T) {
		t.Parallel()
		stream := []byte(frames(started) + string(modeltest.File(t, "S1.sse")) + frames(ended("pause_turn"), stopped))
		modeltest.EverySplit(stream, decoding(modeltest.Request("claude-test-1")), func(split string, o modeltest.Outcome) {
			want := `{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"go 1.26"}},` +
				`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https://example.com/a","title":"A","encrypted_content":"RW5j+/=","page_age":null}]},` +
				`{"type":"text","text":"Yes.","citations":[{"type":"web_search_result_location","url":"https://example.com/a","title":"A","encrypted_index":"SW5k","cited_text":"x"}]}]}`
			if o.Err != nil || string(o.Completion.Items[0]) != want || !o.Completion.External || !o.Completion.Continue || len(o.Completion.Calls) != 0 {
				t.Fatalf("%s: %+v, %v", split, o.Completion, o.Err)
			}
			last := o.Events[len(o.Events)-2]
			if last.Kind != model.EventWebSearch || last.Status != "completed" || last.Query != "go 1.26" {
				t.Fatalf("%s: events %+v", split, o.Events)
			}
		})
	})
}

func TestStored(t *testing.T) {
	t.Parallel()
	const redacted = `{"type":"redacted_thinking","data":"AAA+/<&>=" , "x":1}`
	for _, c := range []struct {
		name   string
		events []string
		want   string // the content
	}{
		{
			"PV-22 redacted thinking keeps its bytes",
			[]string{begin(0, redacted), begin(1, textBlock), textDelta(1, "hi")},
			redacted + `,{"type":"text","text":"hi"}`,
		},
		{
			"empty text is left out",
			[]string{begin(0, textBlock), begin(1, useBlock)},
			`{"type":"tool_use","id":"toolu_1","name":"shell","input":{}}`,
		},
		{
			"thinking may be empty with a signature",
			[]string{
				begin(0, `{"type":"thinking","thinking":""}`),
				delta(0, `{"type":"signature_delta","signature":"a+/="}`), begin(1, `{"type":"text","text":"x"}`),
			},
			`{"type":"thinking","thinking":"","signature":"a+/="},{"type":"text","text":"x"}`,
		},
		{
			"blank text is left out",
			[]string{begin(0, `{"type":"text","text":"\n "}`), begin(1, `{"type":"text","text":"\u001f\u2003"}`), begin(2, useBlock)},
			`{"type":"tool_use","id":"toolu_1","name":"shell","input":{}}`,
		},
		{"blanks around a text stay", []string{begin(0, `{"type":"text","text":"\n a "}`)}, `{"type":"text","text":"\n a "}`},
		{"thinking without a signature is left out", []string{
			begin(0, `{"type":"thinking","thinking":"t"}`),
			begin(1, `{"type":"redacted_thinking"}`), begin(2, `{"type":"text","text":"x"}`),
		}, `{"type":"text","text":"x"}`},
		{"thinking at the end is left out", []string{
			begin(0, `{"type":"text","text":"x"}`), begin(1, `{"type":"thinking","thinking":"t","signature":"s"}`),
			begin(2, `{"type":"text","text":" "}`), begin(3, redacted),
		}, `{"type":"text","text":"x"}`},
		{"a search without its result is left out", []string{
			begin(0, `{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}`),
			begin(1, `{"type":"text","text":"x"}`),
		}, `{"type":"text","text":"x"}`},
		{
			"half surrogate pairs are mended where bytes are kept",
			[]string{
				begin(0, `{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}`),
				begin(1, `{"type":"web_search_tool_result","tool_use_id":"s1","content":[{"title":"\ud800"}]}`),
				begin(2, `{"type":"text","text":"a\udc00"}`), delta(2, `{"type":"citations_delta","citation":{"t":"\udfff"}}`),
			},
			`{"type":"server_tool_use","id":"s1","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"s1","content":[{"title":"\ufffd"}]},` +
				`{"type":"text","text":"a` + "\ufffd" + `","citations":[{"t":"\ufffd"}]}`,
		},
		{
			"an id that is no text, and one that no provider takes back",
			[]string{
				begin(0, `{"type":"tool_use","id":5,"name":"shell","input":{}}`),
				begin(1, `{"type":"tool_use","id":"a b","name":"my.tool","input":{}}`),
			},
			`{"type":"tool_use","id":"call_000000000001","name":"shell","input":{}},{"type":"tool_use","id":"call_000000000002","name":"my_tool","input":{}}`,
		},
		{
			"fields of other types that are not needed",
			[]string{begin(0, `{"type":"fallback","from":1,"to":{"model":[]}}`), begin(1, `{"type":"text","text":"x"}`)},
			`{"type":"fallback","from":1,"to":{"model":[]}},{"type":"text","text":"x"}`,
		},
		{
			"what a block begins with counts",
			[]string{begin(0, `{"type":"text","text":"Hel"}`), textDelta(0, "lo")},
			`{"type":"text","text":"Hello"}`,
		},
		{
			"whole input in the block's start is the input",
			[]string{begin(0, `{"type":"tool_use","id":"t","name":"n","input":{"a": 1}}`)},
			`{"type":"tool_use","id":"t","name":"n","input":{"a": 1}}`,
		},
		{"an unknown delta and an unknown event are ignored", []string{
			begin(0, textBlock), `{"type":"news"}`,
			delta(0, `{"type":"future_delta","x":1}`), textDelta(0, "a"),
		}, `{"type":"text","text":"a"}`},
		{
			"text is not escaped for HTML",
			[]string{begin(0, textBlock), textDelta(0, "<a>&\u2028\n\"")},
			`{"type":"text","text":"<a>&` + "\u2028" + `\n\""}`,
		},
		{
			"a search the fallback cut off is dropped",
			[]string{
				begin(0, `{"type":"thinking","thinking":"t","signature":"s"}`),
				begin(1, `{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}`),
				begin(2, `{"type":"server_tool_use","id":"s2","name":"web_search","input":{}}`),
				begin(3, `{"type":"web_search_tool_result","tool_use_id":"s2","content":[]}`),
				begin(4, `{"type":"fallback","from":{"model":"a"},"to":{"model":"b"}}`), begin(5, textBlock), textDelta(5, "x"),
			},
			`{"type":"server_tool_use","id":"s2","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"s2","content":[]},` +
				`{"type":"fallback","from":{"model":"a"},"to":{"model":"b"}},{"type":"text","text":"x"}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := decode(frames(started) + frames(c.events...) + frames(ended("end_turn"), stopped))
			if o.Err != nil {
				t.Fatal(o.Err)
			}
			if got := string(o.Completion.Items[0]); got != `{"role":"assistant","content":[`+c.want+`]}` {
				t.Errorf("stored %s", got)
			}
		})
	}
}

func TestCallsMadeSafe(t *testing.T) {
	t.Parallel()
	stream := func(inputs ...string) string {
		events := []string{started}
		for i, in := range inputs {
			events = append(events, begin(i, useBlock), jsonDelta(i, in))
		}
		return frames(append(events, ended("tool_use"), stopped)...)
	}
	for _, c := range []struct{ name, input, invalid string }{
		{"PV-71 null", "null", "null"},
		{"PV-71 an array", "[1]", "an array"},
		{"PV-71 truncated JSON", `{"a":`, "not valid JSON"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := decode(stream(c.input))
			if o.Err != nil {
				t.Fatal(o.Err)
			}
			call := o.Completion.Calls[0]
			if string(call.Arguments) != "{}" || !strings.Contains(call.Invalid, c.invalid) || !strings.Contains(call.Invalid, c.input) {
				t.Errorf("call %+v", call)
			}
			if !bytes.Contains(o.Completion.Items[0], []byte(`"input":{}}`)) || !json.Valid(o.Completion.Items[0]) {
				t.Errorf("stored %s", o.Completion.Items[0])
			}
		})
	}
	t.Run("PV-71 invalid UTF-8", func(t *testing.T) {
		t.Parallel()
		bad := strings.Replace(stream(`{"a":"X"}`), "X", "\xff", 1)
		o := decode(bad)
		if o.Err != nil || !strings.Contains(o.Completion.Calls[0].Invalid, "UTF-8") || !json.Valid(o.Completion.Items[0]) {
			t.Errorf("got %+v, %v", o.Completion, o.Err)
		}
	})
	t.Run("PV-71 blank arguments are an empty object and run", func(t *testing.T) {
		t.Parallel()
		o := decode(stream(""))
		if o.Err != nil || o.Completion.Calls[0].Invalid != "" || string(o.Completion.Calls[0].Arguments) != "{}" {
			t.Errorf("got %+v, %v", o.Completion, o.Err)
		}
	})
	t.Run("PV-70 the second call of one id gets ours", func(t *testing.T) {
		t.Parallel()
		o := decode(stream(`{"a":1}`, `{"a":2}`))
		if o.Err != nil {
			t.Fatal(o.Err)
		}
		a, b := o.Completion.Calls[0], o.Completion.Calls[1]
		if a.ID != "toolu_1" || b.ID != "call_000000000002" || b.ProviderID != "toolu_1" || a.ProviderID != "" {
			t.Errorf("calls %+v", o.Completion.Calls)
		}
		if !bytes.Contains(o.Completion.Items[0], []byte(`"id":"call_000000000002","name":"shell","input":{"a":2}}`)) {
			t.Errorf("stored %s", o.Completion.Items[0])
		}
	})
	t.Run("PV-72 a cut stream stores nothing", func(t *testing.T) {
		t.Parallel()
		whole := stream(`{"a":1}`, `{"a":2}`)
		o := decode(whole[:strings.LastIndex(whole, "data: {\"type\":\"message_delta\"")])
		if code, _ := modeltest.Code(o.Err); code != "missing_completion" || o.Completion != nil || o.Usage == nil {
			t.Errorf("got %+v, %v", o.Completion, o.Err)
		}
	})
}

func TestFailures(t *testing.T) {
	t.Parallel()
	many := []string{started}
	for i := range 65 {
		many = append(many, begin(i, textBlock))
	}
	long := []string{started, begin(0, textBlock)}
	for range 13 {
		long = append(long, textDelta(0, strings.Repeat("x", 64<<10)))
	}
	quotes := []string{started, begin(0, textBlock)}
	for range 7 {
		quotes = append(quotes, textDelta(0, strings.Repeat(`"`, 64<<10)))
	}
	for _, c := range []struct {
		name         string
		events       []string
		code, detail string
	}{
		{"PV-18 an overloaded error", []string{started, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`}, "provider_http_529", "Overloaded"},
		{"PV-18 an invalid request", []string{started, `{"type":"error","error":{"type":"invalid_request_error","message":"no"}}`}, "provider_error", "no"},
		{"a rate limit", []string{`{"type":"error","error":{"type":"rate_limit_error"}}`}, "provider_rate_limited", ""},
		{"an API error", []string{`{"type":"error","error":{"type":"api_error"}}`}, "provider_http_500", ""},
		{"a timeout", []string{`{"type":"error","error":{"type":"timeout_error"}}`}, "provider_http_504", ""},
		{"an error without a type", []string{`{"type":"error"}`}, "provider_error", ""},
		{"PV-19 the output limit", []string{started, begin(0, textBlock), textDelta(0, "a"), ended("max_tokens"), stopped}, "provider_incomplete", "max_tokens"},
		{"a full context", []string{started, ended("model_context_window_exceeded"), stopped}, "provider_context_exceeded", "the model's context window is full"},
		{"an unknown stop reason", []string{started, ended("tired"), stopped}, "provider_incomplete", "tired"},
		{
			"a refusal",
			[]string{
				started, begin(0, `{"type":"fallback","from":{"model":"a"},"to":{"model":"b"}}`),
				`{"type":"message_delta","delta":{"stop_reason":"refusal","stop_details":{"type":"refusal","category":"bio","recommended_model":"c"}}}`, stopped,
			},
			"provider_refusal", "switched from a to b; category bio; retry on c",
		},
		{"no blocks", []string{started, ended("end_turn"), stopped}, "empty_completion", "the response holds no content"},
		{"only empty text", []string{started, begin(0, textBlock), ended("end_turn"), stopped}, "empty_completion", "the response holds no content"},
		{"a block out of order", []string{started, begin(1, textBlock)}, "invalid_content_index", "block 1 began where block 0 was next"},
		{"a delta for no block", []string{started, textDelta(0, "a")}, "invalid_content_index", "a delta for block 0 of 0"},
		{"a delta without an index", []string{started, begin(0, textBlock), `{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}`}, "invalid_content_index", "a delta for block -1 of 1"},
		{"a delta on the wrong block", []string{started, begin(0, useBlock), textDelta(0, "a")}, "invalid_content", "a text_delta on a tool_use block"},
		{"a delta on a raw block", []string{started, begin(0, `{"type":"redacted_thinking","data":"x"}`), delta(0, `{"type":"thinking_delta","thinking":"x"}`)}, "invalid_content", "a thinking_delta on a redacted_thinking block"},
		{"an unknown block", []string{started, begin(0, `{"type":"hologram"}`)}, "unsupported_content", `a content block of type "hologram"`},
		{"a call without a name", []string{started, begin(0, `{"type":"tool_use","id":"x"}`)}, "invalid_content", "a tool_use block has no name"},
		{"a search whose input is no object", []string{started, begin(0, `{"type":"server_tool_use","id":"x","name":"web_search"}`), jsonDelta(0, "[]"), ended("pause_turn"), stopped}, "invalid_content", ""},
		{
			"a result that a strict server refuses",
			[]string{started, begin(0, `{"type":"web_search_tool_result","tool_use_id":"x","content":[{"a":1,"a":2}]}`)},
			"invalid_content", "the fields of a web_search_tool_result block name a member twice",
		},
		{
			"redacted thinking that nests too deep for others",
			[]string{started, begin(0, `{"type":"redacted_thinking","data":"x","n":`+strings.Repeat("[", 101)+strings.Repeat("]", 101)+`}`)},
			"invalid_content", "the fields of a redacted_thinking block nest deeper than 100 levels",
		},
		{
			"a citation with a number past every float",
			[]string{started, begin(0, textBlock), delta(0, `{"type":"citations_delta","citation":{"n":1e999}}`)},
			"invalid_content", "the fields of a citation hold a number that is out of range",
		},
		{"only blank text", []string{started, begin(0, textBlock), textDelta(0, "\n "), ended("end_turn"), stopped}, "empty_completion", ""},
		{"only thinking", []string{started, begin(0, `{"type":"thinking","thinking":"t","signature":"s"}`), ended("end_turn"), stopped}, "empty_completion", ""},
		{"an event after the last", []string{started, begin(0, textBlock), textDelta(0, "a"), ended("end_turn"), stopped, started}, "event_after_completion", ""},
		{"an event that is no JSON", []string{"{"}, "invalid_provider_response", ""},
		{"65 blocks", many, "provider_output_limit", ""},
		{"more than 768 KiB", long, "provider_output_limit", ""},
		{"more than 768 KiB once encoded", append(quotes, ended("end_turn"), stopped), "provider_output_limit", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := decode(frames(c.events...))
			code, detail := modeltest.Code(o.Err)
			if code != c.code || c.detail != "" && detail != c.detail || o.Completion != nil {
				t.Errorf("got %s: %s", code, detail)
			}
			if c.events[0] == started && o.Usage == nil {
				t.Error("its usage is lost")
			}
		})
	}
}

func TestPingIsAKeepAlive(t *testing.T) {
	t.Parallel()
	d := newDecoder(modeltest.Request("m"), &model.Report{})
	if content, err := d.Event([]byte(`{"type":"ping"}`), nil); content || err != nil {
		t.Errorf("ping: %v, %v", content, err)
	}
	if content, err := d.Event([]byte(started), nil); !content || err != nil {
		t.Errorf("message_start: %v, %v", content, err)
	}
}

func TestAbsurdUsage(t *testing.T) {
	t.Parallel()
	const big = "9223372036854775807"
	many := strings.Repeat(`{"input_tokens":`+big+`,"output_tokens":`+big+`,"model":"x"},`, 500) + `{"type":"fallback_message","output_tokens":1}`
	for _, c := range []struct {
		name, usage, delta string
		input, output      int64
	}{
		{
			"the largest number there is", `{"input_tokens":` + big + `,"cache_read_input_tokens":` + big + `,"cache_creation_input_tokens":` + big + `}`,
			`{"output_tokens":` + big + `}`, model.MaxCount, model.MaxCount,
		},
		{"a number past every integer", `{"input_tokens":1` + strings.Repeat("0", 300) + `}`, `{"output_tokens":2}`, model.MaxCount, 2},
		{"less than nothing", `{"input_tokens":-1000000,"cache_read_input_tokens":-` + big + `0}`, `{"output_tokens":-7}`, 0, 0},
		{"fractions", `{"input_tokens":1.5,"cache_read_input_tokens":3}`, `{"output_tokens":1e30}`, 3, 0},
		{"texts and nulls", `{"input_tokens":"5","cache_read_input_tokens":null,"cache_creation_input_tokens":[1]}`, `{"output_tokens":{"a":1}}`, 0, 0},
		{"parts of other types", `{"input_tokens":5,"cache_creation":7,"server_tool_use":"x","iterations":{}}`, `{"output_tokens":2,"iterations":[1]}`, 5, 2},
		{"reports of other types", `[]`, `"x"`, 0, 0},
		{"very many attempts", `{"input_tokens":1}`, `{"output_tokens":2,"iterations":[` + many + `]}`, model.MaxCount, model.MaxCount},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := decode(frames(`{"type":"message_start","message":{"usage":`+c.usage+`,"input_transformations":5}}`,
				begin(0, textBlock), textDelta(0, "a"), `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_details":[]},"usage":`+c.delta+`}`, stopped))
			if o.Err != nil {
				t.Fatal(o.Err)
			}
			u := o.Usage
			if u == nil {
				u = &model.Usage{}
			}
			if u.Input != c.input || u.Output != c.output || u.Cached > u.Input || len(u.Models) > maxIterations {
				t.Errorf("got %+v", u)
			}
		})
	}
	for _, none := range []string{`"none"`, `{}`, `{"input_tokens":null,"output_tokens":1.5}`} {
		o := decode(frames(`{"type":"message_start","message":{"usage":`+none+`}}`, begin(0, textBlock), textDelta(0, "a"),
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":`+none+`}`, stopped))
		if o.Err != nil || o.Usage != nil {
			t.Errorf("PV-37 %s is no report: %+v, %v", none, o.Usage, o.Err)
		}
	}
	if o := decode(frames(`{"type":"message_start","message":"x"}`, begin(0, textBlock), textDelta(0, "a"), ended("end_turn"), stopped)); o.Err != nil || o.Usage.Output != 9 {
		t.Errorf("a message of another type: %+v", o)
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	run := func(ttl, usage, delta string) *model.Usage {
		req := modeltest.Request("claude-test-1")
		req.CacheTTL = ttl
		o := decoding(req)(strings.NewReader(frames(`{"type":"message_start","message":{"usage":`+usage+
			`,"input_transformations":[{"type":"thinking_dropped"},{"type":"thinking_dropped"},{"type":"x"}]}}`,
			begin(0, textBlock), textDelta(0, "a"), `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":`+delta+`}`, stopped)))
		if o.Err != nil || o.Completion.ThinkingDropped != 2 {
			t.Fatalf("%+v, %v", o.Completion, o.Err)
		}
		return o.Usage
	}
	if u := run("1h", `{"input_tokens":1,"cache_creation_input_tokens":50}`, `{"output_tokens":3}`); u.CacheWrite1h != 50 {
		t.Errorf("an hour asked for and not split: %+v", u)
	}
	if u := run("1h", `{"input_tokens":1,"cache_creation_input_tokens":50,"cache_creation":{"ephemeral_1h_input_tokens":70}}`, `{"output_tokens":3}`); u.CacheWrite1h != 50 {
		t.Errorf("capped at the creation: %+v", u)
	}
	if u := run("5m", `{"input_tokens":1}`, `{"output_tokens":3,"server_tool_use":{"web_search_requests":2}}`); u.WebSearches != 2 || u.HasCacheWrite || u.Output != 3 {
		t.Errorf("web searches: %+v", u)
	}
	if u := run("5m", `null`, `{"input_tokens":9,"cache_read_input_tokens":1,"output_tokens":3}`); u.Input != 10 || u.Cached != 1 {
		t.Errorf("input only known at the end: %+v", u)
	}
	u := run("5m", `{"input_tokens":9}`, `{"output_tokens":3,"iterations":[{"model":"a","input_tokens":5,"output_tokens":0},`+
		`{"type":"fallback_message","model":"b","input_tokens":6,"cache_read_input_tokens":1,"output_tokens":0}]}`)
	if len(u.Models) != 1 || u.Models[0].Model != "b" || u.Input != 7 || u.Output != 0 {
		t.Errorf("an attempt without output is not billed: %+v", u)
	}
}

func FuzzStream(f *testing.F) {
	for _, name := range []string{"A2.sse", "A5.sse", "S1.sse"} {
		f.Add(modeltest.File(f, name))
	}
	f.Add([]byte(frames(started, begin(0, useBlock), jsonDelta(0, "[1]"), ended("tool_use"), stopped)))
	f.Fuzz(func(t *testing.T, stream []byte) {
		o := decoding(modeltest.Request("claude-test-1"))(bytes.NewReader(stream))
		if (o.Err == nil) != (o.Completion != nil) {
			t.Fatalf("%+v, %v", o.Completion, o.Err)
		}
		if o.Err != nil {
			return
		}
		if err := checkItem(o.Completion); err != nil {
			t.Fatal(err)
		}
	})
}

// checkItem holds a stored item to what a strict provider asks.
func checkItem(c *model.Completion) error {
	item := c.Items[0]
	if len(item) > outputLimit || !json.Valid(item) || !bytes.Equal(item, bytes.ToValidUTF8(item, nil)) {
		return fmt.Errorf("a bad item: %q", item)
	}
	d, err := Codec{}.Describe(item)
	if err != nil || d.Role != "assistant" || len(d.Calls) != len(c.Calls) {
		return fmt.Errorf("described as %+v, %v", d, err)
	}
	if rest := (Codec{}).WithoutThinking(nil, item); len(item)-len(rest) != (Codec{}).ThinkingBytes(item) {
		return fmt.Errorf("thinking bytes of %q", item)
	}
	return nil
}
