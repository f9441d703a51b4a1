package screen_test

import (
	"os"
	"strings"
	"testing"
)

func TestDoctorOnScreen(t *testing.T) {
	t.Parallel()
	h, dir := demo(t)
	h.Write(".agent/rules/own.rules", "prefix_rule(pattern=[\"make\"])\nprefix_rule(\n")
	s := openAt(h, dir, 160, 48)
	s.WaitFor("1 AGENTS.md")
	send(s, "/doctor")
	s.WaitFor("── doctor")
	s.WaitFor("home.mode")
	wants(t, s, "sandbox.run", "terminal", "fail ─", "r check again")
	s.Type("/own.rules")
	atHand(s, "own.rules:3")
	wants(t, s, "→ ") // and what to do about it
	s.Keys("Escape")
	s.WaitFor("r check again")
	h.Write(".agent/rules/own.rules", "prefix_rule(pattern=[\"make\"])\n")
	s.Type("r")
	s.WaitGone("fail  rules")
	s.Keys("Escape")
	s.WaitGone("/ own.rules")
	s.WaitFor("home.mode")
	s.Keys("Escape")
	s.WaitGone("── doctor")
}

func TestAnotherWayToDraw(t *testing.T) {
	t.Parallel()
	h, dir := demo(t)
	s := openAt(h, dir, 100, 30)
	s.WaitFor("1 AGENTS.md")
	send(s, "say: before the change")
	s.WaitFor("✔ done")

	t.Run("the list says which it is", func(t *testing.T) {
		send(s, "/screen")
		wants(t, s, "── screen", "scrollback")
		atHand(s, "now")
		s.Keys("Escape")
		s.WaitGone("── screen")
	})

	t.Run("inline goes on with the session, in the terminal's own scrollback", func(t *testing.T) {
		send(s, "/screen inline")
		h.Until("the normal screen", func() bool { return !s.Alternate() })
		s.WaitFor("before the change")
		send(s, "say: said inline")
		s.Until("the reply", func(screen string) bool {
			return strings.Count(screen, "said inline") >= 2 && strings.Contains(screen, "✔ done")
		})
		if list := bots(t, h); len(list) != 1 {
			t.Errorf("bots: %s", names(list))
		}
	})

	t.Run("and full comes back with all of it", func(t *testing.T) {
		send(s, "/screen full")
		h.Until("the alternate screen", s.Alternate)
		wants(t, s, "say: before the change", "say: said inline")
		s.Keys("C-d")
		if status := s.Exit(); status != 0 {
			t.Errorf("status %d", status)
		}
	})

	t.Run("plain says what it was chosen by", func(t *testing.T) {
		s = openAt(h, dir, 100, 30)
		s.WaitFor("say: said inline")
		send(s, "/screen plain")
		wants(t, s, "plain mode, because /screen plain", " (demo.lead), ")
		send(s, "/doctor")
		wants(t, s, "40 skip, programs, ", "check again")
	})

	t.Run("a mode that is none changes nothing", func(t *testing.T) {
		s = openAt(h, dir, 100, 30)
		s.WaitFor("say: said inline")
		send(s, "/screen wide")
		s.WaitFor("wide is no way to draw")
		if !s.Alternate() {
			t.Error("it is drawn otherwise")
		}
	})
}

func TestAVerbHasTheTerminal(t *testing.T) {
	t.Parallel()
	h, dir := demo(t)
	s := openAt(h, dir, 100, 30)
	s.WaitFor("1 AGENTS.md")
	at := h.Path(".agent", "chatgpt.json")
	if err := os.WriteFile(at, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	send(s, "/logout")
	s.WaitFor("sonny logout chatgpt is done")
	if _, err := os.Lstat(at); err == nil {
		t.Error("the sign-in is there")
	}
	if screen := s.Capture(); !strings.Contains(screen, "1 AGENTS.md") || !s.Alternate() {
		t.Errorf("the screen is not back:\n%s", screen)
	}
}
