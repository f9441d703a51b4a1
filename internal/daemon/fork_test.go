package daemon_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"agent/internal/fakemodel"
	"agent/protocol"
)

// nodes are a bot's history, newest first.
func (k *conn) nodes(bot string) (ids []int64) {
	k.t.Helper()
	var page protocol.NodePage
	k.ask(&page, "history_nodes", fmt.Sprintf(`"bot":%q`, bot))
	for _, n := range page.Nodes {
		ids = append(ids, n.Node)
	}
	return ids
}

// fork makes a fork; more are further members.
func (k *conn) fork(source, bot, more string) (b protocol.Bot) {
	k.t.Helper()
	k.ask(&b, "fork", forkOf(source, bot, more))
	return b
}

func forkOf(source, bot, more string) string {
	if more != "" {
		more = "," + more
	}
	return fmt.Sprintf(`"source":%q,"bot":%q%s`, source, bot, more)
}

// head is a bot's head, 0 for none.
func (k *conn) head(bot string) int64 {
	k.t.Helper()
	var b protocol.Bot
	k.ask(&b, "inspect", fmt.Sprintf(`"bot":%q`, bot))
	if b.Head == nil {
		return 0
	}
	return *b.Head
}

// checkpoint is where a turn completed.
func (k *conn) checkpoint(bot string, turn int64) int64 {
	k.t.Helper()
	o := k.result(bot, turn)
	if o.Checkpoint == nil {
		k.t.Fatalf("turn %d has no checkpoint: %+v", turn, o)
	}
	return *o.Checkpoint
}

var cacheMark = regexp.MustCompile(`,?"cache_control":\{[^}]*\}`)

// sentItems are the items of a request, without cache marks, and what goes
// ahead of them.
func sentItems(t *testing.T, r *fakemodel.Request) (items []string, ahead string) {
	t.Helper()
	var body struct {
		Input, Messages, Tools, System, Instructions json.RawMessage
	}
	if err := json.Unmarshal(r.Body, &body); err != nil {
		t.Fatal(err)
	}
	var list []json.RawMessage
	if err := json.Unmarshal(append(body.Input, body.Messages...), &list); err != nil {
		t.Fatal(err)
	}
	for _, item := range list {
		items = append(items, cacheMark.ReplaceAllString(string(item), ""))
	}
	return items, string(body.Tools) + string(body.System) + string(body.Instructions)
}

func lastRequest(s *fakemodel.Server) *fakemodel.Request {
	r := s.Requests()
	return r[len(r)-1]
}

func TestForkAtCheckpoints(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, family string) {
		h := newHost(t, "")
		s := h.fake(family, fakemodel.Options{
			Keep: 1, Bodies: true, Identity: fakemodel.ByModel,
			Handler: func(r *fakemodel.Request) fakemodel.Reply {
				return fakemodel.Reply{Blocks: []fakemodel.Block{fakemodel.Thinking("hm"), fakemodel.Text("answer to " + r.Prompt)}}
			},
		})
		k := h.start().dial()
		k.fbot("Ada", h.workspace, "echo read")
		k.ask(nil, "follow", `"bot":"*","after":0`)
		run := func(bot, request, prompt, more string) protocol.Outcome {
			t.Helper()
			sub := k.submit(bot, request, prompt, more)
			k.until("turn_finished", sub.Turn)
			o := k.result(bot, sub.Turn)
			if o.Status != "completed" {
				t.Fatalf("%s %s: %+v", bot, request, o)
			}
			return o
		}
		first := run("Ada", "r1", "one", "")
		run("Ada", "r2", "two", "")
		var forked line
		t.Run("RT-57 a fork at the first checkpoint holds the first turn, and both go on by themselves", func(t *testing.T) {
			b := k.fork("Ada", "Bob", fmt.Sprintf(`"checkpoint":%d,"workspace":%q`, *first.Checkpoint, h.workspace))
			forked = last(k.until("forked", 0))
			if *b.Head != *first.Checkpoint || b.TokensUsed != 0 || b.Status != "idle" || *b.CacheBot != 1 {
				t.Errorf("record %+v", b)
			}
			run("Bob", "r1", "other two", `"model":"f/Bob"`)
			items, _ := sentItems(t, lastRequest(s))
			if all := strings.Join(items, ""); !strings.Contains(all, "answer to one") || strings.Contains(all, "answer to two") || !strings.Contains(all, "other two") {
				t.Errorf("the fork sent %s", all)
			}
			run("Ada", "r3", "three", "")
			items, _ = sentItems(t, lastRequest(s))
			if all := strings.Join(items, ""); strings.Contains(all, "other two") || !strings.Contains(all, "answer to two") {
				t.Errorf("the source sent %s", all)
			}
		})
		t.Run("PR-36 a fork is told of live as events tells it", func(t *testing.T) {
			var page protocol.EventPage
			k.ask(&page, "events", `"bot":"Bob","after":0,"limit":1`)
			if len(page.Events) != 1 || string(page.Events[0])+"\n" != string(forked.raw) {
				t.Errorf("live %s, events %s", forked.raw, page.Events)
			}
			var f protocol.Forked
			if forked.data(&f); f.Source != "Ada" || *f.Checkpoint != *first.Checkpoint || *f.Node != *first.Checkpoint || f.Provider != "f" {
				t.Errorf("data %+v", f)
			}
		})
		t.Run("a fork has turns, request ids and ordinals of its own", func(t *testing.T) {
			var page protocol.TurnPage
			if k.ask(&page, "turns", `"bot":"Bob"`); len(page.Turns) != 1 || page.Turns[0].RequestID != "r1" {
				t.Errorf("turns %+v", page)
			}
			k.refused(protocol.TurnNotFound, "result", fmt.Sprintf(`"bot":"Bob","turn":%d`, first.Turn))
		})
		t.Run("RT-60 nodes outside the source's history are no points", func(t *testing.T) {
			for _, node := range []int64{k.head("Bob"), 9999, -1, 0} {
				k.refused(protocol.NodeNotInSourceHistory, "fork", forkOf("Ada", "X", fmt.Sprintf(`"checkpoint":%d`, node)))
			}
			k.refused(protocol.BotNotFound, "inspect", `"bot":"X"`)
		})
		t.Run("a fork of a fork, at a point its source inherited and at one of its own", func(t *testing.T) {
			at := k.nodes("Bob")
			k.fork("Bob", "Cid", "")
			k.fork("Bob", "Dee", fmt.Sprintf(`"checkpoint":%d`, *first.Checkpoint))
			if got := k.nodes("Cid"); !slices.Equal(got, at) {
				t.Errorf("Cid has %v, Bob %v", got, at)
			}
			if got := k.head("Dee"); got != *first.Checkpoint {
				t.Errorf("Dee is at %d", got)
			}
		})
		if strings.HasPrefix(family, "responses") {
			t.Run("reasoning is not parted from what follows it", func(t *testing.T) {
				nodes := k.nodes("Ada")
				k.refused(protocol.ForkPointSplitsReasoning, "fork", forkOf("Ada", "X", fmt.Sprintf(`"checkpoint":%d`, nodes[1])))
				k.fork("Ada", "X", fmt.Sprintf(`"checkpoint":%d`, nodes[2]))
			})
		}
		s.Verify(t)
	})
}

func TestForkMidTurn(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, family string) {
		h := newHost(t, "")
		s := h.fake(family, fakemodel.Options{Keep: 20, Bodies: true})
		k := h.start().dial()
		k.fbot("Ada", h.workspace, "echo shell")
		k.follow("Ada", 0)
		until := func(file string) fakemodel.Block {
			return fakemodel.Call("shell", fmt.Sprintf(`{"command":"touch began; until [ -e %s ]; do sleep 0.02; done"}`, file))
		}
		s.Queue(fakemodel.Say("a", until("go")))
		t.Run("RT-59 a fork of a first turn without a finished round holds the prompt", func(t *testing.T) {
			k.submit("Ada", "r1", "go", "")
			h.began()
			k.fork("Ada", "Early", "")
			if n := k.nodes("Early"); len(n) != 1 || !strings.Contains(k.item("Early", n[0]), "go") {
				t.Errorf("nodes %v", n)
			}
		})
		s.Queue(fakemodel.Say("b", fakemodel.Call("echo", `{"text":"two"}`), fakemodel.Call("echo", `{"text":"zwei"}`)),
			fakemodel.Say("c", fakemodel.Call("echo", `{"text":"three"}`)), fakemodel.Say("d", until("further")))
		h.letGo()
		done := 0
		for done < 4 {
			if k.note().str("event") == "tool_completed" {
				done++
			}
		}
		for k.note().str("event") != "tool_started" {
		}
		h.began()
		source := lastRequest(s)
		open := k.nodes("Ada")
		t.Run("RT-58 PR-24 a fork in the fourth round starts after the third", func(t *testing.T) {
			b := k.fork("Ada", "Bob", fmt.Sprintf(`"workspace":%q`, h.workspace))
			if !strings.Contains(k.item("Bob", *b.Head), "three") {
				t.Errorf("the head is %s", k.item("Bob", *b.Head))
			}
		})
		t.Run("RT-60 PR-24 a node with an open call is no point, the one before it is", func(t *testing.T) {
			k.refused(protocol.ForkPointHasOpenToolCalls, "fork", forkOf("Ada", "X", fmt.Sprintf(`"checkpoint":%d`, open[0])))
			half := slices.IndexFunc(open, func(n int64) bool {
				return isResult(k.item("Ada", n)) && strings.Contains(k.item("Ada", n), "zwei")
			})
			k.refused(protocol.ForkPointHasOpenToolCalls, "fork", forkOf("Ada", "X", fmt.Sprintf(`"checkpoint":%d`, open[half+1])))
			k.refused(protocol.BotNotFound, "inspect", `"bot":"X"`)
			k.fork("Ada", "Half", fmt.Sprintf(`"checkpoint":%d`, open[half]))
		})
		t.Run("RT-58 its first request repeats the source's last one", func(t *testing.T) {
			s.Queue(fakemodel.Say("from the fork"))
			k.follow("Bob", 0)
			sub := k.submit("Bob", "r1", "and now?", `"model":"f/Bob"`)
			k.until("turn_finished", sub.Turn)
			if o := k.result("Bob", sub.Turn); o.Text != "from the fork" {
				t.Fatalf("outcome %+v", o)
			}
			fork := lastRequest(s)
			was, before := sentItems(t, source)
			is, ahead := sentItems(t, fork)
			if len(is) != len(was)+1 || !slices.Equal(is[:len(was)], was) || ahead != before || fork.CacheKey != source.CacheKey {
				t.Errorf("the source sent\n%s\nthe fork\n%s", was, is)
			}
		})
		s.Queue(fakemodel.Say("end"))
		if err := os.WriteFile(h.workspace+"/further", nil, 0o600); err != nil {
			t.Fatal(err)
		}
		t.Run("the source goes on as if nothing had been", func(t *testing.T) {
			k.follow("Ada", 0)
			end := last(k.until("turn_finished", 1))
			var f protocol.TurnFinished
			if end.data(&f); f.Status != "completed" {
				t.Errorf("end %s", end.raw)
			}
		})
		s.Verify(t)
	})
}

func TestForkAllow(t *testing.T) {
	t.Parallel()
	h := newHost(t, "")
	s := h.fake("responses", fakemodel.Options{Keep: 5, Bodies: true})
	k := h.start().dial()
	k.fbot("Ada", h.workspace, "shell read echo")
	s.Queue(fakemodel.Say("hi"))
	k.run("Ada", "r1", "hello")
	t.Run("PR-73 RT-63 a narrowed fork is shown the same tools and may call its own alone", func(t *testing.T) {
		b := k.fork("Ada", "Bob", fmt.Sprintf(`"allow":["read"],"workspace":%q`, h.workspace))
		if !slices.Equal(b.Tools, []string{"shell", "read", "echo"}) || b.Allowed == nil || !slices.Equal(*b.Allowed, []string{"read"}) {
			t.Fatalf("record %+v", b)
		}
		s.Queue(fakemodel.Say("x", fakemodel.Call("shell", `{"command":"touch ran"}`)), fakemodel.Say("pity"))
		if o := k.run("Bob", "r1", "try"); o.Text != "pity" {
			t.Fatalf("outcome %+v", o)
		}
		if r := lastRequest(s); !strings.Contains(r.Result, "tool_not_available") || !slices.Equal(r.Tools, s.Requests()[0].Tools) {
			t.Errorf("result %s, tools %v", r.Result, r.Tools)
		}
		if _, err := os.Stat(h.workspace + "/ran"); err == nil {
			t.Error("the command ran")
		}
	})
	t.Run("PR-73 RT-63 what the source may not call cannot be allowed, and nothing is made", func(t *testing.T) {
		k.refused(protocol.AllowNotSubset, "fork", forkOf("Bob", "Cid", `"allow":["shell"]`))
		k.refused(protocol.AllowNotSubset, "fork", forkOf("Ada", "Cid", `"allow":["web_search"]`))
		k.refused(protocol.BotNotFound, "inspect", `"bot":"Cid"`)
		b := k.fork("Bob", "Cid", "")
		if b.Allowed == nil || !slices.Equal(*b.Allowed, []string{"read"}) {
			t.Errorf("record %+v", b)
		}
		if b = k.fork("Bob", "Dee", `"allow":[]`); b.Allowed == nil || len(*b.Allowed) != 0 {
			t.Errorf("record %+v", b)
		}
		k.refused(protocol.AllowNotSubset, "fork", forkOf("Dee", "Eve", `"allow":["read"]`))
	})
	t.Run("other checks of a fork", func(t *testing.T) {
		k.refused(protocol.BotExists, "fork", forkOf("Ada", "Bob", ""))
		k.refused(protocol.BotNotFound, "fork", forkOf("Nobody", "X", ""))
		k.refused(protocol.BotNotFound, "fork", forkOf("Nobody", "X", `"checkpoint":1`))
		for more, code := range map[string]protocol.Code{
			`"budget_tokens":0`: protocol.InvalidBudget, `"workspace":"w"`: protocol.WorkspaceMustExistAndBeAbsolute,
			`"workspace":""`: protocol.WorkspaceMustExistAndBeAbsolute, `"created_by":"Ada"`: protocol.InvalidCreator,
			`"created_by":"Ada","created_by_id":77`: protocol.CreatorNotFound, `"from":{"bot":"Ada","turn":99}`: protocol.InvalidFrom,
			`"approve":["shell"]`: protocol.InvalidGate, `"sandbox":"none"`: protocol.InvalidSandbox,
			`"network":false`: protocol.InvalidSandbox, `"settings":{"nope":1}`: protocol.InvalidSetting,
			`"settings":{"context_items":1}`: protocol.InvalidSetting,
		} {
			k.refused(code, "fork", forkOf("Ada", "X", more))
		}
		k.refused(protocol.InvalidName, "fork", forkOf("Ada", "-x", ""))
		k.refused(protocol.BotNotFound, "inspect", `"bot":"X"`)
		b := k.fork("Ada", "Kid", `"created_by":"Ada","created_by_id":1,"budget_tokens":9,"settings":{"note_turns":3},"from":{"bot":"Ada","turn":1}`)
		if *b.CreatedBy != "Ada" || *b.BudgetTokens != 9 || b.Settings.NoteTurns.Or(-1) != 3 || b.Workspace != nil {
			t.Errorf("record %+v", b)
		}
		if b = k.fork("Kid", "Grandkid", `"settings":{"note_turns":null,"context_items":7}`); b.Settings.NoteTurns.Or(-1) != 3 || b.Settings.ContextItems.Or(-1) != 7 || b.BudgetTokens != nil || *b.CacheBot != 1 {
			t.Errorf("record %+v", b)
		}
		k.refused(protocol.WorkspaceRequired, "submit", submission("Kid", "r", "x", ""))
	})
	t.Run("an empty history forks to an empty one", func(t *testing.T) {
		k.fbot("Empty", h.workspace, "")
		if b := k.fork("Empty", "Void", ""); b.Head != nil || *b.CacheBot == b.ID {
			t.Errorf("record %+v", b)
		}
		var page protocol.EventPage
		k.ask(&page, "events", `"bot":"Void","after":0,"limit":5`)
		if len(page.Events) != 1 || !strings.Contains(string(page.Events[0]), `"checkpoint":null,"node":null`) {
			t.Errorf("events %s", page.Events)
		}
	})
	s.Verify(t)
}

func TestForkNote(t *testing.T) {
	t.Parallel()
	h := newHost(t, "")
	s := h.fake("anthropic", fakemodel.Options{Keep: 1, Bodies: true, Window: true})
	k := h.start().dial()
	k.fbot("Ada", h.workspace, "note")
	k.follow("Ada", 0)
	turn := func(bot, request, note, more string) int64 {
		t.Helper()
		if note != "" {
			s.Queue(fakemodel.Say("a", fakemodel.Call("note", `{"text":"`+note+`"}`)))
		}
		s.Queue(fakemodel.Say("done"))
		sub := k.submit(bot, request, "go", more)
		k.until("turn_finished", sub.Turn)
		return k.checkpoint(bot, sub.Turn)
	}
	none := turn("Ada", "r1", "", "")
	older := turn("Ada", "r2", "the older note", "")
	turn("Ada", "r3", "the newer note", "")
	t.Run("RT-61 a fork carries the note that stood at its point, or none", func(t *testing.T) {
		for i, row := range []struct {
			at   string
			note string
		}{{fmt.Sprintf(`"checkpoint":%d`, none), ""}, {fmt.Sprintf(`"checkpoint":%d`, older), "the older note"}, {"", "the newer note"}} {
			name := fmt.Sprint("F", i)
			more := fmt.Sprintf(`"workspace":%q`, h.workspace)
			if row.at != "" {
				more += "," + row.at
			}
			b := k.fork("Ada", name, more)
			if (b.Note == nil) != (row.note == "") {
				t.Errorf("%s: note %v", name, b.Note)
			}
			k.follow(name, 0)
			turn(name, "r", "", `"model":"f/`+name+`"`)
			items, _ := sentItems(t, lastRequest(s))
			for _, text := range []string{"the older note", "the newer note"} {
				if has := strings.Contains(items[0], text); has != (text == row.note) {
					t.Errorf("%s: %q in the first item: %v: %s", name, text, has, items[0])
				}
			}
		}
	})
	s.Verify(t)
}

func TestForkCallIDs(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, family string) {
		h := newHost(t, "")
		s := h.fake(family, fakemodel.Options{})
		k := h.start().dial()
		k.fbot("Ada", h.workspace, "echo")
		s.Queue(fakemodel.Say("a", fakemodel.CallID("same", "echo", `{"text":"1"}`)), fakemodel.Say("b"))
		point := k.run("Ada", "r1", "x").Checkpoint
		s.Queue(fakemodel.Say("c", fakemodel.CallID("later", "echo", `{"text":"2"}`)), fakemodel.Say("d"))
		k.run("Ada", "r2", "y")
		ids := func(bot, request string) (got []string) {
			t.Helper()
			k.follow(bot, 0)
			s.Queue(fakemodel.Say("e", fakemodel.CallID("same", "echo", `{"text":"3"}`), fakemodel.CallID("later", "echo", `{"text":"4"}`)), fakemodel.Say("f"))
			sub := k.submit(bot, request, "z", `"model":"f/`+bot+`"`)
			for _, l := range k.until("turn_finished", sub.Turn) {
				if l.str("event") == "tool_completed" {
					var c protocol.ToolCompleted
					l.data(&c)
					got = append(got, c.CallID)
				}
			}
			if o := k.result(bot, sub.Turn); o.Text != "f" {
				t.Fatalf("outcome %+v", o)
			}
			return got
		}
		t.Run("an id of the inherited history is taken, one that came later is not", func(t *testing.T) {
			k.fork("Ada", "Bob", fmt.Sprintf(`"checkpoint":%d,"workspace":%q`, *point, h.workspace))
			if got := ids("Bob", "r1"); got[0] == "same" || got[1] != "later" {
				t.Errorf("ids %v", got)
			}
			k.fork("Bob", "Cid", fmt.Sprintf(`"workspace":%q`, h.workspace))
			if got := ids("Cid", "r1"); got[0] == "same" || got[1] == "later" {
				t.Errorf("ids %v", got)
			}
		})
		s.Verify(t)
	})
}
