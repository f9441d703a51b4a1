package screen_test

import (
	"strings"
	"testing"
)

// On a small screen a call can be refused unread, and v gives it all rows but one
// (sonny.md 9.1).
func TestAPanelOnASmallScreen(t *testing.T) {
	t.Parallel()
	h, dir := demo(t, manual())
	s := openAt(h, dir, 40, 12)
	s.WaitFor("demo.lead")
	send(s, "esc: touch "+h.Path("outside")+"; echo one; echo two; echo three; echo four; echo five; echo six; echo seven")
	s.WaitFor("allow once")
	s.WaitFor(" PgDn")
	s.Keys("M-a")
	s.Until("what v shows", func(screen string) bool {
		if !strings.Contains(screen, "echo two") {
			s.Keys("v")
			return false
		}
		return strings.Contains(screen, "1  allow") && strings.Contains(screen, "lines · PgUp PgDn")
	})
	s.Keys("1")
	s.WaitFor("read it first: PgDn")
	if exists(h.Path("outside")) {
		t.Fatal("it ran unread")
	}
	s.Keys("3")
	s.WaitGone("1  allow")
	s.WaitFor("denied")
	if exists(h.Path("outside")) {
		t.Error("it ran")
	}
}
