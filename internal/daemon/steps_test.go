package daemon_test

import (
	"fmt"
	"strings"
	"testing"

	v2 "github.com/go-json-experiment/json"

	"agent/protocol"
)

// stepper is a daemon with a bot Ada whose tool asks per step, and a session that
// serves it.
type stepper struct {
	*gated
	s     *conn
	lease int64

	turn int64 // of the call that is open
	call string
}

const memoryGate = `,"approve":["memory"],"approver":"manual"`

// newStepper makes the bot; declared are further members of its tool, which is
// not gated unless they say so, more of the bot.
func newStepper(t *testing.T, holdMS int64, declared, more string) *stepper {
	t.Helper()
	h := newHost(t, servedScript)
	h.set.Limits.ApprovalHoldMS = holdMS
	if !strings.Contains(declared, "gated") {
		declared += `,"gated":false`
	}
	st := &stepper{gated: &gated{host: h, p: h.start()}}
	st.attach()
	st.k.ask(nil, "create", fmt.Sprintf(`"bot":"Ada","model":"s/m","instructions":"","tools":["echo"],"workspace":%q,"client_tools":[%s]%s`,
		h.workspace, memoryTool(declared), more))
	st.serve()
	return st
}

func (st *stepper) serve() {
	st.t.Helper()
	st.s = st.p.dial()
	st.lease = st.s.serve("sonny", 60_000).Lease
}

// begin has the model call the tool, and the session handed the call.
func (st *stepper) begin() {
	st.t.Helper()
	st.turn = st.submit("Ada", "one fact")
	st.call = st.s.push().Data.CallID
}

// asks is the members of an approve_step.
func (st *stepper) asks(step, action, args string) string {
	return address(st.turn, st.call, st.lease) + fmt.Sprintf(`,"step":%q,"name":%q,"arguments":%s`, step, action, args)
}

// ask asks for a step and returns the request.
func (st *stepper) ask(step, action, args string) int {
	st.t.Helper()
	return st.s.request("approve_step", st.asks(step, action, args))
}

// listed asks for a step and gives it as it is listed, the only one that waits.
func (st *stepper) listed(step, action, args string) (int, protocol.Approval) {
	st.t.Helper()
	id := st.ask(step, action, args)
	a := st.k.waiting(1)[0]
	if a.Step != step || a.Name != action || a.CallID != st.call {
		st.t.Fatalf("listed %+v", a)
	}
	return id, a
}

// reply is the answer of a request, which comes when it will.
func (st *stepper) reply(id int) line {
	st.t.Helper()
	for i, l := range st.s.notes {
		if string(l.fields["id"]) == fmt.Sprint(id) {
			st.s.notes = append(st.s.notes[:i:i], st.s.notes[i+1:]...)
			return l
		}
	}
	return st.s.answer(id)
}

// verdict is what a step's server is answered.
func (st *stepper) verdict(id int) (v protocol.StepVerdict) {
	st.t.Helper()
	l := st.reply(id)
	if l.fields["error"] != nil || v2.Unmarshal(l.fields["result"], &v) != nil {
		st.t.Fatalf("answer %s", l.raw)
	}
	return v
}

// cancelled is that answer where the step was withdrawn.
func (st *stepper) cancelled(id int) {
	st.t.Helper()
	if l := st.reply(id); l.str("error") != string(protocol.StepCancelled) {
		st.t.Fatalf("answer %s", l.raw)
	}
}

// judged is the members of an answer to a step.
func judged(a protocol.Approval, more string) string {
	return verdict(a, fmt.Sprintf(`"step":%q,%s`, a.Step, more))
}

// finish gives the call its result and the turn its end.
func (st *stepper) finish() []line {
	st.t.Helper()
	st.s.ask(nil, "tool_result", address(st.turn, st.call, st.lease)+`,"output":"done"`)
	lines, o := st.ended("Ada", st.turn)
	if o.Status != "completed" {
		st.t.Errorf("%v %+v", kinds(lines), o)
	}
	return lines
}

// decided are the steps' verdicts among some events.
func decided(lines []line) (out []protocol.StepDecided) {
	for _, l := range of(lines, "step_decided") {
		var d protocol.StepDecided
		l.data(&d)
		out = append(out, d)
	}
	return out
}

func TestSteps(t *testing.T) {
	t.Parallel()
	for _, hold := range []int64{60_000, 0} {
		t.Run(fmt.Sprintf("held %d ms", hold), func(t *testing.T) {
			t.Parallel()
			st := newStepper(t, hold, "", memoryGate)
			t.Run("AP-35 PR-69 two steps of one call are announced apart, each waits for its own verdict, and what came of one is recorded", func(t *testing.T) {
				st.begin()
				args := `{"path":"/etc/a  b", "n":[1.50],"text":"` + strings.Repeat("x", 5000) + `"}`
				first, second := st.ask("h-1", "mcp/files/delete", args), 0
				a := st.k.waiting(1)[0]
				if a.Cause != "step" || a.Step != "h-1" || a.Name != "mcp/files/delete" || a.Request != 1 || a.Escalated || string(a.Arguments) != args || !a.Whole() ||
					fmt.Sprint(a.Gates) != "[manual]" || a.Node == 0 || a.ExpiresMS != nil {
					t.Errorf("listed %+v", a)
				}
				second = st.s.request("approve_step", st.asks("h-2", "mcp/files/move", `{"to":"b"}`)+`,"reason":"since it is old"`)
				list := st.k.waiting(2)
				if list[1].Step != "h-2" || list[1].Justification != "since it is old" {
					t.Errorf("listed %+v", list[1])
				}
				var stats protocol.Stats
				if st.k.ask(&stats, "stats", ""); stats.ApprovalRequests != 2 {
					t.Errorf("stats %+v", stats)
				}
				var out protocol.Answered
				st.k.ask(&out, "answer", judged(list[0], `"decision":"deny","reason":"keep it","by":"pat"`))
				if out.Tag != "manual" || out.Decision != "deny" || out.Pending == nil || len(out.Pending) != 0 {
					t.Errorf("answer %+v", out)
				}
				if v := st.verdict(first); v.Step != "h-1" || v.Decision != "deny" || v.Reason != "keep it" || len(v.Approvals) != 1 || *v.Approvals[0].By != "pat" {
					t.Errorf("verdict %+v", v)
				}
				if a := st.k.waiting(1)[0]; a.Step != "h-2" || a.Denials["manual"].InRow != 1 || a.Denials["manual"].InTurn != 1 {
					t.Errorf("listed %+v", a)
				}
				st.k.ask(nil, "answer", judged(list[1], `"decision":"allow"`))
				if v := st.verdict(second); v.Decision != "allow" || len(v.Approvals) != 1 || v.Approvals[0].By != nil || v.Approvals[0].Tag != "manual" {
					t.Errorf("verdict %+v", v)
				}
				st.k.refused(protocol.ApprovalAlreadyAnswered, "answer", judged(list[0], `"decision":"allow"`))
				theStep := address(st.turn, st.call, st.lease) + `,"step":"h-%d","ok":true`
				st.s.refused(protocol.NoPendingStep, "step_result", fmt.Sprintf(theStep, 1)) // it was denied
				st.s.refused(protocol.NoPendingStep, "step_result", fmt.Sprintf(theStep, 3))
				st.s.ask(nil, "step_result", fmt.Sprintf(theStep, 2)+`,"detail":"moved"`)
				st.s.refused(protocol.NoPendingStep, "step_result", fmt.Sprintf(theStep, 2))
				p := st.k.prompts("Ada", st.turn, "")
				want := []protocol.PromptCall{
					{CallID: st.call, Step: "h-1", Name: "mcp/files/delete"},
					{CallID: st.call, Step: "h-2", Name: "mcp/files/move", Done: true, OK: true, Detail: "moved"},
				}
				if len(p.Calls) != 3 || p.Calls[0].Name != "memory" || p.Calls[0].Done || fmt.Sprint(p.Calls[1:]) != fmt.Sprint(want) {
					t.Errorf("calls %+v", p.Calls)
				}
				lines := st.finish()
				asked := of(lines, "approval_requested")
				d := decided(lines)
				if len(asked) != 2 || len(d) != 2 || d[0].Decision != "deny" || d[0].Name != "mcp/files/delete" || d[0].Approvals[0].Reason != "keep it" ||
					d[1].Decision != "allow" || d[1].OverturnedBy != nil || d[1].CallID != st.call {
					t.Errorf("events %v %+v", kinds(lines), d)
				}
				var r protocol.ApprovalRequested
				if asked[0].data(&r); len(r.Calls) != 1 || r.Calls[0].Step != "h-1" || r.Calls[0].Cause != "step" || r.Calls[0].Name != "mcp/files/delete" ||
					strings.Contains(string(asked[0].raw), "etc") {
					t.Errorf("event %s", asked[0].raw)
				}
				var c protocol.StepCompleted
				done := of(lines, "step_completed")
				if last(done).data(&c); len(done) != 1 || c.Step != "h-2" || !c.OK || c.Detail != "moved" || c.Name != "mcp/files/move" {
					t.Errorf("completed %+v", c)
				}
				if parks := of(lines, "turn_waiting"); (len(parks) != 0) != (hold == 0) {
					t.Errorf("%v", kinds(lines))
				}
			})
			t.Run("AP-36 an interrupt withdraws the steps, and a verdict comes too late", func(t *testing.T) {
				st.begin()
				id, a := st.listed("h-1", "a", `{}`)
				if hold == 0 {
					st.k.parked(1)
				}
				st.k.ask(nil, "interrupt", fmt.Sprintf(`"bot":"Ada","turn":%d`, st.turn))
				st.cancelled(id)
				lines, _ := st.ended("Ada", st.turn)
				st.k.waiting(0)
				st.k.refused(protocol.StaleTurn, "answer", judged(a, `"decision":"allow"`))
				st.s.refused(protocol.StaleTurn, "approve_step", st.asks("h-2", "a", `{}`))
				if len(decided(lines)) != 0 {
					t.Errorf("%v", kinds(lines))
				}
			})
			t.Run("what was begun is reported though the turn was interrupted", func(t *testing.T) {
				st.begin()
				id, a := st.listed("h-1", "a", `{}`)
				st.k.ask(nil, "answer", judged(a, `"decision":"allow"`))
				st.verdict(id)
				st.k.ask(nil, "interrupt", fmt.Sprintf(`"bot":"Ada","turn":%d`, st.turn))
				st.ended("Ada", st.turn)
				st.s.ask(nil, "step_result", address(st.turn, st.call, st.lease)+`,"step":"h-1","ok":false,"detail":"cancelled"`)
				if l := last(st.k.until("step_completed", st.turn)); !strings.Contains(string(l.raw), `"ok":false,"detail":"cancelled"`) {
					t.Errorf("event %s", l.raw)
				}
			})
			t.Run("a result withdraws the steps of its call that wait", func(t *testing.T) {
				st.begin()
				id, a := st.listed("h-1", "a", `{}`)
				st.finish()
				st.cancelled(id)
				st.k.refused(protocol.StaleTurn, "answer", judged(a, `"decision":"allow"`))
			})
			t.Run("all gates must allow, and the first denial decides", func(t *testing.T) {
				st.k.ask(nil, "configure", `"bot":"Ada","gates":[{"tag":"manual","tools":["memory"]},{"tag":"second","tools":["memory"]},{"tag":"other","tools":["echo"]}]`)
				st.begin()
				id, a := st.listed("h-1", "a", `{}`)
				if fmt.Sprint(a.Gates) != "[manual second]" {
					t.Errorf("listed %+v", a)
				}
				st.k.refused(protocol.ApprovalTagRequired, "answer", judged(a, `"decision":"allow"`))
				st.k.refused(protocol.NoPendingApproval, "answer", judged(a, `"decision":"allow","tag":"other"`))
				st.k.ask(nil, "answer", judged(a, `"decision":"allow","tag":"second"`))
				if left := st.k.waiting(1)[0]; fmt.Sprint(left.Gates) != "[manual]" {
					t.Errorf("listed %+v", left)
				}
				st.k.ask(nil, "answer", judged(a, `"decision":"deny"`))
				if v := st.verdict(id); v.Decision != "deny" || len(v.Approvals) != 2 || v.Approvals[0].Decision != "deny" || v.Approvals[1].Decision != "allow" {
					t.Errorf("verdict %+v", v)
				}
				id, a = st.listed("h-2", "a", `{}`)
				st.k.ask(nil, "answer", judged(a, `"decision":"allow","tag":"manual"`))
				st.k.ask(nil, "answer", judged(a, `"decision":"allow","tag":"second"`))
				if v := st.verdict(id); v.Decision != "allow" || len(v.Approvals) != 2 {
					t.Errorf("verdict %+v", v)
				}
				st.finish()
				st.k.ask(nil, "configure", `"bot":"Ada","gates":[{"tag":"manual","tools":["memory"]}]`)
			})
			t.Run("a step is pushed to who serves its tag and judged under its lease", func(t *testing.T) {
				judge := st.p.dial()
				held := judge.serveApprovals("manual", 60_000)
				st.begin()
				id := st.ask("h-1", "a", `{"x":1}`)
				p := judge.round()
				if a := call(p, 0); len(p.Data.Calls) != 1 || a.Step != "h-1" || a.Turn != st.turn || string(a.Arguments) != `{"x":1}` {
					t.Fatalf("pushed %+v", p)
				}
				judge.ask(nil, "answer", judged(call(p, 0), fmt.Sprintf(`"decision":"allow","tag":"manual","lease":%d,"by":"approver"`, held.Lease)))
				if v := st.verdict(id); v.Decision != "allow" || *v.Approvals[0].By != "approver" {
					t.Errorf("verdict %+v", v)
				}
				judge.c.Close()
				st.finish()
			})
			t.Run("PR-78 a pause withdraws the steps", func(t *testing.T) {
				st.begin()
				id, a := st.listed("h-1", "a", `{}`)
				st.k.ask(nil, "pause", "")
				st.cancelled(id)
				st.k.refused(protocol.StaleTurn, "answer", judged(a, `"decision":"allow"`))
				st.k.ask(nil, "resume", "")
				st.k.until("turn_finished", st.turn)
			})
		})
	}
}

func TestStepsOfAGatedCall(t *testing.T) {
	t.Parallel()
	for _, hold := range []int64{60_000, 0} {
		t.Run(fmt.Sprintf("PR-69 the call of a gated tool waits, and within it each step, held %d ms", hold), func(t *testing.T) {
			t.Parallel()
			st := newStepper(t, hold, `,"gated":true`, memoryGate)
			st.turn = st.submit("Ada", "one fact")
			a := st.k.waiting(1)[0]
			if a.Cause != "served" || a.Step != "" {
				t.Errorf("listed %+v", a)
			}
			st.call = a.CallID
			st.s.refused(protocol.NoPendingCall, "approve_step", st.asks("h-1", "a", `{}`)) // it was not handed over
			st.k.allow(a, "")
			st.s.push()
			id, step := st.listed("h-1", "a", `{}`)
			st.k.refused(protocol.ApprovalAlreadyAnswered, "answer", verdict(step, `"decision":"allow","tag":"manual"`)) // the call's verdict
			st.k.ask(nil, "answer", judged(step, `"decision":"deny"`))
			if v := st.verdict(id); v.Decision != "deny" {
				t.Errorf("verdict %+v", v)
			}
			id, step = st.listed("h-2", "a", `{}`)
			st.k.ask(nil, "answer", judged(step, `"decision":"allow"`))
			if v := st.verdict(id); v.Decision != "allow" {
				t.Errorf("verdict %+v", v)
			}
			st.s.ask(nil, "step_result", address(st.turn, st.call, st.lease)+`,"step":"h-2","ok":true`)
			lines := st.finish()
			if len(of(lines, "approval_requested")) != 3 || len(decided(lines)) != 2 || len(of(lines, "step_completed")) != 1 {
				t.Errorf("%v", kinds(lines))
			}
		})
	}
}

func TestStepsRefused(t *testing.T) {
	t.Parallel()
	st := newStepper(t, 60_000, "", memoryGate)
	st.begin()
	other := st.p.dial()
	otherLease := other.serve("else", 60_000).Lease
	with := func(old, is string) string { return strings.Replace(st.asks("s", "a", `{}`), old, is, 1) }
	lease := fmt.Sprintf(`"lease":%d`, st.lease)
	for _, row := range []struct {
		name, members string
		code          protocol.Code
	}{
		{"a bad tag", with(`"sonny"`, `"a b"`), protocol.InvalidTag},
		{"no call", with(fmt.Sprintf("%q", st.call), `""`), protocol.InvalidCallID},
		{"a bad step", with(`"s"`, `"a/b"`), protocol.InvalidName},
		{"no action", with(`"name":"a"`, `"name":""`), protocol.InvalidName},
		{"a long action", with(`"name":"a"`, `"name":"`+strings.Repeat("a", 129)+`"`), protocol.InvalidName},
		{"arguments over 256 KiB", st.asks("s", "a", `{"a":"`+strings.Repeat("x", 256<<10)+`"}`), protocol.StepLimit},
		{"a long reason", with(`"s"`, `"s","reason":"`+strings.Repeat("x", 1025)+`"`), protocol.ReasonLimit},
		{"no lease", with(","+lease, ""), protocol.ToolsLost},
		{"another lease", with(lease, fmt.Sprintf(`"lease":%d`, st.lease+1)), protocol.ToolsLost},
		{"nobody's bot", with(`"Ada"`, `"Nobody"`), protocol.BotNotFound},
		{"another turn", with(fmt.Sprintf(`"turn":%d`, st.turn), fmt.Sprintf(`"turn":%d`, st.turn+7)), protocol.NoPendingCall},
		{"another call", with(fmt.Sprintf("%q", st.call), `"none"`), protocol.NoPendingCall},
		{"a later request", with(`"request":1`, `"request":2`), protocol.NoPendingCall},
		{"an earlier request", with(`"request":1`, `"request":0`), protocol.CallSuperseded},
	} {
		t.Run(row.name, func(t *testing.T) {
			st.s.t = t
			st.s.refused(row.code, "approve_step", row.members)
		})
	}
	st.s.t = t
	t.Run("only the holder of the call asks", func(t *testing.T) {
		other.refused(protocol.ToolsLost, "approve_step", st.asks("s", "a", `{}`))
		other.refused(protocol.NoPendingCall, "approve_step", strings.NewReplacer(lease, fmt.Sprintf(`"lease":%d`, otherLease), `"sonny"`, `"else"`).Replace(st.asks("s", "a", `{}`)))
	})
	t.Run("a step's name is its own, and verdicts on what does not wait are refused", func(t *testing.T) {
		id, a := st.listed("s", "a", `{}`)
		st.s.refused(protocol.StepExists, "approve_step", st.asks("s", "b", `{}`))
		st.k.refused(protocol.NoPendingApproval, "answer", verdict(a, `"decision":"allow","step":"t"`))
		st.k.refused(protocol.NoPendingApproval, "answer", verdict(a, `"decision":"allow"`)) // its call waits for none
		st.k.refused(protocol.InvalidName, "answer", verdict(a, `"decision":"allow","step":"a/b"`))
		st.k.refused(protocol.InvalidName, "answer", verdict(a, `"decision":"allow","step":""`))
		st.k.refused(protocol.InvalidBy, "answer", judged(a, `"decision":"allow","by":""`))
		later, none := a, a
		later.Request, none.Request = 2, 0
		st.k.refused(protocol.NoPendingApproval, "answer", judged(later, `"decision":"allow"`))
		st.k.refused(protocol.ApprovalSuperseded, "answer", judged(none, `"decision":"allow"`))
		st.k.refused(protocol.ApprovalsLost, "answer", judged(a, `"decision":"allow","tag":"manual","lease":7`))
		st.s.refused(protocol.NoPendingStep, "step_result", address(st.turn, st.call, st.lease)+`,"step":"s","ok":true`) // not judged yet
		st.k.ask(nil, "answer", judged(a, `"decision":"allow"`))
		st.verdict(id)
		st.s.refused(protocol.StepExists, "approve_step", st.asks("s", "a", `{}`))
		st.s.refused(protocol.StepLimit, "step_result", address(st.turn, st.call, st.lease)+`,"step":"s","ok":true,"detail":"`+strings.Repeat("x", 2049)+`"`)
		other.refused(protocol.ToolsLost, "step_result", address(st.turn, st.call, st.lease)+`,"step":"s","ok":true`)
	})
	t.Run("a detail is redacted", func(t *testing.T) {
		st.s.ask(nil, "step_result", address(st.turn, st.call, st.lease)+`,"step":"s","ok":true,"detail":"{\"password\": \"hunter2hunter2\"}"`)
		if l := last(st.k.until("step_completed", st.turn)); strings.Contains(string(l.raw), "hunter2") || !strings.Contains(string(l.raw), "[REDACTED]") {
			t.Errorf("event %s", l.raw)
		}
	})
	st.finish()
	st.s.refused(protocol.StaleTurn, "approve_step", st.asks("late", "a", `{}`))
}

func TestStepsWithoutAGate(t *testing.T) {
	t.Parallel()
	st := newStepper(t, 60_000, "", `,"approve":["echo"],"approver":"manual"`)
	st.begin()
	t.Run("AP-37 PR-76 a step of an unsandboxed bot that no gate covers is allowed at once, by nobody", func(t *testing.T) {
		l := st.reply(st.ask("h-0", "a", `{}`))
		if string(l.fields["result"]) != `{"step":"h-0","decision":"allow","approvals":[{"tag":"","by":null,"waited_ms":0}]}` {
			t.Errorf("answer %s", l.raw)
		}
		var d protocol.StepDecided
		if last(st.k.until("step_decided", st.turn)).data(&d); d.Decision != "allow" || len(d.Approvals) != 1 || d.Approvals[0].By != nil {
			t.Errorf("decided %+v", d)
		}
		st.k.waiting(0)
	})
	t.Run("a call has at most 256 steps", func(t *testing.T) {
		for i := 1; i < 256; i++ {
			if v := st.verdict(st.ask(fmt.Sprint("h-", i), "a", `{}`)); v.Decision != "allow" {
				t.Fatalf("verdict %+v", v)
			}
		}
		st.s.refused(protocol.StepLimit, "approve_step", st.asks("h-256", "a", `{}`))
		if p := st.k.prompts("Ada", st.turn, ""); len(p.Calls) != 257 {
			t.Errorf("%d calls", len(p.Calls))
		}
	})
	st.finish()
	t.Run("such a step cannot be overturned", func(t *testing.T) {
		st.k.refused(protocol.OverturnNotPossible, "answer",
			fmt.Sprintf(`"bot":"Ada","turn":%d,"call_id":%q,"request":1,"step":"h-1","decision":"allow","overturn":true`, st.turn, st.call))
	})
}

func TestStepOverturn(t *testing.T) {
	t.Parallel()
	st := newStepper(t, 60_000, "", memoryGate)
	over := `"decision":"allow","overturn":true,"by":"pat"`
	deny := func(step, action, args string) protocol.Approval {
		t.Helper()
		id, a := st.listed(step, action, args)
		st.k.ask(nil, "answer", judged(a, `"decision":"deny"`))
		st.verdict(id)
		return a
	}
	st.begin()
	a := deny("h-1", "mail", `{"to":"x"}`)
	t.Run("AP-97 PR-93 a denied step that a person overturns is allowed once, unannounced, for the same action and arguments in whatever call", func(t *testing.T) {
		id, allowed := st.listed("h-2", "mail", `{"to":"y"}`)
		st.k.refused(protocol.OverturnNotPossible, "answer", judged(allowed, over)) // it waits
		st.k.ask(nil, "answer", judged(allowed, `"decision":"allow"`))
		st.verdict(id)
		st.k.refused(protocol.OverturnNotPossible, "answer", judged(allowed, over))
		st.finish()
		wrong := a
		wrong.Request = 2
		st.k.refused(protocol.OverturnNotPossible, "answer", judged(wrong, over))
		st.k.refused(protocol.OverturnNotPossible, "answer", verdict(a, over)) // the call itself was not denied
		l := st.k.ask(nil, "answer", judged(a, over))
		if got := string(l.fields["result"]); !strings.Contains(got, `"decision":"allow"`) || !strings.Contains(got, `"pending":[]`) {
			t.Errorf("answer %s", l.raw)
		}
		st.begin()
		deny("h-1", "mail", `{"to": "x"}`) // one byte more
		deny("h-2", "mail2", `{"to":"x"}`) // another action
		v := st.verdict(st.ask("h-3", "mail", `{"to":"x"}`))
		if v.Decision != "allow" || len(v.Approvals) != 1 || *v.Approvals[0].By != "pat" {
			t.Errorf("verdict %+v", v)
		}
		st.s.ask(nil, "step_result", address(st.turn, st.call, st.lease)+`,"step":"h-3","ok":true`)
		deny("h-4", "mail", `{"to":"x"}`)
		lines := st.finish()
		var d []protocol.StepDecided
		for _, one := range decided(lines) {
			if one.Step == "h-3" {
				d = append(d, one)
			}
		}
		if len(d) != 1 || d[0].OverturnedBy == nil || *d[0].OverturnedBy != "pat" || len(of(lines, "approval_requested")) != 3 || len(of(lines, "step_completed")) != 1 {
			t.Errorf("decided %+v of %v", d, kinds(lines))
		}
	})
	t.Run("it is kept over a restart, and gone when the gates change", func(t *testing.T) {
		st.begin()
		a := deny("h-1", "kept", `{}`)
		b := deny("h-2", "gone", `{}`)
		st.finish()
		st.k.ask(nil, "answer", judged(a, over))
		st.again()
		st.serve()
		st.begin()
		if v := st.verdict(st.ask("h-1", "kept", `{}`)); v.Decision != "allow" {
			t.Errorf("verdict %+v", v)
		}
		st.k.ask(nil, "answer", judged(b, over))
		st.k.ask(nil, "configure", `"bot":"Ada","gates":[{"tag":"manual","tools":["memory","echo"]}]`)
		deny("h-2", "gone", `{}`)
		st.finish()
	})
	t.Run("only the newest 50 gated calls and steps can be overturned", func(t *testing.T) {
		st.begin()
		first := deny("h-0", "a", `{}`)
		second := deny("h-1", "b", `{}`)
		for i := 2; i < 51; i++ {
			deny(fmt.Sprint("h-", i), "c", fmt.Sprintf(`{"n":%d}`, i))
		}
		st.k.refused(protocol.OverturnNotPossible, "answer", judged(first, over))
		st.k.ask(nil, "answer", judged(second, over))
		st.finish()
	})
	t.Run("a step that no gate covers any more cannot be", func(t *testing.T) {
		st.begin()
		a := deny("h-0", "a", `{}`)
		st.finish()
		st.k.ask(nil, "configure", `"bot":"Ada","gates":[]`)
		st.k.refused(protocol.OverturnNotPossible, "answer", judged(a, over))
	})
	t.Run("prune takes the steps with the turn", func(t *testing.T) {
		st.k.ask(nil, "configure", `"bot":"Ada","gates":[{"tag":"manual","tools":["memory"]}]`)
		st.begin()
		a := deny("h-0", "a", `{}`)
		st.finish()
		st.begin()
		st.finish()
		st.k.ask(nil, "prune", `"bot":"Ada","keep_turns":1`)
		st.k.refused(protocol.OverturnNotPossible, "answer", judged(a, over))
		st.s.refused(protocol.NoPendingStep, "step_result", address(a.Turn, a.CallID, st.lease)+`,"step":"h-0","ok":true`)
	})
}
