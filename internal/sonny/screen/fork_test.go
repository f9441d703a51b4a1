package screen_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agent/internal/sonny/sonnytest"
)

// turns counts the turns of a bot.
func turnsOf(h *sonnytest.Home, bot string) int {
	return strings.Count(h.Agent("turns", "--bot", bot).Stdout, `"turn":`)
}

func TestRewind(t *testing.T) {
	t.Parallel()
	h, dir := demo(t)
	s := openAt(h, dir, 80, 24)
	s.WaitFor("1 AGENTS.md")
	for _, words := range []string{"first", "second", "third"} {
		send(s, "say: "+words)
		s.Until("the reply", func(screen string) bool {
			return strings.Count(headless(screen), words) == 2 && strings.Contains(screen, "✔ done")
		})
	}
	history := h.Agent("history", "--bot", "demo.lead").Stdout

	t.Run("SO-42 the picker changes nothing until a message is confirmed", func(t *testing.T) {
		for _, keys := range [][]string{{"Escape", "Escape"}, {"Escape Escape"}} {
			if len(keys) == 1 {
				s.Type("\x1b\x1b")
			} else {
				s.Keys("Escape")
				s.Keys("Escape")
			}
			wants(t, s, "rewind to before a message", "say: first", "say: third")
			s.Keys("Down", "Enter")
			s.WaitFor("as a fork?")
			s.Type("n")
			s.WaitGone("as a fork?")
			s.Keys("Escape")
			s.WaitGone("rewind to")
			if len(bots(t, h)) != 1 || h.Agent("history", "--bot", "demo.lead").Stdout != history {
				t.Error("something changed")
			}
			// Two presses within 600 ms of leaving a panel are none; those of the next
			// round come later.
			left := time.Now()
			h.Until("a while to go by", func() bool { return time.Since(left) > 700*time.Millisecond })
		}
	})

	t.Run("SO-43 confirmed it is a fork, and the original one key away", func(t *testing.T) {
		send(s, "/rewind")
		s.WaitFor("rewind to before a message")
		s.Keys("Down", "Enter")
		s.WaitFor("as a fork?")
		countedUp(s)
		sonnytest.Golden(t, "rewind-80x24", s.Capture())
		s.Type("y")
		s.WaitFor("demo.lead-2")
		s.Until("the message in the composer", func(screen string) bool {
			return strings.Contains(screen, "\n› say: second") && strings.Contains(screen, "› say: first") && !strings.Contains(screen, "third")
		})
		if got := h.Agent("history", "--bot", "demo.lead").Stdout; got != history {
			t.Errorf("the original's history is\n%s\nand was\n%s", got, history)
		}
		s.Keys("Enter")
		s.Until("its reply", func(screen string) bool {
			return strings.Count(headless(screen), "second") == 2 && strings.Contains(screen, "✔ done")
		})
		s.Keys("C-x", "b")
		s.Until("the original", func(screen string) bool { return strings.Count(headless(screen), "third") == 2 })
	})

	t.Run("before the first message it is a new lead", func(t *testing.T) {
		send(s, "/rewind")
		s.WaitFor("rewind to before a message")
		s.Keys("End", "Enter")
		s.WaitFor("as a fork?")
		s.Type("y")
		s.WaitFor("demo.lead-3")
		s.WaitFor("\n› say: first")
		if n := turnsOf(h, "demo.lead-3"); n != 0 {
			t.Errorf("%d turns", n)
		}
	})
}

func TestRewindWithFiles(t *testing.T) {
	t.Parallel()
	h := sonnytest.Fresh(t)
	dir := h.Repo("demo", nil)
	file := filepath.Join(dir, "f.txt")
	holds := func(want string) {
		t.Helper()
		h.Until("the file to hold "+want, func() bool {
			got, _ := os.ReadFile(file)
			return string(got) == want
		})
	}
	s := openAt(h, dir, 80, 24)
	s.WaitFor("demo.lead")
	turnOf(s, func() { send(s, "write: f.txt | one") })
	turnOf(s, func() { send(s, "write: f.txt | two") })

	pick := func() {
		send(s, "/rewind")
		s.WaitFor("rewind to before a message")
		s.Keys("Enter")
		s.WaitFor("f the files too")
		s.Type("f")
		wants(t, s, "rewind, with the files", "changes     f.txt", "Put these files back", "not covered")
		holds("two")
	}
	t.Run("F10 the files are shown first, and a no leaves all as it is", func(t *testing.T) {
		pick()
		s.Type("n")
		s.WaitFor("rewind to before a message")
		s.Keys("Escape")
		s.WaitGone("rewind to")
		holds("two")
		if n := len(bots(t, h)); n != 1 {
			t.Errorf("%d bots", n)
		}
	})
	t.Run("F10 a yes puts them back and forks, and one command takes the files' part back", func(t *testing.T) {
		pick()
		s.Type("y")
		s.WaitFor("demo.lead-2")
		s.WaitFor("\n› write: f.txt | two")
		holds("one")
		s.Keys("C-x", "b")
		s.WaitFor("▸ write  f.txt")
		send(s, "/redo")
		s.WaitFor("Bring back")
		s.Type("y")
		holds("two")
	})
	t.Run("while a turn runs its files are left alone", func(t *testing.T) {
		send(s, "sh: echo three > f.txt; until [ -e release ]; do sleep 0.1; done")
		holds("three\n")
		send(s, "/rewind")
		s.WaitFor("rewind to before a message")
		s.Keys("Down", "Enter")
		s.WaitFor("stay as they are")
		s.Type("f")
		s.WaitFor("stay as they are")
		s.Type("n")
		s.Keys("Escape")
		h.Write("demo/release", "")
		s.WaitFor("✔ done")
	})
}

func TestSideChat(t *testing.T) {
	t.Parallel()
	t.Run("SO-45 a question beside disturbs nothing", func(t *testing.T) {
		h, dir := demo(t)
		s := openAt(h, dir, 160, 48)
		s.WaitFor("1 AGENTS.md")
		send(s, "say: begin")
		s.WaitFor("✔ done")
		send(s, "slow: 10")
		s.WaitFor("word3")
		send(s, "/side say: aside")
		s.Until("the answer while the turn goes on", func(screen string) bool {
			return strings.Contains(screen, "demo.lead-side") && strings.Count(headless(screen), "aside") >= 2 && strings.Contains(screen, "● working")
		})
		if strings.Contains(h.Agent("history", "--bot", "demo.lead").Stdout, "aside") {
			t.Error("the lead's history holds the side chat")
		}
		for _, b := range bots(t, h) {
			if b.Name == "demo.lead-side" && (b.Allowed == nil || len(*b.Allowed) > len("1234")) {
				t.Errorf("the side chat may %v", b.Allowed)
			}
		}
		s.WaitFor("word50")
	})

	t.Run("SO-103 it starts at the round that had finished and writes nothing", func(t *testing.T) {
		h, dir := demo(t, settings("row = \"manual\"\n"))
		s := openAt(h, dir, 160, 48)
		s.WaitFor("1 AGENTS.md")
		send(s, "hold: true")
		s.WaitFor("working")
		s.Type("/side write: s.txt | x") // what is written keeps the panel from the keyboard
		h.Write("demo/release", "")
		s.WaitFor("asks to leave the sandbox")
		s.Keys("Enter")
		s.Until("its answer", func(screen string) bool {
			return strings.Contains(screen, "demo.lead-side") && strings.Contains(screen, "done") && strings.Contains(screen, "needs you")
		})
		if _, err := os.Lstat(h.Path("demo", "s.txt")); err == nil {
			t.Error("the side chat wrote a file")
		}
		history := h.Agent("history", "--bot", "demo.lead-side").Stdout
		if !strings.Contains(history, "until [ -e release ]") || strings.Contains(history, "require_escalated") {
			t.Errorf("the fork holds\n%s", history)
		}
	})
}
