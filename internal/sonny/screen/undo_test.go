package screen_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agent/internal/sonny/sonnytest"
)

func TestUndo(t *testing.T) {
	t.Parallel()
	content := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	t.Run("SO-44 the files go back and forth, and the person's repository is left alone", func(t *testing.T) {
		t.Parallel()
		h := sonnytest.Fresh(t)
		dir := h.Repo("demo", nil)
		file := filepath.Join(dir, "f.txt")
		s := openAt(h, dir, 80, 24)
		s.WaitFor("demo.lead")
		before := h.Git(dir, "for-each-ref") + h.Git(dir, "count-objects", "-v")
		send(s, "write: f.txt | one")
		s.WaitFor("✔ done")
		send(s, "write: f.txt | two")
		s.Until("the second", func(screen string) bool {
			return strings.Count(screen, "▸ write  f.txt") == 2 && strings.Contains(screen, "✔ done")
		})
		if got := content(file); got != "two" {
			t.Fatal(got)
		}
		send(s, "/undo")
		wants(t, s, "Put these files back", "changes     f.txt", "not covered")
		countedUp(s)
		sonnytest.Golden(t, "undo-80x24", s.Capture())
		if got := content(file); got != "two" {
			t.Errorf("before it is confirmed: %q", got)
		}
		s.Type("y")
		s.WaitFor("1 file is as before")
		if got := content(file); got != "one" {
			t.Errorf("after /undo: %q", got)
		}
		if after := h.Git(dir, "for-each-ref") + h.Git(dir, "count-objects", "-v"); after != before {
			t.Errorf("the repository was\n%sand is\n%s", before, after)
		}
		send(s, "/redo")
		s.WaitFor("Bring back")
		s.Type("y")
		s.WaitFor("1 file is back")
		if got := content(file); got != "two" {
			t.Errorf("after /redo: %q", got)
		}
	})

	t.Run("SO-129 line endings come back as they were", func(t *testing.T) {
		t.Parallel()
		h := sonnytest.Fresh(t)
		dir := h.Repo("demo", map[string]string{".gitattributes": "* text=auto eol=lf\n"})
		file := h.Write("demo/f.txt", "one\r\nmore\r\n")
		s := openAt(h, dir, 80, 24)
		s.WaitFor("demo.lead")
		send(s, "sh: printf 'two\n' > f.txt")
		s.WaitFor("✔ done")
		if got := content(file); got != "two\n" {
			t.Fatal(got)
		}
		send(s, "/undo")
		s.WaitFor("Put these files back")
		s.Type("y")
		s.WaitFor("as before")
		if got := content(file); got != "one\r\nmore\r\n" {
			t.Errorf("%q", got)
		}
	})
}
