package screen_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestFoldsReaderAndSearch(t *testing.T) {
	t.Parallel()
	h, dir := demo(t)
	s := openAt(h, dir, 80, 24)
	s.WaitFor("1 AGENTS.md")
	send(s, "sh: seq 1 500")
	s.Until("the end", func(screen string) bool { return strings.Contains(screen, "✔ done") })

	t.Run("SO-50 output folds to two lines and a count, and unfolds", func(t *testing.T) {
		s.Keys("C-Home")
		wants(t, s, "▸ shell  seq 1 500", "  2\n", "+498 lines")
		s.Keys("C-o")
		s.WaitGone("+498 lines")
		wants(t, s, "▸ shell  seq 1 500", "  9\n")
		s.Keys("C-o")
		s.WaitFor("+498 lines")
	})

	t.Run("the reader shows all of it, and finds", func(t *testing.T) {
		s.Keys("C-x", "t")
		wants(t, s, "reader  ", "q close")
		s.Type("/")
		s.Type("sh: seq")
		s.Keys("Enter")
		wants(t, s, "› sh: seq 1 500", "  9\n")
		s.Type("q")
		s.WaitGone("q close")
	})

	t.Run("a message of the person's is gone to, and the cell there unfolds", func(t *testing.T) {
		s.Keys("M-Up")
		s.WaitFor("▎ › sh: seq 1 500")
		s.Keys("M-Down")
		s.WaitGone("▎ ›")
	})

	t.Run("search counts by kind, minds the case when asked, and takes expressions", func(t *testing.T) {
		s.Keys("C-f")
		s.Type("SEQ")
		wants(t, s, "messages 1 · tools 1", "2 places")
		s.Keys("M-c")
		s.WaitFor("nowhere · case")
		s.Keys("M-c", "C-u")
		s.Type("^49[0-9]$")
		s.WaitFor("nowhere")
		s.Keys("M-r", "C-u")
		s.Type("49[0-9]")
		s.WaitFor("regexp")
		s.Keys("Enter")
		wants(t, s, "1 of", "490")
		s.Keys("Escape")
		s.WaitGone("regexp")
	})
}

func TestSearchFindsWhatIsNotLoaded(t *testing.T) {
	t.Parallel()
	h, dir := demo(t)
	s := open(h, dir)
	s.WaitFor("1 AGENTS.md")
	send(s, "say: needle in the old part")
	s.WaitFor("✔ done")
	s.Keys("C-d")
	s.Exit()
	for range 12 {
		lines := strings.Repeat("say: more\n", 1)
		for i := range 20 {
			ran := h.Agent("run", "--bot", "demo.lead", "--", fmt.Sprint(lines, i))
			if ran.Exit != 0 {
				t.Fatal(ran.Stderr)
			}
		}
	}
	s = open(h, dir)
	s.WaitFor("idle")
	send(s, "/search needle")
	wants(t, s, "messages 1 · replies 1", "2 places")
	s.Keys("Enter", "Enter")
	wants(t, s, "2 of 2", "› say: needle in the old part")
}

func TestScrolledUp(t *testing.T) {
	t.Parallel()
	t.Run("SO-52 what streams below does not move the view", func(t *testing.T) {
		h, dir := demo(t)
		s := openAt(h, dir, 80, 24)
		s.WaitFor("1 AGENTS.md")
		send(s, "sh: seq 1 100")
		s.WaitFor("✔ done")
		s.Keys("C-o")
		s.WaitGone("+98 lines")
		send(s, "slow: 10")
		s.WaitFor("word3")
		for range 20 {
			s.Keys("S-Up")
		}
		s.WaitFor("new")
		top := func(screen string) string { return strings.Join(strings.Split(screen, "\n")[2:10], "\n") }
		before := top(s.Capture())
		s.WaitFor("✔ done")
		if after := top(s.Capture()); after != before {
			t.Errorf("the rows were\n%s\nand are\n%s", before, after)
		}
		s.Keys("C-End")
		s.WaitGone("↓")
	})
}
