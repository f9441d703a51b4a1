package screen_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"agent/internal/sonny/sonnytest"
)

// took is the end of a turn's line in the reader: its time.
var took = regexp.MustCompile(`(1 round ·) [0-9.:]+s?`)

func TestEveryPanel(t *testing.T) {
	t.Parallel()
	t.Run("SO-100 every panel opens and closes, and the composer has the keyboard again", func(t *testing.T) {
		h, dir := demo(t)
		s := openAt(h, dir, 100, 30)
		s.WaitFor("1 AGENTS.md")
		send(s, "say: hello")
		s.WaitFor("✔ done")
		for _, p := range []struct{ command, title string }{
			{"?", "── what works now"},
			{"/keys", "── keys"},
			{"/sessions", "── sessions of"},
			{"/tasks", "── tasks of"},
			{"/diff", "── review of"},
			{"/search hello", "── search"},
			{"/rewind", "── rewind to"},
			{"/tree", "── tree of"},
			{"/notices", "── notices"},
			{"/skills", "── skills"},
			{"/roles", "── roles"},
			{"/memory", "── memory"},
			{"/theme", "── themes"},
			{"/config", "── settings"},
			{"/config row", "── row"},
			{"/notify", "── settings of notifications"},
			{"/status", "── status"},
			{"/context", "── context of"},
			{"/usage", "── usage of"},
			{"/rules", "── command rules"},
			{"/screen", "── screen"},
			{"/plan", "── plan of"},
			{"/doctor", "── doctor"},
			{"/model", "── "},
		} {
			s.Type(p.command)
			if p.command != "?" {
				s.Keys("Enter")
			}
			s.WaitFor(p.title)
			s.Keys("Escape")
			s.WaitGone(p.title)
			s.Type("typed")
			s.WaitFor("› typed")
			s.Keys("C-u")
			s.WaitGone("› typed")
		}
		s.Keys("C-x")
		s.WaitFor("the review panel") // its choices, after 300 ms
		s.Type("t")
		s.WaitFor("── reader")
		s.Type("q")
		s.WaitGone("── reader")
	})
}

func TestAKeyIsBoundAnew(t *testing.T) {
	t.Parallel()
	h, dir := demo(t)
	s := openAt(h, dir, 100, 30)
	s.WaitFor("1 AGENTS.md")
	served(t, h) // else the footer says that it is down
	send(s, "say: hello")
	s.WaitFor("✔ done")
	send(s, "/keys")
	s.WaitFor("── keys")
	s.Type("/reader")
	s.WaitFor("/ reader")
	s.Keys("Enter")
	s.WaitFor("a key for reader")
	s.Keys("C-l")
	s.WaitFor("keymap_conflict")
	s.Keys("Enter")
	s.WaitFor("a key for reader")
	s.Keys("C-x")
	s.Type("w")
	s.WaitFor("reader has Ctrl+X w")
	text, err := os.ReadFile(h.Path(".agent", "config.toml"))
	if err != nil || !strings.Contains(string(text), `reader = ["ctrl+x w"]`) {
		t.Errorf("%v in\n%s", err, text)
	}
	s.Keys("Escape") // the filter lets go of the keyboard
	s.WaitFor("/ filter")
	s.Keys("Escape") // and goes
	s.WaitGone("/ reader")
	s.Keys("Escape")
	s.WaitGone("── keys")
	s.Keys("C-x")
	s.Type("w")
	s.WaitFor("── reader")
	countedUp(s)
	s.WaitFor(" in, 8 out · cost ? · 1 round · ")
	sonnytest.Golden(t, "reader-100x30", took.ReplaceAllString(s.Capture(), "$1 …"))
}
