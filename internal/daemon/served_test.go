package daemon_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"agent/internal/fakemodel"
	"agent/protocol"
)

// served makes a bot on the script model with client tools, given as JSON
// without the list's brackets.
func (k *conn) served(name, workspace, tools, declared string) protocol.Bot {
	k.t.Helper()
	list, _ := json.Marshal(strings.Fields(tools))
	var b protocol.Bot
	k.ask(&b, "create", fmt.Sprintf(`"bot":%q,"model":"s/m","instructions":"","tools":%s,"workspace":%q,"client_tools":[%s]`, name, list, workspace, declared))
	return b
}

// servedScript: "one TEXT" calls memory once, "two" twice in one response with
// an echo behind, "bad" with arguments that the schema does not take.
const servedScript = `[
	{"match":{"regex":"^one (.*)$"},"steps":[{"calls":[{"tool":"memory","arguments":{"fact":"${1}"}}]},{"text":"got ${last}"}]},
	{"match":{"prefix":"two"},"steps":[{"calls":[{"tool":"memory","arguments":{"fact":"first"}},{"tool":"memory","arguments":{"fact":"second"}},{"tool":"echo","arguments":{"text":"last"}}]},{"text":"got ${last}"}]},
	{"match":{"prefix":"bad"},"steps":[{"calls":[{"tool":"memory","arguments":{"fakt":"x"}}]},{"text":"got ${last}"}]}]`

// memoryTool declares the tool of servedScript; more are further members.
func memoryTool(more string) string {
	return `{"name":"memory","description":"keeps a fact","parameters":{"type":"object","properties":{"fact":{"type":"string"}},"required":["fact"],"additionalProperties":false},"tag":"sonny"` + more + `}`
}

// servedHost has a bot Ada with the memory tool on a running daemon.
func servedHost(t *testing.T, holdMS int64, more string) (*host, *process, *conn) {
	t.Helper()
	h := newHost(t, servedScript)
	h.set.Limits.ApprovalHoldMS = holdMS
	p := h.start()
	k := p.dial()
	k.served("Ada", h.workspace, "echo read", memoryTool(more))
	k.follow("Ada", 0)
	return h, p, k
}

// serve takes a tag.
func (k *conn) serve(tag string, leaseMS int) (s protocol.ToolsServing) {
	k.t.Helper()
	k.ask(&s, "serve_tools", fmt.Sprintf(`"tag":%q,"lease_ms":%d`, tag, leaseMS))
	return s
}

// push reads up to the next call pushed.
func (k *conn) push() (p protocol.ToolPush) {
	k.t.Helper()
	for {
		if l := k.note(); l.str("event") == "tool_requested" && l.fields["lease"] != nil {
			if err := json.Unmarshal(l.raw, &p); err != nil {
				k.t.Fatal(err)
			}
			return p
		}
	}
}

// address is a call as tool_result names it.
func address(turn int64, call string, lease int64) string {
	a := fmt.Sprintf(`"bot":"Ada","turn":%d,"call_id":%q,"request":1,"tag":"sonny"`, turn, call)
	if lease != 0 {
		a += fmt.Sprintf(`,"lease":%d`, lease)
	}
	return a
}

// waitingCall is the one call that waits.
func (k *conn) waitingCall() protocol.ToolCall {
	k.t.Helper()
	var page protocol.ToolCallPage
	k.ask(&page, "tool_calls", "")
	if len(page.Calls) != 1 {
		k.t.Fatalf("%d calls wait", len(page.Calls))
	}
	return page.Calls[0]
}

func TestServedCall(t *testing.T) {
	t.Parallel()
	_, p, k := servedHost(t, 60_000, "")
	s := p.dial()
	lease := s.serve("sonny", 60_000)
	if lease.Lease == 0 || lease.Through == 0 && len(lease.Calls) != 0 {
		t.Fatalf("answer %+v", lease)
	}
	other := p.dial()
	other.serve("else", 60_000)

	t.Run("PR-67 PR-76 a call of a gated tool without a gate is pushed once, to the holder alone, and its result completes it", func(t *testing.T) {
		sub := k.submit("Ada", "r1", "two", "")
		first := s.push()
		if first.Bot != "Ada" || first.Turn != sub.Turn || first.Tag != "sonny" || first.Lease != lease.Lease || first.Cursor == 0 ||
			first.Data.Arguments != `{"fact":"first"}` || first.Data.Delivered || first.Data.Request != 1 || first.Data.Name != "memory" || first.Data.Node == 0 ||
			first.Data.Sandbox != "danger-full-access" || !first.Data.Network || first.Data.ExpiresMS == 0 || first.Data.Workspace == "" || first.Data.BotID == 0 {
			t.Fatalf("push %+v", first)
		}
		var st protocol.Stats
		if k.ask(&st, "stats", ""); st.ToolRequests != 1 || strings.Join(st.ServedTools, " ") != "else sonny" {
			t.Errorf("stats %+v", st)
		}
		if e := k.waitingCall(); e.Bot != "Ada" || e.Turn != sub.Turn || e.Tag != "sonny" || e.CallID != first.Data.CallID || !e.Delivered {
			t.Errorf("listed %+v", e)
		}
		var item string = k.item("Ada", first.Data.Node)
		if !strings.Contains(item, "first") {
			t.Errorf("the call's node is %s", item)
		}
		one := address(sub.Turn, first.Data.CallID, lease.Lease)
		for members, code := range map[string]protocol.Code{
			one: protocol.InvalidToolResult, one + `,"output":"a","error":{"code":"x"}`: protocol.InvalidToolResult,
			one + `,"error":{"code":"Bad"}`:                                                      protocol.InvalidToolResult,
			one + `,"output":"a","pictures":["/a.png"]`:                                          protocol.InvalidPicture,
			address(sub.Turn, first.Data.CallID, 0) + `,"output":"a"`:                            protocol.ToolsLost,
			address(sub.Turn, first.Data.CallID, lease.Lease+1) + `,"output":"a"`:                protocol.ToolsLost,
			address(sub.Turn, "nope", lease.Lease) + `,"output":"a"`:                             protocol.NoPendingCall,
			address(sub.Turn+7, first.Data.CallID, lease.Lease) + `,"output":"a"`:                protocol.NoPendingCall,
			strings.Replace(one, `"request":1`, `"request":2`, 1) + `,"output":"a"`:              protocol.NoPendingCall,
			strings.Replace(one, `"request":1`, `"request":0`, 1) + `,"output":"a"`:              protocol.CallSuperseded,
			one + `,"output":"` + strings.Repeat("x", 512<<10+1) + `"`:                           protocol.ToolResultLimit,
			strings.Replace(one, `"tag":"sonny"`, `"tag":"a b"`, 1) + `,"output":"a"`:            protocol.InvalidTag,
			strings.Replace(one, `"bot":"Ada"`, `"bot":"Nobody"`, 1) + `,"output":"a"`:           protocol.BotNotFound,
			strings.Replace(one, fmt.Sprintf("%q", first.Data.CallID), `""`, 1) + `,"output":""`: protocol.InvalidCallID,
		} {
			s.refused(code, "tool_result", members)
		}
		other.refused(protocol.ToolsLost, "tool_result", one+`,"output":"a"`)
		s.ask(nil, "tool_result", one+`,"output":"saved"`)
		second := s.push()
		if second.Data.Arguments != `{"fact":"second"}` || second.Data.CallID == first.Data.CallID {
			t.Fatalf("push %+v", second)
		}
		s.refused(protocol.CallAlreadyAnswered, "tool_result", one+`,"output":"again"`)
		s.ask(nil, "tool_result", address(sub.Turn, second.Data.CallID, lease.Lease)+`,"output":"more","external":true`)
		seen := k.until("turn_finished", sub.Turn)
		if o := k.result("Ada", sub.Turn); o.Status != "completed" || o.Text != "got last" {
			t.Errorf("outcome %+v", o)
		}
		want := "accepted message message message usage tool_requested tool_completed tool_requested tool_completed tool_started tool_completed message usage turn_finished"
		var got []string
		for _, kind := range kinds(seen) {
			got = append(got, strings.Fields(kind)[0])
		}
		if g := strings.Join(got, " "); g != want && g != strings.Replace(want, "message message message", "message", 1) {
			t.Errorf("events %s", g)
		}
		if text := k.itemsOf("Ada", seen); !strings.Contains(text, "saved") || !strings.Contains(text, "more") || strings.Contains(text, "again") {
			t.Errorf("results %s", text)
		}
		s.refused(protocol.StaleTurn, "tool_result", address(sub.Turn, second.Data.CallID, lease.Lease)+`,"output":"late"`)
		var page protocol.TurnPage
		k.ask(&page, "turns", `"bot":"Ada"`)
		if ext := page.Turns[0].External; len(ext) != 1 || ext[0] != "memory" {
			t.Errorf("external %v", ext)
		}
		if len(other.notes) != 0 {
			t.Errorf("another holder got %s", other.notes[0].raw)
		}
	})
	t.Run("arguments that the schema does not take never reach the server", func(t *testing.T) {
		sub := k.submit("Ada", "r2", "bad", "")
		seen := k.until("turn_finished", sub.Turn)
		if o := k.result("Ada", sub.Turn); !strings.Contains(o.Text, "invalid_tool_arguments") || strings.Contains(strings.Join(kinds(seen), ","), "tool_requested") {
			t.Errorf("outcome %+v of %v", o, kinds(seen))
		}
	})
	t.Run("an error is the tool's result, and the turn goes on", func(t *testing.T) {
		sub := k.submit("Ada", "r3", "one x", "")
		c := s.push()
		s.ask(nil, "tool_result", address(sub.Turn, c.Data.CallID, lease.Lease)+`,"error":{"code":"disk_full","detail":"no room"}`)
		k.until("turn_finished", sub.Turn)
		if o := k.result("Ada", sub.Turn); o.Text != `got {"error":"disk_full","detail":"no room"}` {
			t.Errorf("outcome %+v", o)
		}
	})
	t.Run("a long output is shown by its ends and kept whole as artifact output", func(t *testing.T) {
		sub := k.submit("Ada", "r4", "one x", "")
		c := s.push()
		text := "head" + strings.Repeat("é", 40<<10) + "tail"
		s.ask(nil, "tool_result", fmt.Sprintf(`%s,"output":%q`, address(sub.Turn, c.Data.CallID, lease.Lease), text))
		seen := k.until("turn_finished", sub.Turn)
		item := k.itemsOf("Ada", seen)
		if !strings.Contains(item, "head") || !strings.Contains(item, "tail") || !strings.Contains(item, "bytes omitted here; to read what is kept, call read with artifact") || len(item) > 80<<10 {
			t.Errorf("an item of %d bytes", len(item))
		}
		var whole strings.Builder
		for at := int64(0); ; {
			var page protocol.ArtifactPage
			k.ask(&page, "artifact", fmt.Sprintf(`"bot":"Ada","turn":%d,"call_id":%q,"stream":"output","offset":%d`, sub.Turn, c.Data.CallID, at))
			whole.WriteString(page.Text)
			if at = page.NextOffset; page.Done {
				break
			}
		}
		if whole.String() != text {
			t.Errorf("%d bytes are kept", whole.Len())
		}
	})
	t.Run("an interrupted live call tells its holder, and reads as unknown", func(t *testing.T) {
		sub := k.submit("Ada", "r5", "one x", "")
		c := s.push()
		k.ask(nil, "interrupt", fmt.Sprintf(`"bot":"Ada","turn":%d`, sub.Turn))
		l := last(s.until("tool_cancelled", 0))
		if l.str("call_id") != c.Data.CallID || l.num("lease") != lease.Lease || l.num("request") != 1 || l.str("tag") != "sonny" || l.num("turn") != sub.Turn {
			t.Errorf("notice %s", l.raw)
		}
		seen := k.until("turn_finished", sub.Turn)
		if !strings.Contains(k.itemsOf("Ada", seen), "tool_outcome_unknown") {
			t.Errorf("items %s", k.itemsOf("Ada", seen))
		}
		s.refused(protocol.StaleTurn, "tool_result", address(sub.Turn, c.Data.CallID, lease.Lease)+`,"output":"late"`)
	})
	t.Run("a shutdown tells the holder", func(t *testing.T) {
		k.submit("Ada", "r6", "one x", "")
		c := s.push()
		k.ask(nil, "shutdown", "")
		if l := last(s.until("tool_cancelled", 0)); l.str("call_id") != c.Data.CallID {
			t.Errorf("notice %s", l.raw)
		}
		if code := p.wait(); code != 0 {
			t.Errorf("exit %d", code)
		}
	})
}

func TestServedFamilies(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, family string) {
		h := newHost(t, "")
		model := h.fake(family, fakemodel.Options{Keep: 5, Bodies: true})
		p := h.start()
		k := p.dial()
		decl := `{"name":"memory","description":"keeps a fact","parameters":{"type":"object","properties":{"a":{"type":"string"}}},"tag":"sonny"}`
		k.ask(nil, "create", fmt.Sprintf(`"bot":"Ada","model":"f/Ada","instructions":"Be brief.","tools":["read","echo"],"workspace":%q,"client_tools":[%s]`, h.workspace, decl))
		k.follow("Ada", 0)
		model.Queue(fakemodel.Say("a", fakemodel.Call("echo", `{"text":"x"}`), fakemodel.Call("memory", `{"a":"1"}`)), fakemodel.Say("done"))
		s := p.dial()
		lease := s.serve("sonny", 60_000)
		sub := k.submit("Ada", "r", "go", "")
		c := s.push()
		s.ask(nil, "tool_result", address(sub.Turn, c.Data.CallID, lease.Lease)+`,"output":"the key is key-of-the-test-provider"`)
		seen := k.until("turn_finished", sub.Turn)
		if o := k.result("Ada", sub.Turn); o.Status != "completed" || o.Text != "done" {
			t.Errorf("outcome %+v", o)
		}
		if items := k.itemsOf("Ada", seen); strings.Contains(items, "key-of-the-test") || !strings.Contains(items, "the key is [REDACTED]") {
			t.Errorf("results %s", items)
		}
		body := string(model.Requests()[0].Body)
		a, b, m := strings.Index(body, `"name":"read"`), strings.Index(body, `"name":"echo"`), strings.Index(body, `"name":"memory"`)
		if a < 0 || b < a || m < b || !strings.Contains(body, `keeps a fact`) {
			t.Errorf("the model was shown %s", body)
		}
		model.Verify(t)
	})
}

func TestStubOfAServedResult(t *testing.T) {
	t.Parallel()
	h, p, k := servedHost(t, 60_000, "")
	s := p.dial()
	lease := s.serve("sonny", 60_000)
	for i, output := range []string{strings.Repeat("a", 4000), "short"} {
		sub := k.submit("Ada", fmt.Sprint("r", i), "one x", "")
		s.ask(nil, "tool_result", fmt.Sprintf(`%s,"output":%q`, address(sub.Turn, s.push().Data.CallID, lease.Lease), output))
		k.until("turn_finished", sub.Turn)
	}
	p.stop(k)
	t.Run("a long result has a stub as other tools' have, a short one has none", func(t *testing.T) {
		if n := h.rows("stubs")["stubs"]; n != 1 {
			t.Errorf("%d stubs", n)
		}
	})
}
