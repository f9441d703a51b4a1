package protocol

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func TestParseRequestRefusals(t *testing.T) {
	t.Parallel()
	submit := `"op":"submit","bot":"B","request_id":"r","prompt":"p"`
	for _, row := range []struct {
		name, line string
		code       Code
		detail     string // must be in it
	}{
		{"PR-2 a line that is not JSON", `hello`, InvalidJSON, "not JSON"},
		{"a blank line", ``, InvalidJSON, "blank"},
		{"an array", `[1]`, InvalidJSON, "not an object"},
		{"an object cut off", `{"id":1,"op":"stats"`, InvalidJSON, "not JSON"},
		{"two values", `{"id":1,"op":"stats"} {}`, InvalidJSON, "more than one"},
		{"PR-3 a misspelt field", `{"id":1,"op":"create","bot":"B","modle":"a/b"}`, InvalidJSON, "unknown field modle"},
		{"a field in another case", `{"id":1,"op":"inspect","Bot":"B","bot":"B"}`, InvalidJSON, "unknown field Bot"},
		{"a misspelt field within a value", `{"id":1,` + submit + `,"from":{"bot":"A","turns":1}}`, InvalidJSON, "unknown field from.turns"},
		{"an unknown op", `{"id":1,"op":"teleport"}`, InvalidJSON, "unknown op teleport"},
		{"no op", `{"id":1}`, InvalidJSON, "op is required"},
		{"a null op", `{"id":1,"op":null}`, InvalidJSON, "op must be a string"},
		{"a missing field", `{"id":1,"op":"submit","bot":"B","prompt":"p"}`, InvalidJSON, "request_id is required"},
		{"a required field that is null", `{"id":1,"op":"inspect","bot":null}`, InvalidJSON, "bot is required"},
		{"a wrong type", `{"id":1,"op":"inspect","bot":7}`, InvalidJSON, "bot has the wrong type"},
		{"a wrong type in a list", `{"id":1,"op":"create","bot":"B","tools":["a",1]}`, InvalidJSON, "tools.1 has the wrong type"},
		{"a quoted number", `{"id":1,"op":"result","bot":"B","turn":"5"}`, InvalidJSON, "turn has the wrong type"},
		{"PR-83 an integer with a fraction", `{"id":1,"op":"turns","bot":"B","limit":1.0}`, InvalidJSON, "limit must be an integer"},
		{"an integer with an exponent", `{"id":1,"op":"turns","bot":"B","limit":1e1}`, InvalidJSON, "limit must be an integer"},
		{"an integer of 2^53", `{"id":1,"op":"turns","bot":"B","after":9007199254740992}`, InvalidJSON, "after must be an integer"},
		{"an integer of -2^53", `{"id":1,"op":"turns","bot":"B","after":-9007199254740992}`, InvalidJSON, "after must be an integer"},
		{"an integer of -2^53 in a list", `{"id":1,"op":"history_items","bot":"B","nodes":[1,1.5]}`, InvalidJSON, "nodes.1 must be an integer"},
		{"PR-83 a name twice inside client_tools", `{"id":1,"op":"create","bot":"B","client_tools":[{"name":"a","name":"b"}]}`, InvalidJSON, "duplicate"},
		{"a name twice inside a raw value", `{"id":1,"op":"create","bot":"B","client_tools":[{"name":"a","parameters":{"x":{"y":1,"y":2}}}]}`, InvalidJSON, "duplicate"},
		{"a name twice at the top, one escaped", `{"id":1,"op":"stats","\u006fp":"stats"}`, InvalidJSON, "duplicate"},
		{"PR-83 invalid UTF-8", "{\"id\":1,\"op\":\"inspect\",\"bot\":\"\xff\"}", InvalidJSON, "UTF-8"},
		{"half a surrogate pair", `{"id":1,"op":"inspect","bot":"\ud800"}`, InvalidJSON, "not JSON"},
		{"nesting of 129 levels", `{"id":1,"op":"create","bot":"B","rules":` + strings.Repeat("[", 128) + strings.Repeat("]", 128) + `}`, InvalidJSON, "deeper than 128"},
		{"a negative keep_turns", `{"id":1,"op":"prune","bot":"B","keep_turns":-1}`, InvalidJSON, "keep_turns must not be negative"},
		{"step arguments that are no object", `{"id":1,"op":"approve_step","bot":"B","turn":1,"call_id":"c","request":1,"tag":"t","step":"s","name":"n","arguments":[]}`, InvalidJSON, "arguments must be an object"},
		{"a settings value that is no object", `{"id":1,"op":"create","bot":"B","settings":[]}`, InvalidJSON, "settings has the wrong type"},
		{"fields of an op without any", `{"id":1,"op":"stats","bot":"B"}`, InvalidJSON, "unknown field bot"},

		{"PR-4 a negative id", `{"id":-1,"op":"stats"}`, InvalidRequestID, "id must be"},
		{"PR-4 a fraction as id", `{"id":1.5,"op":"stats"}`, InvalidRequestID, ""},
		{"PR-4 a null id", `{"id":null,"op":"stats"}`, InvalidRequestID, ""},
		{"PR-4 an id of 129 bytes", `{"id":"` + strings.Repeat("a", 129) + `","op":"stats"}`, InvalidRequestID, ""},
		{"an id of 2^53", `{"id":9007199254740992,"op":"stats"}`, InvalidRequestID, ""},
		{"an id with an exponent", `{"id":1e3,"op":"stats"}`, InvalidRequestID, ""},
		{"no id", `{"op":"stats"}`, InvalidRequestID, ""},
		{"a list as id", `{"id":[1],"op":"stats"}`, InvalidRequestID, ""},

		{"the object is read before the id", `{"id":-1,"op":"stats","x":{"a":1,"a":1}}`, InvalidJSON, "duplicate"},
		{"the id is read before the op", `{"op":"teleport","id":-1}`, InvalidRequestID, ""},
		{"the op is read before its fields", `{"id":1,"x":1,"op":"teleport"}`, InvalidJSON, "unknown op"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			r, err := ParseRequest([]byte(row.line))
			if err == nil {
				t.Fatalf("accepted as %+v", r)
			}
			if err.Code != row.code || !strings.Contains(err.Detail, row.detail) {
				t.Errorf("got %v, wanted %s with %q", err, row.code, row.detail)
			}
			if r.ID != nil || r.Params != nil {
				t.Errorf("a refused request has %+v", r)
			}
		})
	}
}

func TestParseRequestIDs(t *testing.T) {
	t.Parallel()
	for _, id := range []string{`0`, `7`, `9007199254740991`, `"a"`, `""`, `"\u0061\/é"`, `"` + strings.Repeat("a", 128) + `"`} {
		t.Run("PR-4 the id "+short(id)+" is echoed as it was written", func(t *testing.T) {
			t.Parallel()
			r, err := ParseRequest([]byte(`{"op":"stats", "id": ` + id + ` }`))
			if err != nil {
				t.Fatal(err)
			}
			line, _ := AppendResult(nil, r.ID, Empty{})
			if want := `{"id":` + id + `,"result":{}}` + "\n"; string(line) != want {
				t.Errorf("got %s", line)
			}
		})
	}
}

// requests has, for each op, a line with all that it requires and no more, and
// the names of what it requires.
var requests = map[string]struct {
	fields   string
	required []string
	params   any
}{
	OpCreate:         {`"bot":"B"`, []string{"bot"}, &Create{}},
	OpFork:           {`"source":"A","bot":"B"`, []string{"source", "bot"}, &Fork{}},
	OpResume:         {``, nil, &Resume{}},
	OpInspect:        {`"bot":"B"`, []string{"bot"}, &Inspect{}},
	OpBots:           {``, nil, &Bots{}},
	OpConfigure:      {`"bot":"B"`, []string{"bot"}, &Configure{}},
	OpDelete:         {`"bot":"B"`, []string{"bot"}, &Delete{}},
	OpPrune:          {`"bot":"B","keep_turns":0`, []string{"bot", "keep_turns"}, &Prune{}},
	OpSubmit:         {`"bot":"B","request_id":"r","prompt":""`, []string{"bot", "request_id", "prompt"}, &Submit{}},
	OpInterrupt:      {`"bot":"B","turn":1`, []string{"bot", "turn"}, &Interrupt{}},
	OpTurns:          {`"bot":"B"`, []string{"bot"}, &Turns{}},
	OpResult:         {`"bot":"B","turn":1`, []string{"bot", "turn"}, &Result{}},
	OpWait:           {``, nil, &Wait{}},
	OpEvents:         {`"bot":"B","after":0,"limit":1`, []string{"bot", "after", "limit"}, &EventsRequest{}},
	OpFollow:         {`"bot":"B"`, []string{"bot"}, &Follow{}},
	OpUnfollow:       {`"bot":"B"`, []string{"bot"}, &Unfollow{}},
	OpHistoryNodes:   {`"bot":"B"`, []string{"bot"}, &HistoryNodes{}},
	OpHistoryItems:   {`"bot":"B"`, []string{"bot"}, &HistoryItems{}},
	OpItem:           {`"bot":"B","node":1`, []string{"bot", "node"}, &ItemRequest{}},
	OpPrompts:        {`"bot":"B","turn":1`, []string{"bot", "turn"}, &PromptsRequest{}},
	OpArtifact:       {`"bot":"B","turn":1,"call_id":"c"`, []string{"bot", "turn", "call_id"}, &ArtifactRequest{}},
	OpApprovals:      {``, nil, &ApprovalsRequest{}},
	OpAnswer:         {`"bot":"B","turn":1,"call_id":"c","request":1`, []string{"bot", "turn", "call_id", "request"}, &Answer{}},
	OpServeApprovals: {``, nil, &ServeApprovals{}},
	OpRenewApprovals: {``, nil, &RenewApprovals{}},
	OpToolCalls:      {``, nil, &ToolCallsRequest{}},
	OpServeTools:     {``, nil, &ServeTools{}},
	OpRenewTools:     {``, nil, &RenewTools{}},
	OpToolResult:     {`"bot":"B","turn":1,"call_id":"c","request":1,"tag":"t"`, []string{"bot", "turn", "call_id", "request", "tag"}, &ToolResult{}},
	OpApproveStep:    {`"bot":"B","turn":1,"call_id":"c","request":1,"tag":"t","step":"s","name":"n","arguments":{}`, []string{"bot", "turn", "call_id", "request", "tag", "step", "name", "arguments"}, &Step{}},
	OpStepResult:     {`"bot":"B","turn":1,"call_id":"c","request":1,"tag":"t","step":"s","ok":false`, []string{"bot", "turn", "call_id", "request", "tag", "step", "ok"}, &StepResult{}},
	OpStats:          {``, nil, &StatsRequest{}},
	OpProviderModels: {``, nil, &ProviderModelsRequest{}},
	OpCompanions:     {``, nil, &CompanionsRequest{}},
	OpPause:          {``, nil, &PauseRequest{}},
	OpShutdown:       {``, nil, &Shutdown{}},
}

func requestLine(op, fields string) string {
	if fields != "" {
		fields = "," + fields
	}
	return `{"id":1,"op":"` + op + `"` + fields + `}`
}

func TestEveryOperation(t *testing.T) {
	t.Parallel()
	if len(requests) != len(operations) {
		t.Errorf("%d operations are tested of %d", len(requests), len(operations))
	}
	for name := range operations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := requests[name]
			r, err := ParseRequest([]byte(requestLine(name, want.fields)))
			if err != nil {
				t.Fatal(err)
			}
			if r.Op != name || reflect.TypeOf(r.Params) != reflect.TypeOf(want.params) {
				t.Errorf("got %s with %T, wanted %T", r.Op, r.Params, want.params)
			}
			for _, field := range want.required {
				line := strings.Replace(requestLine(name, want.fields), `"`+field+`":`, `"`+field+`":null,"zz":`, 1)
				if _, err := ParseRequest([]byte(line)); err == nil || err.Detail != field+" is required" {
					t.Errorf("without %s: got %v", field, err)
				}
			}
			encoded, failed := AppendRequest(nil, 1, name, r.Params)
			if failed != nil {
				t.Fatal(failed)
			}
			again, err := ParseRequest(encoded)
			if err != nil {
				t.Fatalf("%s: %v", encoded, err)
			}
			if name == OpCreate { // the encoder always sends what create requires
				again.Params.(*Create).Absent, again.Params.(*Create).Given = r.Params.(*Create).Absent, r.Params.(*Create).Given
				again.Params.(*Create).Tools = nil
			}
			if name == OpWait {
				again.Params.(*Wait).Handles = nil
			}
			if name == OpHistoryItems {
				again.Params.(*HistoryItems).Nodes = nil
			}
			if !reflect.DeepEqual(again.Params, r.Params) {
				t.Errorf("sent %+v, came as %+v", r.Params, again.Params)
			}
		})
	}
}

func TestParseRequestValues(t *testing.T) {
	t.Parallel()
	parse := func(t *testing.T, line string) Request {
		t.Helper()
		r, err := ParseRequest([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	t.Run("PR-17 create tells which of its required fields were left out", func(t *testing.T) {
		t.Parallel()
		c := parse(t, `{"id":1,"op":"create","bot":"B","instructions":"","model":null}`).Params.(*Create)
		if !c.Absent.Model || c.Absent.Instructions || !c.Absent.Tools {
			t.Errorf("got %+v", c.Absent)
		}
		c = parse(t, `{"id":1,"op":"create","bot":"B","tools":[],"model":""}`).Params.(*Create)
		if c.Absent.Model || !c.Absent.Instructions || c.Absent.Tools || c.Tools == nil {
			t.Errorf("got %+v", c)
		}
	})
	t.Run("create tells whether closed was given", func(t *testing.T) {
		t.Parallel()
		for more, given := range map[string]bool{``: false, `,"closed":null`: false, `,"closed":false`: true, `,"closed":true`: true} {
			if c := parse(t, `{"id":1,"op":"create","bot":"B"`+more+`}`).Params.(*Create); c.Given.Closed != given {
				t.Errorf("%s: given %v", more, c.Given.Closed)
			}
		}
	})
	t.Run("configure tells absent, null and a value apart", func(t *testing.T) {
		t.Parallel()
		c := parse(t, `{"id":1,"op":"configure","bot":"B","workspace":null,"gates":[],"budget_tokens":5}`).Params.(*Configure)
		if !c.Workspace.IsNull() || !c.Reasoning.IsZero() {
			t.Errorf("got %+v", c)
		}
		if gates, ok := c.Gates.Get(); !ok || gates == nil || len(gates) != 0 {
			t.Errorf("gates %v %v", gates, ok)
		}
		if n, ok := c.BudgetTokens.Get(); !ok || n != 5 {
			t.Errorf("budget %v %v", n, ok)
		}
	})
	t.Run("null is as good as absent elsewhere", func(t *testing.T) {
		t.Parallel()
		r := parse(t, `{"id":1,"op":"submit","bot":"B","request_id":"r","prompt":"p","bot_id":null,"from":null,"pictures":null,"delivery":null,"workspace":null}`)
		if want := (&Submit{Bot: "B", RequestID: "r", Prompt: "p"}); !reflect.DeepEqual(r.Params, want) {
			t.Errorf("got %+v", r.Params)
		}
		if r.Has("workspace") {
			t.Error("a null workspace counts as given")
		}
		if limit := parse(t, `{"id":1,"op":"bots","limit":null,"after":null}`).Params.(*Bots).Limit; limit.Or(64) != 64 {
			t.Errorf("limit %v", limit)
		}
	})
	t.Run("an empty text that was given is told from none", func(t *testing.T) {
		t.Parallel()
		r := parse(t, `{"id":1,"op":"submit","bot":"B","request_id":"r","prompt":"p","workspace":"","origin":""}`)
		if !r.Has("workspace") || !r.Has("origin") || r.Has("model") {
			t.Error("got the wrong fields")
		}
	})
	t.Run("an id of 0 never passes for none", func(t *testing.T) {
		t.Parallel()
		s := parse(t, `{"id":1,"op":"submit","bot":"B","request_id":"r","prompt":"p","bot_id":0,"expected_turn":0}`).Params.(*Submit)
		if s.BotID != -1 || s.ExpectedTurn != -1 {
			t.Errorf("got %+v", s)
		}
		a := parse(t, `{"id":1,"op":"answer","bot":"B","turn":1,"call_id":"c","request":1,"lease":0}`).Params.(*Answer)
		if a.Lease != -1 {
			t.Errorf("got %+v", a)
		}
	})
	t.Run("a bad setting is left to the one who knows its code", func(t *testing.T) {
		t.Parallel()
		s := parse(t, `{"id":1,"op":"create","bot":"B","settings":{"note_turns":1.0,"colour":"red","compact_at":50,"cache_ttl":7,"web_search":null}}`).Params.(*Create).Settings
		if s.CompactAt.Or(0) != 50 || !s.WebSearch.IsNull() || !s.NoteTurns.IsZero() || !s.CacheTTL.IsZero() {
			t.Errorf("got %+v", s)
		}
		if len(s.Extra) != 3 || string(s.Extra["note_turns"]) != "1.0" || string(s.Extra["colour"]) != `"red"` || string(s.Extra["cache_ttl"]) != "7" {
			t.Errorf("extra %s", s.Extra)
		}
	})
	t.Run("an escaped field name is that field", func(t *testing.T) {
		t.Parallel()
		i := parse(t, `{"id":1,"op":"inspect","\u0062ot":"B"}`).Params.(*Inspect)
		if i.Bot != "B" {
			t.Errorf("got %+v", i)
		}
	})
	t.Run("nesting of 128 levels is read", func(t *testing.T) {
		t.Parallel()
		deep := strings.Repeat(`{"a":`, 124) + "[]" + strings.Repeat("}", 124)
		parse(t, `{"id":1,"op":"create","bot":"B","client_tools":[{"parameters":`+deep+`}]}`)
		deeper := `{"a":` + deep + `}`
		if _, err := ParseRequest([]byte(`{"id":1,"op":"create","bot":"B","client_tools":[{"parameters":` + deeper + `}]}`)); err == nil {
			t.Error("129 levels were read")
		}
	})
	t.Run("nothing of a request points into its line", func(t *testing.T) {
		t.Parallel()
		line := []byte(`{"id":"x1","op":"approve_step","bot":"B","turn":1,"call_id":"c","request":1,"tag":"t","step":"s","name":"n","arguments":{"k": "v"}}`)
		r, err := ParseRequest(line)
		if err != nil {
			t.Fatal(err)
		}
		for i := range line {
			line[i] = '#'
		}
		s := r.Params.(*Step)
		if string(r.ID) != `"x1"` || s.Bot != "B" || string(s.Arguments) != `{"k": "v"}` {
			t.Errorf("got %s %+v", r.ID, s)
		}
	})
}

func TestRawValuesKeepTheirBytes(t *testing.T) {
	t.Parallel()
	parameters := `{ "type" : "object",  "x":"a\/b <&>\u2028\u0041", "n":1.0e+2 }`
	line := `{"id":1,"op":"create","bot":"B","client_tools":[{"name":"m","description":"<b>","parameters":` + parameters + `,"tag":"t"}]}`
	r, err := ParseRequest([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	tools := r.Params.(*Create).ClientTools
	t.Run("PR-83 parameters leave byte for byte in a record", func(t *testing.T) {
		out, err := AppendResult(nil, r.ID, &Bot{Name: "B", ClientTools: tools})
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(out, []byte(`"parameters":`+parameters+`,"tag":"t"}`)) {
			t.Errorf("got %s", out)
		}
		in, err := ParseMessage(out)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(in.Answer.Result, []byte(parameters)) {
			t.Errorf("came as %s", in.Answer.Result)
		}
	})
	t.Run("they leave byte for byte in a page and in a request", func(t *testing.T) {
		page, err := AppendResult(nil, r.ID, BotPage{Bots: []Bot{{Name: "B", ClientTools: tools}}})
		if err != nil || !bytes.Contains(page, []byte(parameters)) {
			t.Errorf("got %s %v", page, err)
		}
		request, err := AppendRequest(nil, 2, OpCreate, r.Params)
		if err != nil || !bytes.Contains(request, []byte(parameters)) {
			t.Errorf("got %s %v", request, err)
		}
	})
	t.Run("no text is escaped for HTML", func(t *testing.T) {
		out, _ := AppendResult(nil, r.ID, &Outcome{Finished: true, Text: "<&>"})
		if !bytes.Contains(out, []byte(`"text":"<&>"`)) {
			t.Errorf("got %s", out)
		}
	})
	t.Run("a line break between tokens cannot break the line", func(t *testing.T) {
		tool := ClientTool{Name: "m", Parameters: Raw("{\n  \"type\": \"object\"\n}"), Tag: "t"}
		out, err := AppendRequest(nil, 2, OpConfigure, &Configure{Bot: "B", ClientTools: Set([]ClientTool{tool})})
		if err != nil || bytes.Count(out, []byte("\n")) != 1 {
			t.Errorf("got %q %v", out, err)
		}
	})
}

func FuzzParseRequest(f *testing.F) {
	for name, r := range requests {
		f.Add([]byte(requestLine(name, r.fields)))
	}
	f.Add([]byte(`{"id":"a\u0062","op":"create","bot":"B","settings":{"x":1,"note_turns":1.0},"client_tools":[{"parameters":{"a" : "\/"}}],"rules":{"files":[{"name":"a","text":"b"}]}}`))
	f.Add([]byte(`{"id":1,"op":"configure","bot":"B","gates":[{"tag":"t","tools":[],"expire_ms":null}],"rules":null,"settings":{"note_turns":null}}`))
	f.Add([]byte(`{"id":1,"op":"stats","a":{"b":1,"b":2}}`))
	f.Add([]byte("{\"id\":1,\"op\":\"bots\",\"after\":\"\xff\"}"))
	f.Fuzz(func(t *testing.T, line []byte) {
		r, failed := ParseRequest(line)
		if failed != nil {
			if failed.Code != InvalidJSON && failed.Code != InvalidRequestID {
				t.Fatalf("refused with %v", failed)
			}
			if answer := AppendError(nil, nil, failed); bytes.Count(answer, []byte("\n")) != 1 {
				t.Fatalf("answered %q", answer)
			}
			return
		}
		if strings.Contains(string(line), "\n") {
			return // no line
		}
		// What was read can be sent, and is then read as the same.
		sent, err := AppendRequest(nil, 1, r.Op, r.Params)
		if err != nil {
			t.Fatalf("%q was read and cannot be sent: %v", line, err)
		}
		again, failed := ParseRequest(sent)
		if failed != nil {
			t.Fatalf("%q was sent as %q: %v", line, sent, failed)
		}
		resent, err := AppendRequest(nil, 1, again.Op, again.Params)
		if err != nil || !bytes.Equal(sent, resent) {
			t.Fatalf("%q became %q (%v)", sent, resent, err)
		}
	})
}

func BenchmarkParseRequest(b *testing.B) {
	line := []byte(fmt.Sprintf(`{"id":42,"op":"submit","bot":"Ada","bot_id":12,"request_id":"run-1","prompt":%q,"delivery":"queue","from":{"bot":"Bob","turn":7}}`, strings.Repeat("word ", 100)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseRequest(line); err != nil {
			b.Fatal(err)
		}
	}
}
