package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agent/protocol"
)

// gateScript plans shell calls that the prompt names, and goes on when they have
// their results.
const gateScript = `[
 {"match":{"regex":"(?s)^one (.+)$"},"steps":[{"calls":[{"tool":"shell","arguments":{"command":"${1}"}}]},{"text":"got ${last}"}]},
 {"match":{"regex":"(?s)^two (.+) then (.+)$"},"steps":[{"calls":[{"tool":"shell","arguments":{"command":"${1}"}},{"tool":"shell","arguments":{"command":"${2}"}}]},{"text":"got ${last}"}]},
 {"match":{"regex":"(?s)^three (.+)$"},"steps":[{"calls":[{"tool":"shell","arguments":{"command":"${1}"}},{"tool":"shell","arguments":{"command":"${1}"}},{"tool":"shell","arguments":{"command":"${1}"}}]},{"text":"got ${last}"}]},
 {"match":{"regex":"(?s)^again (.+)$"},"steps":[{"calls":[{"tool":"shell","arguments":{"command":"${1}"}}]},{"calls":[{"tool":"shell","arguments":{"command":"${1}"}}]},{"calls":[{"tool":"shell","arguments":{"command":"${1}"}}]},{"calls":[{"tool":"shell","arguments":{"command":"${1}"}}]},{"text":"got ${last}"}]},
 {"match":{"regex":"^bad$"},"steps":[{"calls":[{"tool":"read","arguments":{"path":"x"}},{"tool":"write","arguments":{"path":3}}]},{"text":"got ${last}"}]},
 {"match":{"regex":"(?s)^write (.+)$"},"steps":[{"calls":[{"tool":"write","arguments":{"path":"${1}","content":"x"}}]},{"text":"got ${last}"}]},
 {"match":{"regex":"(?s)^mixed (.+) then (.+)$"},"steps":[{"calls":[{"tool":"echo","arguments":{"text":"${1}"}},{"tool":"shell","arguments":{"command":"${2}"}}]},{"text":"got ${last}"}]}]`

// manyCalls are a response's 64 calls of write with the text of the prompt twice.
func manyCalls() string {
	calls := strings.Repeat(`{"tool":"write","arguments":{"path":"${1}","content":"${1}"}},`, 64)
	return `[{"match":{"regex":"(?s)^many (.+)$"},"steps":[{"calls":[` + strings.TrimSuffix(calls, ",") + `]},{"text":"x"}]},`
}

// gated is a host with a daemon, and a session that follows every bot.
type gated struct {
	*host
	p *process
	k *conn
	n int
}

func newGated(t *testing.T, holdMS int64) *gated {
	t.Helper()
	h := newHost(t, manyCalls()+gateScript[1:])
	h.set.Limits.ApprovalHoldMS = holdMS
	g := &gated{host: h, p: h.start()}
	g.attach()
	return g
}

func (g *gated) attach() {
	g.k = g.p.dial()
	g.k.ask(nil, "follow", `"bot":"*","after":0`)
}

// again kills the daemon and starts the next.
func (g *gated) again() {
	g.p.kill()
	g.p = g.start()
	g.attach()
}

const gateTools = `["shell","read","write","echo"]`

// make makes a bot; more are further members, the gate among them.
func (g *gated) make(name, more string) (b protocol.Bot) {
	g.t.Helper()
	g.k.ask(&b, "create", g.creation(name, more))
	return b
}

func (g *gated) creation(name, more string) string {
	return fmt.Sprintf(`"bot":%q,"model":"s/m","instructions":"","tools":%s,"workspace":%q%s`, name, gateTools, g.workspace, more)
}

func (g *gated) submit(bot, prompt string) int64 {
	g.t.Helper()
	g.n++
	return g.k.submit(bot, fmt.Sprint("r", g.n), prompt, "").Turn
}

// waiting gives the waiting calls once there are n of them.
func (k *conn) waiting(n int) []protocol.Approval {
	k.t.Helper()
	for {
		var page protocol.ApprovalPage
		if k.ask(&page, "approvals", ""); len(page.Approvals) == n {
			return page.Approvals
		}
	}
}

// verdict is the members of an answer to a call.
func verdict(a protocol.Approval, more string) string {
	return fmt.Sprintf(`"bot":%q,"turn":%d,"call_id":%q,"request":%d,%s`, a.Bot, a.Turn, a.CallID, a.Request, more)
}

func (k *conn) allow(a protocol.Approval, more string) (out protocol.Answered) {
	k.t.Helper()
	k.ask(&out, "answer", verdict(a, `"decision":"allow"`+more))
	return out
}

func (k *conn) deny(a protocol.Approval, more string) (out protocol.Answered) {
	k.t.Helper()
	k.ask(&out, "answer", verdict(a, `"decision":"deny"`+more))
	return out
}

// ended gives a turn's events up to its end, and its outcome.
func (g *gated) ended(bot string, turn int64) ([]line, protocol.Outcome) {
	g.t.Helper()
	var mine []line
	for _, l := range g.k.until("turn_finished", turn) {
		if l.num("turn") == turn && l.fields["data"] != nil {
			mine = append(mine, l)
		}
	}
	return mine, g.k.result(bot, turn)
}

// of are the events of a kind.
func of(lines []line, kind string) (out []line) {
	for _, l := range lines {
		if l.str("event") == kind {
			out = append(out, l)
		}
	}
	return out
}

func (g *gated) ran() string {
	text, _ := os.ReadFile(filepath.Join(g.workspace, "ran"))
	return string(text)
}

const manual = `,"approve":["shell"],"approver":"manual"`

func TestGates(t *testing.T) {
	t.Parallel()
	g := newGated(t, 60_000)
	t.Run("AP-1 PR-49 without a gate nothing is asked", func(t *testing.T) {
		if b := g.make("Free", ""); b.Gates == nil || len(b.Gates) != 0 {
			t.Errorf("gates %+v", b.Gates)
		}
		lines, o := g.ended("Free", g.submit("Free", "one echo x >> ran"))
		started := of(lines, "tool_started")
		if o.Status != "completed" || len(of(lines, "approval_requested")) != 0 || len(started) != 1 || strings.Contains(string(started[0].raw), "approvals") {
			t.Errorf("%v %+v", kinds(lines), o)
		}
		g.k.waiting(0)
	})
	t.Run("AP-2 AP-3 a gate that is none is refused and no bot is made", func(t *testing.T) {
		for more, code := range map[string]protocol.Code{
			`,"approve":["shell"]`:                                                         protocol.InvalidGate,
			`,"approver":"m"`:                                                              protocol.InvalidGate,
			`,"approve":[],"approver":"m"`:                                                 protocol.InvalidGate,
			`,"approve":["shell"],"approver":"a b"`:                                        protocol.InvalidApprover,
			`,"approve":["wait"],"approver":"m"`:                                           protocol.ApproveNotInTools,
			`,"approve":["shell"],"approver":"m","approve_expire_ms":0`:                    protocol.InvalidApproveExpiry,
			`,"approve":["shell"],"approver":"m","approve_expire_ms":86400001`:             protocol.InvalidApproveExpiry,
			`,"approve_expire_ms":5`:                                                       protocol.InvalidApproveExpiry,
			`,"approve":[` + strings.Repeat(`"shell",`, 200) + `"shell"],"approver":"m"`:   protocol.InvalidGate,
			`,"approve":["shell"],"approver":"m","created_by":"Nobody","created_by_id":99`: protocol.CreatorNotFound,
			`,"approve":["shell"],"approver":"m","created_by":"Nobody"`:                    protocol.InvalidCreator,
		} {
			g.k.refused(code, "create", g.creation("X", more))
			g.k.refused(protocol.BotNotFound, "inspect", `"bot":"X"`)
		}
	})
	g.make("Ada", manual)
	t.Run("AP-4 AP-5 PR-50 a call is announced without its arguments and starts when it is allowed", func(t *testing.T) {
		turn := g.submit("Ada", "one echo secretword >> ran")
		a := g.k.waiting(1)[0]
		if a.Bot != "Ada" || a.Turn != turn || a.Request != 1 || a.Name != "shell" || a.Node == 0 || a.Cause != "tool" || a.Escalated || a.ExpiresMS != nil ||
			fmt.Sprint(a.Gates) != "[manual]" || string(a.Arguments) != `{"command":"echo secretword >> ran"}` || !a.Whole() || a.Denials["manual"].Window != 50 {
			t.Errorf("listed %+v", a)
		}
		if got := g.k.item("Ada", a.Node); !strings.Contains(got, "secretword") {
			t.Errorf("its node holds %s", got)
		}
		if out := g.k.allow(a, `,"by":"pat"`); out.Tag != "manual" || len(out.Pending) != 0 || out.Decision != "allow" {
			t.Errorf("answer %+v", out)
		}
		lines, o := g.ended("Ada", turn)
		asked, started := of(lines, "approval_requested"), of(lines, "tool_started")
		if len(asked) != 1 || strings.Contains(string(asked[0].raw), "secretword") {
			t.Fatalf("announced %s", asked)
		}
		var req protocol.ApprovalRequested
		if asked[0].data(&req); len(req.Calls) != 1 || req.Calls[0].Request != 1 || req.Calls[0].Node != a.Node || req.Calls[0].Gates[0] != "manual" || req.Failed != "" {
			t.Errorf("announced %+v", req)
		}
		var s protocol.ToolStarted
		if started[0].data(&s); len(s.Approvals) != 1 || s.Approvals[0].Tag != "manual" || *s.Approvals[0].By != "pat" || s.Approvals[0].WaitedMS < 0 {
			t.Errorf("started %s", started[0].raw)
		}
		if o.Status != "completed" || len(of(lines, "turn_waiting")) != 0 || !strings.Contains(g.ran(), "secretword") {
			t.Errorf("%v %+v", kinds(lines), o)
		}
		g.k.refused(protocol.StaleTurn, "answer", verdict(a, `"decision":"allow"`))
	})
	t.Run("AP-6 PR-51 a denied call never starts and the turn goes on", func(t *testing.T) {
		turn := g.submit("Ada", "one echo denied >> ran")
		g.k.deny(g.k.waiting(1)[0], `,"reason":"not \u0007 now","by":"pat"`)
		lines, o := g.ended("Ada", turn)
		var c protocol.ToolCompleted
		of(lines, "tool_completed")[0].data(&c)
		if !c.Denied || c.Expired || len(c.Approvals) != 1 || c.Approvals[0].Decision != "deny" || c.Approvals[0].Reason != "not \u0007 now" || *c.Approvals[0].By != "pat" {
			t.Errorf("completed %+v", c)
		}
		if len(of(lines, "tool_started")) != 0 || o.Status != "completed" || !strings.Contains(o.Text, `"error":"approval_denied"`) || strings.Contains(g.ran(), "denied") {
			t.Errorf("%v %+v", kinds(lines), o)
		}
	})
	t.Run("AP-21 an answer that is none is refused and changes nothing", func(t *testing.T) {
		turn := g.submit("Ada", "one true")
		a := g.k.waiting(1)[0]
		for more, code := range map[string]protocol.Code{
			`"decision":"maybe"`:                                               protocol.InvalidDecision,
			`"decision":"allow","reason":"because"`:                            protocol.InvalidReason,
			`"decision":"deny","reason":"` + strings.Repeat("x", 16_385) + `"`: protocol.ReasonLimit,
			`"decision":"allow","by":"` + strings.Repeat("x", 129) + `"`:       protocol.InvalidBy,
			`"decision":"allow","lease":1`:                                     protocol.InvalidLease,
			`"decision":"allow","lease":1,"tag":"manual"`:                      protocol.ApprovalsLost,
			`"decision":"allow","tag":"a b"`:                                   protocol.InvalidApprover,
			`"decision":"allow","tag":"other"`:                                 protocol.NoPendingApproval,
			`"decision":"allow","step":"s"`:                                    protocol.NoPendingApproval,
		} {
			g.k.refused(code, "answer", verdict(a, more))
		}
		other := a
		other.Request = 2
		g.k.refused(protocol.NoPendingApproval, "answer", verdict(other, `"decision":"allow"`))
		other.Request = 0
		g.k.refused(protocol.ApprovalSuperseded, "answer", verdict(other, `"decision":"allow"`))
		other = a
		other.CallID = "nothing"
		g.k.refused(protocol.NoPendingApproval, "answer", verdict(other, `"decision":"allow"`))
		other.CallID = ""
		g.k.refused(protocol.InvalidCallID, "answer", verdict(other, `"decision":"allow"`))
		other = a
		other.Turn++
		g.k.refused(protocol.StaleTurn, "answer", verdict(other, `"decision":"allow"`))
		other.Bot = "Nobody"
		g.k.refused(protocol.BotNotFound, "answer", verdict(other, `"decision":"maybe"`))
		if b := g.k.waiting(1)[0]; b.Denials["manual"].InTurn != 0 {
			t.Errorf("counted %+v", b.Denials)
		}
		g.k.allow(a, "")
		g.ended("Ada", turn)
	})
	t.Run("AP-20 an interrupted turn's call is cancelled and takes no verdict", func(t *testing.T) {
		turn := g.submit("Ada", "one echo cancelled >> ran")
		a := g.k.waiting(1)[0]
		g.k.ask(nil, "interrupt", fmt.Sprintf(`"bot":"Ada","turn":%d`, turn))
		lines, o := g.ended("Ada", turn)
		var c protocol.ToolCompleted
		if of(lines, "tool_completed")[0].data(&c); !c.Cancelled || o.Status != "interrupted" || len(of(lines, "tool_started")) != 0 {
			t.Errorf("%+v %+v", c, o)
		}
		g.k.waiting(0)
		g.k.refused(protocol.StaleTurn, "answer", verdict(a, `"decision":"allow"`))
	})
	t.Run("AP-14 AP-15 PR-54 when a call of a round fails the rest waits for new verdicts", func(t *testing.T) {
		turn := g.submit("Ada", "two exit 1 then echo second >> ran")
		list := g.k.waiting(2)
		g.k.allow(list[1], "") // an early verdict is kept, until the round changes
		g.k.allow(list[0], "")
		again := g.k.waiting(1)[0]
		if again.CallID != list[1].CallID || again.Request != 2 || again.Failed != list[0].CallID || len(again.Gates) != 1 {
			t.Fatalf("listed %+v", again)
		}
		g.k.refused(protocol.ApprovalSuperseded, "answer", verdict(list[1], `"decision":"allow"`))
		if strings.Contains(g.ran(), "second") {
			t.Error("it ran on the old verdict")
		}
		g.k.allow(again, "")
		lines, o := g.ended("Ada", turn)
		asked := of(lines, "approval_requested")
		if o.Status != "completed" || len(asked) != 2 || !strings.Contains(string(asked[1].raw), `"failed":"`+list[0].CallID) || strings.Count(g.ran(), "second") != 1 {
			t.Errorf("%v %+v", kinds(lines), o)
		}
	})
	t.Run("AP-16 a call that only reads like a failure announces nothing anew", func(t *testing.T) {
		turn := g.submit("Ada", `two echo error: exit_code 1 then echo fine`)
		list := g.k.waiting(2)
		g.k.allow(list[1], "")
		g.k.allow(list[0], "")
		lines, o := g.ended("Ada", turn)
		if o.Status != "completed" || len(of(lines, "approval_requested")) != 1 || len(of(lines, "tool_started")) != 2 {
			t.Errorf("%v %+v", kinds(lines), o)
		}
	})
	t.Run("a denied call of a round makes the rest wait again", func(t *testing.T) {
		turn := g.submit("Ada", "two echo a >> ran then echo b >> ran")
		list := g.k.waiting(2)
		g.k.deny(list[0], "")
		g.k.deny(g.k.until2(list[1]), "")
		lines, o := g.ended("Ada", turn)
		if o.Status != "completed" || len(of(lines, "tool_started")) != 0 || len(of(lines, "approval_requested")) != 2 {
			t.Errorf("%v %+v", kinds(lines), o)
		}
	})
	t.Run("AP-11 AP-12 AP-13 PR-55 PO-60 every gate must allow, and the first deny denies", func(t *testing.T) {
		g.k.ask(nil, "configure", `"bot":"Ada","gates":[{"tag":"manual","tools":["shell"]},{"tag":"second","tools":["shell"]}]`)
		turn := g.submit("Ada", "one echo both >> ran")
		a := g.k.waiting(1)[0]
		g.k.refused(protocol.ApprovalTagRequired, "answer", verdict(a, `"decision":"allow"`))
		if out := g.k.allow(a, `,"tag":"manual"`); fmt.Sprint(out.Pending) != "[second]" {
			t.Errorf("answer %+v", out)
		}
		g.k.refused(protocol.ApprovalAlreadyAnswered, "answer", verdict(a, `"decision":"deny","tag":"manual"`))
		var page protocol.ApprovalPage
		if g.k.ask(&page, "approvals", `"tag":"manual"`); len(page.Approvals) != 0 {
			t.Errorf("manual still lists %+v", page.Approvals)
		}
		if b := g.k.waiting(1)[0]; fmt.Sprint(b.Gates) != "[second]" || strings.Contains(g.ran(), "both") {
			t.Errorf("listed %+v", b)
		}
		g.k.allow(a, "")
		lines, _ := g.ended("Ada", turn)
		var s protocol.ToolStarted
		if of(lines, "tool_started")[0].data(&s); len(s.Approvals) != 2 || s.Approvals[1].Tag != "second" {
			t.Errorf("started %+v", s)
		}
		turn = g.submit("Ada", "one echo neither >> ran")
		a = g.k.waiting(1)[0]
		if out := g.k.deny(a, `,"tag":"second"`); len(out.Pending) != 0 {
			t.Errorf("answer %+v", out)
		}
		l := g.k.answer(g.k.request("answer", verdict(a, `"decision":"allow","tag":"manual"`)))
		if code := l.str("error"); code != "approval_already_answered" && code != "stale_turn" { // the turn may be over by now
			t.Errorf("answer %s", l.raw)
		}
		if _, o := g.ended("Ada", turn); o.Status != "completed" || strings.Contains(g.ran(), "neither") {
			t.Errorf("outcome %+v", o)
		}
	})
	t.Run("AP-27 AP-28 a replaced gate is for later rounds, and releases no call", func(t *testing.T) {
		b := g.make("Eve", manual)
		turn := g.submit("Eve", "one echo eve >> ran")
		a := g.k.waiting(1)[0]
		g.k.ask(&b, "configure", `"bot":"Eve","gates":[]`)
		if len(b.Gates) != 0 {
			t.Errorf("gates %+v", b.Gates)
		}
		if still := g.k.waiting(1)[0]; fmt.Sprint(still.Gates) != "[manual]" || strings.Contains(g.ran(), "eve") {
			t.Errorf("listed %+v", still)
		}
		g.k.deny(a, "")
		g.ended("Eve", turn)
		lines, o := g.ended("Eve", g.submit("Eve", "one echo free >> ran"))
		if o.Status != "completed" || len(of(lines, "approval_requested")) != 0 {
			t.Errorf("%v", kinds(lines))
		}
		g.k.ask(&b, "configure", `"bot":"Eve","gates":[{"tag":"next","tools":["echo","shell","echo"],"expire_ms":5000}]`)
		if len(b.Gates) != 1 || fmt.Sprint(b.Gates[0].Tools) != "[echo shell]" || *b.Gates[0].ExpireMS != 5000 {
			t.Errorf("gates %+v", b.Gates)
		}
		turn = g.submit("Eve", "one true")
		if a = g.k.waiting(1)[0]; fmt.Sprint(a.Gates) != "[next]" || a.ExpiresMS == nil || *a.ExpiresMS != a.AnnouncedMS+5000 {
			t.Errorf("listed %+v", a)
		}
		g.k.allow(a, "")
		g.ended("Eve", turn)
		g.k.refused(protocol.ApproveNotInTools, "configure", `"bot":"Eve","gates":[{"tag":"t","tools":["wait"]}]`)
		g.k.refused(protocol.InvalidGate, "configure", `"bot":"Eve","gates":[{"tag":"t","tools":[]}]`)
		var many []string
		for i := range 17 {
			many = append(many, fmt.Sprintf(`{"tag":"t%d","tools":["shell"]}`, i))
		}
		g.k.refused(protocol.GateLimit, "configure", `"bot":"Eve","gates":[`+strings.Join(many, ",")+`]`)
		g.k.ask(nil, "inspect", `"bot":"Eve"`)
	})
	t.Run("R2 a call that a rule forbade when it was planned waits once it is not forbidden any more", func(t *testing.T) {
		rules := func(text string) string {
			return `"rules":{"files":[{"name":"r.rules","text":` + quotedText(text) + `}]}`
		}
		g.make("Mel", manual+","+rules(`prefix_rule(pattern=["tee"], decision="forbidden")`+"\n"))
		turn := g.submit("Mel", "two true then echo x | tee mel")
		calls := g.k.waiting(1)
		g.k.ask(nil, "configure", `"bot":"Mel",`+rules(""))
		g.k.allow(calls[0], "")
		again := g.k.waiting(1)[0]
		if again.CallID == calls[0].CallID || again.Cause != "tool" || again.Request != 1 {
			t.Errorf("%+v", again)
		}
		g.k.deny(again, "")
		if _, o := g.ended("Mel", turn); !strings.Contains(o.Text, "approval_denied") {
			t.Errorf("%+v", o)
		}
		if _, err := os.Stat(filepath.Join(g.workspace, "mel")); err == nil {
			t.Error("it ran")
		}
	})

	t.Run("RT-128 a call that cannot run is announced to no gate", func(t *testing.T) {
		g.make("Sam", `,"approve":["shell","write","read"],"approver":"manual"`)
		var f protocol.Bot
		g.k.ask(&f, "fork", fmt.Sprintf(`"source":"Sam","bot":"Sam2","allow":["shell","write"],"workspace":%q`, g.workspace))
		lines, o := g.ended("Sam2", g.submit("Sam2", "bad"))
		if o.Status != "completed" || len(of(lines, "approval_requested")) != 0 || len(of(lines, "tool_started")) != 0 || len(of(lines, "tool_completed")) != 2 {
			t.Errorf("%v %+v", kinds(lines), o)
		}
	})
	t.Run("PR-59 AP-55 denials are counted by turn and tag", func(t *testing.T) {
		counts := func(bot string) protocol.Denials {
			var b protocol.Bot
			g.k.ask(&b, "inspect", fmt.Sprintf(`"bot":%q`, bot))
			return b.Denials["manual"]
		}
		g.make("Cas", manual)
		turn := g.submit("Cas", "again true")
		g.k.deny(g.k.waiting(1)[0], "")
		second := g.k.nextRound("Cas")
		if d := counts("Cas"); d.InRow != 1 || d.InTurn != 1 || d.Recent != 1 || d.Window != 50 || d.Turn != turn || second.Denials["manual"].InRow != 1 {
			t.Errorf("counts %+v, listed %+v", d, second.Denials)
		}
		g.k.allow(second, "")
		third := g.k.nextRound("Cas")
		if d := counts("Cas"); d.InRow != 0 || d.InTurn != 1 || d.Recent != 1 || third.Denials["manual"].InRow != 0 {
			t.Errorf("counts %+v", d)
		}
		g.k.allow(third, "")
		g.k.allow(g.k.nextRound("Cas"), "")
		g.ended("Cas", turn)
		turn = g.submit("Cas", "one true")
		if a := g.k.waiting(1)[0]; a.Denials["manual"].InTurn != 0 {
			t.Errorf("the next turn begins with %+v", a.Denials)
		}
		g.k.allow(g.k.waiting(1)[0], "")
		g.ended("Cas", turn)
	})
}

// until2 gives a call once it was announced again.
func (k *conn) until2(a protocol.Approval) protocol.Approval {
	k.t.Helper()
	for {
		for _, now := range k.waiting(1) {
			if now.CallID == a.CallID && now.Request > a.Request {
				return now
			}
		}
	}
}

// nextRound gives the one call that waits after the verdict on the last.
func (k *conn) nextRound(bot string) protocol.Approval {
	k.t.Helper()
	return k.waiting(1)[0]
}

func TestOverturn(t *testing.T) {
	t.Parallel()
	g := newGated(t, 60_000)
	g.make("Ada", manual)
	deny := func(prompt string) protocol.Approval {
		t.Helper()
		turn := g.submit("Ada", prompt)
		a := g.k.waiting(1)[0]
		g.k.deny(a, "")
		g.ended("Ada", turn)
		return a
	}
	runs := func(prompt string) []line {
		t.Helper()
		lines, o := g.ended("Ada", g.submit("Ada", prompt))
		if o.Status != "completed" || len(of(lines, "approval_requested")) != 0 || len(of(lines, "tool_started")) != 1 {
			t.Errorf("%v %+v", kinds(lines), o)
		}
		return lines
	}
	t.Run("AP-87 CL-96 a denial that a person overturns lets the very same call run once", func(t *testing.T) {
		a := deny("one echo over >> ran")
		var out protocol.Answered
		if g.k.ask(&out, "answer", verdict(a, `"decision":"allow","overturn":true,"by":"pat"`)); out.Pending == nil || len(out.Pending) != 0 {
			t.Errorf("answer %+v", out)
		}
		deny("one echo over  >> ran") // one byte more
		var s protocol.ToolStarted
		if of(runs("one echo over >> ran"), "tool_started")[0].data(&s); s.OverturnedBy == nil || *s.OverturnedBy != "pat" || len(s.Approvals) != 1 || *s.Approvals[0].By != "pat" {
			t.Errorf("started %+v", s)
		}
		deny("one echo over >> ran")
		if strings.Count(g.ran(), "over") != 1 {
			t.Errorf("ran %q", g.ran())
		}
	})
	t.Run("of two same calls in one response it is one's", func(t *testing.T) {
		g.k.ask(nil, "answer", verdict(deny("one echo twice >> ran"), `"decision":"allow","overturn":true`))
		turn := g.submit("Ada", "two echo twice >> ran then echo twice >> ran")
		g.k.deny(g.k.waiting(1)[0], "")
		g.ended("Ada", turn)
		if strings.Count(g.ran(), "twice") != 1 {
			t.Errorf("ran %q", g.ran())
		}
	})
	t.Run("it is kept over a restart, and gone when the gates change", func(t *testing.T) {
		g.k.ask(nil, "answer", verdict(deny("one echo kept >> ran"), `"decision":"allow","overturn":true`))
		g.again()
		runs("one echo kept >> ran")
		g.k.ask(nil, "answer", verdict(deny("one echo gone >> ran"), `"decision":"allow","overturn":true`))
		g.k.ask(nil, "configure", `"bot":"Ada","gates":[{"tag":"other","tools":["shell"]}]`)
		deny("one echo gone >> ran")
		g.k.ask(nil, "configure", `"bot":"Ada","gates":[{"tag":"manual","tools":["shell"]}]`)
		deny("one echo gone >> ran") // though they are as they were
	})
	t.Run("what is none of the denied calls is refused", func(t *testing.T) {
		turn := g.submit("Ada", "one true")
		a := g.k.waiting(1)[0]
		over := `"decision":"allow","overturn":true`
		g.k.refused(protocol.OverturnNotPossible, "answer", verdict(a, over))
		g.k.allow(a, "")
		g.ended("Ada", turn)
		g.k.refused(protocol.OverturnNotPossible, "answer", verdict(a, over))
		denied := deny("one rm -f x")
		g.k.refused(protocol.InvalidDecision, "answer", verdict(denied, `"decision":"deny","overturn":true`))
		g.k.refused(protocol.OverturnNotPossible, "answer", verdict(denied, over+`,"step":"s"`))
		a.Bot = "Nobody"
		g.k.refused(protocol.BotNotFound, "answer", verdict(a, over))
		g.k.ask(nil, "configure", `"bot":"Ada","rules":{"files":[{"name":"r","text":"prefix_rule(pattern=[\"rm\"], decision=\"forbidden\")\n"}]}`)
		g.k.refused(protocol.OverturnNotPossible, "answer", verdict(denied, over))
		g.k.ask(nil, "configure", `"bot":"Ada","rules":null,"gates":[]`)
		g.k.refused(protocol.OverturnNotPossible, "answer", verdict(denied, over))
	})
}
