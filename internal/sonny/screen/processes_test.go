package screen_test

import (
	"strings"
	"testing"
)

// A background command has a card, as a task has (sonny.md 8.2).
func TestABackgroundProcessHasACard(t *testing.T) {
	t.Parallel()
	h, dir := demo(t)
	s := openAt(h, dir, 100, 30)
	s.WaitFor("1 AGENTS.md")

	t.Run("while it runs, in place of the handle", func(t *testing.T) {
		send(s, "bg: until [ -e release ]; do sleep 0.1; done; echo one; echo built it all")
		wants(t, s, "▸ shell  until [ -e release ]", "background", "● proc 1  running", "◐ waiting on  proc 1")
		if screen := s.Capture(); strings.Contains(screen, "proc:1") {
			t.Errorf("the handle is repeated:\n%s", screen)
		}
	})

	t.Run("and when it has ended, with its last line", func(t *testing.T) {
		h.Write("demo/release", "")
		wants(t, s, "✔ proc 1  exit 0", "\n    built it all")
		s.WaitFor("✔ done")
	})

	t.Run("one that fails", func(t *testing.T) {
		turnOf(s, func() { send(s, "bg: echo no such thing >&2; exit 3") })
		wants(t, s, "✘ proc 2  exit 3", "\n    no such thing")
	})

	t.Run("it is there when the session is opened again", func(t *testing.T) {
		s.Keys("C-d")
		s.Exit()
		s = openAt(h, dir, 100, 30)
		wants(t, s, "✔ proc 1  exit 0", "✘ proc 2  exit 3")
	})
}
