package anthropic

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"agent/internal/model"
	"agent/internal/model/modeltest"
)

var shell = model.ToolDef{
	Name: "shell", Description: "Run a command",
	Parameters: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}`),
}

func body(t *testing.T, req *model.Request, bedrock bool) string {
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
	b := append(append(prefix(req, bedrock), items...), suffix...)
	if !json.Valid(b) {
		t.Fatalf("no JSON: %s", b)
	}
	return string(b)
}

func TestRequest(t *testing.T) {
	t.Parallel()
	codec := Codec{}
	user := codec.User("List files & say <done>", nil)
	t.Run("fixture A1 byte for byte", func(t *testing.T) {
		t.Parallel()
		req := modeltest.Request("claude-test-1", user)
		req.Instructions, req.Reasoning, req.Tools = "Be brief.", "low", codec.Tools([]model.ToolDef{shell})
		if got := body(t, req, false); got != string(modeltest.File(t, "A1.req.json")) {
			t.Errorf("got %s", got)
		}
	})
	t.Run("PV-13 the next request holds the stored item unchanged", func(t *testing.T) {
		t.Parallel()
		o := decode(string(modeltest.File(t, "A2.sse")))
		result := codec.Result(model.Result{CallID: o.Completion.Calls[0].ID, Output: "a.txt\n"})
		got := body(t, modeltest.Request("claude-test-1", user, o.Completion.Items[0], result), false)
		if !strings.Contains(got, string(modeltest.File(t, "A2.item"))) || !strings.Contains(got, `"signature":"c2lnLTE+/w=="`) ||
			!strings.HasSuffix(got, string(modeltest.File(t, "A3.item"))+"]}") {
			t.Errorf("got %s", got)
		}
	})
	for _, c := range []struct {
		name    string
		set     func(r *model.Request)
		bedrock bool
		has     []string
		lacks   []string
	}{
		{
			"PV-14 without instructions and tools", func(r *model.Request) {}, false,
			[]string{`"stream":true,"cache_control":{"type":"ephemeral"},"messages"`},
			[]string{"system", "tools", "tool_choice", "thinking", "fallbacks"},
		},
		{
			"PV-15 an hour's cache", func(r *model.Request) { r.CacheTTL, r.Instructions = "1h", "x" }, false,
			[]string{`"text":"x","cache_control":{"type":"ephemeral","ttl":"1h"}}]`, `"stream":true,"cache_control":{"type":"ephemeral","ttl":"1h"}`},
			nil,
		},
		{
			"calls disabled", func(r *model.Request) { r.Tools, r.AllowTools = codec.Tools([]model.ToolDef{shell}), false }, false,
			[]string{`],"tool_choice":{"type":"none"}`},
			nil,
		},
		{
			"calls disabled without tools", func(r *model.Request) { r.Tools, r.AllowTools = json.RawMessage("[]"), false }, false,
			nil,
			[]string{"tool"},
		},
		{"PV-20 fallbacks", func(r *model.Request) { r.Fallbacks = true }, false, []string{`,"fallbacks":"default","messages"`}, nil},
		{"fallbacks are not Bedrock's", func(r *model.Request) { r.Fallbacks, r.WebSearch = true, "live" }, true, nil, []string{"fallbacks", "web_search"}},
		{
			"web search alone", func(r *model.Request) { r.WebSearch = "live" }, false,
			[]string{`"tools":[{"type":"web_search_20250305","name":"web_search","max_uses":8}],"messages"`},
			nil,
		},
		{
			"web search after the tools", func(r *model.Request) { r.WebSearch, r.Tools = "live", codec.Tools([]model.ToolDef{shell}) }, false,
			[]string{`}},{"type":"web_search_20250305"`},
			nil,
		},
		{"a cached web search is not offered", func(r *model.Request) { r.WebSearch = "cached" }, false, nil, []string{"web_search"}},
		{"an output cap", func(r *model.Request) { r.MaxOutput = 4096 }, false, []string{`"max_tokens":4096,`}, nil},
		{
			"a legacy model has a budget", func(r *model.Request) { r.Model, r.Reasoning = "claude-sonnet-4-5-20250929", "max" }, false,
			[]string{`"max_tokens":64000`, `"thinking":{"type":"enabled","budget_tokens":16384,"block_binding":{"prefix_mismatch_behavior":"drop_block"}},"messages"`},
			[]string{"output_config"},
		},
		{
			"a budget stays below the cap", func(r *model.Request) { r.Model, r.Reasoning, r.MaxOutput = "claude-opus-4-1", "medium", 2048 }, false,
			[]string{`"budget_tokens":1024`},
			nil,
		},
		{
			"an old model has no thinking", func(r *model.Request) { r.Model, r.Reasoning = "claude-3-5-haiku", "high" }, false,
			[]string{`"max_tokens":8192`},
			[]string{"thinking", "effort"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			req := modeltest.Request("claude-test-1", []byte(`{"a":1}`))
			c.set(req)
			got := body(t, req, c.bedrock)
			for _, part := range c.has {
				if !strings.Contains(got, part) {
					t.Errorf("%s is missing in %s", part, got)
				}
			}
			for _, part := range c.lacks {
				if strings.Contains(got, part) {
					t.Errorf("%s stands in %s", part, got)
				}
			}
		})
	}
}

func TestModels(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]struct {
		thinking thinking
		limit    int64
	}{
		"claude-test-1":                             {adaptive, 128000},
		"claude-opus-4-6":                           {adaptive, 128000},
		"claude-sonnet-4-6":                         {adaptive, 128000},
		"anthropic.claude-sonnet-4-6":               {adaptive, 128000},
		"claude-haiku-4-5-20251001":                 {budgeted, 64000},
		"us.anthropic.claude-sonnet-4-5-v1:0":       {budgeted, 64000},
		"claude-sonnet-4-20250514":                  {budgeted, 64000},
		"claude-sonnet-4-0":                         {budgeted, 64000},
		"claude-opus-4-5":                           {budgeted, 64000},
		"claude-opus-4-1-20250805":                  {budgeted, 32000},
		"claude-opus-4-20250514":                    {budgeted, 32000},
		"claude-3-7-sonnet-latest":                  {budgeted, 64000},
		"claude-3-5-sonnet-20241022":                {unthinking, 8192},
		"claude-3-opus-20240229":                    {unthinking, 4096},
		"claude-2.1":                                {unthinking, 4096},
		"anthropic.claude-3-haiku-20240307-v1:0":    {unthinking, 4096},
		"a-local-model":                             {adaptive, 128000},
		"global.anthropic.claude-opus-4-5-20251101": {budgeted, 64000},
	} {
		if got := thinkingOf(id); got != want.thinking {
			t.Errorf("%s: thinking %v", id, got)
		}
		if got := maxTokens(&model.Request{Model: id}); got != want.limit {
			t.Errorf("%s: limit %d", id, got)
		}
	}
	for id, want := range map[string]string{"claude-a-20250514": "claude-a", "claude-a": "claude-a", "claude-a-2025-05-14": "claude-a-2025-05-14"} {
		if got := poolKey(id, false); got != want {
			t.Errorf("pool of %s: %s", id, got)
		}
	}
}

func TestCodec(t *testing.T) {
	t.Parallel()
	c := Codec{}
	picture := model.Picture{Hash: [32]byte{1}, MediaType: "image/png", Bytes: 3}
	image := `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + picture.Placeholder() + `"}}`
	for name, got := range map[string][2]string{
		"user":              {string(c.User("a", nil)), `{"role":"user","content":[{"type":"text","text":"a"}]}`},
		"user with picture": {string(c.User("a", []model.Picture{picture})), `{"role":"user","content":[{"type":"text","text":"a"},` + image + `]}`},
		"only pictures":     {string(c.User("", []model.Picture{picture, picture})), `{"role":"user","content":[` + image + `,` + image + `]}`},
		"marked":            {string(c.UserMarked("a", "1h")), `{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral","ttl":"1h"}}]}`},
		"result":            {string(c.Result(model.Result{CallID: "i", Output: "<o>"})), `{"role":"user","content":[{"type":"tool_result","tool_use_id":"i","content":"<o>"}]}`},
		"failed result":     {string(c.Result(model.Result{CallID: "i", Output: "o", Failed: true})), `{"role":"user","content":[{"type":"tool_result","tool_use_id":"i","content":"o","is_error":true}]}`},
		"result with picture": {
			string(c.Result(model.Result{CallID: "i", Output: "o", Pictures: []model.Picture{picture}})),
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"i","content":[{"type":"text","text":"o"},` + image + `]}]}`,
		},
		"no tools": {string(c.Tools(nil)), ""},
	} {
		if got[0] != got[1] {
			t.Errorf("%s: got %s", name, got[0])
		}
	}
	for item, want := range map[string]model.Described{
		string(c.User("hi", []model.Picture{picture})):                                               {Role: "user", Text: "hi"},
		string(c.Result(model.Result{CallID: "i", Output: "o"})):                                     {Role: "tool", Text: "o", CallID: "i"},
		string(c.Result(model.Result{CallID: "i", Output: "o", Pictures: []model.Picture{picture}})): {Role: "tool", Text: "o", CallID: "i"},
	} {
		got, err := c.Describe([]byte(item))
		if err != nil || got.Role != want.Role || got.Text != want.Text || got.CallID != want.CallID {
			t.Errorf("%s: got %+v, %v", item, got, err)
		}
	}
	d, err := c.Describe(modeltest.File(t, "A2.item"))
	if err != nil || d.Role != "assistant" || d.Text != "Looking." || len(d.Calls) != 1 ||
		d.Calls[0].ID != "toolu_01" || string(d.Calls[0].Arguments) != `{"command": "ls"}` {
		t.Errorf("A2: got %+v, %v", d, err)
	}
	if _, err := c.Describe([]byte(`{`)); err == nil {
		t.Error("half an item was described")
	}
}

func TestWithoutThinking(t *testing.T) {
	t.Parallel()
	const (
		th = `{"type":"thinking","thinking":"a,]}","signature":"s"}`
		re = `{"data":"x","type":"redacted_thinking"}`
		tx = `{"type":"text","text":"\"type\":\"thinking\""}`
	)
	for _, c := range []struct{ name, content, want string }{
		{"a leading run goes with its separators", th + "," + re + "," + tx, tx},
		{"blocks between others go too", tx + "," + th + "," + tx, tx + "," + tx},
		{"a trailing block goes", tx + "," + re, tx},
		{"no thinking changes nothing", tx, tx},
	} {
		t.Run("PV-16 "+c.name, func(t *testing.T) {
			t.Parallel()
			item := []byte(`{"role":"assistant","content":[` + c.content + `]}`)
			want := `{"role":"assistant","content":[` + c.want + `]}`
			got := Codec{}.WithoutThinking([]byte("dst"), item)
			if string(got) != "dst"+want {
				t.Errorf("got %s", got)
			}
			if n := (Codec{}).ThinkingBytes(item); n != len(item)-len(want) {
				t.Errorf("%d bytes, want %d", n, len(item)-len(want))
			}
		})
	}
	only := []byte(`{"role":"assistant","content":[` + th + `]}`)
	if n := (Codec{}).ThinkingBytes(only); n != len(only) || len(Codec{}.WithoutThinking(nil, only)) != 0 {
		t.Errorf("an item of thinking alone: %d", n)
	}
	user := []byte(`{"role":"user","content":[{"type":"thinking"}]}`)
	if n := (Codec{}).ThinkingBytes(user); n != 0 || !bytes.Equal(Codec{}.WithoutThinking(nil, user), user) {
		t.Error("a user's item was cut")
	}
}

func TestBlankText(t *testing.T) {
	t.Parallel()
	c := Codec{}
	picture := model.Picture{MediaType: "image/png", Bytes: 3}
	for _, row := range []struct{ name, item string }{
		{"a user's message", string(c.User(" \n", nil))},
		{"a marked one", string(c.UserMarked("", "5m"))},
		{"a message with a picture", string(c.User(" ", []model.Picture{picture}))},
		{"a result with a picture", string(c.Result(model.Result{CallID: "c", Output: "\t", Pictures: []model.Picture{picture}}))},
	} {
		if strings.Contains(row.item, `"text":" `) || strings.Contains(row.item, `"text":""`) || strings.Contains(row.item, `"text":"\t`) {
			t.Errorf("%s has a blank block: %s", row.name, row.item)
		}
	}
	if p := string(prefix(&model.Request{Model: "m", Instructions: " \n"}, false)); strings.Contains(p, "system") {
		t.Errorf("blank instructions are sent: %s", p)
	}
}
