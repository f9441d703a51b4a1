package screen_test

import (
	"os"
	"strings"
	"testing"

	"agent/internal/sonny/sonnytest"
)

// settings are a fresh home's with some of one's own.
func settings(more string) sonnytest.Option {
	return sonnytest.Config("model = \"scripted/sonny\"\njudge_model = \"scripted/judge-allow\"\ntrust_folders = \"always\"\n" + more)
}

func TestNotifications(t *testing.T) {
	t.Parallel()

	t.Run("SO-96 the end of a turn is told of where nobody looks, once, and not where somebody does", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t, settings("[notifications]\nroute = \"osc9\"\nmin_turn = \"1s\"\n"))
		s := open(h, dir)
		s.WaitFor("1 AGENTS.md")
		s.Focus(true)
		send(s, "slow: 3")
		s.WaitFor("✔ done")
		if raw := string(s.Raw()); strings.Contains(raw, "\x1b]9;sonny") {
			t.Error("it notified although somebody looked")
		}
		from := len(s.Raw())
		send(s, "slow: 3")
		s.WaitFor("working")
		s.Focus(false)
		s.WaitRaw(from, "\x1b]9;sonny: demo.lead: demo.lead is done")
		if n := strings.Count(string(s.Raw()[from:]), "\x1b]9;sonny"); n != 1 {
			t.Errorf("%d notifications", n)
		}
	})

	t.Run("SO-124 a terminal that tells no focus counts as left when no key came for ten seconds", func(t *testing.T) {
		t.Parallel()
		out := t.TempDir() + "/told"
		h, dir := demo(t, settings("[notifications]\nroute = \"command\"\ncommand = [\"sh\", \"-c\", 'echo \"$1\" >> "+out+"']\nmin_turn = \"1s\"\n"))
		m := h.In(dir).Tmux(80, 24, "sonny", "--no-motion", "--theme", "none")
		m.WaitFor("1 AGENTS.md")
		send(m, "slow: 20")
		m.WaitFor("✔ done")
		h.Until("the notification", func() bool { _, err := os.Stat(out); return err == nil })
		text, err := os.ReadFile(out)
		if err != nil || strings.Count(string(text), "\n") != 1 {
			t.Errorf("told: %q, %v", text, err)
		}
	})
}
