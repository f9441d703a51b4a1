package daemon_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"agent/internal/fakemodel"
	"agent/protocol"
)

func TestOverflow(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, family string) {
		h := newHost(t, "")
		h.set.Limits.ContextBytes = 24 << 10
		bigFiles(t, h, 8, 6<<10)
		s := h.fake(family, fakemodel.Options{Window: true, Keep: 60, Bodies: true, Handler: func(r *fakemodel.Request) fakemodel.Reply {
			if asksSummary(r) {
				return fakemodel.Say("SUMMARY")
			}
			return fakemodel.Say("fine")
		}})
		k := h.start().dial()
		call := func(tool string, i int) fakemodel.Block {
			if tool == "read" {
				return fakemodel.Call("read", fmt.Sprintf(`{"path":"f%d"}`, i))
			}
			return fakemodel.Call("shell", fmt.Sprintf(`{"command":"cat f%d"}`, i))
		}
		jump := func(tool string) []fakemodel.Reply {
			return []fakemodel.Reply{
				fakemodel.Say("a", call(tool, 0)), fakemodel.Say("b", call(tool, 1)),
				fakemodel.Say("c", call(tool, 2), call(tool, 3)), fakemodel.Say("done"),
			}
		}
		fit := func(t *testing.T, from int) {
			t.Helper()
			for _, r := range s.Requests()[from:] {
				if n := envelope(r); n > 24<<10 {
					t.Errorf("request %d takes %d bytes", r.Seq, n)
				}
				wholeNewest(t, r)
			}
		}
		t.Run("a round that does not fit beside the turn's older results makes them stubs at once", func(t *testing.T) {
			k.fbot("Ada", h.workspace, "read")
			k.follow("Ada", 0)
			s.Queue(jump("read")...)
			sub := k.submit("Ada", "r1", "go", "")
			seen := k.until("turn_finished", sub.Turn)
			if o := k.result("Ada", sub.Turn); o.Status != "completed" || !strings.Contains(kindsAll(seen), "elided") {
				t.Fatalf("outcome %+v", o)
			}
			fit(t, 0)
		})
		t.Run("where nothing can be a stub a summary is forced at the newest cut", func(t *testing.T) {
			from := len(s.Requests())
			k.cbot("Bob", h.workspace, "shell", "")
			k.follow("Bob", 0)
			s.Queue(fakemodel.Say("a", call("shell", 0)), fakemodel.Say("b", call("shell", 1)),
				fakemodel.Say("c", call("shell", 2), call("shell", 3)), fakemodel.Say("SUMMARY"), fakemodel.Say("done"))
			sub := k.submit("Bob", "r1", "go", "")
			seen := k.until("turn_finished", sub.Turn)
			events := compacted(seen)
			if o := k.result("Bob", sub.Turn); o.Status != "completed" || o.Text != "done" || len(events) != 1 || string(events[0].Pinned) == "null" {
				t.Fatalf("outcome %+v, summaries %+v", o, events)
			}
			fit(t, from)
		})
		t.Run("a round larger than the envelope fails the turn, and the bot takes another", func(t *testing.T) {
			k.cbot("Cid", h.workspace, "shell read", "")
			var all []fakemodel.Block
			for i := range 5 {
				all = append(all, call("shell", i))
			}
			s.Queue(fakemodel.Say("a", call("shell", 0)), fakemodel.Say("b", all...))
			if o := k.run("Cid", "r1", "go"); o.Status != "failed" || *o.Error != "context_limit" {
				t.Fatalf("outcome %+v", o)
			}
			for i := range 4 {
				if o := k.run("Cid", fmt.Sprint("again", i), "go on"); o.Status != "completed" {
					t.Fatalf("outcome %+v", o)
				}
			}
		})
		s.Verify(t)
	})
}

func TestCatchUp(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, family string) {
		h := newHost(t, "")
		h.set.Limits.ContextBytes = 24 << 10
		var failing atomic.Bool
		failing.Store(true)
		s := h.fake(family, fakemodel.Options{Window: true, Keep: 200, Bodies: true, Handler: func(r *fakemodel.Request) fakemodel.Reply {
			switch {
			case asksSummary(r) && failing.Load():
				return fakemodel.Say(" \n")
			case asksSummary(r):
				return fakemodel.Say("SUMMARY")
			}
			return fakemodel.Say("answer to " + r.Prompt[:9] + strings.Repeat("a", 1500))
		}})
		k := h.start().dial()
		k.cbot("Ada", h.workspace, "history", `"compaction_model":"f/small"`)
		k.follow("Ada", 0)
		var seen []line
		turn := func(i int) {
			t.Helper()
			sub := k.submit("Ada", fmt.Sprint("r", i), fmt.Sprintf("turn %03d%s", i, strings.Repeat("-", 300)), "")
			seen = append(seen, k.until("turn_finished", sub.Turn)...)
			if o := k.result("Ada", sub.Turn); o.Status != "completed" {
				t.Fatalf("turn %d: %+v", i, o)
			}
		}
		for i := range 40 {
			turn(i)
		}
		if n := len(compacted(seen)); n != 0 || !strings.Contains(kindsAll(seen), "compaction_failed") {
			t.Fatalf("%d summaries while they fail", n)
		}
		failing.Store(false)
		for i := range 10 {
			turn(40 + i)
		}
		t.Run("a span larger than the summarizer's input is summarized oldest first, a step at a boundary", func(t *testing.T) {
			steps, covered := 0, int64(0)
			for _, c := range compacted(seen) {
				if c.CatchUp {
					steps++
				}
				if c.SpanTurns[0] != covered+1 || c.CoveredTurns[1] <= covered {
					t.Errorf("span %v, covered %v after %d", c.SpanTurns, c.CoveredTurns, covered)
				}
				covered = c.CoveredTurns[1]
			}
			if steps < 2 || covered < 40 {
				t.Errorf("%d steps, covered up to turn %d", steps, covered)
			}
		})
		t.Run("the summarizer is a model of its own and its usage says so", func(t *testing.T) {
			for _, r := range s.Requests() {
				if asksSummary(r) != (r.Model == "small") || asksSummary(r) && (r.System != compactionText && family == "anthropic" || r.Bytes > 26<<10) {
					t.Errorf("request %d of %d bytes to %s, instructions %q", r.Seq, r.Bytes, r.Model, r.System)
				}
			}
			named := 0
			for _, l := range seen {
				var u protocol.Usage
				if l.str("event") != "usage" {
					continue
				}
				l.data(&u)
				if (u.Purpose == "compaction") != (len(u.Models) == 1) {
					t.Errorf("usage %s", l.raw)
				}
				named += len(u.Models)
			}
			if named == 0 {
				t.Error("no usage names the summarizer")
			}
		})
		s.Verify(t)
	})
}

// tooLong is a provider's refusal of a request that it finds too long.
func tooLong(family string) fakemodel.Reply {
	if family == "anthropic" {
		return fakemodel.HTTPError(400, "prompt is too long: 9 tokens > 8 maximum")
	}
	body, _ := json.Marshal(map[string]any{"error": map[string]string{"message": "too long", "code": "context_length_exceeded"}})
	return fakemodel.Reply{Status: 400, Body: string(body)}
}

func TestProviderContext(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, family string) {
		for _, kind := range []string{"nothing", "summaries", "stubs"} {
			t.Run("a bot with "+kind+" to make room with can always take another turn", func(t *testing.T) {
				t.Parallel()
				h := newHost(t, "")
				bigFiles(t, h, 1, 2<<10)
				const most = 20 << 10 // what the provider takes, far below the daemon's envelope
				var refused atomic.Int64
				s := h.fake(family, fakemodel.Options{Window: true, Keep: 300, Bodies: true, Handler: func(r *fakemodel.Request) fakemodel.Reply {
					switch {
					case r.Bytes > most:
						refused.Add(1)
						return tooLong(family)
					case asksSummary(r):
						return fakemodel.Say("SUMMARY")
					case r.Rounds == 0 && kind == "stubs":
						return fakemodel.Say("look", fakemodel.Call("read", `{"path":"f0"}`))
					}
					return fakemodel.Say("answer" + strings.Repeat("a", 1000))
				}})
				k := h.start().dial()
				switch kind {
				case "nothing":
					k.fbot("Ada", h.workspace, "echo")
				case "summaries":
					k.cbot("Ada", h.workspace, "echo", "")
				case "stubs":
					k.fbot("Ada", h.workspace, "read")
				}
				for i := range 40 {
					if o := k.run("Ada", fmt.Sprint("r", i), "prompt "+strings.Repeat("p", 500)); o.Status != "completed" {
						t.Fatalf("turn %d: %+v", i, o)
					}
				}
				if n := refused.Load(); n == 0 || n > 20 {
					t.Errorf("%d refusals", n)
				}
				found := map[string]int{}
				k.ask(nil, "follow", `"bot":"Ada","after":0`)
				for _, l := range k.until("follow_live", 0) {
					found[l.str("event")]++
				}
				if (found["compacted"] > 0) != (kind == "summaries") || (found["elided"] > 0) != (kind == "stubs") {
					t.Errorf("events %v", found)
				}
				s.Verify(t)
			})
		}
	})
}

func TestCatchUpInsideATurn(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, family string) {
		h := newHost(t, "")
		h.set.Limits.ContextBytes = 24 << 10
		bigFiles(t, h, 1, 3<<10)
		var failing atomic.Bool
		failing.Store(true)
		s := h.fake(family, fakemodel.Options{Window: true, Keep: 100, Bodies: true, Handler: func(r *fakemodel.Request) fakemodel.Reply {
			switch {
			case asksSummary(r) && failing.Load():
				return fakemodel.Say("", fakemodel.Call("shell", `{"command":"true"}`))
			case asksSummary(r):
				return fakemodel.Say("SUMMARY")
			case r.Prompt == "work on":
				return fakemodel.Say("next", fakemodel.Call("shell", `{"command":"cat f0"}`))
			}
			return fakemodel.Say("fine")
		}})
		k := h.start().dial()
		k.cbot("Ada", h.workspace, "shell", "")
		if o := k.run("Ada", "r1", "work on"); o.Status != "failed" || *o.Error != "context_limit" {
			t.Fatalf("outcome %+v", o)
		}
		failing.Store(false)
		t.Run("a turn that alone is too big for the summarizer is cut inside, oldest part first", func(t *testing.T) {
			k.follow("Ada", 0)
			var events []protocol.Compacted
			for i := range 4 {
				sub := k.submit("Ada", fmt.Sprint("after", i), "rest", "")
				events = append(events, compacted(k.until("turn_finished", sub.Turn))...)
				if o := k.result("Ada", sub.Turn); o.Status != "completed" {
					t.Fatalf("outcome %+v", o)
				}
			}
			if len(events) == 0 || !events[0].CatchUp || string(events[0].Pinned) == "null" || events[0].CoveredTurns[1] != 1 {
				t.Fatalf("summaries %+v", events)
			}
			reqs := s.Requests()
			body := string(reqs[len(reqs)-1].Body)
			if !strings.Contains(body, "Summary of the first part of turn 1") || strings.Count(body, `"work on"`) != 1 || !strings.Contains(body, "middle-000") {
				t.Errorf("the last request lacks the summary, the pinned prompt or the rest of the turn: %.1500s", body)
			}
		})
		s.Verify(t)
	})
}
