package protocol

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func ptr[T any](v T) *T { return &v }

func TestBotRecordHasTheDocumentedFields(t *testing.T) {
	t.Parallel()
	documented := []string{
		"name", "id", "status", "running_turn", "head", "workspace", "provider", "family", "model",
		"instructions", "reasoning", "tools", "allowed", "unavailable_tools", "budget_tokens", "tokens_used", "input_tokens",
		"cached_input_tokens", "cache_hit", "created_by", "created_by_id", "note", "compaction", "elision",
		"compaction_instructions", "compaction_model", "cache_bot", "fallbacks", "closed", "bot_made", "gates", "denials", "settings",
		"sandbox", "writable_roots", "unix_sockets", "network", "exclude_slash_tmp", "exclude_tmpdir_env_var", "rules", "client_tools",
	}
	record, err := Append(nil, &Bot{})
	if err != nil {
		t.Fatal(err)
	}
	if got := memberNames(t, record); !equalStrings(got, documented) {
		t.Errorf("members %v", got)
	}
	var listed []string
	for _, name := range documented {
		if name != "instructions" && name != "compaction_instructions" {
			listed = append(listed, name)
		}
	}
	record, err = (&Bot{Instructions: "secret"}).AppendListed(nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := memberNames(t, record); !equalStrings(got, listed) {
		t.Errorf("listed members %v", got)
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	id := json.RawMessage("7")
	for _, row := range []struct {
		name   string
		result any
		want   string
	}{
		{"a raw result is spliced byte for byte", json.RawMessage(`{"type" : "x\/"}`), `{"type" : "x\/"}`},
		{"no result is null", nil, `null`},
		{"an empty answer is an object", Empty{}, `{}`},
		{
			"a submission", &Submitted{Bot: "Bob", BotID: 3, Turn: 5, RequestID: "r1", Status: "running", Cursor: ptr[int64](17), Handle: "turn:Bob/5"},
			`{"bot":"Bob","bot_id":3,"turn":5,"request_id":"r1","duplicate":false,"status":"running","cursor":17,"handle":"turn:Bob/5"}`,
		},
		{"an unfinished turn is short", Outcome{Turn: 5, Status: "running"}, `{"turn":5,"status":"running","finished":false}`},
		{
			"a finished turn", &Outcome{Turn: 40, Status: "completed", Finished: true, Checkpoint: ptr[int64](904), Text: "17"},
			`{"turn":40,"status":"completed","checkpoint":904,"error":null,"detail":null,"text":"17","text_truncated":false}`,
		},
		{
			"a failed turn has its facts", &Outcome{Turn: 1, Status: "failed", Finished: true, Error: ptr(BudgetExhausted), Extra: Extra{"tokens_used": Raw("220")}},
			`{"turn":1,"status":"failed","checkpoint":null,"error":"budget_exhausted","detail":null,"text":"","text_truncated":false,"tokens_used":220}`,
		},
		{
			"a wait with every kind of outcome", &Waited{Results: map[string]Resolved{
				"a": {Pending: true}, "b": {Err: Fail(UnknownHandle, "x")}, "c": {Raw: Raw(`{"stdout":"\/"}`)},
			}, Pending: []string{"a"}},
			`{"results":{"a":{"pending":true},"b":{"error":"unknown_handle","detail":"x"},"c":{"stdout":"\/"}},"pending":["a"]}`,
		},
		{"nil lists are empty ones", &TurnPage{}, `{"turns":[],"next_after":null}`},
		{
			"oldest_first has next_newer, also when null", &NodePage{Nodes: []Node{{1, 2}}, NextNewer: Null[int64]()},
			`{"nodes":[{"node":1,"turn":2}],"next_from":null,"next_newer":null}`,
		},
		{
			"a step of a served call among prompts.calls",
			[]PromptCall{{CallID: "c", Step: "s", Name: "n", Done: true, OK: true}, {CallID: "c", Name: "n"}},
			`[{"call_id":"c","step":"s","name":"n","done":true,"ok":true},{"call_id":"c","name":"n","node":0,"arguments":"","arguments_bytes":0,"arguments_truncated":false,"done":false,"failed":false}]`,
		},
		{
			"a provider's refused list", &ProviderModels{Providers: map[string]ModelList{"a": {Error: ProviderModelsLimit, Detail: "d"}, "b": {}}},
			`{"providers":{"a":{"error":"provider_models_limit","detail":"d"},"b":{"models":[]}}}`,
		},
		{"a cache hit of three places", struct {
			H float64 `json:"cache_hit"`
		}{0.873}, `{"cache_hit":0.873}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			line, err := AppendResult(nil, id, row.result)
			if err != nil {
				t.Fatal(err)
			}
			if want := `{"id":7,"result":` + row.want + "}\n"; string(line) != want {
				t.Errorf("got %swanted %s", line, want)
			}
		})
	}
	t.Run("a handle that resolved to nothing is an error", func(t *testing.T) {
		t.Parallel()
		if _, err := AppendResult(nil, id, &Waited{Results: map[string]Resolved{"a": {}}}); err == nil {
			t.Error("it was written")
		}
	})
	t.Run("text that is not UTF-8 is written with a mark and told of", func(t *testing.T) {
		t.Parallel()
		line, err := AppendResult(nil, id, &Outcome{Finished: true, Text: "a\xffb"})
		if err == nil || !strings.Contains(string(line), "a\uFFFDb") {
			t.Errorf("got %s %v", line, err)
		}
	})
}

func TestErrorsOnTheWire(t *testing.T) {
	t.Parallel()
	e := Fail(BudgetExhausted, "spent").With("budget_tokens", 200).With("tokens_used", 220)
	line := AppendError(nil, json.RawMessage(`"x"`), e)
	if want := `{"id":"x","error":"budget_exhausted","detail":"spent","budget_tokens":200,"tokens_used":220}` + "\n"; string(line) != want {
		t.Errorf("got %s", line)
	}
	t.Run("CL-81 a code is tested and a fact read", func(t *testing.T) {
		in, err := ParseMessage(line)
		if err != nil {
			t.Fatal(err)
		}
		var n int
		found, err := in.Answer.Err.Fact("tokens_used", &n)
		if !errors.Is(in.Answer.Err, BudgetExhausted) || !found || err != nil || n != 220 {
			t.Errorf("%v %v %v %d", in.Answer.Err, found, err, n)
		}
		if len(in.Answer.Err.Facts) != 2 || string(in.Answer.ID) != `"x"` {
			t.Errorf("got %+v", in.Answer)
		}
	})
	t.Run("facts are not escaped for HTML", func(t *testing.T) {
		e := Fail(InvalidRules, "").With("file", "<&>.rules").With("line", 3)
		if got := string(AppendError(nil, nil, e)); got != `{"id":null,"error":"invalid_rules","file":"<&>.rules","line":3}`+"\n" {
			t.Errorf("got %s", got)
		}
	})
	t.Run("a detail that repeats a whole request is cut, so that the answer fits a line", func(t *testing.T) {
		line := AppendError(nil, json.RawMessage("7"), Fail(UnknownTool, strings.Repeat("\u200b", MaxLine/3)))
		in, err := ParseMessage(line)
		if err != nil {
			t.Fatal(err)
		}
		if d := in.Answer.Err.Detail; len(line) > 2*MaxDetail || !utf8.ValidString(d) || !strings.HasSuffix(d, "\u200b…") {
			t.Errorf("%d bytes: %.40q", len(line), d)
		}
	})
	t.Run("no id is null and no detail is left out", func(t *testing.T) {
		if got := string(AppendError(nil, nil, Fail(InvalidJSON, ""))); got != `{"id":null,"error":"invalid_json"}`+"\n" {
			t.Errorf("got %s", got)
		}
	})
}

func TestAnswersReadBack(t *testing.T) {
	t.Parallel()
	t.Run("a wait's outcomes are told apart", func(t *testing.T) {
		t.Parallel()
		var w Waited
		read(t, `{"results":{"turn:A/1":{"turn":1,"status":"failed","checkpoint":null,"error":"paused","detail":null,"text":"","text_truncated":false,"by":"pat"},
			"proc:1":{"stdout":"x","stderr":"","exit_code":null,"success":false,"left_running":true},
			"proc:2":{"error":"process_lost"},"proc:3":{"pending":true}},"pending":["proc:3"]}`, &w)
		turn, process := w.Results["turn:A/1"].Turn, w.Results["proc:1"].Process
		if turn == nil || !turn.Finished || *turn.Error != Paused || string(turn.Extra["by"]) != `"pat"` {
			t.Errorf("turn %+v", turn)
		}
		if process == nil || process.Stdout != "x" || process.ExitCode != nil || !process.LeftRunning {
			t.Errorf("process %+v", process)
		}
		if !errors.Is(w.Results["proc:2"].Err, ProcessLost) || !w.Results["proc:3"].Pending {
			t.Errorf("got %+v", w.Results)
		}
	})
	t.Run("an unfinished turn is not finished", func(t *testing.T) {
		t.Parallel()
		var o Outcome
		read(t, `{"turn":5,"status":"running","finished":false}`, &o)
		if o.Finished || o.Status != "running" || len(o.Extra) != 0 {
			t.Errorf("got %+v", o)
		}
	})
	t.Run("a name twice within arguments that a model wrote is let pass", func(t *testing.T) {
		t.Parallel()
		var page ApprovalPage
		read(t, `{"approvals":[{"call_id":"c","arguments":{"a":1,"a":2}}],"next_after":null}`, &page)
		if string(page.Approvals[0].Arguments) != `{"a":1,"a":2}` {
			t.Errorf("got %s", page.Approvals[0].Arguments)
		}
	})
	t.Run("what this build does not know is kept and passed on", func(t *testing.T) {
		t.Parallel()
		var b Bot
		read(t, `{"name":"A","id":1,"mood":{"x" :1}}`, &b)
		out, err := Append(nil, &b)
		if err != nil || !strings.HasSuffix(string(out), `,"mood":{"x" :1}}`) {
			t.Errorf("got %s %v", out, err)
		}
	})
	t.Run("a bot's record keeps every value", func(t *testing.T) {
		t.Parallel()
		b := Bot{
			Name: "A", ID: 3, RunningTurn: ptr[int64](9), Allowed: &[]string{"read"}, Gates: []Gate{{Tag: "auto", Tools: []string{"shell"}, ExpireMS: ptr[int64](5)}},
			Denials: map[string]Denials{"auto": {InRow: 1, Window: 50, Turn: 9}}, Settings: Settings{NoteTurns: Set[int64](4)}, Rules: &RulesInfo{Files: 1, Digest: "d"}, CacheHit: 0.5,
		}
		first, err := Append(nil, &b)
		if err != nil {
			t.Fatal(err)
		}
		var again Bot
		read(t, string(first), &again)
		second, err := Append(nil, &again)
		if err != nil || string(first) != string(second) {
			t.Errorf("%v\n%s\n%s", err, first, second)
		}
	})
}

// read passes an answer through the client's reader and decodes its result.
func read(t *testing.T, result string, v any) {
	t.Helper()
	line, err := AppendResult(nil, json.RawMessage("1"), json.RawMessage(result))
	if err != nil {
		t.Fatal(err)
	}
	in, err := ParseMessage(line)
	if err != nil {
		t.Fatal(err)
	}
	if err := in.Answer.Decode(v); err != nil {
		t.Fatal(err)
	}
}

func TestRequestsThatAreNotSent(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		params any
		code   Code
	}{
		{"PR-5 one over the line limit", &Submit{Bot: "B", RequestID: "r", Prompt: strings.Repeat("a", MaxLine)}, InputLineLimitOrTruncation},
		{"a text that is not UTF-8", &Submit{Bot: "B", Prompt: "\xff"}, InvalidJSON},
		{"a raw value that is no JSON", &Step{Arguments: Raw(`{"a":`)}, InvalidJSON},
		{"parameters that are no object", []int{1}, InvalidJSON},
		{"parameters that name the id", map[string]any{"id": 3}, InvalidJSON},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			dst, err := AppendRequest([]byte("kept"), 1, OpSubmit, row.params)
			if CodeOf(err) != row.code || string(dst) != "kept" {
				t.Errorf("got %.20q %v", dst, err)
			}
			var e *Error
			if !errors.As(err, &e) || e.Op != OpSubmit {
				t.Errorf("the op is not named: %+v", e)
			}
		})
	}
}
