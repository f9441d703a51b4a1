package daemon_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	v2 "github.com/go-json-experiment/json"

	"agent/protocol"
)

func (k *conn) serveApprovals(tag string, leaseMS int) (s protocol.ApprovalsServing) {
	k.t.Helper()
	k.ask(&s, "serve_approvals", fmt.Sprintf(`"tag":%q,"lease_ms":%d`, tag, leaseMS))
	return s
}

// round gives the next round that is pushed to a holder.
func (k *conn) round() (p protocol.ApprovalPush) {
	k.t.Helper()
	l := last(k.until("approval_requested", 0))
	if err := v2.Unmarshal(l.raw, &p); err != nil {
		k.t.Fatalf("%s: %v", l.raw, err)
	}
	return p
}

// call is a pushed call as it would be listed.
func call(p protocol.ApprovalPush, i int) protocol.Approval {
	a := p.Data.Calls[i]
	a.Bot, a.Turn = p.Bot, p.Turn
	return a
}

// untilNobodyServes waits until no session serves a gate's tag.
func (k *conn) untilNobodyServes() {
	k.t.Helper()
	for st := (protocol.Stats{Approvers: []string{""}}); len(st.Approvers) > 0; {
		st.Approvers = nil
		k.ask(&st, "stats", "")
	}
}

func TestApprovalLeases(t *testing.T) {
	t.Parallel()
	g := newGated(t, 60_000)
	g.make("Ada", manual)
	a, b := g.p.dial(), g.p.dial()
	t.Run("bad tags, leases and pages are refused", func(t *testing.T) {
		for _, members := range []string{`"tag":"a b","lease_ms":1000`, `"lease_ms":1000`} {
			a.refused(protocol.InvalidApprover, "serve_approvals", members)
		}
		a.refused(protocol.InvalidLease, "serve_approvals", `"tag":"manual","lease_ms":99`)
		a.refused(protocol.InvalidLease, "serve_approvals", `"tag":"manual","lease_ms":600001`)
		a.refused(protocol.InvalidApprovalPage, "serve_approvals", `"tag":"manual","lease_ms":1000,"limit":257`)
		a.refused(protocol.InvalidApprovalPage, "approvals", `"limit":0`)
		a.refused(protocol.InvalidApprovalPage, "approvals", `"after":-1`)
		a.refused(protocol.InvalidApprover, "approvals", `"tag":"a b"`)
		a.refused(protocol.BotNotFound, "approvals", `"bot":"Nobody"`)
		a.refused(protocol.ApprovalsLost, "renew_approvals", `"tag":"manual","lease":1`)
	})
	var held protocol.ApprovalsServing
	t.Run("AP-40 PR-57 what waits comes with the answer, what comes later is pushed, and nothing twice", func(t *testing.T) {
		first := g.submit("Ada", "one true")
		g.k.waiting(1)
		held = a.serveApprovals("manual", 60_000)
		if len(held.Approvals) != 1 || held.Approvals[0].Turn != first {
			t.Fatalf("answer %+v", held)
		}
		g.make("Bob", manual)
		second := g.submit("Bob", "two true then true")
		p := a.round()
		if p.Turn != second || p.Tag != "manual" || p.Lease != held.Lease || p.Data.Part != 1 || p.Data.Parts != 1 || len(p.Data.Calls) != 2 || string(call(p, 0).Arguments) != `{"command":"true"}` {
			t.Fatalf("pushed %+v", p)
		}
		var st protocol.Stats
		if g.k.ask(&st, "stats", ""); fmt.Sprint(st.Approvers) != "[manual]" || st.ApprovalRequests != 3 {
			t.Errorf("stats %+v", st)
		}
		lease := fmt.Sprintf(`,"tag":"manual","lease":%d`, held.Lease)
		a.allow(held.Approvals[0], lease)
		g.ended("Ada", first)
		a.allow(call(p, 0), lease)
		a.allow(call(p, 1), lease)
		g.ended("Bob", second)
		if len(a.notes) != 0 {
			t.Errorf("%d lines beside", len(a.notes))
		}
	})
	t.Run("AP-38 PR-57 a held tag is refused, to its holder with the lease", func(t *testing.T) {
		l := b.refused(protocol.ApprovalsServed, "serve_approvals", `"tag":"manual","lease_ms":1000`)
		if left := l.num("lease_left_ms"); l.str("tag") != "manual" || left < 1 || left > 60_000 || l.fields["lease"] != nil {
			t.Errorf("answer %s", l.raw)
		}
		if l := a.refused(protocol.ApprovalsServed, "serve_approvals", `"tag":"manual","lease_ms":1000`); l.num("lease") != held.Lease {
			t.Errorf("answer %s", l.raw)
		}
		b.refused(protocol.ApprovalsLost, "renew_approvals", fmt.Sprintf(`"tag":"manual","lease":%d`, held.Lease))
		a.ask(nil, "renew_approvals", fmt.Sprintf(`"tag":"manual","lease":%d`, held.Lease))
	})
	t.Run("AP-41 a person's verdict stands, and the holder's comes too late", func(t *testing.T) {
		g.k.ask(nil, "configure", `"bot":"Ada","gates":[{"tag":"manual","tools":["shell"]},{"tag":"second","tools":["shell"]}]`)
		turn := g.submit("Ada", "one true")
		c := call(a.round(), 0)
		g.k.allow(c, `,"tag":"manual"`)
		a.refused(protocol.ApprovalAlreadyAnswered, "answer", verdict(c, fmt.Sprintf(`"decision":"deny","tag":"manual","lease":%d`, held.Lease)))
		b.refused(protocol.ApprovalsLost, "answer", verdict(c, fmt.Sprintf(`"decision":"deny","tag":"manual","lease":%d`, held.Lease)))
		g.k.allow(c, `,"tag":"second"`)
		g.ended("Ada", turn)
		g.k.ask(nil, "configure", `"bot":"Ada","gates":[{"tag":"manual","tools":["shell"]}]`)
	})
	t.Run("AP-39 PR-58 a quiet holder loses the tag to the next, and its verdicts change nothing", func(t *testing.T) {
		a.c.Close()
		g.k.untilNobodyServes()
		a = g.p.dial()
		quiet := a.serveApprovals("manual", 500)
		turn := g.submit("Ada", "one echo leased >> ran")
		c := call(a.round(), 0)
		var taken protocol.ApprovalsServing
		for { // the refusals say how long it takes
			l := b.answer(b.request("serve_approvals", `"tag":"manual","lease_ms":60000`))
			if l.fields["error"] == nil {
				json.Unmarshal(l.fields["result"], &taken)
				break
			}
			b.ask(nil, "wait", fmt.Sprintf(`"handles":["turn:Ada/%d"],"timeout_ms":%d`, turn, l.num("lease_left_ms")+1))
		}
		if taken.Lease <= quiet.Lease || len(taken.Approvals) != 1 {
			t.Fatalf("answer %+v", taken)
		}
		if l := last(a.until("approvals_lost", 0)); l.str("tag") != "manual" || l.num("lease") != quiet.Lease || string(l.fields["durable"]) != "false" {
			t.Errorf("notice %s", l.raw)
		}
		a.refused(protocol.ApprovalsLost, "answer", verdict(c, fmt.Sprintf(`"decision":"allow","tag":"manual","lease":%d`, quiet.Lease)))
		a.refused(protocol.ApprovalsLost, "renew_approvals", fmt.Sprintf(`"tag":"manual","lease":%d`, quiet.Lease))
		if g.k.waiting(1); strings.Contains(g.ran(), "leased") {
			t.Error("it ran")
		}
		g.k.allow(c, "") // a person needs no lease
		g.ended("Ada", turn)
		b.c.Close()
		g.k.untilNobodyServes()
	})
	t.Run("what waits comes in pages, long arguments cut", func(t *testing.T) {
		long := strings.Repeat("a", 3000)
		var turns []int64
		for i := range 5 {
			name := fmt.Sprint("m", i)
			g.make(name, manual)
			turns = append(turns, g.submit(name, "one : "+long))
			g.k.waiting(i + 1)
		}
		var got []protocol.Approval
		s := g.p.dial()
		var first protocol.ApprovalsServing
		s.ask(&first, "serve_approvals", `"tag":"manual","lease_ms":60000,"limit":2`)
		got = append(got, first.Approvals...)
		for next := first.NextAfter; next != nil; {
			var page protocol.ApprovalPage
			s.ask(&page, "approvals", fmt.Sprintf(`"tag":"manual","after":%d,"through":%d,"limit":2`, *next, first.Through))
			got, next = append(got, page.Approvals...), page.NextAfter
		}
		for i, c := range got {
			if c.Bot != fmt.Sprint("m", i) || fmt.Sprint(c.ArgumentsCut) != "[command]" || c.Whole() || len(c.Arguments) > 2100 {
				t.Errorf("call %d is %+v", i, c)
			}
			s.allow(c, "")
			g.ended(c.Bot, turns[i])
		}
		if len(got) != 5 {
			t.Errorf("%d calls came", len(got))
		}
		s.c.Close()
	})
	t.Run("a round over 256 KiB is pushed in numbered parts", func(t *testing.T) {
		g.k.untilNobodyServes()
		s := g.p.dial()
		s.serveApprovals("manual", 60_000)
		g.k.ask(nil, "create", fmt.Sprintf(`"bot":"Big","model":"s/m","instructions":"","tools":%s,"workspace":%q,"approve":["shell","write","echo"],"approver":"manual"`, gateTools, g.workspace))
		turn := g.submit("Big", "many "+strings.Repeat("b", 2040))
		var got []protocol.Approval
		for part := int64(1); ; part++ {
			p := s.round()
			if p.Data.Part != part || p.Turn != turn {
				t.Fatalf("part %d of %d for turn %d", p.Data.Part, p.Data.Parts, p.Turn)
			}
			got = append(got, p.Data.Calls...)
			if part == p.Data.Parts {
				if part < 2 {
					t.Errorf("%d parts", part)
				}
				break
			}
		}
		if len(got) != 64 {
			t.Errorf("%d calls", len(got))
		}
		g.k.ask(nil, "interrupt", fmt.Sprintf(`"bot":"Big","turn":%d`, turn))
		g.ended("Big", turn)
	})
}

func TestGateInheritance(t *testing.T) {
	t.Parallel()
	g := newGated(t, 60_000)
	list := func(gates []protocol.Gate) string {
		var b strings.Builder
		for _, one := range gates {
			fmt.Fprintf(&b, "%s%v", one.Tag, one.Tools)
			if one.ExpireMS != nil {
				fmt.Fprintf(&b, "/%d", *one.ExpireMS)
			}
			b.WriteByte(' ')
		}
		return b.String()
	}
	ada := g.make("Ada", `,"approve":["shell","write"],"approver":"manual","approve_expire_ms":5000`)
	by := fmt.Sprintf(`,"created_by":"Ada","created_by_id":%d`, ada.ID)
	fork := func(name, more string) (b protocol.Bot) {
		g.k.ask(&b, "fork", fmt.Sprintf(`"source":"Ada","bot":%q,"workspace":%q%s`, name, g.workspace, more))
		return b
	}
	for _, c := range []struct{ name, got, want string }{
		{"AP-22 PR-56 a fork has its source's gates", list(fork("F1", "").Gates), "manual[shell write]/5000 "},
		{"AP-22 PR-56 and its own behind them", list(fork("F2", `,"approve":["echo"],"approver":"own"`).Gates), "manual[shell write]/5000 own[echo] "},
		{"AP-24 gates of one tag become one, with the shorter expiry", list(fork("F3", `,"approve":["echo","shell"],"approver":"manual","approve_expire_ms":70`).Gates), "manual[echo shell write]/70 "},
		{"AP-24 and no expiry is the longest", list(fork("F4", `,"approve":["echo"],"approver":"manual"`).Gates), "manual[echo shell write]/5000 "},
		{"AP-23 PR-56 a bot's child has its creator's gates", list(g.make("C1", by).Gates), "manual[shell write]/5000 "},
		{"PO-62 and its own behind them", list(g.make("C2", by+`,"approve":["read"],"approver":"own"`).Gates), "manual[shell write]/5000 own[read] "},
		{"a fork by a bot has its source's, then its creator's", list(fork("F5", by).Gates), "manual[shell write]/5000 "},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.got != c.want {
				t.Errorf("got %s, want %s", c.got, c.want)
			}
		})
	}
	t.Run("AP-23 PR-56 cut to the child's tools, and gone without any", func(t *testing.T) {
		var b protocol.Bot
		g.k.ask(&b, "create", `"bot":"C3","model":"s/m","instructions":"","tools":["write","read"]`+by)
		if list(b.Gates) != "manual[write]/5000 " {
			t.Errorf("got %s", list(b.Gates))
		}
		g.k.ask(&b, "create", `"bot":"C4","model":"s/m","instructions":"","tools":["read"]`+by)
		if len(b.Gates) != 0 {
			t.Errorf("got %s", list(b.Gates))
		}
	})
	t.Run("the events say so, and a fork's calls wait", func(t *testing.T) {
		if l := g.k.ask(nil, "events", `"bot":"F2","after":0,"limit":4`); !strings.Contains(string(l.raw), `"gates":[{"tag":"manual","tools":["shell","write"],"expire_ms":5000},{"tag":"own","tools":["echo"]}]`) {
			t.Errorf("got %s", l.raw)
		}
		g.k.ask(nil, "configure", `"bot":"F1","gates":[{"tag":"a","tools":["shell"]},{"tag":"a","tools":["read"],"expire_ms":9}]`)
		if l := g.k.ask(nil, "events", `"bot":"F1","after":0,"limit":4`); !strings.Contains(string(l.raw), `{"changed":["gates"],"gates":[{"tag":"a","tools":["read","shell"],"expire_ms":9}]}`) {
			t.Errorf("got %s", l.raw)
		}
		turn := g.submit("F4", "one true")
		a := g.k.waiting(1)[0]
		g.k.deny(a, "")
		g.ended("F4", turn)
	})
}

func TestManyAnswersAtOnce(t *testing.T) {
	t.Parallel()
	g := newGated(t, 1)
	const bots, sessions = 30, 6
	t.Run("AP-12 of many verdicts at once each gate takes one, and a call that was denied never runs", func(t *testing.T) {
		for i := range bots {
			name := fmt.Sprint("b", i)
			g.make(name, `,"approve":["shell"],"approver":"x"`)
			g.k.submit(name, "r", "one echo "+name+" >> ran", "")
		}
		calls := g.k.waiting(bots)
		taken := make(chan map[string]string, sessions)
		for s := range sessions {
			k := g.p.dial()
			go func() {
				mine := map[string]string{}
				for i, a := range calls {
					decision := []string{"allow", "deny"}[(i+s)%2]
					l := k.answer(k.request("answer", verdict(a, fmt.Sprintf(`"decision":%q`, decision))))
					if l.fields["error"] == nil {
						mine[a.Bot] += decision
					} else if code := l.str("error"); code != "approval_already_answered" && code != "stale_turn" {
						mine[a.Bot] += code
					}
				}
				taken <- mine
			}()
		}
		decided := map[string]string{}
		for range sessions {
			for bot, what := range <-taken {
				decided[bot] += what
			}
		}
		for ended := 0; ended < bots; {
			if l := g.k.note(); l.str("event") == "turn_finished" {
				ended++
			}
		}
		ran := g.ran()
		for i := range bots {
			name := fmt.Sprint("b", i)
			allowed, did := decided[name] == "allow", strings.Contains(ran, name+"\n")
			if decided[name] != "allow" && decided[name] != "deny" || allowed != did {
				t.Errorf("%s was answered %q and ran %v", name, decided[name], did)
			}
		}
	})
	t.Run("verdicts, deadlines and parks that meet end every call once", func(t *testing.T) {
		var turns []int64
		for i := range bots {
			name := fmt.Sprint("e", i)
			g.make(name, `,"approve":["shell"],"approver":"x","approve_expire_ms":`+fmt.Sprint(20+i*4))
			turns = append(turns, g.k.submit(name, "r", "three echo "+name+" >> ran", "").Turn)
		}
		k := g.p.dial()
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
			var page protocol.ApprovalPage
			if k.ask(&page, "approvals", ""); len(page.Approvals) == 0 {
				var st protocol.Stats
				if k.ask(&st, "stats", ""); st.ActiveTurns+st.WaitingTurns == 0 {
					break
				}
			}
			for _, a := range page.Approvals {
				k.answer(k.request("answer", verdict(a, `"decision":"allow"`)))
			}
		}
		ran := g.ran()
		for i, turn := range turns {
			name := fmt.Sprint("e", i)
			var page protocol.EventPage
			k.ask(&page, "events", fmt.Sprintf(`"bot":%q,"after":0,"limit":256`, name))
			text := fmt.Sprintf("%s", page.Events)
			started := strings.Count(text, `"event":"tool_started"`)
			if o := k.result(name, turn); o.Status != "completed" || strings.Count(text, `"event":"tool_completed"`) != 3 ||
				strings.Count(text, `"denied":true`) != 3-started || strings.Count(ran, name+"\n") != started {
				t.Errorf("%s: %+v %s", name, o, text)
			}
		}
	})
}
