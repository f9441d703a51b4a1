package anthropic

import (
	"strings"
	"testing"

	"agent/internal/model"
	"agent/internal/model/modeltest"
)

// picture is a file of one pixel, as the body has it where it is sent.
const picture = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

func withPicture(item []byte, p model.Picture) []byte {
	return []byte(strings.ReplaceAll(string(item), p.Placeholder(), picture))
}

// TestOracleFiles keeps true what the module in oracle/ gives to the vendor's
// own library.
func TestOracleFiles(t *testing.T) {
	t.Parallel()
	codec := Codec{}
	tools := codec.Tools([]model.ToolDef{shell})
	user := codec.User("List files & say <done>", nil)
	shown := model.Picture{MediaType: "image/png", Bytes: 70}
	pictured := withPicture(codec.User("Look.", []model.Picture{shown}), shown)
	heard := decode(string(modeltest.File(t, "A2.sse"))).Completion
	fellBack := decode(string(modeltest.File(t, "A5.sse"))).Completion
	searched := decode(streams["search"]).Completion
	redacted := decode(streams["redacted"]).Completion
	result := codec.Result(model.Result{CallID: heard.Calls[0].ID, Output: "a.txt\n"})
	failed := codec.Result(model.Result{CallID: heard.Calls[0].ID, Output: "no", Failed: true})
	seen := withPicture(codec.Result(model.Result{CallID: heard.Calls[0].ID, Output: "see", Pictures: []model.Picture{shown}}), shown)

	names := []string{}
	request := func(name, id string, items [][]byte, set func(*model.Request), bedrock bool) {
		names = append(names, name)
		req := modeltest.Request(id, items...)
		if set != nil {
			set(req)
		}
		modeltest.OracleRequest(t, "anthropic", name, []byte(body(t, req, bedrock)))
	}
	all := func(items ...[]byte) [][]byte { return items }
	request("A1", "claude-test-1", all(user), func(r *model.Request) { r.Instructions, r.Reasoning, r.Tools = "Be brief.", "low", tools }, false)
	request("bare", "claude-test-1", all(user), nil, false)
	request("hour", "claude-test-1", all(user), func(r *model.Request) { r.CacheTTL, r.Instructions = "1h", "x" }, false)
	request("no-calls", "claude-test-1", all(user), func(r *model.Request) { r.Tools, r.AllowTools = tools, false }, false)
	request("budget", "claude-haiku-4-5", all(user), func(r *model.Request) { r.Reasoning = "max" }, false)
	request("effort", "claude-test-1", all(user), func(r *model.Request) { r.Reasoning, r.MaxOutput = "xhigh", 4096 }, false)
	request("fallbacks", "claude-test-1", all(user), func(r *model.Request) { r.Fallbacks = true }, false)
	request("search", "claude-test-1", all(user), func(r *model.Request) { r.WebSearch, r.Tools = "live", tools }, false)
	request("bedrock", "anthropic.claude-test-1", all(user), func(r *model.Request) { r.Reasoning, r.Tools = "high", tools }, true)
	request("marked", "claude-test-1", all(codec.UserMarked("a summary", "5m"), codec.UserMarked("a note", "1h"), user), nil, false)
	request("round", "claude-test-1", all(user, heard.Items[0], result), func(r *model.Request) { r.Tools = tools }, false)
	request("failed", "claude-test-1", all(user, heard.Items[0], failed), func(r *model.Request) { r.Tools = tools }, false)
	request("pictures", "claude-test-1", all(pictured, heard.Items[0], seen), func(r *model.Request) { r.Tools = tools }, false)
	request("fell-back", "claude-test-1", all(user, fellBack.Items[0], user), nil, false)
	request("searched", "claude-test-1", all(user, searched.Items[0], user), nil, false)
	request("redacted", "claude-test-1", all(user, redacted.Items[0], user), nil, false)
	refresh := modeltest.Request("claude-test-1", user)
	names = append(names, "refresh")
	modeltest.OracleRequest(t, "anthropic", "refresh", append(append(prefixFor(refresh, false, 0, false), user...), suffix...))

	for name, stream := range streams {
		names = append(names, "stream-"+name)
		named := modeltest.Named(t, stream)
		modeltest.OracleStream(t, "anthropic", "stream-"+name, named, decode(string(named)))
	}
	names = append(names, "stream-A2")
	a2 := modeltest.File(t, "A2.sse")
	modeltest.OracleStream(t, "anthropic", "stream-A2", a2, decode(string(a2)))
	modeltest.OracleHas(t, "anthropic", names...)
}

// streams are whole answers, with the fields that the vendor's library wants.
var streams = map[string]string{
	"search": frames(whole, begin(0, `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}`),
		delta(0, `{"type":"input_json_delta","partial_json":"{\"query\":\"go 1.26\"}"}`), blockStop(0),
		begin(1, `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https://example.com/a","title":"A","encrypted_content":"RW5j+/=","page_age":null}]}`), blockStop(1),
		begin(2, `{"type":"text","text":"","citations":[]}`),
		delta(2, `{"type":"citations_delta","citation":{"type":"web_search_result_location","url":"https://example.com/a","title":"A","encrypted_index":"SW5k","cited_text":"x"}}`),
		textDelta(2, "Yes."), blockStop(2), ended("end_turn"), stopped),
	"redacted": frames(whole, begin(0, `{"type":"redacted_thinking","data":"cmVk+/=="}`), blockStop(0), begin(1, textBlock),
		textDelta(1, "Hidden <thoughts> & \u00e9\u4e16\U0001F600."), blockStop(1), ended("end_turn"), stopped),
	"calls": frames(whole, begin(0, textBlock), textDelta(0, "Two: "), textDelta(0, "a and b."), blockStop(0),
		begin(1, `{"type":"tool_use","id":"toolu_a","name":"shell","input":{}}`), jsonDelta(1, `{"command":`), jsonDelta(1, `"a \"q\" <b>"}`), blockStop(1),
		begin(2, `{"type":"tool_use","id":"toolu_b","name":"read","input":{}}`), blockStop(2), ended("tool_use"), stopped),
}

const whole = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-test-1","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"cache_read_input_tokens":7,"cache_creation_input_tokens":5,"output_tokens":1}}}`

func blockStop(i int) string {
	return `{"type":"content_block_stop","index":` + string(rune('0'+i)) + `}`
}
