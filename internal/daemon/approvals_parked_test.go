package daemon_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"agent/protocol"
)

// timed is a gate on shell that expires.
func timed(ms int) string {
	return fmt.Sprintf(`,"approve":["shell"],"approver":"manual","approve_expire_ms":%d`, ms)
}

// parked waits until so many turns are parked.
func (k *conn) parked(n int64) {
	k.t.Helper()
	for st := (protocol.Stats{}); st.WaitingTurns != n || st.ActiveTurns != 0; {
		k.ask(&st, "stats", "")
	}
}

// raws is lines as they came.
func raws(lines []line) (text string) {
	for _, l := range lines {
		text += string(l.raw)
	}
	return text
}

func TestGateParks(t *testing.T) {
	t.Parallel()
	g := newGated(t, 100)
	g.make("Ada", manual)
	t.Run("AP-7 AP-8 PR-52 a call that nobody judges parks its turn, which an allow resumes once", func(t *testing.T) {
		turn := g.submit("Ada", "one echo parked >> ran")
		w := last(g.k.until("turn_waiting", turn))
		var data protocol.TurnWaiting
		if w.data(&data); !data.Approval || data.Served || data.CallID == "" || data.DeadlineMS != nil {
			t.Errorf("event %s", w.raw)
		}
		var st protocol.Stats
		if g.k.ask(&st, "stats", ""); st.ActiveTurns != 0 || st.WaitingTurns != 1 || st.ApprovalRequests != 1 {
			t.Errorf("stats %+v", st)
		}
		g.k.allow(g.k.waiting(1)[0], "")
		lines, o := g.ended("Ada", turn)
		if o.Status != "completed" || len(of(lines, "turn_resumed")) != 1 || strings.Count(g.ran(), "parked") != 1 {
			t.Errorf("%v %+v", kinds(lines), o)
		}
		if g.k.ask(&st, "stats", ""); st.ApprovalRequests != 0 || st.WaitingTurns != 0 {
			t.Errorf("stats %+v", st)
		}
	})
	t.Run("AP-6 a parked call that is denied ends there", func(t *testing.T) {
		turn := g.submit("Ada", "one echo denied >> ran")
		g.k.until("turn_waiting", turn)
		g.k.deny(g.k.waiting(1)[0], `,"reason":"no"`)
		if lines, o := g.ended("Ada", turn); o.Status != "completed" || len(of(lines, "tool_started")) != 0 || strings.Contains(g.ran(), "denied") {
			t.Errorf("%v %+v", kinds(lines), o)
		}
	})
	t.Run("AP-9 PR-52 a parked call is listed after a restart with its request, and an allow runs it", func(t *testing.T) {
		turn := g.submit("Ada", "two exit 3 then echo restarted >> ran")
		list := g.k.waiting(2)
		g.k.allow(list[0], "")
		again := g.k.until2(list[1])
		g.k.parked(1)
		g.again()
		a := g.k.waiting(1)[0]
		if a.CallID != list[1].CallID || a.Request != again.Request || a.AnnouncedMS != again.AnnouncedMS || a.Failed != list[0].CallID || a.Turn != turn {
			t.Fatalf("listed %+v", a)
		}
		g.k.allow(a, `,"by":"pat"`)
		lines, o := g.ended("Ada", turn)
		if o.Status != "completed" || strings.Count(g.ran(), "restarted") != 1 || !strings.Contains(string(last(of(lines, "tool_started")).raw), `"by":"pat"`) {
			t.Errorf("%v %+v", kinds(lines), o)
		}
	})
	t.Run("a verdict for a later call of a parked round is kept over a restart", func(t *testing.T) {
		turn := g.submit("Ada", "two echo c1 >> ran then echo c2 >> ran")
		g.k.until("turn_waiting", turn)
		list := g.k.waiting(2)
		g.k.allow(list[1], "")
		g.again()
		if a := g.k.waiting(1)[0]; a.CallID != list[0].CallID || strings.Contains(g.ran(), "c2") {
			t.Fatalf("listed %+v", a)
		}
		g.k.allow(list[0], "")
		if _, o := g.ended("Ada", turn); o.Status != "completed" || !strings.Contains(g.ran(), "c1\nc2\n") {
			t.Errorf("outcome %+v, ran %s", o, g.ran())
		}
	})
	t.Run("a parked turn that is interrupted withdraws its call", func(t *testing.T) {
		turn := g.submit("Ada", "one echo never >> ran")
		g.k.until("turn_waiting", turn)
		a := g.k.waiting(1)[0]
		g.k.ask(nil, "interrupt", fmt.Sprintf(`"bot":"Ada","turn":%d`, turn))
		g.k.waiting(0)
		g.k.refused(protocol.StaleTurn, "answer", verdict(a, `"decision":"allow"`))
		var c protocol.ToolCompleted
		lines, _ := g.ended("Ada", turn)
		if of(lines, "tool_completed")[0].data(&c); !c.Cancelled {
			t.Errorf("completed %+v", c)
		}
	})
	t.Run("AP-10 an acknowledged allow of a live turn dies with its daemon, and the call never runs", func(t *testing.T) {
		g.set.Limits.ApprovalHoldMS = 60_000
		g.again()
		turn := g.submit("Ada", "two sleep 600 then echo ghost >> ran")
		list := g.k.waiting(2)
		g.k.allow(list[0], "")
		g.k.until("tool_started", turn)
		g.k.allow(list[1], "")
		g.again()
		lines, o := g.ended("Ada", turn)
		if o.Status != "interrupted" || *o.Error != protocol.ProcessInterrupted || len(of(lines, "tool_started")) != 1 || strings.Contains(g.ran(), "ghost") {
			t.Errorf("%v %+v", kinds(lines), o)
		}
		g.k.waiting(0)
		g.k.refused(protocol.StaleTurn, "answer", verdict(list[1], `"decision":"allow"`))
	})
}

func TestGateExpiry(t *testing.T) {
	t.Parallel()
	for _, hold := range []int64{60_000, 20} {
		t.Run(fmt.Sprintf("AP-17 AP-81 PR-53 RT-108 three calls that nobody judges are denied within one expiry, held %d ms", hold), func(t *testing.T) {
			t.Parallel()
			g := newGated(t, hold)
			g.make("Ada", timed(300))
			began := time.Now()
			turn := g.submit("Ada", "three echo late >> ran")
			lines, o := g.ended("Ada", turn)
			done := of(lines, "tool_completed")
			for _, l := range done {
				var c protocol.ToolCompleted
				if l.data(&c); !c.Denied || !c.Expired || len(c.Approvals) != 1 || c.Approvals[0].By != nil || c.Approvals[0].Decision != "expired" {
					t.Errorf("completed %s", l.raw)
				}
			}
			if len(done) != 3 || len(of(lines, "tool_started")) != 0 || len(of(lines, "approval_requested")) != 1 || o.Status != "completed" ||
				!strings.Contains(o.Text, `{"error":"approval_expired","detail":"not reviewed: no verdict"}`) || g.ran() != "" {
				t.Errorf("%v %+v", kinds(lines), o)
			}
			if took := time.Since(began); took < 300*time.Millisecond {
				t.Errorf("it took %v", took)
			}
			var b protocol.Bot
			if g.k.ask(&b, "inspect", `"bot":"Ada"`); b.Denials["manual"].InRow != 3 || b.Denials["manual"].Expired != 1 {
				t.Errorf("counts %+v", b.Denials)
			}
		})
	}
	t.Run("AP-18 a call whose time passed while another ran is denied as it comes up, whoever allows it", func(t *testing.T) {
		t.Parallel()
		g := newGated(t, 60_000)
		g.make("Ada", `,"approve":["shell"],"approver":"manual","approve_expire_ms":300`)
		g.k.ask(nil, "configure", `"bot":"Ada","gates":[{"tag":"free","tools":["write"]},{"tag":"manual","tools":["shell"],"expire_ms":300}]`)
		turn := g.submit("Ada", "two sleep 1 then echo late >> ran")
		list := g.k.waiting(2)
		g.k.allow(list[0], "")
		g.k.waiting(0) // its deadline has passed
		l := g.k.answer(g.k.request("answer", verdict(list[1], `"decision":"allow"`)))
		if l.str("error") != "approval_already_answered" {
			t.Errorf("answer %s", l.raw)
		}
		lines, o := g.ended("Ada", turn)
		if o.Status != "completed" || len(of(lines, "tool_started")) != 1 || !strings.Contains(o.Text, "approval_expired") || g.ran() != "" {
			t.Errorf("%v %+v", kinds(lines), o)
		}
	})
	t.Run("AP-19 RT-108 a deadline that passed while no daemon ran denies before anything runs", func(t *testing.T) {
		t.Parallel()
		g := newGated(t, 20)
		g.make("Ada", timed(1500))
		turn := g.submit("Ada", "three echo late >> ran")
		due := time.After(1600 * time.Millisecond)
		g.k.until("turn_waiting", turn)
		g.p.kill()
		<-due
		g.p = g.start()
		g.attach()
		lines, o := g.ended("Ada", turn)
		if o.Status != "completed" || len(of(lines, "tool_started")) != 0 || strings.Count(raws(of(lines, "tool_completed")), `"expired":true`) != 3 || g.ran() != "" {
			t.Errorf("%v %+v", kinds(lines), o)
		}
	})
	t.Run("a deadline that comes after a restart is met", func(t *testing.T) {
		t.Parallel()
		g := newGated(t, 20)
		g.make("Ada", timed(2500))
		turn := g.submit("Ada", "one echo late >> ran")
		g.k.until("turn_waiting", turn)
		g.again()
		g.k.waiting(1)
		if lines, o := g.ended("Ada", turn); o.Status != "completed" || len(of(lines, "tool_started")) != 0 || g.ran() != "" {
			t.Errorf("%v %+v", kinds(lines), o)
		}
	})
	for _, hold := range []int64{60_000, 20} {
		t.Run(fmt.Sprintf("AP-95 PR-91 RT-131 the third deadline that nobody is there to meet ends the turn, held %d ms", hold), func(t *testing.T) {
			t.Parallel()
			g := newGated(t, hold)
			g.make("Ada", timed(300))
			turn := g.submit("Ada", "again echo late >> ran")
			lines, o := g.ended("Ada", turn)
			end := string(last(lines).raw)
			if o.Status != "interrupted" || *o.Error != protocol.ApprovalsUnserved || !strings.Contains(end, `"tag":"manual"`) || !strings.Contains(end, `"expired":3`) {
				t.Errorf("%+v %s", o, end)
			}
			done := of(lines, "tool_completed")
			if len(done) != 3 || len(of(lines, "usage")) != 3 || !strings.Contains(string(done[2].raw), `"expired":true`) || g.ran() != "" {
				t.Errorf("%v", kinds(lines))
			}
			turn = g.submit("Ada", "again echo late >> ran") // a verdict of anyone begins the count anew
			g.k.until("approval_requested", turn)
			g.k.until("tool_completed", turn)
			g.k.until("tool_completed", turn)
			g.k.deny(g.k.waiting(1)[0], "")
			if _, o := g.ended("Ada", turn); o.Status != "completed" {
				t.Errorf("outcome %+v", o)
			}
		})
	}
	t.Run("RT-131 with a session that serves the tag the turn goes on", func(t *testing.T) {
		t.Parallel()
		g := newGated(t, 20)
		g.make("Ada", timed(300))
		g.p.dial().ask(nil, "serve_approvals", `"tag":"manual","lease_ms":600000`)
		lines, o := g.ended("Ada", g.submit("Ada", "again echo late >> ran"))
		if o.Status != "completed" || len(of(lines, "tool_completed")) != 4 || len(of(lines, "tool_started")) != 0 {
			t.Errorf("%v %+v", kinds(lines), o)
		}
	})
	t.Run("AP-96 RT-132 a deadline applied at the start counts and ends nothing, the next one does", func(t *testing.T) {
		t.Parallel()
		g := newGated(t, 20)
		g.make("Ada", timed(1000))
		turn := g.submit("Ada", "again echo late >> ran")
		for range 3 {
			g.k.until("turn_waiting", turn)
		}
		due := time.After(1100 * time.Millisecond)
		g.p.kill()
		<-due
		g.p = g.start()
		g.attach()
		lines, o := g.ended("Ada", turn)
		end := string(last(lines).raw)
		if o.Status != "interrupted" || *o.Error != protocol.ApprovalsUnserved || !strings.Contains(end, `"expired":4`) || len(of(lines, "tool_completed")) != 4 {
			t.Errorf("%v %s", kinds(lines), end)
		}
	})
}

// A pause withdraws what waits for a verdict, whether its turn is held or parked.
func TestPauseWithdraws(t *testing.T) {
	t.Parallel()
	for name, hold := range map[string]int64{"held": 600_000, "parked": 0} {
		t.Run("AP-64 RT-109 a call that waits, "+name+", is withdrawn; queued work runs after the lift", func(t *testing.T) {
			t.Parallel()
			g := newGated(t, hold)
			g.make("Ada", manual)
			turn := g.submit("Ada", "one echo paused >> ran")
			a := g.k.waiting(1)[0]
			if hold == 0 {
				g.k.parked(1)
			}
			var pause protocol.Pause
			if g.k.ask(&pause, "pause", `"by":"Kim"`); pause.InterruptedTurns != 1 {
				t.Errorf("answer %+v", pause)
			}
			g.k.pausedEnd("Ada", turn, "Kim")
			g.k.waiting(0)
			g.k.refused(protocol.StaleTurn, "answer", verdict(a, `"decision":"allow"`))
			g.k.refused(protocol.DaemonPaused, "submit", `"bot":"Ada","request_id":"no","prompt":"one true"`)
			next := g.k.submit("Ada", "later", "one echo later >> ran", `"delivery":"queue"`).Turn
			var st protocol.Stats
			if g.k.ask(&st, "stats", ""); st.ApprovalRequests != 0 || st.WaitingTurns+st.ActiveTurns != 0 {
				t.Errorf("stats %+v", st)
			}
			g.k.ask(nil, "resume", "")
			g.k.allow(g.k.waiting(1)[0], "")
			if _, o := g.ended("Ada", next); o.Status != "completed" || g.ran() != "later\n" {
				t.Errorf("%+v, ran %q", o, g.ran())
			}
		})
	}
}
