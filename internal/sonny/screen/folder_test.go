package screen_test

import (
	"os"
	"strings"
	"testing"
)

func TestTheFolderIsGone(t *testing.T) {
	t.Parallel()
	h, dir := demo(t)
	s := openAt(h, dir, 150, 30)
	s.WaitFor("1 AGENTS.md")
	send(s, "say: hi")
	s.WaitFor("✔ done")
	if err := os.Rename(dir, h.Path("moved")); err != nil {
		t.Fatal(err)
	}
	gone := "the folder " + dir + " is gone; bring it back"
	clean := func(t *testing.T) {
		t.Helper()
		if screen := s.Capture(); strings.Contains(screen, "fork/exec") || strings.Contains(screen, "lstat") {
			t.Errorf("it shows\n%s", screen)
		}
	}

	t.Run("the review says so", func(t *testing.T) {
		send(s, "/diff")
		s.WaitFor(gone)
		clean(t)
		s.Keys("Escape")
		s.WaitGone(gone)
	})

	t.Run("a task says so and gives its brief back", func(t *testing.T) {
		send(s, "/task label the brief")
		s.WaitFor(gone)
		s.Until("the brief in the composer", func(screen string) bool { return strings.Contains(composed(screen), "the brief") })
		clean(t)
		s.Keys("C-u")
		holds(s, "")
	})

	t.Run("a message says so of the files that are not kept, and goes out", func(t *testing.T) {
		send(s, "say: without a folder")
		h.Until("the turn", func() bool { return len(turns(t, h, "demo.lead")) == 2 })
		send(s, "/notices")
		s.WaitFor("snapshot_skipped: " + gone)
		clean(t)
	})
}
