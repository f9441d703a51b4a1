package daemon_test

import (
	"fmt"
	"strings"
	"testing"

	"agent/protocol"
)

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
		first, last := calls[0], calls[bots-1] // in the order in which they came, which need not be that of the bots
		k.ask(&w, "wait", fmt.Sprintf(`"handles":["turn:%s/%d","turn:%s/%d"]`, first.Bot, first.Turn, last.Bot, last.Turn))
		for h, v := range w.Results {
			if v.Turn == nil || v.Turn.Text != "got ok" {
				t.Errorf("%s: %+v", h, v)
			}
		}
	})
}
