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
	gone := "the folder " + dir + " is gone"
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
		s.WaitFor("── notices")
		s.WaitFor("snapshot_skipped: " + gone)
		clean(t)
		s.Keys("Escape")
		s.WaitGone("── notices")
	})

	t.Run("opened again it says so, what to do, and can be read", func(t *testing.T) {
		s.Keys("C-d")
		s.Exit()
		other := h.Repo("other", nil)
		s = openAt(h, other, 150, 30)
		s.WaitFor("makes one: other.lead")
		send(s, "/open demo.lead")
		s.WaitFor("say: without a folder")
		s.Until("what to do", func(screen string) bool {
			words := strings.Join(strings.Fields(screen), " ")
			return strings.Contains(words, gone+": it was moved or deleted; put it back there, or open sonny where it is now for a new lead")
		})
		clean(t)
	})

	t.Run("and the command line refuses it in the same words", func(t *testing.T) {
		for _, args := range [][]string{{"resume", "demo.lead"}, {"exec", "--session", "demo.lead", "hi"}, {"exec", "--fork", "demo.lead", "hi"}} {
			r := h.In(h.Path("other")).Sonny(args...)
			if r.Exit != 1 || !strings.Contains(r.Stderr, "workspace_unavailable: "+gone+": it was moved or deleted; put it back there") {
				t.Errorf("%q: exit %d: %s", args, r.Exit, r.Stderr)
			}
		}
	})

	t.Run("back in its place it works again", func(t *testing.T) {
		if err := os.Rename(h.Path("moved"), dir); err != nil {
			t.Fatal(err)
		}
		send(s, "sh: echo it is $((40+2))")
		s.WaitFor("it is 42")
	})
}
