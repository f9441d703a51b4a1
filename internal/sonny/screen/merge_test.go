package screen_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agent/internal/sonny/sonnytest"
)

// commits is a task's brief that changes a file and commits it.
func commits(name, file, text string) string {
	return "task: " + name + " | sh: echo " + text + " > " + file + " && git add " + file +
		" && git -c user.name=t -c user.email=t@localhost commit -qm " + name
}

// settled waits until a task has a turn that completed.
func settled(h *sonnytest.Home, bot string) {
	h.Until(bot+" to be done", func() bool {
		return strings.Contains(h.Agent("turns", "--bot", bot).Stdout, `"status":"completed"`)
	})
}

func TestBringingATaskHome(t *testing.T) {
	t.Parallel()

	t.Run("SO-70 a merge shows the diff first, and refuses over what is not committed here", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t, settings("row = \"full\"\n"))
		s := open(h, dir)
		s.WaitFor("1 AGENTS.md")
		send(s, commits("build", "new.txt", "hello"))
		settled(h, "demo.build")
		s.WaitFor("tasks 1")
		s.WaitFor("✔ done")
		send(s, "/merge build")
		wants(t, s, "merge demo.build", "new.txt", "hello")
		if _, err := os.Stat(filepath.Join(dir, "new.txt")); err == nil {
			t.Error("it was merged before a word was said")
		}
		s.Keys("Enter")
		h.Until("the merge", func() bool { _, err := os.Stat(filepath.Join(dir, "new.txt")); return err == nil })

		send(s, commits("clash", "AGENTS.md", "theirs"))
		settled(h, "demo.clash")
		s.WaitFor("tasks 2")
		h.Write("demo/AGENTS.md", "mine\n")
		send(s, "/merge clash")
		s.WaitFor("merge demo.clash")
		s.Keys("Enter")
		s.Until("the refusal to name the file", func(screen string) bool {
			return strings.Contains(screen, "AGENTS.md") && strings.Contains(screen, "merge_refused")
		})
		if text, err := os.ReadFile(filepath.Join(dir, "AGENTS.md")); err != nil || string(text) != "mine\n" {
			t.Errorf("the file is %q, %v", text, err)
		}
	})

	t.Run("the list of tasks says how much the one at hand changed, and again when it has done more", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t, settings("row = \"full\"\ntask_updates = false\n"))
		s := openAt(h, dir, 120, 30)
		s.WaitFor("1 AGENTS.md")
		send(s, commits("build", "AGENTS.md", "hello"))
		settled(h, "demo.build")
		s.WaitFor("tasks 1")
		s.WaitFor("✔ done")
		send(s, "/tasks")
		wants(t, s, "tasks of demo.lead", "worktrees/demo/build   +1 −1 in 1 file")
		if ran := h.In(dir).Agent("run", "--bot", "demo.build", "--", "sh: echo more > more.txt"); ran.Exit != 0 {
			t.Fatal(ran.Stderr)
		}
		s.WaitFor("worktrees/demo/build   +2 −1 in 2 files")
	})

	t.Run("SO-71 unmerged commits go only when the name is typed", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t, settings("row = \"full\"\n"))
		s := open(h, dir)
		s.WaitFor("1 AGENTS.md")
		send(s, commits("build", "new.txt", "hello"))
		settled(h, "demo.build")
		s.WaitFor("tasks 1")
		send(s, "/tasks")
		s.WaitFor("tasks of demo.lead")
		s.Type("d")
		s.WaitFor("Remove the bot demo.build")
		s.Type("y")
		s.WaitFor("Remove its worktree")
		s.Type("y")
		wants(t, s, "1 unmerged commit", "type demo.build")
		branch := func() bool { return strings.Contains(h.Git(dir, "branch", "--list", "agent/*"), "agent/demo.build") }
		s.Type("yes")
		s.Keys("Enter")
		if !branch() {
			t.Error("the branch went without its name")
		}
		s.Keys("BSpace", "BSpace", "BSpace")
		send(s, "demo.build")
		h.Until("the branch to be gone", func() bool { return !branch() })
		if _, err := os.Stat(h.Path(".agent", "worktrees", "demo", "build")); err == nil {
			t.Error("the worktree is left")
		}
	})
}
