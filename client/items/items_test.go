package items

import (
	"encoding/json"
	"strings"
	"testing"
)

// short is an item's parts in a line: kind, name, call and text of each.
func short(item string) string {
	var got []string
	for _, p := range Parts(json.RawMessage(item)) {
		fields := []string{string(p.Kind)}
		for _, f := range []string{p.Name, p.CallID} {
			if f != "" {
				fields = append(fields, f)
			}
		}
		got = append(got, strings.Join(append(fields, p.Text), ":"))
	}
	return strings.Join(got, " ")
}

func TestParts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, item, want string }{
		{"a user's message, Messages", `{"role":"user","content":[{"type":"text","text":"hi"}]}`, "user:hi"},
		{
			"an answer, Messages", `{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"yes"},{"type":"tool_use","id":"c","name":"shell","input":{"command":"ls"}}]}`,
			`thinking:hm assistant:yes tool_call:shell:c:{"command":"ls"}`,
		},
		{"hidden thinking, Messages", `{"role":"assistant","content":[{"type":"redacted_thinking","data":"x"},{"type":"text","text":"yes"}]}`, "assistant:yes"},
		{"a search of the provider's, Messages", `{"role":"assistant","content":[{"type":"server_tool_use","id":"s","name":"web_search","input":{"query":"go"}}]}`, `tool_call:web_search:s:{"query":"go"}`},
		{"a result, Messages", `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"out"}]}`, "tool_result:c:out"},
		{"a result with blocks, Messages", `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"out"}]}]}`, "tool_result:c:out"},
		{"results and a text behind them, Messages", `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"out"},{"type":"text","text":"go on"}]}`, "tool_result:c:out user:go on"},
		{"a picture, Messages", `{"role":"user","content":[{"type":"image","source":{}},{"type":"text","text":"see"}]}`, "user:see"},
		{"a user's message, Responses", `{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}`, "user:hi"},
		{"an answer, Responses", `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"yes"}]}`, "assistant:yes"},
		{"a refusal, Responses", `{"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"no"}]}`, "assistant:no"},
		{"a call, Responses", `{"type":"function_call","call_id":"c","name":"read","arguments":"{\"path\":\"a\"}"}`, `tool_call:read:c:{"path":"a"}`},
		{"a result, Responses", `{"type":"function_call_output","call_id":"c","output":"out"}`, "tool_result:c:out"},
		{"a result in parts, Responses", `{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"out"}]}`, "tool_result:c:out"},
		{"reasoning, Responses", `{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"x"}`, "thinking:hm"},
		{"a user's message, Chat", `{"role":"user","content":"hi"}`, "user:hi"},
		{"an answer, Chat", `{"role":"assistant","content":"yes","tool_calls":[{"id":"c","type":"function","function":{"name":"shell","arguments":"{}"}}]}`, "assistant:yes tool_call:shell:c:{}"},
		{"a call alone, Chat", `{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"shell","arguments":"{}"}}]}`, "tool_call:shell:c:{}"},
		{"a result, Chat", `{"role":"tool","tool_call_id":"c","content":"out"}`, "tool_result:c:out"},
		{"a user's message, scripted", `{"role":"user","text":"hi"}`, "user:hi"},
		{"an answer, scripted", `{"role":"assistant","text":"yes","thinking":"hm","calls":[{"id":"c","tool":"shell","arguments":{"command":"ls"}}]}`, `thinking:hm assistant:yes tool_call:shell:c:{"command":"ls"}`},
		{"a result, scripted", `{"role":"tool","id":"c","output":"out"}`, "tool_result:c:out"},
		{"something else", `{"type":"web_search_call","id":"w"}`, "other:"},
		{"no object", `[1]`, "other:"},
		{"no JSON", `{"role":`, "other:"},
		{"a message without text", `{"role":"assistant","content":[]}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := short(c.item); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// An item comes from outside: it costs no more than it is long, whatever it is.
func FuzzParts(f *testing.F) {
	f.Add(`{"role":"assistant","content":[{"type":"text","text":"x"}]}`)
	f.Add(`{"type":"function_call_output","output":[{"text":"y"}]}`)
	f.Add(`{"role":"assistant","calls":[{"id":"c","tool":"t","arguments":{"a":[1]}}]}`)
	f.Fuzz(func(t *testing.T, item string) {
		list, size := Parts(json.RawMessage(item)), 0
		for _, p := range list {
			size += len(p.Text) + len(p.Name)
			if p.Kind == "" {
				t.Errorf("a part without a kind: %+v", p)
			}
		}
		// U+FFFD, three bytes, stands for one that is no UTF-8; a result's text
		// may come from two members.
		if len(list) > len(item)+1 || size > 3*len(item) {
			t.Errorf("%d parts of %d bytes in all from %d", len(list), size, len(item))
		}
	})
}
