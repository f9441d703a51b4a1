package daemon_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"agent/internal/fakemodel"
	"agent/protocol"
)

func TestPrune(t *testing.T) {
	t.Parallel()
	h := newHost(t, "")
	s := h.fake("responses", fakemodel.Options{Keep: 2, Bodies: true, Handler: func(r *fakemodel.Request) fakemodel.Reply {
		if r.AfterResult {
			return fakemodel.Say("done " + r.Prompt)
		}
		return fakemodel.Say("x", fakemodel.Call("shell", `{"command":"yes | head -c 2000000"}`))
	}})
	k := h.start().dial()
	k.fbot("Ada", h.workspace, "shell")
	k.follow("Ada", 0)
	var ids []int64
	for i := range 10 {
		sub := k.submit("Ada", fmt.Sprint("r", i), fmt.Sprint("prompt ", i), "")
		k.until("turn_finished", sub.Turn)
		ids = append(ids, sub.Turn)
	}
	before := s.Requests()[1]
	files := func() int {
		list, _ := filepath.Glob(filepath.Join(h.dir, "state.sqlite.files", "1", "*"))
		return len(list)
	}
	if files() != 10 {
		t.Fatalf("%d spilled files", files())
	}
	var out protocol.Pruned
	k.ask(&out, "prune", `"bot":"Ada","keep_turns":3`)
	t.Run("RT-64 PR-40 PO-103 the records of older turns are gone and readers are told", func(t *testing.T) {
		if out.Events == 0 || out.PrunedCursor == 0 {
			t.Errorf("answer %+v", out)
		}
		var page protocol.EventPage
		k.ask(&page, "events", `"bot":"Ada","after":0,"limit":10`)
		if page.PrunedBefore == nil || *page.PrunedBefore != out.PrunedCursor {
			t.Errorf("page %+v", page)
		}
		k.ask(nil, "follow", `"bot":"Ada","after":0`)
		if first := k.note(); first.str("event") != "pruned" || first.num("before") != out.PrunedCursor {
			t.Errorf("the first notice %s", first.raw)
		}
		k.until("follow_live", 0)
		k.refused(protocol.TurnResultPruned, "result", fmt.Sprintf(`"bot":"Ada","turn":%d`, ids[0]))
		k.refused(protocol.TurnResultPruned, "result", fmt.Sprintf(`"bot":"Ada","turn":%d`, ids[6]))
		if o := k.result("Ada", ids[7]); o.Text != "done prompt 7" {
			t.Errorf("outcome %+v", o)
		}
	})
	t.Run("RT-64 the transcript, the totals and the next request are what they were", func(t *testing.T) {
		var turns protocol.TurnPage
		if k.ask(&turns, "turns", `"bot":"Ada"`); len(turns.Turns) != 10 || turns.Turns[0].ModelRounds != 2 {
			t.Errorf("turns %+v", turns)
		}
		if again := k.submit("Ada", "r0", "prompt 0", ""); !again.Duplicate {
			t.Errorf("the request id is gone: %+v", again)
		}
		sub := k.submit("Ada", "next", "prompt 10", "")
		k.until("turn_finished", sub.Turn)
		next := s.Requests()[0]
		if next.Items != before.Items+2 || next.First != before.First {
			t.Errorf("%d items after %d", next.Items, before.Items)
		}
	})
	t.Run("spilled output goes with the rows that named it", func(t *testing.T) {
		for range 100 {
			if files() == 4 {
				break
			}
			k.ask(nil, "stats", "")
		}
		if n := files(); n != 4 {
			t.Errorf("%d files", n)
		}
	})
	t.Run("pruning again removes nothing", func(t *testing.T) {
		var again protocol.Pruned
		k.ask(&again, "prune", `"bot":"Ada","keep_turns":5`)
		if again.Events != 0 || again.PrunedCursor != out.PrunedCursor {
			t.Errorf("answer %+v", again)
		}
		k.refused(protocol.BotNotFound, "prune", `"bot":"Nobody","keep_turns":0`)
	})
	s.Verify(t)
}

func TestRetention(t *testing.T) {
	t.Parallel()
	h := newHost(t, waitScript)
	keep := int64(1)
	h.set.Limits.RetainTurns = &keep
	k := h.start().dial()
	k.bot("Ada", h.workspace, "shell")
	k.follow("Ada", 0)
	first := k.submit("Ada", "r1", "one", "")
	k.until("turn_finished", first.Turn)
	second := k.submit("Ada", "r2", "two", "")
	end := last(k.until("turn_finished", second.Turn)).num("cursor")
	t.Run("PR-41 the turn just finished stays replayable, the one before is pruned", func(t *testing.T) {
		var page protocol.EventPage
		k.ask(&page, "events", fmt.Sprintf(`"bot":"Ada","after":%d,"limit":10`, end-1))
		if len(page.Events) != 1 {
			t.Errorf("page %s", page.Events)
		}
		k.refused(protocol.TurnResultPruned, "result", fmt.Sprintf(`"bot":"Ada","turn":%d`, first.Turn))
		if o := k.result("Ada", second.Turn); o.Text != "two" {
			t.Errorf("outcome %+v", o)
		}
	})
	t.Run("RT-65 a queued turn cancelled beside a completion: both ends come live, in order", func(t *testing.T) {
		run := k.submit("Ada", "r3", "wait", "")
		h.began()
		q := k.submit("Ada", "r4", "queued", `"delivery":"queue"`)
		h.letGo()
		k.request("interrupt", fmt.Sprintf(`"bot":"Ada","turn":%d`, q.Turn))
		ends := map[int64]int{}
		for len(ends) < 2 {
			if l := k.note(); l.str("event") == "turn_finished" {
				ends[l.num("turn")]++
			}
		}
		if ends[run.Turn] != 1 || ends[q.Turn] != 1 {
			t.Errorf("ends %v", ends)
		}
	})
}

func TestPruneOfARunningCommand(t *testing.T) {
	t.Parallel()
	h := newHost(t, "")
	s := h.fake("responses", fakemodel.Options{})
	k := h.start().dial()
	k.fbot("Ada", h.workspace, "shell")
	k.steps(s, "Ada", "r1", shellCall("touch began; until [ -e go ]; do sleep 0.02; done; echo out", `,"background":true`))
	h.began()
	k.steps(s, "Ada", "r2", shellCall("echo quick", `,"background":true`))
	k.ask(nil, "wait", `"handles":["proc:2"]`)
	outcome := func(handle, timeout string) protocol.Resolved {
		var w protocol.Waited
		k.ask(&w, "wait", fmt.Sprintf(`"handles":[%q]%s`, handle, timeout))
		return w.Results[handle]
	}
	t.Run("RT-66 a running command of a pruned turn keeps its row, one that ended does not", func(t *testing.T) {
		k.ask(nil, "prune", `"bot":"Ada","keep_turns":0`)
		if e := outcome("proc:2", `,"timeout_ms":0`).Err; e == nil || e.Code != protocol.UnknownHandle {
			t.Errorf("the one that ended: %+v", outcome("proc:2", `,"timeout_ms":0`))
		}
		if r := outcome("proc:1", `,"timeout_ms":0`); r.Err != nil || !r.Pending {
			t.Errorf("the one that runs: %+v", r)
		}
	})
	t.Run("RT-66 its result can be waited for, until the next pass", func(t *testing.T) {
		h.letGo()
		if r := outcome("proc:1", ""); r.Process == nil || r.Process.Stdout != "out\n" {
			t.Errorf("got %+v", r)
		}
		k.ask(nil, "prune", `"bot":"Ada","keep_turns":0`)
		if e := outcome("proc:1", "").Err; e == nil || e.Code != protocol.UnknownHandle {
			t.Errorf("after the next pass: %+v", outcome("proc:1", ""))
		}
	})
	s.Verify(t)
}
