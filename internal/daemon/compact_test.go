package daemon_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"agent/internal/fakemodel"
	"agent/protocol"
)

const compactionText = "Summarize for yourself."

// cbot makes a bot on the model server that is summarized; more are further
// members.
func (k *conn) cbot(name, workspace, tools, more string) {
	k.t.Helper()
	list, _ := json.Marshal(strings.Fields(tools))
	if more != "" {
		more = "," + more
	}
	k.ask(nil, "create", fmt.Sprintf(`"bot":%q,"model":"f/%s","instructions":"Be brief.","tools":%s,"workspace":%q,"compaction_instructions":%q%s`,
		name, name, list, workspace, compactionText, more))
}

func asksSummary(r *fakemodel.Request) bool {
	return strings.Contains(r.Prompt, "Reply with the summary alone")
}

// compacted are the compacted events among some lines.
func compacted(lines []line) (out []protocol.Compacted) {
	for _, l := range lines {
		if l.str("event") == "compacted" {
			var c protocol.Compacted
			l.data(&c)
			out = append(out, c)
		}
	}
	return out
}

func TestCompactionOfTurns(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, family string) {
		h := newHost(t, "")
		h.set.Limits.ContextBytes = 24 << 10
		var summaries atomic.Int64
		var failing atomic.Bool
		s := h.fake(family, fakemodel.Options{Window: true, Keep: 200, Bodies: true, Handler: func(r *fakemodel.Request) fakemodel.Reply {
			switch {
			case asksSummary(r) && failing.Load():
				return fakemodel.Say("no", fakemodel.Call("echo", `{"text":"x"}`))
			case asksSummary(r):
				return fakemodel.Say(fmt.Sprintf("SUMMARY-%d.", summaries.Add(1)))
			case r.Rounds == 0 && r.Prompt == "turn one again":
				return fakemodel.Say("look", fakemodel.Call("history", `{"turn":1}`))
			case r.Rounds == 0:
				text, _ := json.Marshal(map[string]string{"text": "out of " + r.Prompt[:9] + strings.Repeat(".", 900)})
				return fakemodel.Reply{Blocks: []fakemodel.Block{fakemodel.Thinking("thought of " + r.Prompt[:9]), fakemodel.Call("echo", string(text))}}
			}
			return fakemodel.Say("answer to " + r.Prompt[:9])
		}})
		p := h.start()
		k := p.dial()
		k.cbot("Ada", h.workspace, "echo history", "")
		k.follow("Ada", 0)
		var seen []line
		turn := func(i int) {
			t.Helper()
			sub := k.submit("Ada", fmt.Sprint("r", i), fmt.Sprintf("turn %03d of it%s", i, strings.Repeat("-", 200)), "")
			seen = append(seen, k.until("turn_finished", sub.Turn)...)
			if o := k.result("Ada", sub.Turn); o.Status != "completed" {
				t.Fatalf("turn %d: %+v", i, o)
			}
		}
		for i := range 30 {
			turn(i)
		}
		t.Run("RT-80 summaries rise in coverage from turn 1 and every request fits", func(t *testing.T) {
			events := compacted(seen)
			if len(events) < 2 {
				t.Fatalf("%d summaries", len(events))
			}
			covered := int64(0)
			var previous *int64
			for _, c := range events {
				if c.CoveredTurns[0] != 1 || c.CoveredTurns[1] <= covered || c.SpanTurns[0] != covered+1 || c.SpanTurns[1] != c.CoveredTurns[1] {
					t.Errorf("coverage %v of span %v after %d", c.CoveredTurns, c.SpanTurns, covered)
				}
				if c.ContextAfter.Bytes >= c.ContextBefore.Bytes || c.ReclaimedBytes != c.ContextBefore.Bytes-c.ContextAfter.Bytes ||
					c.HeadroomBytes != c.InputLimit.Bytes-c.ContextAfter.Bytes || c.InputLimit.Bytes != 24<<10 || c.SummaryBytes == 0 ||
					c.PromptBytes == 0 || c.Items == 0 || c.Bytes == 0 || c.CatchUp || (c.Previous == nil) != (previous == nil) {
					t.Errorf("event %+v", c)
				}
				covered, previous = c.CoveredTurns[1], &c.Version
			}
			for _, r := range s.Requests() {
				if n := envelope(r); n > 24<<10 && !asksSummary(r) {
					t.Errorf("request %d takes %d bytes", r.Seq, n)
				}
			}
			reqs := s.Requests()
			last := string(reqs[len(reqs)-1].Body)
			if !strings.Contains(last, "SUMMARY-") || !strings.Contains(last, "[turn 1] turn 000 of it") || strings.Contains(last, "answer to turn 000") {
				t.Errorf("the last request: %.2000s", last)
			}
			if n := strings.Count(last, "Summary of this conversation"); n != 1 {
				t.Errorf("%d summaries in a request", n)
			}
		})
		t.Run("RT-80 history still returns turn 1 whole", func(t *testing.T) {
			sub := k.submit("Ada", "h1", "turn one again", "")
			more := k.until("turn_finished", sub.Turn)
			seen = append(seen, more...)
			for _, l := range more {
				if l.str("event") == "tool_completed" {
					var c protocol.ToolCompleted
					l.data(&c)
					if item := k.item("Ada", c.Node); !strings.Contains(item, "answer to turn 000") || !strings.Contains(item, "out of turn 000") {
						t.Errorf("history gave %.500s", item)
					}
				}
			}
		})
		t.Run("usage names the purpose, and a summary is a round", func(t *testing.T) {
			n, rounds := 0, int64(0)
			for _, l := range seen {
				if l.str("event") != "usage" {
					continue
				}
				rounds++
				var u protocol.Usage
				l.data(&u)
				if u.Purpose == "compaction" {
					n++
				}
			}
			if int64(n) != summaries.Load() {
				t.Errorf("%d usages of %d summaries", n, summaries.Load())
			}
			var page protocol.TurnPage
			k.ask(&page, "turns", `"bot":"Ada"`)
			sum := int64(0)
			for _, tr := range page.Turns {
				sum += tr.ModelRounds
			}
			if sum != rounds {
				t.Errorf("%d rounds, %d usages", sum, rounds)
			}
		})
		if family == "anthropic" {
			t.Run("PV-16 after a summary no node written before it carries thinking", func(t *testing.T) {
				checked := false
				reqs := s.Requests()
				for i := 1; i < len(reqs); i++ {
					if asksSummary(reqs[i-1]) && !asksSummary(reqs[i]) {
						checked = true
						if strings.Contains(string(reqs[i].Body), `"thinking"`) {
							t.Errorf("request %d holds thinking", reqs[i].Seq)
						}
					}
				}
				if !checked {
					t.Error("no request came after a summary")
				}
			})
		}
		t.Run("RT-80 a failed summary leaves the view as it was and the turn goes on", func(t *testing.T) {
			failing.Store(true)
			before := len(compacted(seen))
			for i := 30; ; i++ {
				turn(i)
				if i > 60 {
					t.Fatal("no summary failed")
				}
				if n := strings.Count(kindsAll(seen), "compaction_failed"); n > 0 {
					break
				}
			}
			for _, l := range seen {
				if l.str("event") == "compaction_failed" && l.str("error") != "compaction_tool_call" {
					t.Errorf("%s", l.raw)
				}
			}
			if len(compacted(seen)) != before {
				t.Error("a failed summary was installed")
			}
		})
		s.Verify(t)
	})
}

// kindsAll are the kinds of some lines, live ones included.
func kindsAll(lines []line) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.str("event") + "\n")
	}
	return b.String()
}

func TestCompactionInATurn(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, family string) {
		h := newHost(t, "")
		h.set.Limits.ContextBytes = 64 << 10
		bigFiles(t, h, 40, 6<<10)
		var round, summaries atomic.Int64
		s := h.fake(family, fakemodel.Options{Window: true, Keep: 200, Bodies: true, Handler: func(r *fakemodel.Request) fakemodel.Reply {
			if asksSummary(r) {
				return fakemodel.Say(fmt.Sprintf("SUMMARY-%d after %d", summaries.Add(1), round.Load()))
			}
			if i := round.Add(1) - 1; i < 40 {
				return fakemodel.Reply{Blocks: []fakemodel.Block{fakemodel.Thinking("hm"), fakemodel.Call("shell", fmt.Sprintf(`{"command":"cat f%d"}`, i))}}
			}
			return fakemodel.Say("done")
		}})
		k := h.start().dial()
		k.cbot("Ada", h.workspace, "shell", "")
		k.follow("Ada", 0)
		sub := k.submit("Ada", "r1", "the whole prompt", "")
		seen := k.until("turn_finished", sub.Turn)
		t.Run("RT-81 one turn of 40 large rounds is summarized inside the turn", func(t *testing.T) {
			if o := k.result("Ada", sub.Turn); o.Status != "completed" || o.Text != "done" {
				t.Fatalf("outcome %+v", o)
			}
			events := compacted(seen)
			if len(events) < 3 {
				t.Fatalf("%d summaries", len(events))
			}
			for _, c := range events {
				if string(c.Pinned) == "null" || c.CoveredTurns[1] != 1 {
					t.Errorf("event %+v", c)
				}
			}
			if n := strings.Count(kindsAll(seen), "tool_started"); n != 40 {
				t.Errorf("%d tools were started", n)
			}
			copies := 0
			for _, r := range s.Requests() {
				items := itemsOf(r)
				if n := strings.Count(strings.Join(items, "\n"), `"the whole prompt"`); n != 1 {
					t.Errorf("request %d holds the prompt %d times", r.Seq, n)
				}
				if n := envelope(r); n > 64<<10 {
					t.Errorf("request %d takes %d bytes", r.Seq, n)
				}
				if asksSummary(r) && !r.ToolsOff {
					copies++
				}
			}
			if copies == 0 {
				t.Error("no summary was asked for by a copy of the last call")
			}
		})
		t.Run("the next turn goes on from the summary", func(t *testing.T) {
			if o := k.run("Ada", "r2", "and now"); o.Status != "completed" {
				t.Fatalf("outcome %+v", o)
			}
			reqs := s.Requests()
			last := string(reqs[len(reqs)-1].Body)
			if !regexp.MustCompile(`SUMMARY-[0-9]+ after`).MatchString(last) || !strings.Contains(last, `"the whole prompt"`) {
				t.Errorf("the request: %.1500s", last)
			}
		})
		s.Verify(t)
	})
}

func TestCompactionAndCrash(t *testing.T) {
	t.Parallel()
	h := newHost(t, "")
	h.set.Limits.ContextBytes = 24 << 10
	gate := fakemodel.NewGate()
	var held atomic.Bool
	s := h.fake("anthropic", fakemodel.Options{Window: true, Lost: true, Keep: 100, Bodies: true, Handler: func(r *fakemodel.Request) fakemodel.Reply {
		if asksSummary(r) {
			reply := fakemodel.Say("SUMMARY")
			if held.CompareAndSwap(false, true) {
				reply.Finish = gate
			}
			return reply
		}
		return fakemodel.Say("answer " + strings.Repeat("a", 2000))
	}})
	p := h.start()
	k := p.dial()
	k.cbot("Ada", h.workspace, "", "")
	k.follow("Ada", 0)
	i := 0
	for !held.Load() {
		sub := k.submit("Ada", fmt.Sprint("r", i), fmt.Sprint("prompt ", i), "")
		i++
		for l := k.note(); l.str("event") != "turn_finished" || l.num("turn") != sub.Turn; l = k.note() {
			if l.str("event") == "compaction_text_delta" {
				break // the summary streams
			}
		}
	}
	p.kill()
	p = h.start()
	k = p.dial()
	t.Run("RT-82 after a crash in a summary call the old view is used and nothing of it is stored", func(t *testing.T) {
		var b protocol.Bot
		k.ask(&b, "inspect", `"bot":"Ada"`)
		if b.Compaction != nil || b.Status != "interrupted" {
			t.Errorf("bot %+v", b)
		}
		gate.Release()
		if o := k.run("Ada", "after", "go on"); o.Status != "completed" {
			t.Fatalf("outcome %+v", o)
		}
		reqs := s.Requests()
		n := 0
		for _, r := range reqs[len(reqs)-2:] {
			if asksSummary(r) {
				n++
				if strings.Contains(string(r.Body), "SUMMARY") {
					t.Error("the lost summary is in a request")
				}
			}
		}
		if n != 1 {
			t.Errorf("%d summaries were asked for after the crash", n)
		}
	})
	s.Verify(t)
}

func TestCompactionScripted(t *testing.T) {
	t.Parallel()
	h := newHost(t, `[{"match":{"contains":"call it"},"steps":[{"text":"calling","calls":[{"tool":"echo","arguments":{"text":"${prompt}"}}]},{"text":"called"}]},
		{"match":{"any":true},"steps":[{"text":"What was said, in short."}]}]`)
	h.set.Limits.ContextBytes = 8 << 10
	k := h.start().dial()
	k.ask(nil, "create", fmt.Sprintf(`"bot":"Ada","model":"s/m","instructions":"","tools":["echo"],"workspace":%q,"compaction_instructions":%q`, h.workspace, compactionText))
	k.follow("Ada", 0)
	var seen []line
	for i := range 20 {
		sub := k.submit("Ada", fmt.Sprint("r", i), fmt.Sprintf("call it %03d%s", i, strings.Repeat(".", 300)), "")
		seen = append(seen, k.until("turn_finished", sub.Turn)...)
		if o := k.result("Ada", sub.Turn); o.Status != "completed" || o.Text != "called" {
			t.Fatalf("turn %d: %+v", i, o)
		}
	}
	t.Run("RT-80 a scripted bot is summarized, and what its script selects is the same", func(t *testing.T) {
		events := compacted(seen)
		if len(events) < 2 {
			t.Errorf("%d summaries; %s", len(events), kindsAll(seen))
		}
		if n := strings.Count(kindsAll(seen), "tool_started"); n != 20 {
			t.Errorf("%d tools were started", n)
		}
	})
}
