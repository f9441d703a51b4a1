package daemon_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

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

func TestClientToolDeclarations(t *testing.T) {
	t.Parallel()
	h := newHost(t, echoScript)
	p := h.start()
	k := p.dial()
	create := func(declared string) string {
		return `"bot":"X","model":"s/m","instructions":"","tools":["echo"],"client_tools":[` + declared + `]`
	}
	good := func(name string) string {
		return fmt.Sprintf(`{"name":%q,"parameters":{"type":"object"},"tag":"sonny"}`, name)
	}
	many := make([]string, 65)
	for i := range many {
		many[i] = good(fmt.Sprint("t", i))
	}
	big := fmt.Sprintf(`{"name":"b","parameters":{"type":"object","title":%q},"tag":"x"}`, strings.Repeat("x", 64<<10))
	for _, row := range []struct {
		name, declared string
		code           protocol.Code
	}{
		{"a name with a dot", good("a.b"), protocol.InvalidClientTool},
		{"a name too long", good(strings.Repeat("a", 65)), protocol.InvalidClientTool},
		{"a daemon's tool", good("shell"), protocol.ToolNameTaken},
		{"a name given twice", good("a") + "," + good("a"), protocol.ToolNameTaken},
		{"a bad tag", `{"name":"a","parameters":{"type":"object"},"tag":"a b"}`, protocol.InvalidTag},
		{"no schema of an object", `{"name":"a","parameters":{"type":"string"},"tag":"x"}`, protocol.InvalidClientTool},
		{"a malformed schema", `{"name":"a","parameters":{"type":"object","required":"x"},"tag":"x"}`, protocol.InvalidClientTool},
		{"a description too long", fmt.Sprintf(`{"name":"a","description":%q,"parameters":{"type":"object"},"tag":"x"}`, strings.Repeat("d", 8193)), protocol.InvalidClientTool},
		{"an expiry too short", `{"name":"a","parameters":{"type":"object"},"tag":"x","expire_ms":999}`, protocol.InvalidClientTool},
		{"an expiry too long", `{"name":"a","parameters":{"type":"object"},"tag":"x","expire_ms":86400001}`, protocol.InvalidClientTool},
		{"more than 64 tools", strings.Join(many, ","), protocol.ClientToolsLimit},
		{"schemas over 64 KiB", big, protocol.ClientToolsLimit},
		{"PR-83 a name given twice inside client_tools", `{"name":"a","parameters":{"type":"object","type":"object"},"tag":"x"}`, protocol.InvalidJSON},
		{"an unknown field", `{"name":"a","parameters":{"type":"object"},"tag":"x","expires":1}`, protocol.InvalidJSON},
	} {
		t.Run(row.name+" is refused and makes nothing", func(t *testing.T) {
			c := p.dial()
			if row.code != protocol.InvalidJSON {
				c.refused(row.code, "create", create(row.declared))
			} else {
				c.request("create", create(row.declared))
				if l := c.read(); l.str("error") != string(row.code) {
					t.Errorf("answer %s", l.raw)
				}
			}
			c.refused(protocol.BotNotFound, "inspect", `"bot":"X"`)
		})
	}
	t.Run("PR-83 parameters come back from inspect byte for byte, also after a restart", func(t *testing.T) {
		declared := `{"name":"memory","description":"keeps <facts>","parameters":{ "type" : "object",  "title":"a\/b <&> \u00e9" , "properties":{}},"tag":"sonny","gated":false,"expire_ms":5000}`
		k.served("Ada", h.workspace, "echo", declared)
		p.kill()
		k = h.start().dial()
		for _, op := range []string{"inspect", "resume"} {
			if l := k.ask(nil, op, `"bot":"Ada"`); !strings.Contains(string(l.raw), `"client_tools":[`+declared+`]`) {
				t.Errorf("%s: %s", op, l.raw)
			}
		}
		if l := k.ask(nil, "bots", ""); !strings.Contains(string(l.raw), declared) {
			t.Errorf("bots: %s", l.raw)
		}
	})
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

func TestServedUnanswered(t *testing.T) {
	t.Parallel()
	_, p, k := servedHost(t, 50, `,"expire_ms":1000`)
	t.Run("PR-67 RT-106 a call that nobody serves parks its turn, ends tool_not_served in its time, and the turn goes on", func(t *testing.T) {
		sub := k.submit("Ada", "r1", "one x", "")
		w := last(k.until("turn_waiting", sub.Turn))
		var data protocol.TurnWaiting
		if w.data(&data); !data.Served || data.CallID == "" || data.DeadlineMS == nil {
			t.Errorf("event %s", w.raw)
		}
		var st protocol.Stats
		if k.ask(&st, "stats", ""); st.ActiveTurns != 0 || st.WaitingTurns != 1 || st.ToolRequests != 1 {
			t.Errorf("stats %+v", st)
		}
		k.until("turn_finished", sub.Turn)
		if o := k.result("Ada", sub.Turn); o.Status != "completed" || !strings.Contains(o.Text, `"error":"tool_not_served"`) {
			t.Errorf("outcome %+v", o)
		}
	})
	t.Run("a holder that says nothing is told when the time is over, and comes too late", func(t *testing.T) {
		s := p.dial()
		lease := s.serve("sonny", 60_000)
		sub := k.submit("Ada", "r2", "two", "")
		c := s.push()
		if l := last(s.until("tool_cancelled", 0)); l.str("call_id") != c.Data.CallID {
			t.Errorf("notice %s", l.raw)
		}
		s.push()
		s.refused(protocol.CallAlreadyAnswered, "tool_result", address(sub.Turn, c.Data.CallID, lease.Lease)+`,"output":"late"`)
		k.until("turn_finished", sub.Turn)
		if o := k.result("Ada", sub.Turn); o.Status != "completed" || o.Text != "got last" {
			t.Errorf("outcome %+v", o)
		}
	})
}

func TestServedParked(t *testing.T) {
	t.Parallel()
	h, p, k := servedHost(t, 50, "")
	t.Run("PR-68 RT-106 when the holder vanishes the next server gets the call as delivered, and its answer ends it once", func(t *testing.T) {
		s := p.dial()
		first := s.serve("sonny", 60_000)
		sub := k.submit("Ada", "r1", "two", "")
		c := s.push()
		k.until("turn_waiting", sub.Turn)
		s.c.Close()
		s = p.dial()
		next := s.serveWhenFree("sonny")
		if next.Lease <= first.Lease || len(next.Calls) != 1 || !next.Calls[0].Delivered || next.Calls[0].CallID != c.Data.CallID {
			t.Fatalf("answer %+v", next)
		}
		one := address(sub.Turn, c.Data.CallID, next.Lease)
		s.ask(nil, "tool_result", one+`,"output":"again"`)
		s.refused(protocol.CallAlreadyAnswered, "tool_result", one+`,"output":"twice"`)
		c = s.push()
		s.ask(nil, "tool_result", address(sub.Turn, c.Data.CallID, next.Lease)+`,"output":"x"`)
		seen := k.until("turn_finished", sub.Turn)
		if o := k.result("Ada", sub.Turn); o.Status != "completed" || o.Text != "got last" || strings.Count(k.itemsOf("Ada", seen), "again") != 1 {
			t.Errorf("outcome %+v of %v", o, kinds(seen))
		}
		s.c.Close()
	})
	t.Run("RT-107 a parked call that nobody was given is given to the first server after a restart, not as delivered", func(t *testing.T) {
		k.untilUnserved()
		sub := k.submit("Ada", "r2", "two", "")
		k.until("turn_waiting", sub.Turn)
		p.kill()
		p = h.start()
		k = p.dial()
		k.follow("Ada", 0)
		s := p.dial()
		lease := s.serve("sonny", 60_000)
		if len(lease.Calls) != 1 || lease.Calls[0].Delivered || lease.Calls[0].Arguments != `{"fact":"first"}` {
			t.Fatalf("answer %+v", lease)
		}
		if e := s.waitingCall(); e.Delivered {
			t.Error("its own holder sees the call as delivered to another")
		}
		if e := k.waitingCall(); !e.Delivered {
			t.Error("others do not see that the call was delivered")
		}
		s.ask(nil, "tool_result", address(sub.Turn, lease.Calls[0].CallID, lease.Lease)+`,"output":"a"`)
		c := s.push()
		s.ask(nil, "tool_result", address(sub.Turn, c.Data.CallID, lease.Lease)+`,"output":"b"`)
		k.until("turn_finished", sub.Turn)
		if o := k.result("Ada", sub.Turn); o.Status != "completed" || o.Text != "got last" {
			t.Errorf("outcome %+v", o)
		}
		s.c.Close()
	})
	t.Run("RT-130 a parked call handed over before a crash is delivered to the next server", func(t *testing.T) {
		k.untilUnserved()
		sub := k.submit("Ada", "r3", "one x", "")
		k.until("turn_waiting", sub.Turn)
		s := p.dial()
		if lease := s.serve("sonny", 60_000); len(lease.Calls) != 1 || lease.Calls[0].Delivered {
			t.Fatalf("answer %+v", lease)
		}
		p.kill()
		p = h.start()
		k = p.dial()
		k.follow("Ada", 0)
		s = p.dial()
		lease := s.serve("sonny", 60_000)
		if len(lease.Calls) != 1 || !lease.Calls[0].Delivered {
			t.Fatalf("answer %+v", lease)
		}
		s.ask(nil, "tool_result", address(sub.Turn, lease.Calls[0].CallID, lease.Lease)+`,"error":{"code":"outcome_unknown"}`)
		k.until("turn_finished", sub.Turn)
		if o := k.result("Ada", sub.Turn); !strings.Contains(o.Text, "outcome_unknown") {
			t.Errorf("outcome %+v", o)
		}
		s.c.Close()
	})
	t.Run("an unserved tag's call takes a result without a lease", func(t *testing.T) {
		k.untilUnserved()
		sub := k.submit("Ada", "r4", "one x", "")
		k.until("turn_waiting", sub.Turn)
		call := k.waitingCall().CallID
		k.refused(protocol.ToolsLost, "tool_result", address(sub.Turn, call, 5)+`,"output":"a"`)
		k.ask(nil, "tool_result", address(sub.Turn, call, 0)+`,"output":"by hand"`)
		k.until("turn_finished", sub.Turn)
		if o := k.result("Ada", sub.Turn); o.Text != "got by hand" {
			t.Errorf("outcome %+v", o)
		}
	})
	t.Run("an interrupted parked call that nobody had is cancelled, one that was handed over reads as unknown", func(t *testing.T) {
		for i, want := range []string{`"cancelled":true`, `"outcome_unknown":true`} {
			k.untilUnserved()
			s := p.dial()
			if i == 1 {
				s.serve("sonny", 60_000)
			}
			sub := k.submit("Ada", fmt.Sprint("i", i), "one x", "")
			k.until("turn_waiting", sub.Turn)
			k.ask(nil, "interrupt", fmt.Sprintf(`"bot":"Ada","turn":%d`, sub.Turn))
			if i == 1 {
				s.until("tool_cancelled", 0)
			}
			var text string
			for _, l := range k.until("turn_finished", sub.Turn) {
				text += string(l.raw)
			}
			if !strings.Contains(text, want) {
				t.Errorf("events %s", text)
			}
			var page protocol.ToolCallPage
			if k.ask(&page, "tool_calls", ""); len(page.Calls) != 0 {
				t.Errorf("%d calls wait", len(page.Calls))
			}
			s.c.Close()
		}
	})
	t.Run("a live call caught by a crash reads as unknown", func(t *testing.T) {
		k.untilUnserved()
		h.set.Limits.ApprovalHoldMS = 60_000
		p.kill()
		p = h.start()
		k = p.dial()
		s := p.dial()
		s.serve("sonny", 60_000)
		sub := k.submit("Ada", "r9", "one x", "")
		s.push()
		p.kill()
		p = h.start()
		k = p.dial()
		k.ask(nil, "follow", `"bot":"Ada","after":0`)
		var text string
		for _, l := range k.until("turn_finished", sub.Turn) {
			if l.num("turn") == sub.Turn {
				text += string(l.raw)
			}
		}
		if !strings.Contains(text, `"outcome_unknown":true`) || !strings.Contains(text, `"process_interrupted"`) {
			t.Errorf("events %s", text)
		}
	})
}

// untilUnserved waits until no session serves a tag.
func (k *conn) untilUnserved() {
	k.t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		var st protocol.Stats
		if k.ask(&st, "stats", ""); len(st.ServedTools) == 0 {
			return
		}
	}
	k.t.Fatal("a closed session still serves")
}

// serveWhenFree takes a tag that a closing session still holds.
func (k *conn) serveWhenFree(tag string) protocol.ToolsServing {
	k.t.Helper()
	k.untilUnserved()
	return k.serve(tag, 60_000)
}

func TestToolLeases(t *testing.T) {
	t.Parallel()
	_, p, k := servedHost(t, 50, "")
	a, b := p.dial(), p.dial()
	t.Run("bad tags, leases and pages are refused", func(t *testing.T) {
		a.refused(protocol.InvalidTag, "serve_tools", `"tag":"a b","lease_ms":1000`)
		a.refused(protocol.InvalidTag, "serve_tools", `"lease_ms":1000`)
		a.refused(protocol.InvalidTag, "renew_tools", `"tag":"","lease":1`)
		a.refused(protocol.InvalidTag, "tool_calls", `"tag":"a b"`)
		a.refused(protocol.InvalidLease, "serve_tools", `"tag":"sonny","lease_ms":99`)
		a.refused(protocol.InvalidLease, "serve_tools", `"tag":"sonny","lease_ms":600001`)
		a.refused(protocol.InvalidCallPage, "serve_tools", `"tag":"sonny","lease_ms":1000,"limit":0`)
		a.refused(protocol.InvalidCallPage, "tool_calls", `"limit":257`)
		a.refused(protocol.InvalidCallPage, "tool_calls", `"after":-1`)
		a.refused(protocol.BotNotFound, "tool_calls", `"bot":"Nobody"`)
		a.refused(protocol.ToolsLost, "renew_tools", `"tag":"sonny","lease":1`)
	})
	held := a.serve("sonny", 60_000)
	t.Run("a held tag is refused, to its holder with the lease", func(t *testing.T) {
		l := b.refused(protocol.ToolsServed, "serve_tools", `"tag":"sonny","lease_ms":1000`)
		if left := l.num("lease_left_ms"); l.str("tag") != "sonny" || left < 1 || left > 60_000 || l.fields["lease"] != nil {
			t.Errorf("answer %s", l.raw)
		}
		if l := a.refused(protocol.ToolsServed, "serve_tools", `"tag":"sonny","lease_ms":1000`); l.num("lease") != held.Lease {
			t.Errorf("answer %s", l.raw)
		}
		b.refused(protocol.ToolsLost, "renew_tools", fmt.Sprintf(`"tag":"sonny","lease":%d`, held.Lease))
		var r protocol.Lease
		if a.ask(&r, "renew_tools", fmt.Sprintf(`"tag":"sonny","lease":%d`, held.Lease)); r.Lease != held.Lease || r.LeaseMS != 60_000 || r.Tag != "sonny" {
			t.Errorf("answer %+v", r)
		}
	})
	t.Run("a holder quiet past its lease loses the tag to the next, which gets what waits", func(t *testing.T) {
		a.c.Close()
		a = p.dial()
		k.untilUnserved()
		quiet := a.serve("sonny", 1500)
		sub := k.submit("Ada", "r1", "one x", "")
		c := a.push()
		var taken protocol.ToolsServing
		for { // the refusals say how long it takes
			l := b.answer(b.request("serve_tools", `"tag":"sonny","lease_ms":60000`))
			if l.fields["error"] == nil {
				json.Unmarshal(l.fields["result"], &taken)
				break
			}
			if l.str("error") != "tools_served" {
				t.Fatalf("answer %s", l.raw)
			}
			b.ask(nil, "wait", fmt.Sprintf(`"handles":["turn:Ada/%d"],"timeout_ms":%d`, sub.Turn, l.num("lease_left_ms")+1))
		}
		if taken.Lease <= quiet.Lease || len(taken.Calls) != 1 || !taken.Calls[0].Delivered {
			t.Fatalf("answer %+v", taken)
		}
		if l := last(a.until("tools_lost", 0)); l.str("tag") != "sonny" || l.num("lease") != quiet.Lease || string(l.fields["durable"]) != "false" {
			t.Errorf("notice %s", l.raw)
		}
		a.refused(protocol.ToolsLost, "tool_result", address(sub.Turn, c.Data.CallID, quiet.Lease)+`,"output":"a"`)
		a.refused(protocol.ToolsLost, "renew_tools", fmt.Sprintf(`"tag":"sonny","lease":%d`, quiet.Lease))
		b.ask(nil, "tool_result", address(sub.Turn, c.Data.CallID, taken.Lease)+`,"output":"b"`)
		k.until("turn_finished", sub.Turn)
		if o := k.result("Ada", sub.Turn); o.Text != "got b" {
			t.Errorf("outcome %+v", o)
		}
	})
	t.Run("what waits comes in pages, and each call is handed over once", func(t *testing.T) {
		b.c.Close()
		k.untilUnserved()
		h := p.h
		for i := range 5 {
			name := fmt.Sprint("m", i)
			k.served(name, h.workspace, "", memoryTool(""))
			k.ask(nil, "follow", fmt.Sprintf(`"bot":%q,"after":0`, name))
			s := k.submit(name, "r", fmt.Sprint("one ", i), "")
			k.until("turn_waiting", s.Turn)
		}
		a = p.dial()
		var got []protocol.ToolCall
		var s protocol.ToolsServing
		a.ask(&s, "serve_tools", `"tag":"sonny","lease_ms":60000,"limit":2`)
		got = append(got, s.Calls...)
		for next := s.NextAfter; next != nil; {
			var page protocol.ToolCallPage
			a.ask(&page, "tool_calls", fmt.Sprintf(`"tag":"sonny","after":%d,"through":%d,"limit":2`, *next, s.Through))
			got, next = append(got, page.Calls...), page.NextAfter
		}
		for i, c := range got {
			if c.Bot != fmt.Sprint("m", i) || c.Delivered {
				t.Errorf("call %d is %+v", i, c)
			}
			a.ask(nil, "tool_result", fmt.Sprintf(`"bot":%q,"turn":%d,"call_id":%q,"request":1,"tag":"sonny","lease":%d,"output":"ok"`, c.Bot, c.Turn, c.CallID, s.Lease))
			k.until("turn_finished", c.Turn)
		}
		if len(got) != 5 || len(a.notes) != 0 {
			t.Errorf("%d calls came in pages, %d notices beside", len(got), len(a.notes))
		}
	})
}

func TestClientToolsOfForksAndConfigure(t *testing.T) {
	t.Parallel()
	_, _, k := servedHost(t, 0, "")
	declared := func(bot string) string {
		l := k.ask(nil, "inspect", fmt.Sprintf(`"bot":%q`, bot))
		return string(l.fields["result"])
	}
	t.Run("a fork has its source's, and may be allowed them", func(t *testing.T) {
		k.ask(nil, "fork", `"bot":"Eve","source":"Ada","allow":["memory"]`)
		if r := declared("Eve"); !strings.Contains(r, memoryTool("")[:len(memoryTool(""))-1]) || !strings.Contains(r, `"allowed":["memory"]`) {
			t.Errorf("record %s", r)
		}
		k.refused(protocol.AllowNotSubset, "fork", `"bot":"Fay","source":"Ada","allow":["nope"]`)
	})
	t.Run("configure replaces them while no turn runs", func(t *testing.T) {
		lease := k.serve("sonny", 60000)
		sub := k.submit("Ada", "r1", "one x", "")
		push := k.push()
		k.refused(protocol.BotBusy, "configure", `"bot":"Ada","client_tools":[]`)
		k.ask(nil, "tool_result", address(push.Turn, push.Data.CallID, lease.Lease)+`,"output":"kept"`)
		k.until("turn_finished", sub.Turn)
		k.ask(nil, "configure", `"bot":"Ada","client_tools":[{"name":"other","description":"d","parameters":{"type":"object"},"tag":"sonny"}]`)
		if r := declared("Ada"); strings.Contains(r, `"name":"memory"`) || !strings.Contains(r, `"name":"other"`) {
			t.Errorf("record %s", r)
		}
		k.ask(nil, "configure", `"bot":"Ada","client_tools":null`)
		if r := declared("Ada"); !strings.Contains(r, `"client_tools":[]`) {
			t.Errorf("record %s", r)
		}
	})
}

func TestServedRaces(t *testing.T) {
	t.Parallel()
	h := newHost(t, servedScript)
	h.set.Limits.ApprovalHoldMS, h.set.Limits.Active = 1, 8
	p := h.start()
	k := p.dial()
	t.Run("results that meet the moment of parking end each call once, and every turn goes on", func(t *testing.T) {
		const bots = 40
		s := p.dial()
		lease := s.serve("sonny", 60_000)
		for i := range bots {
			name := fmt.Sprint("m", i)
			k.served(name, h.workspace, "echo", memoryTool(""))
			k.submit(name, "r", "two", `"delivery":"queue"`)
		}
		for range 2 * bots {
			c := s.push()
			s.ask(nil, "tool_result", fmt.Sprintf(`"bot":%q,"turn":%d,"call_id":%q,"request":1,"tag":"sonny","lease":%d,"output":"ok"`,
				c.Bot, c.Turn, c.Data.CallID, lease.Lease))
		}
		all := p.dial() // now: a follower must read as fast as things happen
		all.ask(nil, "follow", `"bot":"*","after":0`)
		completed := 0
		for ended := 0; ended < bots; {
			l := all.note()
			switch l.str("event") {
			case "tool_completed":
				completed++
			case "turn_finished":
				ended++
				var end protocol.TurnFinished
				if l.data(&end); end.Status != "completed" {
					t.Errorf("a turn ended %s", l.raw)
				}
			}
		}
		var st protocol.Stats
		if k.ask(&st, "stats", ""); completed != 3*bots || st.ToolRequests != 0 || st.WaitingTurns != 0 || st.ActiveTurns != 0 {
			t.Errorf("%d calls were completed, stats %+v", completed, st)
		}
		s.c.Close()
	})
	t.Run("200 turns parked on served calls cost no threads, and all resume", func(t *testing.T) {
		k.untilUnserved()
		const bots = 200
		for i := range bots {
			name := fmt.Sprint("p", i)
			k.served(name, h.workspace, "", memoryTool(""))
			k.submit(name, "r", "one x", `"delivery":"queue"`)
		}
		for st := (protocol.Stats{}); st.WaitingTurns < bots; {
			k.ask(&st, "stats", "")
		}
		if n := threads(t, p); n > 40 {
			t.Errorf("%d threads", n)
		}
		s := p.dial()
		lease := s.serve("sonny", 60_000)
		calls, next := lease.Calls, lease.NextAfter
		for next != nil {
			var page protocol.ToolCallPage
			s.ask(&page, "tool_calls", fmt.Sprintf(`"tag":"sonny","after":%d,"through":%d`, *next, lease.Through))
			calls, next = append(calls, page.Calls...), page.NextAfter
		}
		for _, c := range calls {
			s.ask(nil, "tool_result", fmt.Sprintf(`"bot":%q,"turn":%d,"call_id":%q,"request":1,"tag":"sonny","lease":%d,"output":"ok"`,
				c.Bot, c.Turn, c.CallID, lease.Lease))
		}
		var w protocol.Waited
		k.ask(&w, "wait", fmt.Sprintf(`"handles":["turn:p%d/%d","turn:p%d/%d"]`, 0, calls[0].Turn, bots-1, calls[bots-1].Turn))
		for h, v := range w.Results {
			if v.Turn == nil || v.Turn.Text != "got ok" {
				t.Errorf("%s: %+v", h, v)
			}
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
