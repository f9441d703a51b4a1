package daemon_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"agent/protocol"
)

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
	t.Run("a session serves 64 tags, and more after it has closed", func(t *testing.T) {
		c := p.dial()
		for i := range protocol.MaxTags {
			c.ask(nil, "serve_tools", fmt.Sprintf(`"tag":"t%d","lease_ms":60000`, i))
		}
		if l := c.refused(protocol.ServeLimit, "serve_tools", `"tag":"more","lease_ms":1000`); !strings.Contains(l.str("detail"), "64 tags") {
			t.Errorf("answer %s", l.raw)
		}
		c.refused(protocol.ToolsServed, "serve_tools", `"tag":"t1","lease_ms":1000`) // the nearer reason
		c.c.Close()
		b.untilUnserved()
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
