package screen_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"agent/internal/sonny/sonnytest"
)

// atHand waits until the row at hand of a list holds a text.
func atHand(s screen, text string) {
	s.Until("the row at hand to hold "+text, func(screen string) bool {
		for line := range strings.SplitSeq(screen, "\n") {
			if strings.HasPrefix(line, "▎") && strings.Contains(line, text) {
				return true
			}
		}
		return false
	})
}

func TestRulesPanel(t *testing.T) {
	t.Parallel()
	h, dir := demo(t, settings("row = \"manual\"\n"))
	h.Write(".agent/rules/own.rules", "prefix_rule(pattern=[\"make\", [\"lint\", \"test\"]], decision=\"prompt\", justification=\"it takes long\")\n")
	for _, words := range []string{"git push origin", "npm publish"} {
		if ran := h.Sonny(append([]string{"rules", "add", "allow"}, strings.Fields(words)...)...); ran.Exit != 0 {
			t.Fatal(ran.Stderr)
		}
	}
	s := openAt(h, dir, 80, 24)
	s.WaitFor("1 AGENTS.md")
	send(s, "say: hello")
	s.WaitFor("✔ done")
	lead := bots(t, h)[0]
	everywhere := func() string { text, _ := os.ReadFile(h.Path(".agent", "rules", "sonny.rules")); return string(text) }
	session := func() string {
		text, _ := os.ReadFile(h.Path(".agent", "sonny", "rules", fmt.Sprint(lead.ID)+".rules"))
		return string(text)
	}

	t.Run("it lists the rules with where they stand", func(t *testing.T) {
		send(s, "/rules")
		wants(t, s, "own.rules:1", "make lint|test", "sonny.rules:1", "git push origin", "it takes long")
		sonnytest.Golden(t, "rules-80x24", headless(s.Capture()))
	})

	t.Run("a rule of the person's own files is theirs to edit", func(t *testing.T) {
		s.Type("d")
		s.WaitFor("own.rules in ~/.agent/rules is yours to edit")
	})

	t.Run("Tab makes a rule this session's, and its lead has it at once", func(t *testing.T) {
		s.Keys("Down")
		atHand(s, "git push origin")
		s.Keys("Tab")
		s.WaitFor("session.rules:1")
		if now := bots(t, h)[0].Rules; now == nil || now.Digest == lead.Rules.Digest {
			t.Errorf("the lead goes by %+v, as before", now)
		}
		if strings.Contains(everywhere(), `"push"`) || !strings.Contains(session(), `"git", "push", "origin"`) {
			t.Errorf("everywhere:\n%s\nin the session:\n%s", everywhere(), session())
		}
		s.Keys("End")
		atHand(s, "session.rules:1")
		s.WaitFor("holds in this session")
	})

	t.Run("d takes a rule out once that is confirmed", func(t *testing.T) {
		s.Type("d")
		s.WaitFor("Take out allow git push origin, which holds in this session?")
		s.Keys("Escape")
		s.WaitGone("Take out")
		if session() == "" {
			t.Error("it went without a word")
		}
		s.Type("d")
		s.WaitFor("Take out")
		s.Type("y")
		s.WaitGone("session.rules:1")
		if strings.Contains(session(), "push") {
			t.Errorf("it is there:\n%s", session())
		}
		s.Keys("Escape")
		s.WaitGone("── command rules")
	})
}

func TestMemoryIsEdited(t *testing.T) {
	t.Parallel()
	h, dir := demo(t)
	if ran := h.In(dir).Sonny("memory", "save", "port", "project", "the port it listens on", "the person", "It is 80.", "project demo"); ran.Exit != 0 {
		t.Fatal(ran.Stderr)
	}
	script := h.Write("edit.sh", "#!/bin/sh\nsed -e \"$(cat \"$HOME/change\")\" \"$1\" > \"$HOME/new\" && cat \"$HOME/new\" > \"$1\"\n")
	if err := os.Chmod(script, 0o700); err != nil {
		t.Fatal(err)
	}
	fact := func() string {
		text, _ := os.ReadFile(h.Path(".agents", "memory", "projects", "demo", "port.md"))
		return string(text)
	}
	s := h.With("EDITOR="+script, sonnytest.FrozenClock).In(dir).Screen(size, "sonny", "--no-motion", "--theme", "none")
	s.WaitFor("1 AGENTS.md")
	send(s, "/memory")
	wants(t, s, "the port it listens on", "e edit", "It is 80.")

	t.Run("what the editor saves is the fact", func(t *testing.T) {
		h.Write("change", "s/It is 80/It is 8080/")
		s.Type("e")
		s.WaitFor("It is 8080.")
		if text := fact(); !strings.Contains(text, "It is 8080.") || !strings.Contains(text, "name: port") {
			t.Errorf("the file is\n%s", text)
		}
		footer(s, "· main")
		sonnytest.Golden(t, "memory-80x24", headless(s.Capture()))
	})

	t.Run("what is no fact changes nothing, and is there to go on with", func(t *testing.T) {
		before := fact()
		h.Write("change", "s/^type: project/type: rumour/;s/8080/9090/")
		s.Type("e")
		s.WaitFor("port is as it was")
		if fact() != before {
			t.Errorf("it was changed:\n%s", fact())
		}
		h.Write("change", "s/^type: rumour/type: reference/")
		s.Type("e")
		wants(t, s, "It is 9090.", "reference")
		if !strings.Contains(fact(), "type: reference") {
			t.Errorf("the file is\n%s", fact())
		}
	})
}

func TestASessionIsForkedFromTheList(t *testing.T) {
	t.Parallel()
	h, dir := demo(t)
	s := openAt(h, dir, 100, 30)
	s.WaitFor("1 AGENTS.md")
	send(s, "say: the words to go on from")
	s.WaitFor("✔ done")
	send(s, "/rename login fix")
	s.WaitFor("login fix")
	send(s, "/sessions")
	wants(t, s, "sessions of this folder", "f fork")
	atHand(s, "login fix")
	s.Type("f")
	s.WaitFor("is a fork of demo.lead")
	s.WaitFor("sessions of this folder") // it is still open
	list := bots(t, h)
	if len(list) != 2 || list[1].Workspace == nil || *list[1].Workspace != dir {
		t.Fatalf("bots: %s", names(list))
	}
	atHand(s, list[1].Name)
	s.Keys("Enter")
	s.WaitGone("sessions of this folder")
	wants(t, s, "the words to go on from", "○ idle  "+list[1].Name)
	if len(bots(t, h)) != 2 {
		t.Error("opening it made another bot")
	}
}
