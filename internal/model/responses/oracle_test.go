package responses

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
	user := codec.User("List files", nil)
	shown := model.Picture{MediaType: "image/png", Bytes: 70}
	r2 := string(modeltest.File(t, "R2.sse"))
	heard, searched := decode(r2).Completion, decode(streams["search"]).Completion
	result := codec.Result(model.Result{CallID: heard.Calls[0].ID, Output: "a.txt\n"})
	seen := withPicture(codec.Result(model.Result{CallID: heard.Calls[0].ID, Output: "see", Pictures: []model.Picture{shown}}), shown)

	names := []string{}
	request := func(name string, items [][]byte, set func(*model.Request)) {
		names = append(names, name)
		req := modeltest.Request("gpt-test-1", items...)
		if set != nil {
			set(req)
		}
		modeltest.OracleRequest(t, "responses", name, []byte(body(t, req)))
	}
	after := func(items ...[]byte) [][]byte { return append(append([][]byte{user}, heard.Items...), items...) }
	request("R1", [][]byte{user}, func(r *model.Request) {
		r.Instructions, r.Reasoning, r.CacheKey, r.Tools = "Be brief.", "low", "st1-7", tools
	})
	request("bare", [][]byte{user}, nil)
	request("no-calls", [][]byte{user}, func(r *model.Request) { r.Tools, r.AllowTools = tools, false })
	request("effort", [][]byte{user}, func(r *model.Request) { r.Reasoning, r.MaxOutput = "max", 4096 })
	request("search", [][]byte{user}, func(r *model.Request) { r.WebSearch = "live" })
	request("cached-search", [][]byte{user}, func(r *model.Request) { r.WebSearch, r.Tools = "cached", tools })
	request("round", after(result), func(r *model.Request) { r.Tools = tools })
	request("pictures", append(after(seen), withPicture(codec.User("Look.", []model.Picture{shown}), shown)), func(r *model.Request) { r.Tools = tools })
	request("marked", [][]byte{codec.UserMarked("a note", "5m"), user}, nil)
	request("searched", append([][]byte{user}, append(searched.Items, user)...), nil)

	for name, stream := range streams {
		names = append(names, "stream-"+name)
		named := modeltest.Named(t, stream)
		modeltest.OracleStream(t, "responses", "stream-"+name, named, decode(string(named)))
	}
	names = append(names, "stream-R2")
	modeltest.OracleStream(t, "responses", "stream-R2", []byte(r2), decode(r2))
	modeltest.OracleHas(t, "responses", names...)
}

// streams are whole answers.
var streams = map[string]string{
	"search": frames(
		done(`{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"go 1.26"}}`),
		textDelta("Yes, <b> & \u00e9\U0001F600."),
		done(`{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Yes, <b> & \u00e9\ud83d\ude00.","annotations":[{"type":"url_citation","start_index":0,"end_index":3,"url":"https://example.com/a","title":"A"}]}]}`),
		`{"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[],"usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":4},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":14}}}`),
	"calls": frames(
		done(`{"type":"function_call","id":"fc_1","call_id":"call_1","name":"shell","arguments":"{\"command\":\"a \\\"q\\\" <b>\"}","status":"completed"}`),
		done(`{"type":"function_call","id":"fc_2","call_id":"call_2","name":"read","arguments":"{}","status":"completed"}`),
		`{"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[],"usage":{"input_tokens":9,"output_tokens":5}}}`),
}
