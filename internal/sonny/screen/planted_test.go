package screen_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An agent confined to demo has made a repository within, which names a program of its at
// every place where git would run one; the person then works there (sonny.md 4).
func TestAPlantedRepositoryRunsNothing(t *testing.T) {
	t.Parallel()
	h, dir := demo(t)
	if ran := h.In(dir).Sonny("exec", "hello"); ran.Exit != 0 {
		t.Fatalf("the agent of demo: %d\n%s", ran.Exit, ran.Stderr)
	}
	nested := h.Repo("demo/nested", map[string]string{"a": "one"})
	marker := h.Plant(nested)
	nothing := func(what string) {
		t.Helper()
		if text, err := os.ReadFile(marker); err == nil {
			t.Fatalf("%s ran what was planted:\n%s", what, text)
		}
	}

	if ran := h.In(nested).Sonny("exec", "hello"); ran.Exit != 0 {
		t.Errorf("exec: %d\n%s", ran.Exit, ran.Stderr)
	}
	nothing("sonny exec")
	if ran := h.In(nested).Sonny("exec", "--worktree=HEAD", "hello"); ran.Exit == 0 || !strings.Contains(ran.Stderr, "worktree_needs_git") {
		t.Errorf("exec --worktree: %d\n%s", ran.Exit, ran.Stderr)
	}
	nothing("sonny exec --worktree")
	if ran := h.In(nested).Agent("run", "--model", "scripted/sonny", "--new", "--bot", "wt", "--worktree", "--sandbox", "workspace-write", "hello"); !strings.Contains(ran.Stderr, "worktree_needs_git") {
		t.Errorf("agent run --worktree: %d\n%s", ran.Exit, ran.Stderr)
	}
	nothing("agent run --worktree")

	s := open(h, nested)
	s.WaitFor("main")
	send(s, "sh: echo three > f")
	s.WaitFor("✔ done") // with a snapshot before
	nothing("the screen with a turn")
	s.Keys("C-x", "d")
	s.WaitFor("three")
	s.Keys("Escape")
	nothing("the review")
	send(s, "/undo")
	s.WaitFor("f")
	nothing("the undo")
	s.Keys("Escape")

	for _, args := range [][]string{
		{"tasks"}, {"status"}, {"doctor"}, {"tasks", "start", "build", "hello"},
	} {
		ran := h.In(nested).Sonny(args...)
		nothing("sonny " + strings.Join(args, " "))
		if args[0] == "tasks" && ran.Exit != 0 {
			t.Errorf("sonny %q: %d\n%s", args, ran.Exit, ran.Stderr)
		}
	}
	if _, err := os.Stat(h.Path(".agent", "worktrees", "nested", "build")); err == nil {
		t.Error("a worktree was made of a repository that an agent configures")
	}
	h.Git(dir, "status") // does not look within
	if _ = h.In(nested).Run("git", "status"); true {
		if _, err := os.Stat(marker); err != nil {
			t.Error("git itself runs nothing of what was planted: this test proves nothing")
		}
	}
}

// The agent's .git leads to a repository of the person's elsewhere, whose git folder no
// bot is to get.
func TestAPointerToAnotherRepositoryIsNone(t *testing.T) {
	t.Parallel()
	h, dir := demo(t)
	other := h.Repo("private", map[string]string{"secret": "s"})
	h.Write("demo/nested/.git", "gitdir: "+filepath.Join(other, ".git")+"\n")
	ran := h.In(filepath.Join(dir, "nested")).Sonny("exec", "hello")
	if ran.Exit != 0 || !strings.Contains(ran.Stderr, "counts as one without git") {
		t.Errorf("exec: %d\n%s", ran.Exit, ran.Stderr)
	}
	for _, b := range bots(t, h) {
		for _, root := range b.WritableRoots {
			if strings.HasPrefix(root, other) {
				t.Errorf("%s may write %s", b.Name, root)
			}
		}
	}
}
