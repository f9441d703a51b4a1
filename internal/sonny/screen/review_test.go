package screen_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agent/internal/sonny/sonnytest"
)

// openAt opens Sonny with a size and a clock that stands.
func openAt(h *sonnytest.Home, dir string, w, hgt int) *sonnytest.Screen {
	return h.With(sonnytest.FrozenClock).In(dir).Screen(sonnytest.Terminal{Width: w, Height: hgt}, "sonny", "--no-motion", "--theme", "none")
}

// sessionGo is a file in which something can be edited.
const sessionGo = `package session

func reissue(w http.ResponseWriter, id string) {
	c := http.Cookie{Name: name, Value: id}
	now := clock()
	c.Expires = now
	http.SetCookie(w, &c)
}
`

func TestReview(t *testing.T) {
	t.Parallel()
	for _, size := range []struct {
		name string
		w, h int
		kind string
	}{{"review-160x48", 160, 48, "split (u unified)"}, {"review-80x24", 80, 24, "unified (u split)"}} {
		t.Run("SO-51 an edit shows what it did, and the panel all of it "+size.name, func(t *testing.T) {
			t.Parallel()
			h, dir := demo(t)
			h.Write("demo/session.go", sessionGo)
			h.Git(dir, "add", "-A")
			h.Git(dir, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "session")
			s := openAt(h, dir, size.w, size.h)
			s.WaitFor("1 AGENTS.md")
			served(t, h) // else the footer says that it is down
			send(s, "edit: session.go | \tc.Expires = now | \tc.Expires = now.Add(ttl)\n\tc.SameSite = http.SameSiteLaxMode\n\tc.Secure = secure(r)")
			s.WaitFor("✔ done")
			wants(t, s, "▸ edit  session.go  +3 −1", "- ", "+ ")
			s.Keys("C-x", "d")
			wants(t, s, "review of ", size.kind, "hunk 1 of 1", "c.Secure = secure(r)", "http.SetCookie(w, &c)", "this turn")
			s.WaitFor("main*")
			countedUp(s)
			sonnytest.Golden(t, size.name, s.Capture())
			s.Keys("Escape")
			s.WaitGone("review of")
		})
	}
}

func TestReviewNotes(t *testing.T) {
	t.Parallel()
	h, dir := demo(t)
	s := openAt(h, dir, 160, 48)
	s.WaitFor("1 AGENTS.md")
	send(s, "write: a.txt | one")
	s.WaitFor("✔ done")
	send(s, "/diff")
	wants(t, s, "a.txt", "file 1 of 1")
	s.Type("cwhy one?")
	s.WaitFor("note on line 1: why one?")
	s.Keys("Enter")
	wants(t, s, "notes (1)", "a.txt:1  why one?")
	s.Type("S")
	s.WaitFor("the notes went to demo.lead")
	s.Keys("Escape")
	wants(t, s, "Notes on the changes:", "a.txt:1 (after)", "> one", "why one?")
	if n := strings.Count(h.Agent("turns", "--bot", "demo.lead").Stdout, `"turn":`); n != 2 {
		t.Errorf("%d turns", n)
	}
}

func TestReviewScopes(t *testing.T) {
	t.Parallel()
	h, dir := demo(t)
	s := openAt(h, dir, 160, 48)
	s.WaitFor("1 AGENTS.md")
	send(s, "write: a.txt | one")
	s.WaitFor("✔ done")
	send(s, "write: b.txt | two")
	s.Until("the second", func(screen string) bool {
		return strings.Contains(screen, "write  b.txt") && strings.Contains(screen, "✔ done")
	})
	send(s, "/review")
	s.Until("this turn alone", func(screen string) bool {
		return strings.Contains(screen, "1 file") && strings.Contains(screen, "A b.txt")
	})
	s.Type("s")
	s.WaitFor("2 files")
	s.Type("s")
	wants(t, s, "against HEAD", "2 files")
	s.Type("j")
	s.WaitFor("file 2 of 2")
}

func TestReviewRunsNothing(t *testing.T) {
	t.Parallel()
	h := sonnytest.Fresh(t)
	src := h.Repo("demo", map[string]string{"f.txt": "one\n"})
	dir := h.Path("tree")
	h.Git(src, "worktree", "add", "-q", "-b", "x", dir)
	s := openAt(h, dir, 160, 48)
	s.WaitFor("demo.lead")
	send(s, "sh: echo two > f.txt")
	s.WaitFor("✔ done")

	// The agent's folder names another repository now, one that would run a program.
	evil := h.Repo("evil", map[string]string{"f.txt": "x\n"})
	ran := h.Path("ran")
	program := h.Write("program", "#!/bin/sh\necho ran >> "+ran+"\n")
	if err := os.Chmod(program, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, set := range []string{"core.fsmonitor", "diff.external"} {
		h.Git(evil, "config", set, program)
	}
	for _, path := range []string{filepath.Join(dir, ".git"), filepath.Join(src, ".git", "worktrees", "tree", "commondir")} {
		text := "gitdir: " + filepath.Join(evil, ".git") + "\n"
		if filepath.Base(path) == "commondir" {
			text = filepath.Join(evil, ".git") + "\n"
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	send(s, "/diff")
	wants(t, s, "f.txt", "two", "this turn")
	for _, scope := range []string{"against HEAD", "there is no main"} {
		s.Type("s")
		s.WaitFor(scope)
	}
	if _, err := os.Lstat(ran); err == nil {
		t.Error("a program of the folder's new repository ran")
	}
}
