package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"agent/internal/fakemodel"
	"agent/internal/store"
	"agent/protocol"
)

// stop ends a daemon by a request.
func (p *process) stop(k *conn) {
	p.t.Helper()
	k.ask(nil, "shutdown", "")
	if code := p.wait(); code != 0 {
		p.t.Fatalf("exit %d: %s", code, p.stderr.String())
	}
}

// sound fails the test when the store of a stopped daemon is not.
func (h *host) sound() {
	h.t.Helper()
	report, err := store.Check(h.set.Store)
	if err != nil {
		h.t.Fatal(err)
	}
	if !report.OK {
		h.t.Errorf("the store: %v", report.Problems)
	}
}

// onStore runs statements, each with what it gives first, on a stopped daemon's
// store.
func (h *host) onStore(sql ...string) (first []int64) {
	h.t.Helper()
	s, err := store.Open(store.Options{Path: h.set.Store})
	if err != nil {
		h.t.Fatal(err)
	}
	defer s.Close()
	err = s.Do("test", func(tx *store.Tx) error {
		first = nil
		for _, text := range sql {
			q, err := tx.Conn().Prepare(text)
			if err != nil {
				return err
			}
			n := int64(0)
			if row, err := q.Step(); err != nil {
				return err
			} else if row {
				n = q.ColumnInt64(0)
			}
			if err := q.Reset(); err != nil {
				return err
			}
			first = append(first, n)
		}
		return nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return first
}

// rows counts the rows of a stopped daemon's tables.
func (h *host) rows(tables ...string) map[string]int64 {
	h.t.Helper()
	var sql []string
	for _, table := range tables {
		sql = append(sql, "SELECT count(*) FROM "+table)
	}
	out := map[string]int64{}
	for i, n := range h.onStore(sql...) {
		out[tables[i]] = n
	}
	return out
}

// awaitDeleting returns when a deletion that was asked for has begun.
func (k *conn) awaitDeleting(bot string) {
	k.t.Helper()
	for b := (protocol.Bot{}); b.Status != "deleting"; {
		k.ask(&b, "inspect", fmt.Sprintf(`"bot":%q`, bot))
	}
}

// ofBots are the tables that hold nothing but what belongs to bots.
var ofBots = []string{
	"bots", "nodes", "turns", "events", "tools", "call_ids", "inherited", "checkpoints", "retained_turns",
	"artifacts", "seen_files", "notes", "pictures", "node_pictures", "processes",
}

func TestDelete(t *testing.T) {
	t.Parallel()
	h := newHost(t, waitScript)
	p := h.start()
	k := p.dial()
	k.bot("Ada", h.workspace, "shell")
	t.Run("a bot with something to do is not deleted", func(t *testing.T) {
		run := k.submit("Ada", "r1", "wait", "")
		h.began()
		k.refused(protocol.BotBusy, "delete", `"bot":"Ada"`)
		q := k.submit("Ada", "r2", "x", `"delivery":"queue"`)
		h.letGo()
		k.follow("Ada", 0)
		k.until("turn_finished", run.Turn)
		k.until("turn_finished", q.Turn)
		k.refused(protocol.BotNotFound, "delete", `"bot":"Nobody"`)
	})
	old := k.submit("Ada", "r3", "late", "")
	k.until("turn_finished", old.Turn)
	node := k.head("Ada")
	var page protocol.EventPage
	k.ask(&page, "events", `"bot":"Ada","after":0,"limit":256`)
	t.Run("the answer counts what went, followers are told, and the name is free", func(t *testing.T) {
		all := p.dial()
		all.follow("*", 0)
		var d protocol.Deleted
		k.ask(&d, "delete", `"bot":"Ada"`)
		if d.Turns != 3 || d.Events != int64(len(page.Events)) || d.Nodes != 8 {
			t.Errorf("answer %+v, %d events", d, len(page.Events))
		}
		if l := last(k.until("deleted", 0)); l.str("bot") != "Ada" || string(l.fields["durable"]) != "false" {
			t.Errorf("notice %s", l.raw)
		}
		all.until("deleted", 0)
		k.refused(protocol.BotNotFound, "inspect", `"bot":"Ada"`)
		k.refused(protocol.BotNotFound, "submit", submission("Ada", "r3", "late", ""))
		follow := p.dial()
		follow.ask(nil, "follow", `"bot":"*","after":0`)
		if l := follow.note(); l.str("event") != "pruned" || l.num("before") < page.NextCursor {
			t.Errorf("the first notice %s", l.raw)
		}
	})
	t.Run("PR-21 RT-3 a retry that means the deleted bot runs nothing", func(t *testing.T) {
		b := k.bot("Ada", h.workspace, "shell")
		l := k.refused(protocol.BotNotFound, "submit", submission("Ada", "r3", "late", fmt.Sprintf(`"bot_id":%d`, old.BotID)))
		if !strings.Contains(l.str("detail"), fmt.Sprintf("bot %d", b.ID)) {
			t.Errorf("detail %s", l.raw)
		}
		var turns protocol.TurnPage
		if k.ask(&turns, "turns", `"bot":"Ada"`); len(turns.Turns) != 0 {
			t.Errorf("turns %+v", turns)
		}
	})
	t.Run("RT-68 no id comes twice", func(t *testing.T) {
		k.follow("Ada", 0)
		s := k.submit("Ada", "r3", "late", "")
		if s.Duplicate || s.Turn <= old.Turn || s.BotID <= old.BotID {
			t.Errorf("%+v after %+v", s, old)
		}
		k.until("turn_finished", s.Turn)
		if n := k.nodes("Ada"); n[len(n)-1] <= node {
			t.Errorf("nodes %v after %d", n, node)
		}
		k.ask(nil, "delete", `"bot":"Ada"`)
		p.stop(k)
		p = h.start()
		k = p.dial()
		b := k.bot("Ada", h.workspace, "")
		k.follow("Ada", 0)
		again := k.submit("Ada", "r", "x", "")
		k.until("turn_finished", again.Turn)
		if n := k.nodes("Ada"); b.ID <= s.BotID || again.Turn <= s.Turn || n[len(n)-1] <= node+2 {
			t.Errorf("bot %d, turn %d, nodes %v", b.ID, again.Turn, n)
		}
		k.ask(nil, "delete", `"bot":"Ada"`)
	})
	t.Run("nothing of a deleted bot is left", func(t *testing.T) {
		p.stop(k)
		h.sound()
		for table, n := range h.rows(ofBots...) {
			if n != 0 {
				t.Errorf("%s has %d rows", table, n)
			}
		}
	})
}

func TestDeletePieces(t *testing.T) {
	t.Parallel()
	h := newHost(t, echoScript)
	p := h.start()
	k := p.dial()
	k.bot("Ada", h.workspace, "")
	k.bot("Bob", h.workspace, "")
	k.follow("Ada", 0)
	const turns = 600
	for i := range turns {
		k.request("submit", submission("Ada", fmt.Sprint("r", i), "x", `"delivery":"queue"`))
	}
	for ended := 0; ended < turns; {
		if k.note().str("event") == "turn_finished" {
			ended++
		}
	}
	t.Run("RT-67 others go on while a bot goes, its name answers for neither, and a kill does not bring it back", func(t *testing.T) {
		other := p.dial()
		k.request("delete", `"bot":"Ada"`)
		other.awaitDeleting("Ada")
		other.refused(protocol.BotNotFound, "submit", submission("Ada", "late", "x", ""))
		other.refused(protocol.BotExists, "create", `"bot":"Ada","model":"s/m","instructions":"","tools":[]`)
		other.refused(protocol.BotNotFound, "fork", forkOf("Ada", "Cid", ""))
		other.refused(protocol.BotNotFound, "delete", `"bot":"Ada"`)
		other.refused(protocol.BotNotFound, "history_nodes", `"bot":"Ada"`)
		s := other.submit("Bob", "r", "meanwhile", "")
		var b protocol.Bot
		other.ask(&b, "inspect", `"bot":"Ada"`)
		if b.Status != "deleting" {
			t.Errorf("Ada is %s", b.Status)
		}
		p.kill()
		p = h.start()
		k = p.dial()
		k.refused(protocol.BotNotFound, "inspect", `"bot":"Ada"`)
		k.bot("Ada", h.workspace, "")
		if o := k.result("Bob", s.Turn); o.Status != "completed" && o.Status != "interrupted" {
			t.Errorf("outcome %+v", o)
		}
		k.ask(nil, "delete", `"bot":"Ada"`)
		k.ask(nil, "delete", `"bot":"Bob"`)
		p.stop(k)
		h.sound()
		for table, n := range h.rows(ofBots...) {
			if n != 0 {
				t.Errorf("%s has %d rows", table, n)
			}
		}
	})
}

func TestDeleteOnFullDisk(t *testing.T) {
	h := newHost(t, echoScript)
	var faults store.Faults
	var full atomic.Bool
	breaks(&faults, "wrote:delete_piece", &full, store.FaultFull)
	p := h.startHere(&faults)
	k := p.dial()
	k.bot("Ada", h.workspace, "")
	k.run("Ada", "r", "x")
	t.Run("a deletion that the disk has no room for goes on when there is some", func(t *testing.T) {
		full.Store(true)
		id := k.request("delete", `"bot":"Ada"`)
		p.dial().awaitDeleting("Ada")
		k.refused(protocol.BotNotFound, "submit", submission("Ada", "r2", "x", ""))
		k.bot("Bob", h.workspace, "")
		full.Store(false)
		if l := k.answer(id); l.fields["error"] != nil {
			t.Errorf("answer %s", l.raw)
		}
		k.refused(protocol.BotNotFound, "inspect", `"bot":"Ada"`)
	})
}

func TestDeleteSource(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, family string) {
		h := newHost(t, "")
		h.set.Limits.ContextItems = 12
		h.set.Limits.ContextBytes = 256 << 10
		s := h.fake(family, fakemodel.Options{Keep: 1, Bodies: true, Window: true, Handler: func(r *fakemodel.Request) fakemodel.Reply {
			return fakemodel.Say("answer to " + r.Prompt)
		}})
		p := h.start()
		k := p.dial()
		k.fbot("Ada", h.workspace, "shell read note history")
		k.ask(nil, "follow", `"bot":"*","after":0`)
		run := func(bot, request, prompt, more string) (turn int64, calls []string) {
			t.Helper()
			sub := k.submit(bot, request, prompt, more)
			for _, l := range k.until("turn_finished", sub.Turn) {
				if l.str("event") == "tool_completed" {
					var c protocol.ToolCompleted
					l.data(&c)
					calls = append(calls, c.CallID)
				}
			}
			if o := k.result(bot, sub.Turn); o.Status != "completed" {
				t.Fatalf("%s %s: %+v", bot, request, o)
			}
			return sub.Turn, calls
		}
		const big = `{"command":"seq 20000"}`
		s.Queue(fakemodel.Say("a", fakemodel.Call("shell", big), fakemodel.Call("shell", `{"command":"yes | head -c 1500000"}`)),
			fakemodel.Say("b", fakemodel.Call("note", `{"text":"carried"}`)), fakemodel.Say("c"))
		kept, call := run("Ada", "r0", "make output", "")
		for i := 1; i < 8; i++ {
			run("Ada", fmt.Sprint("r", i), fmt.Sprintf("prompt number %d", i), "")
		}
		point := k.head("Ada")
		s.Queue(fakemodel.Say("a", fakemodel.Call("shell", big)), fakemodel.Say("d"))
		later, laterCall := run("Ada", "later", "more output", "")
		k.fork("Ada", "Bob", fmt.Sprintf(`"checkpoint":%d,"workspace":%q`, point, h.workspace))
		inherited := k.nodes("Bob")
		items := map[int64]string{}
		for _, n := range inherited {
			items[n] = k.item("Bob", n)
		}
		artifact := func(bot string, turn int64, call, stream string) string {
			return fmt.Sprintf(`"bot":%q,"turn":%d,"call_id":%q,"stream":%q`, bot, turn, call, stream)
		}
		t.Run("a fork reads the output it inherited and nothing later", func(t *testing.T) {
			var page protocol.ArtifactPage
			if k.ask(&page, "artifact", artifact("Bob", kept, call[0], "stdout")); page.TotalBytes < 100_000 {
				t.Errorf("page of %d", page.TotalBytes)
			}
			k.ask(&page, "artifact", artifact("Bob", kept, call[1], "stdout"))
			k.refused(protocol.ArtifactNotFound, "artifact", artifact("Bob", kept, call[0], "stderr"))
			k.refused(protocol.ArtifactNotFound, "artifact", artifact("Ada", kept, "nope", "stdout"))
			k.refused(protocol.TurnNotFound, "artifact", artifact("Bob", later, laterCall[0], "stdout"))
			k.refused(protocol.TurnNotFound, "artifact", artifact("Bob", kept, laterCall[0], "stdout"))
			k.refused(protocol.TurnNotFound, "artifact", artifact("Bob", later, call[0], "stdout"))
			k.ask(&page, "artifact", artifact("Ada", later, laterCall[0], "stdout"))
			s.Queue(fakemodel.Say("a", fakemodel.Call("read", fmt.Sprintf(`{"artifact":"%d/%s/stdout","limit":3}`, kept, call[0]))), fakemodel.Say("ok"))
			run("Bob", "read", "read it", `"model":"f/Bob"`)
			if r := lastRequest(s).Result; !strings.Contains(r, "3") || strings.Contains(r, "error") {
				t.Errorf("the model read %s", r)
			}
		})
		t.Run("RT-48 a background command's output is read where its delivery is in the history", func(t *testing.T) {
			for _, row := range []struct {
				delivered string
				reads     bool
			}{{"NULL", false}, {fmt.Sprint(point), true}, {fmt.Sprint(k.head("Ada")), false}} {
				p.stop(k)
				h.onStore(`DELETE FROM processes`, fmt.Sprintf(`INSERT INTO processes (bot_id, turn, call_id, status, delivered) VALUES (1, %d, '%s', 'done', %s)`, kept, call[0], row.delivered))
				p = h.start()
				k = p.dial()
				k.ask(nil, "artifact", artifact("Ada", kept, call[0], "stdout"))
				if row.reads {
					k.ask(nil, "artifact", artifact("Bob", kept, call[0], "stdout"))
				} else {
					k.refused(protocol.TurnNotFound, "artifact", artifact("Bob", kept, call[0], "stdout"))
				}
			}
		})
		t.Run("PR-25 RT-62 with its source gone a fork reads and goes on as before", func(t *testing.T) {
			before := k.nodes("Bob")
			var d protocol.Deleted
			k.ask(&d, "delete", `"bot":"Ada"`)
			if d.Nodes == 0 || d.Nodes > 8 || d.Turns != 9 {
				t.Errorf("answer %+v", d)
			}
			p.stop(k)
			h.sound()
			if n := h.rows("notes", "nodes", "artifacts"); n["notes"] != 1 || n["nodes"] != int64(len(before)) || n["artifacts"] != 0 {
				t.Errorf("left are %v", n)
			}
			if _, err := os.Stat(filepath.Join(h.dir, "state.sqlite.files", "1")); !os.IsNotExist(err) {
				t.Errorf("the spilled output: %v", err)
			}
			p = h.start()
			k = p.dial()
			for n, item := range items {
				if got := k.item("Bob", n); got != item {
					t.Errorf("node %d is %s", n, got)
				}
			}
			k.refused(protocol.ArtifactPruned, "artifact", artifact("Bob", kept, call[0], "stdout"))
			k.refused(protocol.ArtifactPruned, "artifact", fmt.Sprintf(`"bot":"Bob","turn":%d,"call_id":%q`, kept, call[1]))
			k.refused(protocol.ArtifactNotFound, "artifact", artifact("Bob", kept, call[0], "stderr"))
			k.refused(protocol.TurnNotFound, "artifact", artifact("Bob", later, laterCall[0], "stdout"))
			k.ask(nil, "follow", `"bot":"*","after":0`)
			k.until("follow_live", 0)
			s.Queue(fakemodel.Say("a", fakemodel.CallID(call[0], "history", `{"turn":2}`)), fakemodel.Say("ok"))
			_, ids := run("Bob", "go-on", "what was it?", `"model":"f/Bob"`)
			if ids[0] == call[0] {
				t.Error("the call took an id of the inherited history")
			}
			r := lastRequest(s)
			if !strings.Contains(r.Result, "prompt number 1") {
				t.Errorf("history says %s", r.Result)
			}
			if body := string(r.Body); !strings.Contains(body, "carried") || !strings.Contains(body, "make output") {
				t.Errorf("the request lacks the note or the listing: %s", body)
			}
		})
		t.Run("RT-64 a bot's own output that was pruned says so", func(t *testing.T) {
			s.Queue(fakemodel.Say("a", fakemodel.Call("shell", big)), fakemodel.Say("d"))
			turn, call := run("Bob", "own", "make output", `"model":"f/Bob"`)
			k.ask(nil, "prune", `"bot":"Bob","keep_turns":0`)
			k.refused(protocol.ArtifactPruned, "artifact", artifact("Bob", turn, call[0], "stdout"))
			k.refused(protocol.ArtifactNotFound, "artifact", artifact("Bob", turn, call[0], "stderr"))
		})
		s.Verify(t)
	})
}

func TestFollowOverADeletion(t *testing.T) {
	t.Parallel()
	h := newHost(t, echoScript)
	p := h.start()
	k, other, all := p.dial(), p.dial(), p.dial()
	all.follow("*", 0)
	other.bot("Ada", h.workspace, "")
	t.Run("a follower of a bot is told of its end and sees nothing of the next bot of its name", func(t *testing.T) {
		for round := range 10 {
			k.follow("Ada", 0)
			// The name is taken again in the very moment that it is free.
			gone := k.request("delete", `"bot":"Ada"`)
			for {
				l := other.answer(other.request("create", fmt.Sprintf(`"bot":"Ada","model":"s/m","instructions":"","tools":[],"workspace":%q`, h.workspace)))
				if l.fields["error"] == nil {
					break
				}
				if code := l.str("error"); code != "bot_exists" {
					t.Fatalf("answer %s", l.raw)
				}
			}
			k.answer(gone)
			sub := other.submit("Ada", "r", "hello", "")
			all.until("turn_finished", sub.Turn)
			k.ask(nil, "stats", "") // behind everything that was published
			if seen := k.until("deleted", 0); len(kinds(seen)) != 0 {
				t.Fatalf("round %d: before the end's notice it saw %v", round, kinds(seen))
			}
			if len(k.notes) != 0 {
				t.Fatalf("round %d: after it, it saw %s", round, k.notes[0].raw)
			}
		}
	})
	t.Run("following the name again follows the bot that has it", func(t *testing.T) {
		k.ask(nil, "follow", `"bot":"Ada","after":0`)
		if seen := kinds(k.until("follow_live", 0)); len(seen) < 3 || seen[0] != "created 0" {
			t.Errorf("the replay is %v", seen)
		}
		sub := other.submit("Ada", "r2", "again", "")
		k.until("turn_finished", sub.Turn)
	})
}

func TestFollowFromBeyondTheEnd(t *testing.T) {
	t.Parallel()
	for _, bot := range []string{"Ada", "*"} {
		t.Run("of "+bot+": the cursor reached is told, and all that comes is new", func(t *testing.T) {
			t.Parallel()
			h := newHost(t, echoScript)
			p := h.start()
			k, other := p.dial(), p.dial()
			other.bot("Ada", h.workspace, "")
			k.ask(nil, "follow", fmt.Sprintf(`"bot":%q,"after":1000`, bot))
			k.until("follow_live", 0)
			sub := other.submit("Ada", "r", "hello", "")
			if seen := kinds(k.until("turn_finished", sub.Turn)); len(seen) == 0 || !strings.HasPrefix(seen[0], "accepted") {
				t.Errorf("it saw %v", seen)
			}
		})
	}
}
