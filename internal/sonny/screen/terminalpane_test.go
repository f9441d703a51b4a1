package screen_test

import (
	"strings"
	"testing"
)

func TestTerminalPanes(t *testing.T) {
	t.Parallel()
	t.Run("/pane runs a command of the person's beside Sonny, with the keyboard", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t)
		m := h.In(dir).Tmux(120, 30, "sonny", "--no-motion", "--theme", "none")
		m.WaitFor("1 AGENTS.md")
		send(m, "/pane pwd; echo pane-$((40+2))")
		h.Until("what it prints", func() bool {
			return strings.Count(m.Run("list-panes", "-F", "#{pane_id}"), "%") == 2 &&
				strings.Contains(m.Run("capture-pane", "-p", "-t", "%1"), dir+"\npane-42")
		})
		if now := m.Format("#{pane_id}"); now != "%1" {
			t.Errorf("the focus is at %s", now)
		}
	})
	t.Run("outside tmux it says so, and keeps the text", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t)
		s := open(h, dir)
		s.WaitFor("1 AGENTS.md")
		send(s, "/pane true")
		s.WaitFor("no_pane_host")
	})
}
