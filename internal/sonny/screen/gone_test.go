package screen_test

import (
	"context"
	"strings"
	"testing"

	"agent/internal/sonny/sonnytest"
	"agent/protocol"
)

// bereft opens a lead that has had a turn, and deletes it elsewhere.
func bereft(t *testing.T) (*sonnytest.Home, string, *sonnytest.Screen) {
	t.Helper()
	h, dir := demo(t)
	s := idle(h, dir)
	if ran := h.In(dir).Sonny("sessions", "rm", "demo.lead", "--yes"); ran.Exit != 0 {
		t.Fatal(ran.Stderr)
	}
	footer(s, "✘ gone  demo.lead  Enter: forget it, or a new lead")
	return h, dir, s
}

func TestABotThatWasDeletedElsewhere(t *testing.T) {
	t.Parallel()

	t.Run("its session is gone, in the header too, and stays to be read", func(t *testing.T) {
		t.Parallel()
		_, _, s := bereft(t)
		screen := s.Capture()
		head, _, _ := strings.Cut(screen, "\n")
		if !strings.Contains(head, "demo.lead  ✘ gone") || strings.Contains(screen, "net off") || !strings.Contains(screen, "say: hi") {
			t.Errorf("it shows\n%s", screen)
		}
	})

	t.Run("no key and no command ends Sonny, and those of the bot say that it is gone", func(t *testing.T) {
		t.Parallel()
		_, _, s := bereft(t)
		for _, line := range []string{
			"/approval look", "/approval full", "/look", "/sandbox read-only", "/network off", "/writable /var", "/model scripted/other", "/effort low",
			"/task name brief", "/compact", "/handoff goal", "/fork", "/side question", "/rewind", "/undo", "/redo", "/context", "/export", "/init",
			"/queue words", "/delete", "&brief",
		} {
			send(s, line)
			s.WaitFor("session_gone")
			holds(s, line)
			s.Keys("C-u")
			holds(s, "")
		}
		for _, line := range []string{"/status", "/usage", "/rules", "/tasks", "/tree", "/plan", "/approvals", "/diff", "/sessions"} {
			send(s, line)
			s.WaitGone("Ctrl+D detach")
			s.Keys("Escape")
			s.WaitFor("Ctrl+D detach")
			s.Keys("C-u") // what could not be read of the bot gives the line back
			holds(s, "")
		}
		for _, line := range []string{"/stop", "/stop all", "/archive", "/rename other", "/copy"} {
			send(s, line)
			s.WaitGone(line)
		}
		s.Keys("BTab", "C-o", "M-Up", "M-1", "Tab", "Enter")
		s.WaitFor("forget it, and begin a new lead")
	})

	t.Run("a message is refused and kept, and goes to the new lead", func(t *testing.T) {
		t.Parallel()
		h, _, s := bereft(t)
		send(s, words)
		wants(t, s, "demo.lead is gone: its bot was deleted", "forget it, and begin a new lead")
		s.Keys("Escape")
		holds(s, words)
		s.Keys("Enter")
		s.WaitFor("forget it, and begin a new lead")
		s.Keys("Enter")
		s.WaitFor("No agent works in")
		holds(s, words)
		s.Keys("Enter")
		s.WaitFor("✔ done")
		if n := inLine(t, h, words); n != 1 {
			t.Errorf("it was sent %d times", n)
		}
		send(s, "/sessions")
		s.WaitFor("sessions of this folder")
		if strings.Contains(s.Capture(), "gone") {
			t.Errorf("it was not forgotten:\n%s", s.Capture())
		}
	})

	t.Run("SO-7 what has its name then is another, which nothing of the screen is about", func(t *testing.T) {
		t.Parallel()
		h, dir, s := bereft(t)
		if _, err := h.Client().Create(context.Background(), &protocol.Create{
			Bot: "demo.lead", Model: "scripted/sonny", Instructions: "x", Tools: []string{}, Workspace: dir,
		}); err != nil {
			t.Fatal(err)
		}
		if ran := h.Agent("run", "--bot", "demo.lead", "say: of the namesake"); ran.Exit != 0 {
			t.Fatal(ran.Stderr)
		}
		s.Keys("BTab")
		s.WaitFor("session_gone")
		send(s, words)
		s.WaitFor("forget it, and begin a new lead")
		s.Keys("Escape")
		footer(s, "✘ gone  demo.lead")
		if strings.Contains(s.Capture(), "of the namesake") {
			t.Errorf("it shows the namesake's turn:\n%s", s.Capture())
		}
		if n := inLine(t, h, words); n != 0 {
			t.Error("the namesake got the message")
		}
	})

	t.Run("one that was deleted while the connection was away is gone when it is back", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t)
		s := idle(h, dir)
		daemon := daemonStops(t, h)
		if err := daemon.Kill(); err != nil {
			t.Fatal(err)
		}
		h.Until("deleted", func() bool { return h.In(dir).Sonny("sessions", "rm", "demo.lead", "--yes").Exit == 0 })
		footer(s, "✘ gone  demo.lead")
	})
}
