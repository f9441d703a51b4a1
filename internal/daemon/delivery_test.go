package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"agent/protocol"
)

// waitScript runs a command that waits for the file "go" in the workspace, and
// then says what it was told last.
var waitScript = `[{"match":{"prefix":"wait"},"repeat_last":true,"steps":[
	{"calls":[{"tool":"shell","arguments":{"command":"touch began; until [ -e go ]; do sleep 0.02; done; echo done"}}]},
	{"text":"after ${last}"}]},
	{"match":{"prefix":"hold"},"steps":[{"text":"held","delay_ms":600000}]},` + echoScript[1:]

// began waits until the held command runs.
func (h *host) began() {
	h.t.Helper()
	h.await("began")
}

func (h *host) await(name string) {
	h.t.Helper()
	path := filepath.Join(h.workspace, name)
	for end := time.Now().Add(20 * time.Second); ; {
		if _, err := os.Stat(path); err == nil {
			os.Remove(path)
			return
		}
		if time.Now().After(end) {
			h.t.Fatalf("%s never came", path)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// let the held command end.
func (h *host) letGo() {
	if err := os.WriteFile(filepath.Join(h.workspace, "go"), nil, 0o644); err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) holdAgain() { os.Remove(filepath.Join(h.workspace, "go")) }

func TestQueue(t *testing.T) {
	t.Parallel()
	h := newHost(t, waitScript)
	k := h.start().dial()
	k.bot("Ada", h.workspace, "shell")
	k.follow("Ada", 0)
	one := k.submit("Ada", "r1", "wait", "")
	t.Run("RT-7 bot_busy names the running turn, spells the ways past it and writes no row", func(t *testing.T) {
		l := k.refused(protocol.BotBusy, "submit", submission("Ada", "no", "x", ""))
		for _, want := range []string{fmt.Sprint("turn ", one.Turn), fmt.Sprint("--delivery steer --turn ", one.Turn), "--delivery queue", "fork --source Ada --bot NEW"} {
			if !strings.Contains(l.str("detail"), want) {
				t.Errorf("detail %q lacks %q", l.str("detail"), want)
			}
		}
	})
	two := k.submit("Ada", "r2", "second", `"delivery":"queue"`)
	three := k.submit("Ada", "r3", "third", `"delivery":"queue"`)
	h.letGo()
	seen := k.until("turn_finished", three.Turn)
	t.Run("PR-26 RT-11 queued turns run in order, each accepted after the one before ended", func(t *testing.T) {
		if two.Status != "queued" || three.Status != "queued" || two.Turn != one.Turn+1 {
			t.Errorf("answers %+v %+v", two, three)
		}
		var got []string
		for _, e := range kinds(seen) {
			if strings.HasPrefix(e, "accepted") || strings.HasPrefix(e, "queued") || strings.HasPrefix(e, "turn_finished") {
				got = append(got, e)
			}
		}
		a, b, c := one.Turn, two.Turn, three.Turn
		want := []string{
			fmt.Sprint("accepted ", a), fmt.Sprint("queued ", b), fmt.Sprint("queued ", c), fmt.Sprint("turn_finished ", a),
			fmt.Sprint("accepted ", b), fmt.Sprint("turn_finished ", b), fmt.Sprint("accepted ", c), fmt.Sprint("turn_finished ", c),
		}
		if !slices.Equal(got, want) {
			t.Errorf("events\n%v, want\n%v", got, want)
		}
	})
}

func TestSteer(t *testing.T) {
	t.Parallel()
	h := newHost(t, waitScript)
	k := h.start().dial()
	k.bot("Ada", h.workspace, "shell")
	k.follow("Ada", 0)

	t.Run("PR-29 RT-17 a steer to an idle bot is its own turn, a strict one stale", func(t *testing.T) {
		s := k.submit("Ada", "idle", "hello", `"delivery":"steer"`)
		k.until("turn_finished", s.Turn)
		if o := k.result("Ada", s.Turn); o.Status != "completed" || o.Text != "hello" {
			t.Errorf("outcome %+v", o)
		}
		k.refused(protocol.StaleTurn, "submit", submission("Ada", "strict", "x", fmt.Sprintf(`"delivery":"steer","expected_turn":%d`, s.Turn)))
		k.refused(protocol.InvalidDelivery, "submit", submission("Ada", "x", "x", fmt.Sprintf(`"delivery":"queue","expected_turn":%d`, s.Turn)))
		k.refused(protocol.InvalidDelivery, "submit", submission("Ada", "x", "x", `"delivery":"later"`))
	})

	t.Run("PR-27 RT-13 a steer in a tool goes in behind the tool's result", func(t *testing.T) {
		h.holdAgain()
		one := k.submit("Ada", "w1", "wait", "")
		h.began()
		steer := k.submit("Ada", "s1", "and more", `"delivery":"steer"`)
		h.letGo()
		seen := k.until("turn_finished", one.Turn)
		if o := k.result("Ada", steer.Turn); o.Status != "steered" || o.Into != one.Turn {
			t.Errorf("the steer %+v", o)
		}
		order := strings.Join(kinds(seen), ",")
		want := fmt.Sprintf("tool_completed %[1]d,turn_finished %[2]d,steered %[1]d,message %[1]d", one.Turn, steer.Turn)
		if !strings.Contains(order, want) {
			t.Errorf("events %s lack %s", order, want)
		}
		if n := strings.Count(order, fmt.Sprint("usage ", one.Turn)); n != 2 {
			t.Errorf("%d model calls", n)
		}
	})

	t.Run("PR-28 RT-18 seventy steers go in together and in order", func(t *testing.T) {
		h.holdAgain()
		one := k.submit("Ada", "w2", "wait", "")
		h.began()
		var ids []int64
		for i := range 70 {
			ids = append(ids, k.submit("Ada", fmt.Sprint("m", i), fmt.Sprint("steer ", i), `"delivery":"steer"`).Turn)
		}
		h.letGo()
		seen := k.until("turn_finished", one.Turn)
		var from, nodes []int64
		for _, l := range seen {
			if l.str("event") == "steered" {
				var s protocol.Steered
				l.data(&s)
				from, nodes = append(from, s.From), append(nodes, s.Node)
			}
		}
		if !slices.Equal(from, ids) || !slices.IsSorted(nodes) {
			t.Errorf("steered %v in nodes %v", from, nodes)
		}
		if n := strings.Count(strings.Join(kinds(seen), ","), fmt.Sprint("usage ", one.Turn)); n != 2 {
			t.Errorf("%d model calls", n)
		}
	})

	t.Run("PR-31 RT-15 a steer for another folder waits and is not overtaken", func(t *testing.T) {
		h.holdAgain()
		one := k.submit("Ada", "w3", "wait", "")
		h.began()
		other := k.submit("Ada", "o1", "elsewhere", fmt.Sprintf(`"delivery":"steer","workspace":%q`, h.dir))
		plain := k.submit("Ada", "o2", "plain", `"delivery":"steer"`)
		h.letGo()
		k.until("turn_finished", plain.Turn)
		k.until("turn_finished", other.Turn)
		if o := k.result("Ada", other.Turn); o.Status != "completed" {
			t.Errorf("the first %+v", o)
		}
		// The plain one was behind it and joined its turn, not the first.
		if o := k.result("Ada", plain.Turn); o.Status == "steered" && o.Into == one.Turn {
			t.Errorf("the second %+v", o)
		}
	})

	t.Run("PR-31 once the blocking steer is interrupted a strict one goes in at the next boundary", func(t *testing.T) {
		h.holdAgain()
		one := k.submit("Ada", "w4", "wait", "")
		h.began()
		other := k.submit("Ada", "b1", "elsewhere", fmt.Sprintf(`"delivery":"steer","workspace":%q`, h.dir))
		strict := k.submit("Ada", "b2", "strict", fmt.Sprintf(`"delivery":"steer","expected_turn":%d`, one.Turn))
		l := k.ask(nil, "interrupt", fmt.Sprintf(`"bot":"Ada","turn":%d`, other.Turn))
		if !strings.Contains(string(l.raw), `"queued":true`) {
			t.Errorf("answer %s", l.raw)
		}
		h.letGo()
		k.until("turn_finished", one.Turn)
		if o := k.result("Ada", strict.Turn); o.Status != "steered" || o.Into != one.Turn {
			t.Errorf("the strict steer %+v", o)
		}
		if o := k.result("Ada", other.Turn); o.Status != "interrupted" {
			t.Errorf("the other %+v", o)
		}
	})

	t.Run("RT-16 a strict steer whose turn ends first fails and never runs", func(t *testing.T) {
		h.holdAgain()
		hold := k.submit("Ada", "h1", "wait", "")
		h.began()
		strict := k.submit("Ada", "h2", "strict", fmt.Sprintf(`"delivery":"steer","expected_turn":%d`, hold.Turn))
		k.ask(nil, "interrupt", fmt.Sprintf(`"bot":"Ada","turn":%d`, hold.Turn))
		seen := k.until("turn_finished", strict.Turn)
		if o := k.result("Ada", strict.Turn); o.Status != "failed" || *o.Error != protocol.StaleTurn {
			t.Errorf("outcome %+v", o)
		}
		if strings.Contains(strings.Join(kinds(seen), ","), fmt.Sprint("accepted ", strict.Turn)) {
			t.Error("it ran")
		}
	})
}

func TestLateSteer(t *testing.T) {
	t.Parallel()
	h := newHost(t, `[{"match":{"prefix":"slow"},"repeat_last":true,"steps":[{"text":"one two three four five six seven eight","pace_ms":150},{"text":"more"}]}]`)
	k := h.start().dial()
	k.bot("Ada", h.workspace, "")
	k.follow("Ada", 0)
	t.Run("RT-14 a steer while the last call streams buys one more round", func(t *testing.T) {
		one := k.submit("Ada", "r", "slow", "")
		k.until("text_delta", one.Turn)
		steer := k.submit("Ada", "s", "late", `"delivery":"steer"`)
		seen := k.until("turn_finished", one.Turn)
		if n := strings.Count(strings.Join(kinds(seen), ","), "usage"); n != 2 {
			t.Errorf("%d model calls: %v", n, kinds(seen))
		}
		if o := k.result("Ada", steer.Turn); o.Into != one.Turn {
			t.Errorf("the steer %+v", o)
		}
	})
}

func TestSteerRoom(t *testing.T) {
	t.Parallel()
	h := newHost(t, waitScript)
	h.set.Limits.ContextBytes = 16 << 10
	k := h.start().dial()
	k.bot("Ada", h.workspace, "shell")
	k.follow("Ada", 0)
	t.Run("PR-30 RT-19 a steer that does not fit leaves the turn whole", func(t *testing.T) {
		one := k.submit("Ada", "w", "wait", "")
		h.began()
		strict := k.submit("Ada", "s1", strings.Repeat("x", 14<<10), fmt.Sprintf(`"delivery":"steer","expected_turn":%d`, one.Turn))
		h.letGo()
		k.until("turn_finished", strict.Turn)
		if o := k.result("Ada", one.Turn); o.Status != "completed" {
			t.Errorf("the turn %+v", o)
		}
		if o := k.result("Ada", strict.Turn); o.Status != "failed" || *o.Error != protocol.StaleTurn {
			t.Errorf("the strict steer %+v", o)
		}
		h.holdAgain()
		one = k.submit("Ada", "w2", "wait", "")
		h.began()
		plain := k.submit("Ada", "s2", strings.Repeat("y", 14<<10), `"delivery":"steer"`)
		h.letGo()
		k.until("turn_finished", plain.Turn)
		if o := k.result("Ada", plain.Turn); o.Status != "completed" {
			t.Errorf("the plain steer ran as %+v", o)
		}
	})
}

func TestPending(t *testing.T) {
	t.Parallel()
	h := newHost(t, waitScript)
	h.set.Limits.Pending = 2
	k := h.start().dial()
	k.bot("Ada", h.workspace, "shell")
	k.bot("Bob", h.workspace, "shell")
	t.Run("PR-32 RT-20 work past the bound is refused unless it starts at once", func(t *testing.T) {
		k.submit("Ada", "h", "hold", "")
		k.submit("Ada", "q1", "x", `"delivery":"queue"`)
		k.submit("Ada", "q2", "x", `"delivery":"queue"`)
		k.refused(protocol.PendingLimit, "submit", submission("Ada", "q3", "x", `"delivery":"queue"`))
		var page protocol.TurnPage
		if k.ask(&page, "turns", `"bot":"Ada"`); len(page.Turns) != 3 {
			t.Errorf("%d turns", len(page.Turns))
		}
		if s := k.submit("Bob", "q", "x", `"delivery":"queue"`); s.Status != "running" {
			t.Errorf("Bob's %+v", s)
		}
		k.ask(nil, "interrupt", fmt.Sprintf(`"bot":"Ada","turn":%d`, page.Turns[2].Turn))
		k.submit("Ada", "q4", "x", `"delivery":"queue"`)
	})
}

func TestInterrupt(t *testing.T) {
	t.Parallel()
	h := newHost(t, `[{"match":{"prefix":"two"},"steps":[{"calls":[
		{"tool":"shell","arguments":{"command":"echo $$ > pid; sleep 300 & touch began; wait"}},
		{"tool":"echo","arguments":{"text":"never"}}]}]},`+waitScript[1:])
	k := h.start().dial()
	k.bot("Ada", h.workspace, "shell echo")
	k.follow("Ada", 0)
	t.Run("RT-51 PR-92 a streaming turn ends at once with the reason, and the next runs", func(t *testing.T) {
		one := k.submit("Ada", "r1", "hold", "")
		began := time.Now()
		k.ask(nil, "interrupt", fmt.Sprintf(`"bot":"Ada","turn":%d,"reason":"enough"`, one.Turn))
		var end protocol.TurnFinished
		last(k.until("turn_finished", one.Turn)).data(&end)
		if end.Status != "interrupted" || *end.Error != protocol.Cancelled || *end.Detail != "enough" || time.Since(began) > time.Second {
			t.Errorf("end %+v after %v", end, time.Since(began))
		}
		k.refused(protocol.ReasonLimit, "interrupt", fmt.Sprintf(`"bot":"Ada","turn":%d,"reason":%q`, one.Turn, strings.Repeat("x", 1025)))
		if o := k.run("Ada", "r2", "still here"); o.Text != "still here" {
			t.Errorf("the next %+v", o)
		}
	})
	t.Run("RT-52 a foreground command dies, its result is unknown, the later call cancelled", func(t *testing.T) {
		one := k.submit("Ada", "r3", "two", "")
		h.began()
		k.ask(nil, "interrupt", fmt.Sprintf(`"bot":"Ada","turn":%d`, one.Turn))
		seen := k.until("turn_finished", one.Turn)
		var marks []string
		for _, l := range seen {
			if l.str("event") == "tool_completed" {
				var c protocol.ToolCompleted
				l.data(&c)
				marks = append(marks, fmt.Sprint(c.OutcomeUnknown, c.Cancelled))
				want := "tool_outcome_unknown"
				if c.Cancelled {
					want = "cancelled"
				}
				if text := k.item("Ada", c.Node); !strings.Contains(text, want) {
					t.Errorf("the result %s lacks %s", text, want)
				}
			}
		}
		if !slices.Equal(marks, []string{"true false", "false true"}) {
			t.Errorf("marks %v", marks)
		}
		pid, _ := os.ReadFile(filepath.Join(h.workspace, "pid"))
		if out, _ := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/stat"); len(out) > 0 {
			t.Errorf("the command's shell lives: %s", out)
		}
	})
	t.Run("PR-34 RT-54 waiting turns end there and then, others are stale", func(t *testing.T) {
		hold := k.submit("Ada", "r4", "hold", "")
		q := k.submit("Ada", "r5", "x", `"delivery":"queue"`)
		k.refused(protocol.StaleTurn, "interrupt", fmt.Sprintf(`"bot":"Ada","turn":%d`, hold.Turn-1))
		l := k.ask(nil, "interrupt", fmt.Sprintf(`"bot":"Ada","turn":%d,"reason":"why"`, q.Turn))
		if !strings.Contains(string(l.raw), `"queued":true`) {
			t.Errorf("answer %s", l.raw)
		}
		if o := k.result("Ada", q.Turn); o.Status != "interrupted" || *o.Detail != "why" {
			t.Errorf("outcome %+v", o)
		}
		k.refused(protocol.StaleTurn, "interrupt", fmt.Sprintf(`"bot":"Ada","turn":%d`, q.Turn))
		k.refused(protocol.StaleTurn, "interrupt", fmt.Sprintf(`"bot":"Ada","turn":%d,"queued":true`, hold.Turn))
		next := k.submit("Ada", "r6", "y", `"delivery":"queue"`)
		k.ask(nil, "interrupt", fmt.Sprintf(`"bot":"Ada","turn":%d,"queued":true`, next.Turn))
		if o := k.result("Ada", next.Turn); o.Status != "interrupted" {
			t.Errorf("one that is taken out of line %+v", o)
		}
		if o := k.result("Ada", hold.Turn); o.Finished {
			t.Errorf("the running turn was ended by what is for turns in line: %+v", o)
		}
		k.ask(nil, "interrupt", fmt.Sprintf(`"bot":"Ada","turn":%d`, hold.Turn))
		k.until("turn_finished", hold.Turn)
		k.refused(protocol.NoActiveTurn, "interrupt", fmt.Sprintf(`"bot":"Ada","turn":%d,"queued":true`, hold.Turn))
		k.refused(protocol.NoActiveTurn, "interrupt", fmt.Sprintf(`"bot":"Ada","turn":%d`, q.Turn))
	})
}
