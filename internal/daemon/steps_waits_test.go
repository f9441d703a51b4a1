package daemon_test

import (
	"fmt"
	"strings"
	"testing"

	"agent/protocol"
)

// pass waits for so long while the daemon runs.
func (st *stepper) pass(ms int64) {
	st.t.Helper()
	st.k.ask(nil, "wait", fmt.Sprintf(`"handles":["turn:Ada/%d"],"timeout_ms":%d`, st.turn, ms))
}

// due is when the call that waits is to have its result.
func (st *stepper) due() int64 {
	st.t.Helper()
	return st.k.waitingCall().ExpiresMS
}

const expiringGate = `,"approve":["memory"],"approver":"manual","approve_expire_ms":300`

func TestStepExpiry(t *testing.T) {
	t.Parallel()
	for _, hold := range []int64{60_000, 0} {
		t.Run(fmt.Sprintf("AP-82 a step that nobody judges in time is denied, and the call goes on, held %d ms", hold), func(t *testing.T) {
			t.Parallel()
			st := newStepper(t, hold, "", expiringGate)
			st.begin()
			first, second := st.ask("h-1", "a", `{}`), st.ask("h-2", "a", `{}`)
			for _, id := range []int{first, second} {
				if v := st.verdict(id); v.Decision != "expired" || v.Reason != "" || len(v.Approvals) != 1 || v.Approvals[0].By != nil || v.Approvals[0].Decision != "expired" {
					t.Errorf("verdict %+v", v)
				}
			}
			st.s.refused(protocol.NoPendingStep, "step_result", address(st.turn, st.call, st.lease)+`,"step":"h-1","ok":true`)
			lines := st.finish()
			if d := decided(lines); len(d) != 2 || d[0].Decision != "expired" || d[1].Decision != "expired" {
				t.Errorf("decided %+v", d)
			}
			var b protocol.Bot
			if st.k.ask(&b, "inspect", `"bot":"Ada"`); b.Denials["manual"].InRow != 2 || b.Denials["manual"].Expired < 1 {
				t.Errorf("counts %+v", b.Denials)
			}
		})
		t.Run(fmt.Sprintf("AP-95 PR-91 the third deadline of steps that nobody is there to meet ends the turn, held %d ms", hold), func(t *testing.T) {
			t.Parallel()
			st := newStepper(t, hold, "", expiringGate)
			st.begin()
			for i := range 3 {
				if v := st.verdict(st.ask(fmt.Sprint("h-", i), "a", `{}`)); v.Decision != "expired" {
					t.Errorf("verdict %+v", v)
				}
			}
			lines, o := st.ended("Ada", st.turn)
			if end := string(last(lines).raw); o.Status != "interrupted" || *o.Error != protocol.ApprovalsUnserved || !strings.Contains(end, `"tag":"manual"`) || !strings.Contains(end, `"expired":3`) {
				t.Errorf("%+v %s", o, end)
			}
			if n := last(st.s.until("tool_cancelled", st.turn)); n.str("call_id") != st.call {
				t.Errorf("notice %s", n.raw)
			}
			st.begin() // the bot takes the next turn
			st.finish()
		})
	}
	t.Run("a step that expires with a later call of the round counts once with it", func(t *testing.T) {
		t.Parallel()
		h := newHost(t, `[{"match":{"prefix":"both"},"steps":[{"calls":[{"tool":"memory","arguments":{"fact":"x"}},{"tool":"echo","arguments":{"text":"y"}}]},{"text":"got ${last}"}]}]`)
		h.set.Limits.ApprovalHoldMS = 60_000
		st := &stepper{gated: &gated{host: h, p: h.start()}}
		st.attach()
		st.k.ask(nil, "create", fmt.Sprintf(`"bot":"Ada","model":"s/m","instructions":"","tools":["echo"],"workspace":%q,"client_tools":[%s],"approve":["memory","echo"],"approver":"manual","approve_expire_ms":700`,
			h.workspace, memoryTool(`,"gated":false`)))
		st.serve()
		st.turn = st.submit("Ada", "both")
		st.call = st.s.push().Data.CallID
		if v := st.verdict(st.ask("h-1", "a", `{}`)); v.Decision != "expired" {
			t.Errorf("verdict %+v", v)
		}
		lines := st.finish()
		var b protocol.Bot
		if st.k.ask(&b, "inspect", `"bot":"Ada"`); b.Denials["manual"].InRow != 2 || b.Denials["manual"].Expired != 1 {
			t.Errorf("counts %+v of %v", b.Denials, kinds(lines))
		}
	})
}

func TestStepClock(t *testing.T) {
	t.Parallel()
	for _, hold := range []int64{60_000, 0} {
		t.Run(fmt.Sprintf("held %d ms", hold), func(t *testing.T) {
			t.Parallel()
			st := newStepper(t, hold, `,"expire_ms":1000`, memoryGate)
			t.Run("AP-98 PR-94 a step's wait moves the call's deadline on by the time that it took", func(t *testing.T) {
				st.begin()
				id, a := st.listed("h-1", "a", `{}`)
				second := st.ask("h-2", "a", `{}`)
				list := st.k.waiting(2)
				before := st.due()
				st.pass(3000)
				if during := st.due(); during < before+2900 {
					t.Errorf("the deadline was %d and is %d", before, during)
				}
				st.k.ask(nil, "answer", judged(a, `"decision":"allow"`))
				st.verdict(id)
				st.k.ask(nil, "answer", judged(list[1], `"decision":"deny"`))
				st.verdict(second)
				var row protocol.ToolCall = st.k.waitingCall()
				if moved := row.ExpiresMS - row.AnnouncedMS - 1000; moved < 3000 || moved > 20_000 {
					t.Errorf("the deadline moved by %d ms", moved)
				}
				lines := st.finish()
				if waits := of(lines, "turn_waiting"); len(waits) != 0 && hold != 0 || strings.Contains(raws(of(lines, "tool_completed")), "tool_not_served") {
					t.Errorf("%v", kinds(lines))
				}
			})
			t.Run("PR-94 after the verdict the rest of the time runs out", func(t *testing.T) {
				st.begin()
				id, a := st.listed("h-1", "a", `{}`)
				st.pass(1500)
				st.k.ask(nil, "answer", judged(a, `"decision":"allow"`))
				st.verdict(id)
				if _, o := st.ended("Ada", st.turn); o.Status != "completed" || !strings.Contains(o.Text, string(protocol.ToolNotServed)) {
					t.Errorf("outcome %+v", o)
				}
				st.s.refused(protocol.StaleTurn, "approve_step", st.asks("h-2", "a", `{}`))
			})
			t.Run("a call whose steps were all decided runs out as any", func(t *testing.T) {
				st.begin()
				if _, o := st.ended("Ada", st.turn); !strings.Contains(o.Text, string(protocol.ToolNotServed)) {
					t.Errorf("outcome %+v", o)
				}
			})
		})
	}
}

func TestStepsWithdrawn(t *testing.T) {
	t.Parallel()
	for _, hold := range []int64{60_000, 0} {
		t.Run(fmt.Sprintf("held %d ms", hold), func(t *testing.T) {
			t.Parallel()
			st := newStepper(t, hold, `,"expire_ms":1000`, memoryGate)
			// offered has the next session be handed the call, and ask anew.
			offered := func(gone protocol.Approval) {
				t.Helper()
				st.k.waiting(0)
				st.k.refused(protocol.NoPendingApproval, "answer", judged(gone, `"decision":"allow"`))
				if c := st.k.waitingCall(); !c.Delivered || c.CallID != st.call {
					t.Fatalf("listed %+v", c)
				}
				st.s.refused(protocol.StepExists, "approve_step", st.asks(gone.Step, "a", `{}`))
				st.s.refused(protocol.NoPendingStep, "step_result", address(st.turn, st.call, st.lease)+`,"step":"h-1","ok":true`)
				id, a := st.listed("h-2", "a", `{}`)
				st.k.ask(nil, "answer", judged(a, `"decision":"allow"`))
				if v := st.verdict(id); v.Decision != "allow" {
					t.Errorf("verdict %+v", v)
				}
				if d := decided(st.finish()); len(d) != 1 || d[0].Step != "h-2" {
					t.Errorf("decided %+v", d)
				}
			}
			t.Run("a session that closes withdraws its steps, and their wait still counts for nothing", func(t *testing.T) {
				st.begin()
				_, a := st.listed("h-1", "a", `{}`)
				st.pass(1500)
				st.s.c.Close()
				st.k.untilUnserved()
				st.serve()
				offered(a)
			})
			t.Run("a lease that is lost withdraws the steps that were asked under it", func(t *testing.T) {
				st.s.c.Close()
				st.k.untilUnserved()
				st.s = st.p.dial()
				st.lease = st.s.serve("sonny", 300).Lease
				st.begin()
				id, a := st.listed("h-1", "a", `{}`)
				quiet, next := st.s, st.p.dial()
				for { // the refusals say how long it takes
					l := next.answer(next.request("serve_tools", `"tag":"sonny","lease_ms":60000`))
					if l.fields["error"] == nil {
						break
					}
					st.pass(l.num("lease_left_ms") + 1)
				}
				st.cancelled(id)
				quiet.refused(protocol.ToolsLost, "approve_step", st.asks("h-3", "a", `{}`))
				next.c.Close()
				st.k.untilUnserved()
				st.serve()
				offered(a)
			})
		})
	}
	t.Run("after a restart a parked call has no steps that wait, and its server asks anew", func(t *testing.T) {
		t.Parallel()
		st := newStepper(t, 0, `,"expire_ms":2000`, memoryGate)
		st.begin()
		_, a := st.listed("h-1", "a", `{}`)
		st.k.until("turn_waiting", st.turn)
		st.pass(2500) // longer than the call may take
		st.again()
		st.k.waiting(0)
		st.k.refused(protocol.NoPendingApproval, "answer", judged(a, `"decision":"allow"`))
		st.serve()
		if c := st.k.waitingCall(); !c.Delivered || c.ExpiresMS < c.AnnouncedMS+4500 {
			t.Errorf("listed %+v", c)
		}
		st.listed("h-2", "a", `{}`)
		st.again() // twice, and nothing is allowed by it
		st.serve()
		st.k.waiting(0)
		id, a := st.listed("h-3", "a", `{}`)
		st.k.ask(nil, "answer", judged(a, `"decision":"allow"`))
		if v := st.verdict(id); v.Decision != "allow" {
			t.Errorf("verdict %+v", v)
		}
		if d := decided(st.finish()); len(d) != 1 || d[0].Step != "h-3" {
			t.Errorf("decided %+v", d)
		}
	})
	t.Run("a live turn's steps end with its daemon", func(t *testing.T) {
		t.Parallel()
		st := newStepper(t, 60_000, "", memoryGate)
		st.begin()
		_, a := st.listed("h-1", "a", `{}`)
		st.again()
		lines, o := st.ended("Ada", st.turn)
		if o.Status != "interrupted" || len(decided(lines)) != 0 {
			t.Errorf("%v %+v", kinds(lines), o)
		}
		st.k.refused(protocol.StaleTurn, "answer", judged(a, `"decision":"allow"`))
		st.serve()
		st.begin()
		st.finish()
	})
}
