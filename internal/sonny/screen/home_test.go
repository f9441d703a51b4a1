package screen_test

import (
	"strings"
	"testing"
)

func TestHomeOnScreen(t *testing.T) {
	t.Parallel()
	t.Run("SO-130 the home bot passes work on in its own name, and writes nothing of the home folder by itself", func(t *testing.T) {
		h, dir := demo(t)
		s := open(h, dir)
		s.WaitFor("1 AGENTS.md")
		send(s, "say: first")
		s.WaitFor("✔ done")
		s.Keys("C-d")
		s.Exit()

		s = h.In(dir).Screen(size, "sonny", "home", "--no-motion", "--theme", "none")
		wants(t, s, "makes one: home", "auto · read-only · net on")
		send(s, `sh: "$AGENT_BIN" run --detach --bot demo.lead -- "say: x"`)
		h.Until("the lead's second turn", func() bool {
			return strings.Contains(h.Agent("turns", "--bot", "demo.lead").Stdout, `"from":{"bot":"home"`)
		})
		if n := strings.Count(h.Agent("turns", "--bot", "demo.lead").Stdout, `"request_id":`); n != 2 {
			t.Errorf("%d turns", n)
		}
		s.WaitFor("✔ done")
		send(s, "write: note.txt | x")
		s.WaitFor("allowed by judge")
	})
}
