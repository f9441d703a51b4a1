package daemon_test

import (
	"fmt"
	"strings"
	"testing"

	"agent/protocol"
)

func TestStepsOfASandboxedBot(t *testing.T) {
	t.Parallel()
	const boxed = `,"sandbox":"workspace-write","exclude_slash_tmp":true`
	st := newStepper(t, 60_000, "", boxed)
	t.Run("AP-37 PR-76 without a gate its step is denied, since it acts outside the sandbox", func(t *testing.T) {
		st.begin()
		v := st.verdict(st.ask("h-1", "a", `{}`))
		if v.Decision != "deny" || v.Reason != "no approval gate" || len(v.Approvals) != 1 || v.Approvals[0].By != nil {
			t.Errorf("verdict %+v", v)
		}
		st.s.refused(protocol.NoPendingStep, "step_result", address(st.turn, st.call, st.lease)+`,"step":"h-1","ok":true`)
		lines := st.finish()
		if d := decided(lines); len(d) != 1 || d[0].Decision != "deny" || d[0].Approvals[0].Reason != "no approval gate" || len(of(lines, "approval_requested")) != 0 {
			t.Errorf("%v %+v", kinds(lines), d)
		}
		st.k.refused(protocol.OverturnNotPossible, "answer",
			fmt.Sprintf(`"bot":"Ada","turn":%d,"call_id":%q,"request":1,"step":"h-1","decision":"allow","overturn":true`, st.turn, st.call))
	})
	t.Run("with a gate its step waits as one that leaves the sandbox", func(t *testing.T) {
		st.k.ask(nil, "configure", `"bot":"Ada","gates":[{"tag":"manual","tools":["memory"]}]`)
		st.begin()
		id, a := st.listed("h-1", "a", `{}`)
		if a.Cause != "step" || !a.Escalated {
			t.Errorf("listed %+v", a)
		}
		st.k.ask(nil, "answer", judged(a, `"decision":"allow"`))
		if v := st.verdict(id); v.Decision != "allow" {
			t.Errorf("verdict %+v", v)
		}
		if asked := of(st.finish(), "approval_requested"); len(asked) != 1 || !strings.Contains(string(asked[0].raw), `"step":"h-1"`) {
			t.Errorf("events %s", raws(asked))
		}
	})
}
