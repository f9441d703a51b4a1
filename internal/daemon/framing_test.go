package daemon_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"agent/protocol"
)

// echoScript answers every prompt with itself. It is no "any" script, which
// would match only where no other does on any item.
const echoScript = `[{"match":{"regex":"(?s)^(.*)$"},"repeat_last":true,"steps":[{"text":"${prompt}"}]}]`

func TestFraming(t *testing.T) {
	t.Parallel()
	h := newHost(t, echoScript)
	p := h.start()

	t.Run("PR-1 a fresh connection gets one ready line with the protocol and a live pid", func(t *testing.T) {
		var r protocol.Ready
		if err := json.Unmarshal(p.dial().ready, &r); err != nil {
			t.Fatal(err)
		}
		if r.Protocol != 3 || r.PID != p.cmd.Process.Pid || syscall.Kill(r.PID, 0) != nil || len(r.Store.Identity) != 32 {
			t.Errorf("ready %+v", r)
		}
	})
	t.Run("PR-2 a line that is not JSON is refused and the next request answered", func(t *testing.T) {
		k := p.dial()
		k.write("nonsense\n")
		l := k.read()
		if l.str("error") != "invalid_json" || string(l.fields["id"]) != "null" {
			t.Errorf("got %s", l.raw)
		}
		k.ask(nil, "bots", "")
	})
	t.Run("PR-3 a misspelt field is refused and nothing is created", func(t *testing.T) {
		k := p.dial()
		k.write(`{"id":1,"op":"create","bot":"Mis","modle":"s/m","instructions":"","tools":[]}` + "\n")
		if l := k.read(); l.str("error") != "invalid_json" || !strings.Contains(l.str("detail"), "modle") {
			t.Errorf("got %s", l.raw)
		}
		k.refused(protocol.BotNotFound, "inspect", `"bot":"Mis"`)
	})
	t.Run("PR-4 ids outside the rule are refused, those within it echoed", func(t *testing.T) {
		k := p.dial()
		long := strings.Repeat("x", 129)
		for _, id := range []string{"-1", "1.5", "null", `"` + long + `"`} {
			k.write(`{"id":` + id + `,"op":"stats"}` + "\n")
			if l := k.read(); l.str("error") != "invalid_request_id" || string(l.fields["id"]) != "null" {
				t.Errorf("id %s: %s", id, l.raw)
			}
		}
		for _, id := range []string{"0", `"` + long[:128] + `"`} {
			k.write(`{"id":` + id + `,"op":"stats"}` + "\n")
			if l := k.read(); string(l.fields["id"]) != id || l.fields["result"] == nil {
				t.Errorf("id %s: %s", id, l.raw[:80])
			}
		}
	})
	t.Run("PR-5 an overlong line ends its session and no other", func(t *testing.T) {
		k, other := p.dial(), p.dial()
		go k.c.Write([]byte(strings.Repeat("x", 1<<20) + "\n"))
		if l := k.read(); l.str("error") != "input_line_limit_or_truncation" || string(l.fields["id"]) != "null" {
			t.Errorf("got %s", l.raw)
		}
		if _, err := k.tryRead(); err == nil {
			t.Error("the session goes on")
		}
		other.ask(nil, "bots", "")
	})
	t.Run("PR-84 requests sent whole before a half-close are answered", func(t *testing.T) {
		k := p.dial()
		k.bot("Half", h.workspace, "")
		k.write(`{"id":"s","op":"submit",` + submission("Half", "r", "x", "") + `}` + "\n" + `{"id":"b","op":"bots"}` + "\n")
		k.c.(interface{ CloseWrite() error }).CloseWrite()
		if a, b := k.read(), k.read(); string(a.fields["id"]) != `"s"` || string(b.fields["id"]) != `"b"` || b.fields["result"] == nil {
			t.Errorf("got %s and %s", a.raw, b.raw)
		}
		if _, err := k.tryRead(); err == nil {
			t.Error("the session goes on")
		}
	})
	t.Run("every op of the protocol is built, and steps are among the capabilities", func(t *testing.T) {
		k := p.dial()
		k.refused(protocol.ToolsLost, "approve_step", `"bot":"B","turn":1,"call_id":"c","request":1,"tag":"t","step":"s","name":"n","arguments":{}`)
		k.refused(protocol.ToolsLost, "step_result", `"bot":"B","turn":1,"call_id":"c","request":1,"tag":"t","step":"s","ok":true`)
		var r protocol.Ready
		json.Unmarshal(k.ready, &r)
		if !r.Has("steps") || !r.Has("approvals") {
			t.Errorf("capabilities %v", r.Capabilities)
		}
	})
}

func TestPipelining(t *testing.T) {
	t.Parallel()
	h := newHost(t, echoScript)
	k := h.start().dial()
	t.Run("PR-6 creates, submits, a repeat and stats in one write are answered in order", func(t *testing.T) {
		var b strings.Builder
		for i := range 8 {
			fmt.Fprintf(&b, `{"id":%d,"op":"create","bot":"b%d","model":"s/m","instructions":"","tools":[],"workspace":%q}`+"\n", i, i, h.workspace)
		}
		for i := range 8 {
			fmt.Fprintf(&b, `{"id":%d,"op":"submit",%s}`+"\n", 8+i, submission(fmt.Sprintf("b%d", i), "r", "hello", ""))
		}
		fmt.Fprintf(&b, `{"id":16,"op":"submit",%s}`+"\n"+`{"id":17,"op":"stats"}`+"\n", submission("b0", "r", "hello", ""))
		k.write(b.String())
		var first, repeat protocol.Submitted
		var stats protocol.Stats
		for i := range 18 {
			l := k.read()
			if string(l.fields["id"]) != fmt.Sprint(i) || l.fields["result"] == nil {
				t.Fatalf("answer %d: %s", i, l.raw)
			}
			switch i {
			case 8:
				json.Unmarshal(l.fields["result"], &first)
			case 16:
				json.Unmarshal(l.fields["result"], &repeat)
			case 17:
				json.Unmarshal(l.fields["result"], &stats)
			}
		}
		if !repeat.Duplicate || repeat.Turn != first.Turn || repeat.Cursor != nil {
			t.Errorf("repeat %+v of %+v", repeat, first)
		}
		if n := stats.Store.Operations["submit"].Count; n != 9 {
			t.Errorf("stats counts %d submission jobs", n)
		}
	})
	t.Run("PR-8 the same submission from four sessions at once is one turn", func(t *testing.T) {
		p := &process{t: t, h: h}
		k.bot("Four", h.workspace, "")
		answers := make(chan protocol.Submitted, 4)
		for range 4 {
			c := p.dial()
			go func() {
				c.write(`{"id":1,"op":"submit",` + submission("Four", "same", "x", "") + `}` + "\n")
				l, _ := c.tryRead()
				var s protocol.Submitted
				json.Unmarshal(l.fields["result"], &s)
				answers <- s
			}()
		}
		turns, fresh := map[int64]bool{}, 0
		for range 4 {
			s := <-answers
			turns[s.Turn] = true
			if !s.Duplicate {
				fresh++
			}
		}
		if len(turns) != 1 || turns[0] || fresh != 1 {
			t.Errorf("turns %v, %d of them fresh", turns, fresh)
		}
	})
}

func TestSlowReaders(t *testing.T) {
	t.Parallel()
	h := newHost(t, echoScript)
	p := h.start()
	k := p.dial()
	k.bot("Big", h.workspace, "")
	k.follow("Big", 0)
	var nodes []int64
	for i := range 11 {
		s := k.submit("Big", fmt.Sprint("r", i), strings.Repeat("y", 200<<10), "")
		seen := k.until("turn_finished", s.Turn)
		for _, l := range seen {
			if l.str("event") == "accepted" {
				var a protocol.Accepted
				l.data(&a)
				nodes = append(nodes, a.Node)
			}
		}
	}
	t.Run("PR-7 a session that never reads is closed and another is answered meanwhile", func(t *testing.T) {
		lazy, other := p.dial(), p.dial()
		go func() {
			for i := range 100 {
				fmt.Fprintf(lazy.c, `{"id":%d,"op":"item","bot":"Big","node":%d}`+"\n", i, nodes[0])
			}
		}()
		began := time.Now()
		other.ask(nil, "stats", "")
		if d := time.Since(began); d > time.Second {
			t.Errorf("the other session waited %v", d)
		}
		lazy.hungUp() // after the two seconds in which it took nothing
		other.ask(nil, "stats", "")
	})
	t.Run("PR-82 ten large answers reach a slow but steady reader", func(t *testing.T) {
		slow := p.dial()
		for i := range 10 {
			list, _ := json.Marshal(nodes[i : i+1])
			slow.write(fmt.Sprintf(`{"id":%d,"op":"history_items","bot":"Big","nodes":%s}`+"\n", i, list))
		}
		for i := range 10 {
			l := slow.read()
			if string(l.fields["id"]) != fmt.Sprint(i) || l.fields["result"] == nil {
				t.Fatalf("answer %d: %.200s", i, l.raw)
			}
		}
	})
}

func TestCreateAndSubmit(t *testing.T) {
	t.Parallel()
	h := newHost(t, `[{"match":{"prefix":"spend"},"steps":[
		{"text":"a","usage":{"input_tokens":100,"output_tokens":10},"calls":[{"tool":"echo","arguments":{"text":"x"}}]},
		{"text":"b","usage":{"input_tokens":100,"output_tokens":10}}]},
		{"match":{"equals":"once"},"steps":[{"text":"a","usage":{"input_tokens":100,"output_tokens":10}}]},`+echoScript[1:])
	p := h.start()
	k := p.dial()

	t.Run("PR-17 model, instructions and tools are asked for in turn and no bot exists", func(t *testing.T) {
		k.refused(protocol.ModelRequired, "create", `"bot":"N"`)
		k.refused(protocol.InstructionsRequired, "create", `"bot":"N","model":"s/m"`)
		k.refused(protocol.ToolsRequired, "create", `"bot":"N","model":"s/m","instructions":""`)
		k.refused(protocol.BotNotFound, "resume", `"bot":"N"`)
	})
	t.Run("PR-18 RT-1 RT-2 PO-104 names are taken once and never made by asking", func(t *testing.T) {
		k.bot("Ada", h.workspace, "")
		k.refused(protocol.BotExists, "create", `"bot":"Ada","model":"s/m","instructions":"","tools":[]`)
		k.refused(protocol.BotNotFound, "resume", `"bot":"Adda"`)
		k.refused(protocol.BotNotFound, "submit", submission("Adda", "r", "x", ""))
		var page protocol.BotPage
		k.ask(&page, "bots", "")
		if len(page.Bots) != 1 {
			t.Errorf("%d bots", len(page.Bots))
		}
	})
	t.Run("PR-19 RT-5 a repeat is the same turn, other contents a conflict", func(t *testing.T) {
		k.bot("Bob", h.workspace, "")
		k.follow("Bob", 0)
		s := k.submit("Bob", "r", "hi", "")
		k.until("turn_finished", s.Turn)
		again := k.submit("Bob", "r", "hi", "")
		if !again.Duplicate || again.Turn != s.Turn || again.Status != "completed" {
			t.Errorf("repeat %+v of %+v", again, s)
		}
		k.refused(protocol.IdempotencyConflict, "submit", submission("Bob", "r", "other", ""))
		k.refused(protocol.IdempotencyConflict, "submit", submission("Bob", "r", "hi", fmt.Sprintf(`"workspace":%q`, h.dir)))
		k.refused(protocol.IdempotencyConflict, "submit", submission("Bob", "r", "hi", `"model":"s/m"`))
		k.refused(protocol.IdempotencyConflict, "submit", submission("Bob", "r", "hi", `"delivery":"queue"`))
	})
	t.Run("RT-5 a repeat is known though its folder is gone since", func(t *testing.T) {
		kept, link := filepath.Join(h.dir, "kept"), filepath.Join(h.dir, "link")
		if err := os.Mkdir(kept, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(kept, link); err != nil {
			t.Fatal(err)
		}
		for name, parent := range map[string]string{"Plain": kept, "Linked": link} {
			folder := filepath.Join(parent, "tree", "sub")
			if err := os.MkdirAll(folder, 0o755); err != nil {
				t.Fatal(err)
			}
			in := fmt.Sprintf(`"workspace":%q`, folder)
			k.bot(name, h.workspace, "")
			k.follow(name, 0)
			s := k.submit(name, "r", "hi", in)
			k.until("turn_finished", s.Turn)
			if err := os.RemoveAll(filepath.Join(parent, "tree")); err != nil {
				t.Fatal(err)
			}
			if again := k.submit(name, "r", "hi", in); !again.Duplicate || again.Turn != s.Turn {
				t.Errorf("repeat %+v of %+v", again, s)
			}
			k.refused(protocol.IdempotencyConflict, "submit", submission(name, "r", "hi", fmt.Sprintf(`"workspace":%q`, folder+"2")))
			k.refused(protocol.WorkspaceMustExistAndBeAbsolute, "submit", submission(name, "r2", "hi", in))
		}
	})
	t.Run("a repeat of a prompt that is shared with its node is known", func(t *testing.T) {
		k.bot("Long", h.workspace, "")
		k.follow("Long", 0)
		text := strings.Repeat("é\"\\", 4000)
		s := k.submit("Long", "r", text, `"origin":"lookout"`)
		k.until("turn_finished", s.Turn)
		if again := k.submit("Long", "r", text, `"origin":"lookout"`); !again.Duplicate || again.Turn != s.Turn {
			t.Errorf("repeat %+v", again)
		}
		k.refused(protocol.IdempotencyConflict, "submit", submission("Long", "r", text+"x", `"origin":"lookout"`))
		var page protocol.TurnPage
		k.ask(&page, "turns", `"bot":"Long"`)
		if tr := page.Turns[0]; !strings.HasPrefix(text, tr.Prompt) || len([]rune(tr.Prompt)) != 256 || !tr.PromptTruncated {
			t.Errorf("turn %+v", tr)
		}
	})
	t.Run("PR-22 RT-69 a budget ends the turn after its tools and refuses the next", func(t *testing.T) {
		k.ask(nil, "create", fmt.Sprintf(`"bot":"Poor","model":"s/m","instructions":"","tools":["echo"],"workspace":%q,"budget_tokens":200`, h.workspace))
		k.follow("Poor", 0)
		s := k.submit("Poor", "r1", "once", "")
		k.until("turn_finished", s.Turn)
		if o := k.result("Poor", s.Turn); o.Status != "completed" {
			t.Fatalf("the first turn, of 110 tokens: %+v", o)
		}
		s = k.submit("Poor", "r2", "spend", "")
		seen := k.until("turn_finished", s.Turn)
		if !strings.Contains(fmt.Sprint(kinds(seen)), "tool_completed") {
			t.Errorf("the planned tool did not run: %v", kinds(seen))
		}
		var end struct {
			Status, Error              string
			Budget_tokens, Tokens_used int64
		}
		if last(seen).data(&end); end.Status != "failed" || end.Error != "budget_exhausted" || end.Budget_tokens != 200 || end.Tokens_used != 220 {
			t.Errorf("end %+v", end)
		}
		l := k.refused(protocol.BudgetExhausted, "submit", submission("Poor", "r3", "x", ""))
		if l.num("budget_tokens") != 200 || l.num("tokens_used") != 220 {
			t.Errorf("facts %s", l.raw)
		}
	})
	t.Run("PR-23 RT-8 a workspace is needed", func(t *testing.T) {
		k.ask(nil, "create", `"bot":"Nowhere","model":"s/m","instructions":"","tools":[]`)
		k.refused(protocol.WorkspaceRequired, "submit", submission("Nowhere", "r", "x", ""))
		k.refused(protocol.WorkspaceMustExistAndBeAbsolute, "submit", submission("Nowhere", "r", "x", `"workspace":"rel"`))
		k.submit("Nowhere", "r", "x", fmt.Sprintf(`"workspace":%q`, h.workspace))
	})
	t.Run("PR-75 a bot's name does not begin with - or a dot, a request id may", func(t *testing.T) {
		for _, name := range []string{"-x", ".x", "", "a b", strings.Repeat("x", 129)} {
			k.refused(protocol.InvalidName, "create", fmt.Sprintf(`"bot":%q,"model":"s/m","instructions":"","tools":[]`, name))
		}
		k.bot("Req", h.workspace, "")
		k.submit("Req", "-x", "x", "")
	})
	t.Run("PR-77 half a creator is refused", func(t *testing.T) {
		base := `"bot":"Child","model":"s/m","instructions":"","tools":[]`
		k.refused(protocol.InvalidCreator, "create", base+`,"created_by":"Ada"`)
		k.refused(protocol.InvalidCreator, "create", base+`,"created_by_id":1`)
		k.refused(protocol.CreatorNotFound, "create", base+`,"created_by":"Ada","created_by_id":999`)
		k.refused(protocol.BotNotFound, "inspect", `"bot":"Child"`)
	})
	t.Run("what is not built is refused and never left out", func(t *testing.T) {
		base := `"bot":"X","model":"s/m","instructions":"","tools":["echo"]`
		for more, code := range map[string]protocol.Code{
			`"sandbox":"none"`:                            protocol.InvalidSandbox,
			`"approve":["echo"],"approver":"a b"`:         protocol.InvalidApprover,
			`"rules":{"files":[{"name":"a","text":")"}]}`: protocol.InvalidRules,
			`"settings":{"approval_hold_ms":600001}`:      protocol.InvalidSetting,
			`"network":false`:                             protocol.InvalidSandbox,
			`"writable_roots":["/tmp"]`:                   protocol.InvalidWritableRoot,
		} {
			k.refused(code, "create", base+","+more)
		}
		k.refused(protocol.BotNotFound, "inspect", `"bot":"X"`)
	})
	t.Run("other checks of create", func(t *testing.T) {
		base := `"bot":"Y","instructions":"",`
		k.refused(protocol.InvalidModel, "create", base+`"tools":[],"model":"x"`)
		k.refused(protocol.ProviderUnavailable, "create", base+`"tools":[],"model":"nope/m"`)
		k.refused(protocol.UnknownTool, "create", base+`"tools":["nope"],"model":"s/m"`)
		k.refused(protocol.InvalidReasoningLevel, "create", base+`"tools":[],"model":"s/m","reasoning":"huge"`)
		k.refused(protocol.InvalidBudget, "create", base+`"tools":[],"model":"s/m","budget_tokens":0`)
		k.refused(protocol.WorkspaceMustExistAndBeAbsolute, "create", base+`"tools":[],"model":"s/m","workspace":"/nonexistent"`)
		k.refused(protocol.InstructionsLimit, "create", fmt.Sprintf(`"bot":"Y","tools":[],"model":"s/m","instructions":%q`, strings.Repeat("x", 64<<10+1)))
	})
}

func TestFullDaemon(t *testing.T) {
	t.Parallel()
	h := newHost(t, `[{"match":{"prefix":"hold"},"steps":[{"text":"slow","delay_ms":600000}]},`+echoScript[1:])
	h.set.Limits.Active = 1
	p := h.start()
	k := p.dial()
	k.bot("A", h.workspace, "")
	k.bot("B", h.workspace, "")
	held := k.submit("A", "r1", "hold", "")
	t.Run("PR-20 RT-6 a full daemon reconciles, refuses and lines up", func(t *testing.T) {
		if again := k.submit("A", "r1", "hold", ""); !again.Duplicate || again.Status != "running" {
			t.Errorf("repeat %+v", again)
		}
		k.refused(protocol.ActiveAgentLimit, "submit", submission("B", "r1", "x", ""))
		if q := k.submit("B", "r2", "x", `"delivery":"queue"`); q.Status != "ready" {
			t.Errorf("queued %+v", q)
		}
	})
	t.Run("a slot that frees goes to the turn that waits", func(t *testing.T) {
		k.refused(protocol.ActiveAgentLimit, "submit", submission("A", "r9", "x", ""))
		k.follow("B", 0)
		k.ask(nil, "interrupt", fmt.Sprintf(`"bot":"A","turn":%d`, held.Turn))
		k.until("turn_finished", 0) // B's ready turn has run in the free slot
		var page protocol.TurnPage
		k.ask(&page, "turns", `"bot":"A"`)
		if len(page.Turns) != 1 || page.Turns[0].Status != "interrupted" {
			t.Errorf("turns of A: %+v", page.Turns)
		}
	})
}

func TestRefusalFitsALine(t *testing.T) {
	t.Parallel()
	h := newHost(t, echoScript)
	k := h.start().dial()
	k.bot("Ada", h.workspace, "echo")
	// %q writes an invisible character in twice its bytes.
	odd, long := strings.Repeat("\u200b", 340_000), strings.Repeat("a", protocol.MaxLine-200)
	for _, r := range []struct {
		name, op, members string
		code              protocol.Code
	}{
		{"a tool nobody has", "create", `"bot":"Bo","model":"s/m","instructions":"","tools":["` + odd + `"]`, protocol.UnknownTool},
		{"a tool the source may not call", "fork", `"source":"Ada","bot":"Bo","allow":["` + odd + `"]`, protocol.AllowNotSubset},
		{"a declared tool's name", "create", `"bot":"Bo","model":"s/m","instructions":"","tools":[],"client_tools":[{"name":"` + odd + `","parameters":{"type":"object"},"tag":"t"}]`, protocol.InvalidClientTool},
		{"a call nobody made", "artifact", `"bot":"Ada","turn":1,"call_id":"` + long + `"`, protocol.TurnNotFound},
		{"a setting nobody knows", "configure", `"bot":"Ada","settings":{"` + long + `":1}`, protocol.InvalidSetting},
		{"a folder nobody has", "configure", `"bot":"Ada","workspace":"/` + long + `"`, protocol.WorkspaceMustExistAndBeAbsolute},
	} {
		t.Run(r.name, func(t *testing.T) {
			if l := k.refused(r.code, r.op, r.members); len(l.raw) > 16<<10 {
				t.Errorf("the refusal takes %d bytes", len(l.raw))
			}
		})
	}
}
