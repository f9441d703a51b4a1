package screen_test

import (
	"os"
	"strings"
	"testing"

	"agent/internal/sonny/sonnytest"
)

func TestTwoSonnysOnOneBot(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*sonnytest.Screen){
		"their terminals are gone": func(s *sonnytest.Screen) { s.Hangup(); s.Exit() },
		"they are killed":          (*sonnytest.Screen).Kill,
	} {
		t.Run("no draft is lost and none is there twice when "+name, func(t *testing.T) {
			t.Parallel()
			h, dir := demo(t)
			one := idle(h, dir)
			other := open(h, dir)
			other.WaitFor("say: hi")
			one.Type("say: ONE")
			draftSaved(h, "say: ONE")
			other.Type("say: TWO")
			draftSaved(h, "say: TWO")
			end(one)
			end(other)

			one = open(h, dir)
			wants(t, one, "› say: ONE", "  say: TWO")
			other = open(h, dir)
			other.WaitFor("say: hi")
			turnOf(one, func() { one.Keys("Enter") })
			h.Until("no draft of it", func() bool { return drafted(h, "say: ONE")+drafted(h, "say: TWO") == 0 })
			holds(other, "")
			if list := turns(t, h, "demo.lead"); len(list) != 2 || !strings.Contains(list[1].Prompt, "ONE\nsay: TWO") {
				t.Errorf("turns: %+v", list)
			}
		})
	}

	t.Run("what one of them left is the other's when that opens the bot again, behind its own", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t)
		one := idle(h, dir)
		other := open(h, dir)
		other.WaitFor("say: hi")
		one.Type("say: ONE")
		draftSaved(h, "say: ONE")
		other.Type("say: TWO")
		draftSaved(h, "say: TWO")
		one.Kill()
		other.Keys("C-x", "n")
		other.WaitFor("demo.lead-2")
		send(other, "/open demo.lead")
		wants(t, other, "say: ONE", "say: TWO")
		h.Until("one draft of each", func() bool { return drafted(h, "say: ONE") == 1 && drafted(h, "say: TWO") == 1 })
	})

	t.Run("on a start screen each has its own", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t)
		one, other := open(h, dir), open(h, dir)
		one.WaitFor("1 AGENTS.md")
		other.WaitFor("1 AGENTS.md")
		one.Type("say: ONE")
		draftSaved(h, "say: ONE")
		other.Type("say: TWO")
		draftSaved(h, "say: TWO")
		one.Kill()
		other.Kill()
		one = open(h, dir)
		wants(t, one, "› say: ONE", "  say: TWO")
		turnOf(one, func() { one.Keys("Enter") })
		h.Until("no draft of it", func() bool { return drafted(h, "say: ONE")+drafted(h, "say: TWO") == 0 })
		holds(one, "")
	})
}

func TestSonnysFolderIsTakenAway(t *testing.T) {
	t.Parallel()
	h, dir := demo(t)
	s := idle(h, dir)
	if err := os.RemoveAll(h.Path(".agent", "sonny")); err != nil {
		t.Fatal(err)
	}

	t.Run("it is made anew, and a draft is kept over a kill", func(t *testing.T) {
		s.Type("say: after it was gone")
		draftSaved(h, "say: after it was gone")
		s.Kill()
		s = open(h, dir)
		holds(s, "say: after it was gone")
	})

	t.Run("a new lead is made", func(t *testing.T) {
		s.Keys("C-u")
		holds(s, "")
		s.Keys("C-x", "n")
		s.WaitFor("demo.lead-2")
		if err := os.RemoveAll(h.Path(".agent", "sonny")); err != nil {
			t.Fatal(err)
		}
		turnOf(s, func() { send(s, "say: of the new lead") })
		for _, name := range []string{"sessions.json", "history"} {
			if _, err := os.Stat(h.Path(".agent", "sonny", name)); err != nil {
				t.Error(err)
			}
		}
	})
}
