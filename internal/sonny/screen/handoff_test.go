package screen_test

import (
	"strings"
	"testing"
	"time"

	"agent/internal/sonny/lead"
	"agent/internal/sonny/sonnytest"
	"agent/protocol"
)

// answering is the script with a reply of its own to what holds some words.
func answering(words, reply string) sonnytest.Option {
	entry := `"scripts": [{"match": {"regex": "` + words + `"}, "repeat_last": true, "steps": [{"text": "` + reply + `"}]},`
	return sonnytest.OwnScript(strings.Replace(sonnytest.Script, `"scripts": [`, entry, 1))
}

// events are the kinds of what happened to a bot.
func events(t *testing.T, h *sonnytest.Home, bot, kind string) (n int) {
	t.Helper()
	page, err := h.Client().Events(t.Context(), bot, 0, 256)
	if err != nil {
		t.Fatal(err)
	}
	for _, raw := range page.Events {
		if strings.Contains(string(raw), `"event":"`+kind+`"`) {
			n++
		}
	}
	return n
}

func TestCompact(t *testing.T) {
	t.Parallel()
	h, dir := demo(t, answering("Summarize the conversation", "All that was said."))
	s := resting(t, h, dir)
	for range 3 { // a quarter of the model's window, and little of the daemon's envelope in bytes
		turnOf(s, func() { h.Agent("run", "--bot", "demo.lead", "--", "say: "+strings.Repeat("manywords", 2000)) })
	}
	c := h.Client()
	settings := func() protocol.Settings {
		t.Helper()
		bot, err := c.Inspect(t.Context(), "demo.lead")
		if err != nil {
			t.Fatal(err)
		}
		return bot.Settings
	}
	lowered := func() bool {
		now := settings()
		_, at := now.CompactAt.Get()
		_, items := now.ContextItems.Get()
		return at || items
	}
	if _, err := c.Configure(t.Context(), &protocol.Configure{Bot: "demo.lead", Settings: protocol.Set(protocol.Settings{CompactKeep: protocol.Set(int64(30))})}); err != nil {
		t.Fatal(err)
	}
	asItWas := func() bool { keep, set := settings().CompactKeep.Get(); return !lowered() && set && keep == 30 }

	t.Run("the next call summarizes what came before, and the settings are as they were", func(t *testing.T) {
		turnOf(s, func() { send(s, "/compact say: and on") })
		h.Until("the settings as they were", asItWas)
		if n := events(t, h, "demo.lead", "compacted"); n != 1 {
			t.Errorf("summarized %d times", n)
		}
		if history := h.Agent("history", "--bot", "demo.lead").Stdout; !strings.Contains(history, "manywords") || !strings.Contains(history, "say: and on") {
			t.Error("the history lacks something")
		}
		turnOf(s, func() { send(s, "say: later") })
		if n := events(t, h, "demo.lead", "compacted"); n != 1 {
			t.Errorf("a later turn is summarized: %d", n)
		}
	})
	t.Run("they do not stay when Sonny ends while the turn runs", func(t *testing.T) {
		send(s, "/compact sh: until [ -e release ]; do sleep 0.1; done")
		s.WaitFor("● working")
		if !lowered() {
			t.Error("nothing is lowered")
		}
		s.Kill()
		h.Write("demo/release", "")
		h.Until("the settings as they were", asItWas)
	})
	t.Run("nor when it ended before there was a turn: the next opening gives them back", func(t *testing.T) {
		bot, err := c.Inspect(t.Context(), "demo.lead")
		if err != nil {
			t.Fatal(err)
		}
		ready, err := c.Ready(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		keep := int64(30)
		err = lead.BookIn(h.Path(".agent", "sonny")).Lowers(lead.Session{Store: ready.Store.Identity, BotID: bot.ID, Bot: bot.Name, Opened: time.Now()},
			lead.Compact{Request: "sonny_never", After: 1 << 40, Keep: &keep})
		if err != nil {
			t.Fatal(err)
		}
		low := protocol.Settings{CompactAt: protocol.Set(int64(10)), CompactKeep: protocol.Set(int64(1))}
		if _, err := c.Configure(t.Context(), &protocol.Configure{Bot: "demo.lead", Settings: protocol.Set(low)}); err != nil {
			t.Fatal(err)
		}
		s := open(h, dir)
		s.WaitFor("demo.lead")
		h.Until("the settings as they were", asItWas)
		h.Until("nothing to give back", func() bool {
			page, _, err := lead.BookIn(h.Path(".agent", "sonny")).Read()
			return err == nil && page.Of(ready.Store.Identity, bot.ID).Compact == nil
		})
	})
}

func TestHandoff(t *testing.T) {
	t.Parallel()
	h, dir := demo(t, answering("Write a brief for a fresh agent", "The brief of it."))
	s := resting(t, h, dir)

	t.Run("the brief is shown for editing, and nothing else of the conversation goes along", func(t *testing.T) {
		send(s, "/handoff win the race")
		s.WaitFor("The brief of it.")
		s.WaitFor("demo.lead-2")
		s.WaitFor("Goal: win the race")
		if list := own(t, h); len(list) != 1 {
			t.Errorf("a lead is made before the person says so: %d", len(list))
		}
		s.Type(" And hurry.")
		s.WaitFor("And hurry.")
		s.Keys("Enter")
		s.WaitFor("✔ done")
		list := turns(t, h, "demo.lead-2")
		if len(list) != 1 || list[0].Prompt != "Goal: win the race\n\nThe brief of it. And hurry." {
			t.Errorf("%+v", list)
		}
		if history := h.Agent("history", "--bot", "demo.lead-2").Stdout; strings.Contains(history, "ready") {
			t.Errorf("of the old conversation: %s", history)
		}
	})
	t.Run("/tree lists the forks below what they are of, and Enter opens one", func(t *testing.T) {
		s.Type("/open demo.lead")
		s.Keys("Enter")
		s.WaitFor("say: ready")
		send(s, "/fork side road")
		s.WaitFor("demo.lead-3")
		turnOf(s, func() { send(s, "say: forked words") })
		send(s, "/tree")
		s.Until("the tree", func(screen string) bool {
			return strings.Contains(screen, "── tree of") && strings.Contains(screen, "└ ") && strings.Contains(screen, "after The brief") && strings.Contains(screen, "say: forked words")
		})
		s.Keys("Up", "Enter")
		s.WaitGone("── tree of")
		s.Until("the original", func(screen string) bool {
			return strings.Contains(screen, "say: ready") && !strings.Contains(screen, "forked words") && !strings.Contains(screen, "demo.lead-3")
		})
	})
}
