package screen_test

import (
	"strings"
	"testing"
)

// A daemon that died too often is started by the person alone, and the screen says how
// (sonny.md 30).
func TestADaemonThatDiesAgainAndAgain(t *testing.T) {
	t.Parallel()
	h, dir := demo(t)
	s := open(h, dir)
	s.WaitFor("1 AGENTS.md")
	turnOf(s, func() { send(s, "say: one") })
	for range 3 {
		pid := h.DaemonPID()
		h.KillDaemon()
		h.Until("another daemon", func() bool { now := h.DaemonPID(); return now != 0 && now != pid })
		s.Until("the connection", func(screen string) bool {
			return !strings.Contains(screen, "disconnected") && strings.Contains(screen, "✔ done  demo.lead")
		})
	}
	h.KillDaemon()
	s.WaitFor("daemon died again and again · Enter starts it")
	send(s, "say: two")
	s.WaitGone("Enter starts it")
	s.WaitFor("› say: two")
	turnOf(s, func() { s.Keys("Enter") })
}
