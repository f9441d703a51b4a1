package screen_test

import (
	"strings"
	"testing"
)

func TestPlansAreShown(t *testing.T) {
	t.Parallel()
	h, dir := demo(t)
	s := openAt(h, dir, 160, 48)
	s.WaitFor("1 AGENTS.md")

	t.Run("a bot's plan stands above its transcript while it is not done", func(t *testing.T) {
		turnOf(s, func() { send(s, "plan: read it;write it;test it") })
		s.WaitFor(" plan 0/3  read it")
	})

	t.Run("a task's stands on its card, and in its row with the steps", func(t *testing.T) {
		turnOf(s, func() { send(s, "task: server | plan: dig;fill;rest") })
		s.WaitFor("✔ demo.server  0/3 dig")
		s.WaitFor("  ▸ plan")
		s.Keys("C-t")
		wants(t, s, "── tasks of demo.lead", "PLAN", "0/3 dig", "[>] dig", "[ ] fill", "[ ] rest")
		s.Keys("Escape")
		s.WaitGone("── tasks of demo.lead")
	})

	t.Run("the card changes with what the task does", func(t *testing.T) {
		if ran := h.In(dir).Agent("run", "--detach", "--bot", "demo.server", "--", "sh: until [ -e "+dir+"/release ]; do sleep 0.1; done"); ran.Exit != 0 {
			t.Fatal(ran.Stderr)
		}
		s.WaitFor("● demo.server  0/3 dig")
		s.WaitFor("  ▸ shell  until [ -e")
		h.Write("demo/release", "")
		s.WaitFor("✔ demo.server  0/3 dig")
	})

	t.Run("a click on it opens the task beside", func(t *testing.T) {
		for y, row := range strings.Split(s.Capture(), "\n") {
			if at := strings.Index(row, "demo.server  0/3 dig"); at >= 0 {
				s.Click(at, y)
				break
			}
		}
		s.WaitFor("» demo.lead: plan: dig;fill;rest")
	})
}
