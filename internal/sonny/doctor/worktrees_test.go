package doctor_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agent/internal/sonny/doctor"
	"agent/internal/sonny/sonnytest"
	"agent/protocol"
)

// tree makes a worktree as a task's is, and returns its path.
func tree(t *testing.T, h *sonnytest.Home, source, project, task string) string {
	t.Helper()
	path := h.Path(".agent", "worktrees", project, task)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	h.Git(source, "worktree", "add", "--quiet", "-b", "agent/"+project+"."+task, path)
	return path
}

func commit(h *sonnytest.Home, dir, name string) {
	h.Write(strings.TrimPrefix(filepath.Join(dir, name), h.Dir+"/"), "x\n")
	h.Git(dir, "add", "--all")
	h.Git(dir, "commit", "--quiet", "--message", name)
}

func gone(path string) bool {
	_, err := os.Lstat(path)
	return os.IsNotExist(err)
}

func TestWorktrees(t *testing.T) {
	t.Parallel()
	h := sonnytest.Fresh(t)
	h.Write(".agents/AGENTS.md", "Be brief.\n")
	demo := h.Repo("demo", map[string]string{"a.txt": "a\n"})
	other := h.Repo("other", map[string]string{"b.txt": "b\n"})
	start(t, h)
	clean, dirty := tree(t, h, demo, "demo", "clean"), tree(t, h, demo, "demo", "dirty")
	kept, named := tree(t, h, demo, "demo", "kept"), tree(t, h, demo, "demo", "named")
	foreign := tree(t, h, other, "other", "far")
	h.Write(strings.TrimPrefix(dirty, h.Dir+"/")+"/new.txt", "work\n")
	commit(h, tree(t, h, demo, "demo", "ahead"), "c.txt")
	h.Git(demo, "branch", "agent/demo.merged")
	h.Git(demo, "worktree", "remove", h.Path(".agent/worktrees/demo/ahead")) // its branch is ahead, and without a folder
	for bot, folder := range map[string]string{"elsewhere": kept, "demo.named": demo} {
		if _, err := h.Client().Create(t.Context(), &protocol.Create{Bot: bot, Model: "scripted/sonny", Instructions: "Be brief.", Workspace: folder}); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("folders without bots and branches without folders are listed", func(t *testing.T) {
		e := examine(t, h.In(demo), "--offline")
		e.wants(t, "worktrees", doctor.Warn, "3 folders without a bot, 2 branches without a folder", "demo/clean, demo/dirty, other/far", "branch agent/demo.ahead", "branch agent/demo.merged")
	})
	t.Run("elsewhere the folders alone", func(t *testing.T) {
		e := examine(t, h, "--offline")
		e.wants(t, "worktrees", doctor.Warn, "3 folders without a bot", "other/far")
		if strings.Contains(e.checks["worktrees"].Detail, "branch") {
			t.Errorf("%+v", e.checks["worktrees"])
		}
	})
	t.Run("--fix removes what loses nothing, each after a yes", func(t *testing.T) {
		before := h.Git(demo, "config", "--list", "--local")
		no := examineWith(t, h.In(demo), strings.Repeat("n\n", 9), "--offline", "--fix")
		if n := strings.Count(no.Stderr, "[y/N]"); n != 3 || gone(clean) {
			t.Errorf("%d questions: %s", n, no.Stderr)
		}
		e := examineWith(t, h.In(demo), strings.Repeat("y\n", 9), "--offline", "--fix")
		if !gone(clean) || gone(dirty) || gone(kept) || gone(named) || gone(foreign) {
			t.Errorf("clean gone %t, others gone %t %t %t %t; %s", gone(clean), gone(dirty), gone(kept), gone(named), gone(foreign), e.Stderr)
		}
		if !strings.Contains(e.Stderr, "not committed") {
			t.Errorf("of the dirty one it says %q", e.Stderr)
		}
		branches := h.Git(demo, "branch", "--list", "agent/*", "--format=%(refname:short)")
		if strings.Contains(branches, "demo.merged") || !strings.Contains(branches, "demo.ahead") || !strings.Contains(branches, "demo.clean") {
			t.Errorf("branches: %s", branches)
		}
		if now := h.Git(demo, "config", "--list", "--local"); now != before {
			t.Errorf("the config was written:\n%s", now)
		}
		e.wants(t, "worktrees", doctor.Warn, "2 folders without a bot")
	})
}

func TestHundredThousandWorktrees(t *testing.T) {
	t.Parallel()
	h := sonnytest.Fresh(t)
	start(t, h)
	for i := range 100_000 {
		if i%1000 == 0 {
			if err := os.MkdirAll(h.Path(".agent", "worktrees", fmt.Sprintf("p%d", i/1000)), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Mkdir(h.Path(".agent", "worktrees", fmt.Sprintf("p%d", i/1000), fmt.Sprintf("t%d", i)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	e := examine(t, h, "--offline")
	e.wants(t, "worktrees", doctor.Warn, "4096 folders without a bot", "more than 4096", "and 4076 more")
	e.wants(t, "disk", doctor.OK, "worktrees more than")
	if len(e.Stdout) > 32<<10 {
		t.Errorf("the report has %d bytes", len(e.Stdout))
	}
}

func TestRewrittenWorktree(t *testing.T) {
	t.Parallel()
	h := sonnytest.Fresh(t)
	demo := h.Repo("demo", map[string]string{"a.txt": "a\n", ".gitattributes": "*.txt diff=spy filter=spy\n"})
	start(t, h)
	path := tree(t, h, demo, "demo", "build")
	h.Write(strings.TrimPrefix(path, h.Dir+"/")+"/a.txt", "changed\n")
	ran := h.Path("ran")
	spy := h.Write("spy.sh", "#!/bin/sh\necho \"$0 $*\" >> "+ran+"\ncat\n")
	chmod(t, spy, 0o700)
	evil := h.Repo("evil", map[string]string{"a.txt": "a\n"})
	for key, value := range map[string]string{
		"core.fsmonitor": spy, "diff.external": spy, "diff.spy.textconv": spy, "diff.spy.command": spy,
		"filter.spy.clean": spy, "filter.spy.smudge": spy, "core.pager": spy, "core.hooksPath": h.Path("hooks"), "core.worktree": path,
	} {
		h.Git(evil, "config", key, value)
	}
	h.Write("hooks/post-checkout", "#!/bin/sh\necho hook >> "+ran+"\n")
	chmod(t, h.Path("hooks/post-checkout"), 0o700)
	os.Remove(filepath.Join(path, ".git"))
	h.Write(strings.TrimPrefix(path, h.Dir+"/")+"/.git", "gitdir: "+filepath.Join(evil, ".git")+"\n")

	h.In(path).Run("git", "status")
	if gone(ran) {
		t.Fatal("the trap does not work: git status ran nothing")
	}
	for _, from := range []string{demo, h.Dir, path} {
		os.Remove(ran)
		t.Run("SO-108 doctor in "+filepath.Base(from)+" runs none of its programs", func(t *testing.T) {
			e := examineWith(t, h.In(from), strings.Repeat("y\n", 20), "--offline", "--fix")
			e.wants(t, "worktrees", doctor.Warn, "demo/build")
			if !gone(ran) {
				said, _ := os.ReadFile(ran)
				t.Errorf("it ran %s", said)
			}
			if gone(path) {
				t.Error("the worktree with its changes is gone")
			}
		})
	}
}
