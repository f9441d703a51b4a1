package daemon_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"agent/protocol"
)

// peerScript: "peer" waits for a file, "wait BOT/N ..." waits for a turn.
var peerScript = `[
	{"match":{"prefix":"both "},"steps":[{"calls":[{"tool":"wait","arguments":{"handles":["turn:Peer/1","turn:Peer/2"]}},{"tool":"shell","arguments":{"command":"echo after >> log"}},{"tool":"echo","arguments":{"text":"last"}}]},{"text":"got ${last}"}]},
	{"match":{"prefix":"one "},"steps":[{"calls":[{"tool":"wait","arguments":{"handles":["turn:Peer/1"]}}]},{"text":"got ${last}"}]},
	{"match":{"prefix":"any "},"steps":[{"calls":[{"tool":"wait","arguments":{"handles":["turn:Peer/1","turn:Peer/2","proc:999"],"any":true,"timeout_ms":60000}}]},{"text":"got ${last}"}]},
	{"match":{"prefix":"short "},"steps":[{"calls":[{"tool":"wait","arguments":{"handles":["turn:Peer/1"],"timeout_ms":200}}]},{"text":"got ${last}"}]},
	{"match":{"prefix":"poll "},"steps":[{"calls":[{"tool":"wait","arguments":{"handles":["turn:Peer/1"],"timeout_ms":0}}]},{"text":"got ${last}"}]},
	{"match":{"regex":"^self ([0-9]+)"},"steps":[{"calls":[{"tool":"wait","arguments":{"handles":["turn:Ada/${1}"]}},{"tool":"echo","arguments":{"text":"went on"}}]},{"text":"got ${last}"}]},` + waitScript[1:]

func TestWaits(t *testing.T) {
	t.Parallel()
	h := newHost(t, peerScript)
	h.set.Limits.Active = 2
	p := h.start()
	k := p.dial()
	k.bot("Peer", h.workspace, "shell")
	k.bot("Ada", h.workspace, "wait shell echo")
	k.bot("Bob", h.workspace, "wait echo")
	k.follow("Ada", 0)
	one := k.submit("Peer", "p1", "wait", "")
	h.began()
	two := k.submit("Peer", "p2", "hold", `"delivery":"queue"`)

	t.Run("RT-43 PR-43 0 polls without parking, a deadline gives what is pending", func(t *testing.T) {
		s := k.submit("Ada", "poll", "poll x", "")
		seen := k.until("turn_finished", s.Turn)
		if o := k.result("Ada", s.Turn); !strings.Contains(o.Text, `"pending":["turn:Peer/1"]`) || strings.Contains(strings.Join(kinds(seen), ","), "turn_waiting") {
			t.Errorf("outcome %+v, events %v", o, kinds(seen))
		}
		s = k.submit("Ada", "short", "short x", "")
		seen = k.until("turn_finished", s.Turn)
		if o := k.result("Ada", s.Turn); !strings.Contains(o.Text, `"turn:Peer/1":{"pending":true}`) || !strings.Contains(strings.Join(kinds(seen), ","), "turn_waiting") {
			t.Errorf("outcome %+v", o)
		}
		var w protocol.Waited
		k.ask(&w, "wait", `"handles":["turn:Peer/1"],"timeout_ms":0`)
		var st protocol.Stats
		if k.ask(&st, "stats", ""); len(w.Pending) != 1 || st.Handles.Waiters != 0 {
			t.Errorf("answer %+v, waiters %d", w, st.Handles.Waiters)
		}
	})
	t.Run("RT-46 a turn that waits on itself is told so and goes on", func(t *testing.T) {
		var page protocol.TurnPage
		k.ask(&page, "turns", `"bot":"Ada"`)
		next := page.Turns[len(page.Turns)-1].Turn + 1
		s := k.submit("Ada", "self", fmt.Sprint("self ", next), "")
		if s.Turn != next {
			t.Fatal("another turn came between")
		}
		seen := k.until("turn_finished", s.Turn)
		if o := k.result("Ada", s.Turn); !strings.Contains(o.Text, "went on") || !strings.Contains(k.itemsOf("Ada", seen), "invalid_handle") {
			t.Errorf("outcome %+v", o)
		}
	})
	t.Run("PR-44 handles that are none are refused or resolve to errors", func(t *testing.T) {
		for _, bad := range []string{`"bad"`, `"proc:01"`, `"turn:Bob/+1"`} {
			k.refused(protocol.InvalidHandle, "wait", `"handles":[`+bad+`]`)
		}
		k.refused(protocol.InvalidHandles, "wait", `"handles":[]`)
		k.refused(protocol.InvalidTimeout, "wait", `"handles":["proc:1"],"timeout_ms":-1`)
		var w protocol.Waited
		k.ask(&w, "wait", `"handles":["proc:999","turn:Nobody/1"]`)
		if w.Results["proc:999"].Err == nil || w.Results["proc:999"].Err.Code != protocol.UnknownHandle || w.Results["turn:Nobody/1"].Err.Code != protocol.TurnNotFound {
			t.Errorf("answer %+v", w.Results)
		}
	})
	var parked protocol.Submitted
	t.Run("RT-41 a turn parked on two handles holds no slot", func(t *testing.T) {
		parked = k.submit("Ada", "both", "both x", "")
		k.until("turn_waiting", parked.Turn)
		var st protocol.Stats
		var b protocol.Bot
		k.ask(&st, "stats", "")
		k.ask(&b, "inspect", `"bot":"Ada"`)
		if st.WaitingTurns != 1 || st.ActiveTurns != 1 || b.Status != "waiting" || b.RunningTurn == nil || *b.RunningTurn != parked.Turn {
			t.Errorf("stats %+v, bot %s", st, b.Status)
		}
		if o := k.run("Bob", "r", "hello"); o.Text != "hello" {
			t.Errorf("Bob's %+v", o)
		}
		k.refused(protocol.BotBusy, "submit", submission("Ada", "x", "x", ""))
	})
	t.Run("RT-44 PR-47 over a crash the turn stays parked, resumes with what its peers came to, and runs the rest once", func(t *testing.T) {
		p.kill()
		p = h.start()
		k = p.dial()
		k.follow("Ada", 0)
		h.letGo()
		k.ask(nil, "follow", `"bot":"Peer","after":0`)
		k.ask(nil, "interrupt", fmt.Sprintf(`"bot":"Peer","turn":%d`, two.Turn))
		k.until("turn_finished", parked.Turn)
		o := k.result("Ada", parked.Turn)
		if o.Status != "completed" || o.Text != "got last" {
			t.Errorf("outcome %+v", o)
		}
		var page protocol.EventPage
		k.ask(&page, "events", `"bot":"Ada","after":0,"limit":256`)
		text := fmt.Sprintf("%s", page.Events)
		if strings.Count(text, `"event":"turn_resumed"`) < 1 {
			t.Errorf("events %s", text)
		}
		var w protocol.Waited
		k.ask(&w, "wait", fmt.Sprintf(`"handles":["turn:Peer/%d","turn:Peer/%d"]`, one.Turn, two.Turn))
		if a, b := w.Results[fmt.Sprint("turn:Peer/", one.Turn)].Turn, w.Results[fmt.Sprint("turn:Peer/", two.Turn)].Turn; a == nil || b == nil || a.Status != "interrupted" || b.Status != "interrupted" {
			t.Errorf("answer %+v", w)
		}
	})
}

// itemsOf joins the results that some events name.
func (k *conn) itemsOf(bot string, seen []line) (text string) {
	for _, l := range seen {
		if l.str("event") == "tool_completed" {
			var c protocol.ToolCompleted
			l.data(&c)
			text += k.item(bot, c.Node)
		}
	}
	return text
}

func TestParkedInterrupt(t *testing.T) {
	t.Parallel()
	h := newHost(t, peerScript)
	k := h.start().dial()
	k.bot("Peer", h.workspace, "shell")
	k.bot("Ada", h.workspace, "wait shell echo")
	k.follow("Ada", 0)
	k.submit("Peer", "p1", "hold", "")
	k.submit("Peer", "p2", "hold", `"delivery":"queue"`)
	t.Run("RT-53 PR-39 PR-47 an interrupted parked turn ends at once, its calls cancelled before it", func(t *testing.T) {
		s := k.submit("Ada", "both", "both x", "")
		k.until("turn_waiting", s.Turn)
		q := k.submit("Ada", "q", "queued", `"delivery":"queue"`)
		l := k.ask(nil, "interrupt", fmt.Sprintf(`"bot":"Ada","turn":%d,"reason":"why"`, s.Turn))
		if !strings.Contains(string(l.raw), `"parked":true`) {
			t.Errorf("answer %s", l.raw)
		}
		seen := k.until("turn_finished", s.Turn)
		n := 0
		for _, l := range seen {
			var c protocol.ToolCompleted
			if l.str("event") == "tool_completed" {
				if l.data(&c); c.Cancelled {
					n++
				}
			}
		}
		if n != 3 {
			t.Errorf("%d calls were cancelled: %v", n, kinds(seen))
		}
		if o := k.result("Ada", s.Turn); o.Status != "interrupted" || *o.Detail != "why" {
			t.Errorf("outcome %+v", o)
		}
		k.until("turn_finished", q.Turn)
		if o := k.result("Ada", q.Turn); o.Status != "completed" {
			t.Errorf("the next in line %+v", o)
		}
		var st protocol.Stats
		if k.ask(&st, "stats", ""); st.WaitingTurns != 0 {
			t.Errorf("%d turns wait", st.WaitingTurns)
		}
	})
	t.Run("RT-42 PR-42 with any the first is enough and the rest stay waitable", func(t *testing.T) {
		s := k.submit("Ada", "any", "any x", "")
		k.until("turn_finished", s.Turn)
		if o := k.result("Ada", s.Turn); !strings.Contains(o.Text, `"proc:999":{"error":"unknown_handle"`) || !strings.Contains(o.Text, `"pending":["turn:Peer/1","turn:Peer/2"]`) {
			t.Errorf("outcome %+v", o)
		}
	})
}

func TestWaitOp(t *testing.T) {
	t.Parallel()
	h := newHost(t, peerScript)
	p := h.start()
	k := p.dial()
	k.bot("Peer", h.workspace, "shell")
	one := k.submit("Peer", "p1", "wait", "")
	h.began()
	t.Run("a wait is answered when its turn has ended, behind the event, and other requests meanwhile", func(t *testing.T) {
		c := p.dial()
		c.follow("Peer", 0)
		id := c.request("wait", fmt.Sprintf(`"handles":["turn:Peer/%d"]`, one.Turn))
		c.ask(nil, "stats", "")
		h.letGo()
		l := c.answer(id)
		if !strings.Contains(string(l.raw), `"status":"completed"`) {
			t.Errorf("answer %s", l.raw)
		}
		ended := false
		for _, n := range c.notes {
			ended = ended || n.str("event") == "turn_finished"
		}
		if !ended {
			t.Error("the answer came before the end's event")
		}
	})
	t.Run("CL-79 closing a session forgets its waits", func(t *testing.T) {
		held := k.submit("Peer", "p2", "hold", "")
		c := p.dial()
		c.request("wait", fmt.Sprintf(`"handles":["turn:Peer/%d"],"timeout_ms":60000`, held.Turn))
		c.ask(nil, "stats", "")
		var st protocol.Stats
		if k.ask(&st, "stats", ""); st.Handles.Waiters != 1 {
			t.Errorf("%d waiters", st.Handles.Waiters)
		}
		c.c.Close()
		for end := time.Now().Add(5 * time.Second); st.Handles.Waiters != 0 && time.Now().Before(end); {
			k.ask(&st, "stats", "")
		}
		if st.Handles.Waiters != 0 {
			t.Errorf("%d waiters", st.Handles.Waiters)
		}
	})
	t.Run("a session may have 256 waits open, and a poll needs none", func(t *testing.T) {
		held := k.submit("Peer", "p3", "hold", `"delivery":"queue"`)
		c := p.dial()
		handle := fmt.Sprintf(`"handles":["turn:Peer/%d"]`, held.Turn)
		for range protocol.MaxWaits {
			c.request("wait", handle)
		}
		if l := c.refused(protocol.WaitLimit, "wait", handle); !strings.Contains(l.str("detail"), "256 waits") {
			t.Errorf("answer %s", l.raw)
		}
		c.ask(nil, "wait", handle+`,"timeout_ms":0`)
		k.ask(nil, "wait", `"handles":["proc:1"]`) // another session's
		k.ask(nil, "interrupt", fmt.Sprintf(`"bot":"Peer","turn":%d`, held.Turn))
		for range protocol.MaxWaits { // in any order
			if l := c.read(); l.fields["result"] == nil {
				t.Fatalf("answer %s", l.raw)
			}
		}
		c.ask(nil, "wait", handle)
	})
	t.Run("PR-48 an open wait does not hold a shutdown", func(t *testing.T) {
		c := p.dial()
		c.request("wait", `"handles":["turn:Peer/2"]`)
		c.ask(nil, "stats", "")
		began := time.Now()
		k.ask(nil, "shutdown", "")
		if code := p.wait(); code != 0 || time.Since(began) > 2*time.Second {
			t.Errorf("exit %d after %v", code, time.Since(began))
		}
	})
}

func TestManyParked(t *testing.T) {
	t.Parallel()
	h := newHost(t, peerScript)
	p := h.start()
	k := p.dial()
	k.bot("Peer", h.workspace, "shell")
	one := k.submit("Peer", "p1", "wait", "")
	h.began()
	t.Run("RT-47 500 parents parked on one child cost no threads and all resume", func(t *testing.T) {
		const n = 500
		for i := range n {
			k.request("create", fmt.Sprintf(`"bot":"m%d","model":"s/m","instructions":"","tools":["wait"],"workspace":%q`, i, h.workspace))
			sent := k.request("submit", submission(fmt.Sprint("m", i), "r", "one x", ""))
			if i%25 != 24 {
				continue // a few at once, as many as a session that does not read may leave
			}
			if l := k.answer(sent); l.fields["error"] != nil {
				t.Fatalf("answer %s", l.raw)
			}
			k.notes = nil
		}
		all := p.dial() // now: a follower must read as fast as things happen
		all.ask(nil, "follow", `"bot":"*","after":0`)
		for waiting := 0; waiting < n; {
			if all.note().str("event") == "turn_waiting" {
				waiting++
			}
		}
		before := threads(t, p)
		h.letGo()
		for ended := 0; ended < n+1; {
			if l := all.note(); l.str("event") == "turn_finished" {
				ended++
			}
		}
		if o := k.result("m499", one.Turn+n); !strings.Contains(o.Text, `"status":"completed"`) {
			t.Errorf("outcome %+v", o)
		}
		if before > 40 {
			t.Errorf("%d threads while parked", before)
		}
	})
}
