package daemon_test

import (
	"fmt"
	"sync"
	"testing"

	"agent/protocol"
)

// What nobody may get out of a step that waits: an allow that was not given.
func TestStepsUnderAttack(t *testing.T) {
	t.Parallel()
	for _, hold := range []int64{0, 60_000} {
		t.Run(fmt.Sprintf("held %d ms", hold), func(t *testing.T) {
			t.Parallel()
			st := newStepper(t, hold, "", memoryGate)
			t.Run("gates that are taken away release no step that waits; the next is under the new ones", func(t *testing.T) {
				st.begin()
				id, a := st.listed("s1", "act", `{"n":1}`)
				st.k.ask(nil, "configure", `"bot":"Ada","gates":[]`)
				if got := st.k.waiting(1)[0]; got.Step != "s1" || len(got.Gates) != 1 || got.Gates[0] != "manual" {
					t.Errorf("what waits: %+v", got)
				}
				if v := st.verdict(st.ask("s2", "act", `{"n":2}`)); v.Decision != protocol.Allow || len(v.Approvals) != 1 || v.Approvals[0].By != nil {
					t.Errorf("a step that no gate covers: %+v", v)
				}
				st.k.ask(nil, "answer", judged(a, `"decision":"deny","reason":"no"`))
				if v := st.verdict(id); v.Decision != protocol.Deny || v.Reason != "no" {
					t.Errorf("the one that waited: %+v", v)
				}
				st.finish()
				st.k.ask(nil, "configure", `"bot":"Ada","gates":[{"tag":"manual","tools":["memory"]}]`)
			})
			t.Run("arguments that are no object are asked of nobody", func(t *testing.T) {
				st.begin()
				for _, args := range []string{`"x"`, `[1]`, `null`, `7`, `true`} {
					st.ask("bad", "act", args)
					l := st.s.read() // a line that is no request has no id to answer to
					if l.str("error") != string(protocol.InvalidJSON) {
						t.Errorf("%s: %s", args, l.raw)
					}
				}
				st.k.waiting(0)
				st.finish()
			})
			t.Run("an allow and an interrupt at once: the action has its allow before the end, or never", func(t *testing.T) {
				for range 20 {
					st.begin()
					id, a := st.listed("s1", "act", `{}`)
					other := st.p.dial()
					var both sync.WaitGroup
					both.Go(func() { other.answer(other.request("answer", judged(a, `"decision":"allow"`))) })
					st.k.ask(nil, "interrupt", fmt.Sprintf(`"bot":"Ada","turn":%d`, st.turn))
					both.Wait()
					l := st.reply(id)
					lines, _ := st.ended("Ada", st.turn)
					given := decided(lines)
					switch {
					case l.fields["error"] == nil && (len(given) != 1 || given[0].Decision != protocol.Allow):
						t.Errorf("%s, and recorded is %+v", l.raw, given)
					case l.fields["error"] != nil && l.str("error") != string(protocol.StepCancelled):
						t.Errorf("%s", l.raw)
					}
					st.s.notes = nil
				}
			})
			t.Run("a bot with a step that waits is not deleted, and behind the interrupt its asker is told", func(t *testing.T) {
				st.begin()
				id, a := st.listed("s1", "act", `{}`)
				l := st.k.answer(st.k.request("delete", `"bot":"Ada"`))
				if l.fields["error"] == nil {
					t.Fatalf("deleted: %s", l.raw)
				}
				st.k.ask(nil, "prune", `"bot":"Ada","keep_turns":0`)
				if got := st.k.waiting(1)[0]; got.Step != "s1" || got.Turn != st.turn {
					t.Errorf("behind a prune: %+v", got)
				}
				st.k.ask(nil, "interrupt", fmt.Sprintf(`"bot":"Ada","turn":%d`, st.turn))
				st.cancelled(id)
				st.ended("Ada", st.turn)
				st.k.refused(protocol.StaleTurn, "answer", judged(a, `"decision":"allow"`))
				st.k.ask(nil, "delete", `"bot":"Ada"`)
				st.k.refused(protocol.BotNotFound, "answer", judged(a, `"decision":"allow"`))
			})
		})
	}
}
