package screen_test

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"agent/internal/sonny/sonnytest"
	"agent/protocol"
)

// running reports whether a process is there.
func running(pid int) bool {
	p, err := os.FindProcess(pid)
	return err == nil && p.Signal(syscall.Signal(0)) == nil
}

// busy is a lead with a turn that runs a while.
func busy(t *testing.T, slow string, options ...sonnytest.Option) (*sonnytest.Home, string, *sonnytest.Screen) {
	t.Helper()
	h, dir := demo(t, options...)
	s := open(h, dir)
	s.WaitFor("1 AGENTS.md")
	send(s, slow)
	s.WaitFor("word1")
	return h, dir, s
}

// queue writes a message and puts it in line.
func queue(s screen, message string) {
	s.Type(message)
	s.Keys("Tab")
}

// ended waits for so many turns to have ended, and gives their prompts in order.
func ended(t *testing.T, h *sonnytest.Home, n int) (list []turn) {
	t.Helper()
	h.Until("the turns to end", func() bool {
		list = turns(t, h, "demo.lead")
		for _, turn := range list {
			switch turn.Status {
			case "queued", "ready", "running", "waiting", "paced":
				return false
			}
		}
		return len(list) >= n
	})
	return list
}

// completed are the prompts of those that ran to their end.
func completed(list []turn) (out []string) {
	for _, turn := range list {
		if turn.Status == "completed" {
			out = append(out, turn.Prompt)
		}
	}
	return out
}

func TestWhileATurnRuns(t *testing.T) {
	t.Parallel()

	t.Run("SO-27 F1 Enter steers into the running turn", func(t *testing.T) {
		t.Parallel()
		h, _, s := busy(t, "slow: 10")
		s.WaitFor("Enter steer  Tab queue")
		send(s, "keep flag")
		s.WaitFor("steering…  keep flag")
		wants(t, s, "slow done", "steered in  keep flag")
		list := ended(t, h, 2)
		if len(list) != 2 || list[1].Status != "steered" || list[0].Status != "completed" {
			t.Errorf("turns %+v", list)
		}
		if reply := lastReply(t, h.Agent("history", "--bot", "demo.lead").Stdout); !strings.HasSuffix(reply, "slow done") {
			t.Errorf("the reply is %q", reply)
		}
	})

	t.Run("SO-28 Tab queues a turn of its own", func(t *testing.T) {
		t.Parallel()
		h, _, s := busy(t, "slow: 3")
		queue(s, "later")
		s.WaitFor("queued 1  later")
		prompts := h.Agent("prompts", "--bot", "demo.lead", "--turn", "1").Stdout
		list := ended(t, h, 2)
		if strings.Contains(prompts, "later") {
			t.Error("the running turn holds it")
		}
		if got := completed(list); len(got) != 2 || got[1] != "later" {
			t.Errorf("turns %+v", list)
		}
		s.WaitGone("queued 1")
	})

	t.Run("F1 while_running = queue swaps the two keys", func(t *testing.T) {
		t.Parallel()
		h, _, s := busy(t, "slow: 3", sonnytest.Config("model = \"scripted/sonny\"\njudge_model = \"scripted/judge-allow\"\ntrust_folders = \"always\"\n[tui]\nwhile_running = \"queue\"\n"))
		s.WaitFor("Enter queue  Tab steer")
		send(s, "later")
		s.WaitFor("queued 1  later")
		if got := completed(ended(t, h, 2)); len(got) != 2 {
			t.Errorf("completed %q", got)
		}
	})

	t.Run("tui.enter = newline swaps Enter with Alt+Enter", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t, sonnytest.Config("model = \"scripted/sonny\"\njudge_model = \"scripted/judge-allow\"\ntrust_folders = \"always\"\n[tui]\nenter = \"newline\"\n"))
		s := open(h, dir)
		s.WaitFor("1 AGENTS.md")
		s.Type("say: one")
		s.Keys("Enter")
		s.Type("two")
		s.WaitFor("\n  two")
		if list := own(t, h); len(list) != 0 {
			t.Errorf("it was sent: %+v", list)
		}
		s.Keys("M-Enter")
		s.WaitFor("✔ done")
		if list := turns(t, h, "demo.lead"); len(list) != 1 || list[0].Prompt != "say: one\ntwo" {
			t.Errorf("turns %+v", list)
		}
	})

	t.Run("a steer into a turn that waits for an answer says so", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t, sonnytest.Config("model = \"scripted/sonny\"\nrow = \"manual\"\ntrust_folders = \"always\"\n"))
		s := open(h, dir)
		s.WaitFor("1 AGENTS.md")
		send(s, "esc: true")
		s.WaitFor("asks to leave the sandbox")
		send(s, "wait a moment")
		s.WaitFor("steering… after the answer  wait a moment")
	})

	t.Run("a steer whose turn is interrupted is in the composer again, and nothing failed", func(t *testing.T) {
		t.Parallel()
		_, _, s := busy(t, "slow: 20")
		send(s, "keep flag")
		s.WaitFor("steering…  keep flag")
		s.Keys("Escape")
		s.Until("the message in the composer", func(screen string) bool {
			return composed(screen) == "keep flag" && strings.Contains(screen, "turn ended; Enter sends")
		})
		if screen := s.Capture(); strings.Contains(screen, "failed") {
			t.Errorf("a steer that came too late is shown as a failure:\n%s", screen)
		}
	})

	t.Run("SO-33 a steer that comes too late is in the composer or ran, and the screen says which", func(t *testing.T) {
		t.Parallel()
		h, _, s := busy(t, "slow: 3")
		s.Type("say: at the end")
		s.WaitFor("word30")
		s.Keys("Enter")
		s.Until("one of the two", func(screen string) bool {
			waits := composed(screen) == "say: at the end"
			return waits && strings.Contains(screen, "turn ended; Enter sends") ||
				!waits && (strings.Contains(screen, "steered in  say: at the end") || strings.Count(headless(screen), "at the end") >= 2) && strings.Contains(screen, "✔ done")
		})
		inComposer := composed(s.Capture()) == "say: at the end"
		list := ended(t, h, 1)
		ran := slices.ContainsFunc(list, func(t turn) bool { return t.Prompt == "say: at the end" && t.Status != protocol.StatusFailed })
		if inComposer == ran {
			t.Errorf("in the composer %v, and turns %+v", inComposer, list)
		}
	})
}

func TestTheQueue(t *testing.T) {
	t.Parallel()

	t.Run("SO-29 F2 one in the middle is edited and keeps its place", func(t *testing.T) {
		t.Parallel()
		h, _, s := busy(t, "slow: 10")
		for _, m := range []string{"first", "second", "third"} {
			queue(s, m)
			s.WaitFor("  " + m)
		}
		s.WaitFor("queued 3  third")
		s.Type("a draft of mine")
		s.Keys("M-2")
		s.WaitFor("editing 2  second")
		s.WaitFor("withheld  third")
		holds(s, "second")
		s.Keys("C-u")
		send(s, "changed")
		wants(t, s, "queued 1  first", "queued 2  changed", "queued 3  third")
		holds(s, "a draft of mine")
		got := completed(ended(t, h, 4))
		if strings.Join(got, ",") != "slow: 10,first,changed,third" {
			t.Errorf("ran %q", got)
		}
	})

	t.Run("SO-30 F3 two are joined into one turn", func(t *testing.T) {
		t.Parallel()
		h, _, s := busy(t, "slow: 10")
		queue(s, "one of them")
		queue(s, "and the other")
		s.WaitFor("queued 2  and the other")
		s.Keys("C-x", "q")
		s.WaitFor("in line")
		s.Keys("Down")
		s.Type("g")
		s.WaitGone("queued 2")
		s.Keys("Escape")
		got := completed(ended(t, h, 2))
		if len(got) != 2 || got[1] != "one of them\nand the other" {
			t.Errorf("ran %q", got)
		}
	})

	t.Run("F2 they are moved and dropped", func(t *testing.T) {
		t.Parallel()
		h, _, s := busy(t, "slow: 10")
		for _, m := range []string{"aa", "bb", "cc"} {
			queue(s, m)
			s.WaitFor("  " + m)
		}
		s.WaitFor("queued 3  cc")
		s.Keys("C-x", "q")
		s.WaitFor("in line")
		s.Keys("End")
		s.Type("K")
		s.Until("cc before bb", func(screen string) bool {
			at := strings.Index(screen, "queued 2  cc")
			return at >= 0 && strings.Contains(screen[at:], "queued 3  bb")
		})
		s.Keys("Home")
		s.Type("d")
		s.WaitGone("  aa")
		s.Keys("Escape")
		got := completed(ended(t, h, 3))
		if strings.Join(got, ",") != "slow: 10,cc,bb" {
			t.Errorf("ran %q", got)
		}
	})

	t.Run("F2 Esc puts back what is edited, and Enter in the panel steers", func(t *testing.T) {
		t.Parallel()
		h, _, s := busy(t, "slow: 10")
		queue(s, "one")
		queue(s, "two")
		s.WaitFor("queued 2  two")
		s.Keys("M-Up")
		s.WaitFor("editing 2  two")
		s.Type(" changed")
		s.Keys("Escape")
		s.WaitFor("queued 2  two")
		holds(s, "")
		s.Keys("C-x", "q")
		s.WaitFor("in line")
		s.Keys("Enter")
		s.WaitGone("queued 2")
		s.Keys("Escape")
		s.WaitFor("steered in  one")
		list := ended(t, h, 3)
		if got := completed(list); strings.Join(got, ",") != "slow: 10,two" {
			t.Errorf("ran %q of %+v", got, list)
		}
	})

	t.Run("SO-31 it runs while nobody looks", func(t *testing.T) {
		t.Parallel()
		h, dir, s := busy(t, "slow: 3")
		queue(s, "say: one")
		queue(s, "say: two")
		s.WaitFor("queued 2  say: two")
		s.Keys("C-d")
		s.Exit()
		got := completed(ended(t, h, 3))
		if strings.Join(got, ",") != "slow: 3,say: one,say: two" {
			t.Errorf("ran %q", got)
		}
		s = open(h, dir)
		s.WaitFor("say: two")
		if strings.Contains(s.Capture(), "queued") {
			t.Error("the strip is not empty")
		}
	})

	t.Run("what is in line is shown when Sonny is opened again", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t)
		s := open(h, dir)
		s.WaitFor("1 AGENTS.md")
		send(s, "sh: until [ -e release ]; do sleep 0.1; done")
		s.WaitFor("▸ shell  until")
		queue(s, "say: one")
		s.WaitFor("queued 1  say: one")
		s.Keys("C-d")
		s.Exit()
		s = open(h, dir)
		s.WaitFor("queued 1  say: one")
	})

	t.Run("SO-32 an interrupt holds it until the person says so", func(t *testing.T) {
		t.Parallel()
		h, _, s := busy(t, "slow: 20")
		queue(s, "say: after all")
		s.WaitFor("queued 1  say: after all")
		s.Keys("Escape")
		wants(t, s, "held  say: after all", "interrupted")
		began := time.Now()
		h.Until("five seconds in which nothing ran", func() bool {
			if list := turns(t, h, "demo.lead"); len(completed(list)) != 0 {
				t.Fatalf("something ran: %+v", list)
			}
			return time.Since(began) > 5*time.Second
		})
		s.Keys("Enter")
		s.Until("its answer", func(screen string) bool { return strings.Count(headless(screen), "after all") >= 2 })
		s.WaitGone("held")
		if got := completed(ended(t, h, 3)); len(got) != 1 || got[0] != "say: after all" {
			t.Errorf("ran %q", got)
		}
	})
}
