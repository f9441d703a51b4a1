package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agent/internal/fakemodel"
	"agent/protocol"
)

// prompts asks who wrote what; more are further members.
func (k *conn) prompts(bot string, turn int64, more string) (p protocol.Prompts) {
	k.t.Helper()
	if more != "" {
		more = "," + more
	}
	k.ask(&p, "prompts", fmt.Sprintf(`"bot":%q,"turn":%d%s`, bot, turn, more))
	return p
}

// told is a list of prompts in short: text, sender.
func told(list []protocol.Prompt) string {
	var out []string
	for _, p := range list {
		s := p.Text
		if p.From != nil {
			s += fmt.Sprintf(" (%s/%d)", p.From.Bot, p.From.BotID)
		}
		if p.Origin != "" {
			s += " (" + p.Origin + ")"
		}
		if p.Truncated {
			s += "…"
		}
		out = append(out, s)
	}
	return strings.Join(out, ", ")
}

func TestPrompts(t *testing.T) {
	t.Parallel()
	h := newHost(t, waitScript)
	p := h.start()
	k := p.dial()
	k.bot("Ada", h.workspace, "shell")
	k.bot("Bob", h.workspace, "shell")
	k.ask(nil, "follow", `"bot":"*","after":0`)
	k.until("follow_live", 0)
	run := func(bot, request, prompt, more string) int64 {
		t.Helper()
		sub := k.submit(bot, request, prompt, more)
		k.until("turn_finished", sub.Turn)
		return sub.Turn
	}
	ada := run("Ada", "r1", "one", "")
	run("Ada", "r2", "two", `"origin":"lookout"`)
	long := strings.Repeat("l", 5000)
	run("Ada", "r3", long, fmt.Sprintf(`"from":{"bot":"Ada","turn":%d}`, ada))
	wait := k.submit("Ada", "r4", "wait", "")
	h.began()
	steer := k.submit("Ada", "s1", "and this", `"delivery":"steer"`)
	k.submit("Ada", "s2", "and that", `"delivery":"steer","origin":"trigger"`)
	later := k.submit("Ada", "q", "later", `"delivery":"queue","workspace":"/"`)
	t.Run("a running turn and a queued one", func(t *testing.T) {
		got := k.prompts("Ada", wait.Turn, "")
		if got.Status != "running" || told(got.Prompts) != "wait" || *got.Workspace != h.workspace {
			t.Errorf("%+v", got)
		}
		if len(got.Calls) != 1 || got.Calls[0].Name != "shell" || got.Calls[0].Done || !strings.Contains(got.Calls[0].Arguments, "touch began") {
			t.Errorf("calls %+v", got.Calls)
		}
		got = k.prompts("Ada", later.Turn, "")
		if got.Status != "queued" || told(got.Prompts) != "later" || got.Prompts[0].Node != 0 || *got.Workspace != "/" || len(got.Calls) != 0 ||
			!strings.HasPrefix(told(got.Earlier), "wait, lll") {
			t.Errorf("%+v", got)
		}
	})
	h.letGo()
	k.until("turn_finished", later.Turn)
	t.Run("a finished turn has its steers, and authorship is of the record", func(t *testing.T) {
		got := k.prompts("Ada", wait.Turn, "")
		if got.Status != "finished" || told(got.Prompts) != "wait, and this, and that (trigger)" || got.Prompts[1].Turn != steer.Turn || got.More {
			t.Errorf("%+v", got)
		}
		if want := long + " (Ada/1), two (lookout), one"; told(got.Earlier) != want || got.Earlier[0].From.Turn != ada || got.Earlier[0].Bytes != 5000 {
			t.Errorf("earlier %s", told(got.Earlier))
		}
		if item := k.item("Ada", got.Prompts[1].Node); !strings.Contains(item, "and this") {
			t.Errorf("the steer's node holds %s", item)
		}
		if !got.Calls[0].Done || got.Calls[0].Failed {
			t.Errorf("calls %+v", got.Calls)
		}
	})
	t.Run("earlier prompts hold the steers of their turns, newest first", func(t *testing.T) {
		got := k.prompts("Ada", later.Turn, "")
		if !strings.HasPrefix(told(got.Earlier), "and that (trigger), and this, wait, lll") {
			t.Errorf("earlier %s", told(got.Earlier))
		}
		got = k.prompts("Ada", steer.Turn, "")
		if got.Status != "finished" || told(got.Prompts) != "and this" || !strings.HasPrefix(told(got.Earlier), "wait, lll") {
			t.Errorf("%+v", got)
		}
	})
	t.Run("bytes bounds the earlier ones", func(t *testing.T) {
		got := k.prompts("Ada", later.Turn, `"bytes":1`)
		if len(got.Earlier) != 0 || !got.More {
			t.Errorf("%+v", got)
		}
		got = k.prompts("Ada", wait.Turn, `"bytes":1000`)
		if len(got.Earlier) != 1 || !got.More || !got.Earlier[0].Truncated || got.Earlier[0].Bytes != 5000 || len(got.Earlier[0].Text) < 500 {
			t.Errorf("%+v", got.Earlier)
		}
		for _, n := range []string{"0", "262145", "-1"} {
			k.refused(protocol.InvalidLimit, "prompts", fmt.Sprintf(`"bot":"Ada","turn":%d,"bytes":%s`, ada, n))
		}
		k.refused(protocol.TurnNotFound, "prompts", fmt.Sprintf(`"bot":"Bob","turn":%d`, ada))
		k.refused(protocol.BotNotFound, "prompts", `"bot":"Nobody","turn":1`)
	})
	t.Run("pruning takes nothing of it", func(t *testing.T) {
		k.ask(nil, "prune", `"bot":"Ada","keep_turns":0`)
		if got := k.prompts("Ada", wait.Turn, ""); told(got.Prompts) != "wait, and this, and that (trigger)" || !got.Calls[0].Done {
			t.Errorf("%+v", got)
		}
	})
	t.Run("a fork shows what it inherited, also when the records went with the source", func(t *testing.T) {
		point := k.prompts("Ada", later.Turn, "").Prompts[0].Node
		k.fork("Ada", "Fork", fmt.Sprintf(`"checkpoint":%d,"workspace":%q`, point, h.workspace))
		turn := run("Fork", "r", "mine", "")
		if got := k.prompts("Fork", turn, ""); !strings.HasPrefix(told(got.Earlier), "later, and that (trigger), and this, wait, lll") {
			t.Errorf("earlier %s", told(got.Earlier))
		}
		k.ask(nil, "delete", `"bot":"Ada"`)
		got := k.prompts("Fork", turn, "")
		if want := "later, wait, " + long + " (Ada/1), two (lookout), one"; told(got.Earlier) != want {
			t.Errorf("earlier %s", told(got.Earlier))
		}
	})
}

func TestPromptsSizes(t *testing.T) {
	t.Parallel()
	h := newHost(t, waitScript)
	k := h.start().dial()
	k.bot("Ada", h.workspace, "shell")
	k.follow("Ada", 0)
	t.Run("PR-80 a prompt and three steers of 256 KiB fit a line and say what was cut", func(t *testing.T) {
		big := "wait" + strings.Repeat("x", 256<<10-4)
		sub := k.submit("Ada", "r", big, "")
		h.began()
		for i := range 3 {
			k.submit("Ada", fmt.Sprint("s", i), strings.ReplaceAll(big, "x", string(rune('a'+i))), `"delivery":"steer"`)
		}
		h.letGo()
		k.until("turn_finished", sub.Turn)
		got := k.prompts("Ada", sub.Turn, `"bytes":262144`)
		if len(got.Prompts) != 4 {
			t.Fatalf("%d prompts", len(got.Prompts))
		}
		sum := 0
		for i, p := range got.Prompts {
			sum += len(p.Text)
			if p.Bytes != 256<<10 || p.Truncated != (len(p.Text) < 256<<10) || p.Truncated != (i < 3) {
				t.Errorf("prompt %d: %d of %d bytes, truncated %v", i, len(p.Text), p.Bytes, p.Truncated)
			}
		}
		if sum < 500<<10 || sum > 512<<10 {
			t.Errorf("%d bytes together", sum)
		}
	})
	t.Run("PR-80 the widest answer there is fits a line", func(t *testing.T) {
		quotes := strings.Repeat("\"", 256<<10)
		var turn int64
		for i := range 3 {
			sub := k.submit("Ada", fmt.Sprint("q", i), quotes, "")
			k.until("turn_finished", sub.Turn)
			turn = sub.Turn
		}
		got := k.prompts("Ada", turn, `"bytes":262144`)
		if !got.Prompts[0].Truncated || !got.Earlier[0].Truncated || !got.More || got.Earlier[0].Bytes != 256<<10 {
			t.Errorf("%d, %d", len(got.Prompts), len(got.Earlier))
		}
	})
}

func TestPromptsCalls(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, family string) {
		h := newHost(t, "")
		s := h.fake(family, fakemodel.Options{})
		k := h.start().dial()
		k.fbot("Ada", h.workspace, "shell echo read")
		if err := os.WriteFile(filepath.Join(h.workspace, "f"), []byte(`{"error":null}`), 0o600); err != nil {
			t.Fatal(err)
		}
		big := `{"text":"` + strings.Repeat("b", 3000) + `"}`
		s.Queue(fakemodel.Say("a", fakemodel.Call("shell", `{"command":"true"}`), fakemodel.Call("shell", `{"command":"exit 3"}`)),
			fakemodel.Say("b", fakemodel.Call("read", `{"path":"none"}`), fakemodel.Call("read", `{"path":"f"}`), fakemodel.Call("echo", big)), fakemodel.Say("c"))
		o := k.run("Ada", "r", "go")
		got := k.prompts("Ada", o.Turn, "")
		t.Run("the calls of a turn in order, with how they ended", func(t *testing.T) {
			if len(got.Calls) != 5 {
				t.Fatalf("calls %+v", got.Calls)
			}
			for i, want := range []struct {
				name, arguments string
				failed, cut     bool
			}{{"shell", "true", false, false}, {"shell", "exit 3", true, false}, {"read", "none", true, false}, {"read", `"f"`, false, false}, {"echo", "bbb", false, true}} {
				c := got.Calls[i]
				if c.Name != want.name || !strings.Contains(c.Arguments, want.arguments) || !c.Done || c.Failed != want.failed || c.ArgumentsTruncated != want.cut {
					t.Errorf("call %d: %+v", i, c)
				}
				if !strings.Contains(k.item("Ada", c.Node), c.CallID) {
					t.Errorf("call %d is not in node %d", i, c.Node)
				}
			}
			if last := got.Calls[4]; last.ArgumentsBytes != int64(len(big)) || len(last.Arguments) > 2048 {
				t.Errorf("arguments of %d bytes, %d shown", last.ArgumentsBytes, len(last.Arguments))
			}
		})
		s.Verify(t)
	})
}
