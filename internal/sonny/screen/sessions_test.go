package screen_test

import (
	"context"
	"strings"
	"testing"

	"agent/internal/sonny/screen/lists"
	"agent/protocol"
)

// A session that nobody has named is shown by its first message, wherever it is shown: in
// the header, the rail, the lists, and in plain lines (sonny.md 26).
func TestASessionWithoutATitleIsShownByItsFirstMessage(t *testing.T) {
	t.Parallel()
	h, dir := demo(t)
	s := openAt(h, dir, 160, 30)
	s.WaitFor("1 AGENTS.md")
	first := "say: what the first message of this session begins with, and more of it"
	send(s, first)
	s.WaitFor("✔ done")
	title := "say: what the first message of this session…"
	shown := func(what, row string) {
		t.Helper()
		s.Until(what, func(screen string) bool { return strings.Contains(screen, row) })
	}
	shown("a wide header has its bot too", " demo.lead  "+title+"  ")
	s.Keys("C-b")
	shown("the rail", "✔ say: what the first mes…")
	shown("its bot below it", "  demo.lead   1 turn")
	s.Type("/message")
	s.WaitFor("/ message")
	shown("it is found by its first message", "▎✔ say: what the first mes…")
	s.Keys("Escape")
	s.WaitFor("/ filter")
	s.Keys("Escape")
	s.WaitGone("/ message")
	s.Keys("Escape")
	s.WaitGone("Esc back to the message")

	s.Resize(80, 24)
	s.Until("a header that leaves the figures their room", func(screen string) bool {
		return strings.HasPrefix(screen, " say: what the first messa…  ") && strings.Contains(headOf(screen), "ctx ")
	})
	send(s, "/tree")
	s.WaitFor("── tree of " + title)
	s.Keys("Escape")
	s.WaitGone("── tree of")
	send(s, "/rename mine")
	s.Until("a title of the person's", func(screen string) bool { return strings.HasPrefix(screen, " mine  ") })
	send(s, "/new")
	s.WaitFor("it: demo.lead-2")
	send(s, "say: in plain lines")
	s.Until("its name", func(screen string) bool { return strings.HasPrefix(screen, " say: in plain lines  ") })
	s.WaitFor("✔ done")
	s.Keys("C-d")
	s.Exit()
	s = openPlain(h, dir)
	s.WaitFor("session: say: in plain lines (demo.lead-2), idle.")
	if title := s.Title(); strings.Contains(title, "say:") {
		t.Errorf("the terminal's title tells of a message: %q", title)
	}
}

// headOf is a screen's first row.
func headOf(screen string) string {
	head, _, _ := strings.Cut(screen, "\n")
	return head
}

func TestSessionsOnScreen(t *testing.T) {
	t.Parallel()
	h, dir := demo(t)
	s := open(h, dir)
	s.WaitFor("1 AGENTS.md")
	send(s, "say: first")
	s.WaitFor("✔ done")
	send(s, "/rename fix x")
	s.WaitFor("fix x")
	send(s, "/new")
	s.WaitFor("demo.lead-2")
	send(s, "say: second")
	s.WaitFor("✔ done")

	t.Run("SO-116 letters typed into a filter act on nothing", func(t *testing.T) {
		send(s, "/sessions")
		wants(t, s, "sessions of this folder", "fix x", "demo.lead-2")
		s.Type("/")
		s.Type("fix x d")
		s.WaitFor("fix x d")
		if n := len(bots(t, h)); n != 2 {
			t.Errorf("%d bots", n)
		}
		if strings.Contains(s.Capture(), "Delete") {
			t.Error("a letter of the filter asked to delete")
		}
		s.Keys("BSpace", "BSpace", "Escape")
		s.WaitFor("r rename")
		s.Type("r")
		s.WaitFor("rename ──")
		send(s, "fix y")
		s.WaitFor("fix y")
	})

	t.Run("SO-7 a session whose bot is gone opens no namesake", func(t *testing.T) {
		s.Keys("Escape") // leaves the filter
		s.WaitGone("/ fix x")
		s.Keys("Escape")
		s.WaitGone("sessions of")
		if ran := h.Agent("rm", "--bot", "demo.lead"); ran.Exit != 0 {
			t.Fatal(ran.Stderr)
		}
		c := h.Client()
		if _, err := c.Create(context.Background(), &protocol.Create{
			Bot: "demo.lead", Model: "scripted/sonny", Instructions: "x", Tools: []string{}, Workspace: dir,
		}); err != nil {
			t.Fatal(err)
		}
		send(s, "/sessions")
		wants(t, s, "fix y", "gone")
		s.Keys("Down", "Up", "End")
		s.Until("the session that is gone at hand", func(screen string) bool {
			for line := range strings.SplitSeq(screen, "\n") {
				if strings.Contains(line, "▎") && strings.Contains(line, "gone") {
					return true
				}
			}
			s.Keys("Up")
			return false
		})
		s.Keys("Enter")
		s.WaitFor("Forget it?")
		s.Type("y")
		s.WaitGone("gone ")
		turns := h.Agent("turns", "--bot", "demo.lead")
		if strings.Contains(turns.Stdout, `"turn":`) {
			t.Errorf("something was sent to the namesake: %s", turns.Stdout)
		}
	})
}

func TestSessionsAreCalledByTheirFirstMessages(t *testing.T) {
	t.Parallel()
	h, dir := demo(t)
	s := openAt(h, dir, 120, 30)
	s.WaitFor("1 AGENTS.md")
	send(s, "say: mend the failing login test")
	s.WaitFor("✔ done")
	send(s, "/new")
	s.WaitFor("demo.lead-2")
	turnOf(s, func() { send(s, "say: other") })
	turnOf(s, func() { send(s, "say: later") })
	row := func(words ...string) {
		t.Helper()
		s.Until("a row with "+strings.Join(words, " and "), func(screen string) bool {
			for line := range strings.SplitSeq(screen, "\n") {
				if lists.HasAll(line, words) {
					return true
				}
			}
			return false
		})
	}

	t.Run("in the list of sessions, which is searched by them", func(t *testing.T) {
		send(s, "/sessions")
		row("say: mend the failing", "demo.lead ")
		row("say: other", "demo.lead-2")
		s.Type("/login")
		s.Until("one session", func(screen string) bool {
			list := headless(screen)
			return strings.Contains(list, "say: mend the failing") && !strings.Contains(list, "say: other ")
		})
		s.Keys("Escape")
		s.WaitFor("r rename")
		s.Keys("Escape")
		s.WaitGone("/ login")
		s.Keys("Escape")
		s.WaitGone("sessions of")
	})

	t.Run("and in the switcher, until they have a title", func(t *testing.T) {
		send(s, "/rename fix y")
		s.WaitFor("fix y")
		s.Keys("C-k")
		row("demo.lead ", "say: mend the failing")
		row("demo.lead-2", "fix y")
	})
}
