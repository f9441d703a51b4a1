package repo

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agent/internal/sonny/sonnytest"
)

// A repository whose config an agent may have written: what reads it runs nothing, and
// what changes it is refused while that config names programs.
func TestAPlantedConfigRunsNothing(t *testing.T) {
	h := sonnytest.Fresh(t, sonnytest.NoEnv)
	t.Setenv("HOME", h.Dir)
	ctx := context.Background()
	dir := h.Repo("nested", map[string]string{"a": "one"})
	head := h.Git(dir, "rev-parse", "HEAD")
	h.Git(dir, "branch", "agent/x")
	marker := h.Plant(dir)
	r, astray, err := Find(ctx, dir)
	if err != nil || astray != "" {
		t.Fatal(astray, err)
	}
	var status *Status
	for name, do := range map[string]func() error{
		"status":   func() (err error) { status, err = r.Status(ctx); return err },
		"diff":     func() error { _, _, err := r.Diff(ctx, "HEAD", ""); return err },
		"changed":  func() error { _, err := r.Changed(ctx, head, "HEAD"); return err },
		"paths":    func() error { _, _, err := r.Paths(ctx, 100); return err },
		"missing":  func() error { _, err := r.Missing(ctx, "agent/x"); return err },
		"resolve":  func() error { _, err := r.Resolve(ctx, "HEAD"); return err },
		"base":     func() error { _, err := r.MergeBase(ctx, "HEAD", "agent/x"); return err },
		"within":   func() error { _, err := r.Within(ctx); return err },
		"branches": func() error { _, _, err := r.Branches(ctx, "agent/"); return err },
		"list":     func() error { _, _, err := r.Worktrees(ctx); return err },
		"drop":     func() error { return r.DropBranch(ctx, Branch{"agent/x", head}) },
	} {
		if err := do(); err != nil && name != "missing" && name != "base" { // the map's order may drop the branch first
			t.Errorf("%s: %v", name, err)
		}
		if text, err := os.ReadFile(marker); err == nil {
			t.Fatalf("%s ran\n%s", name, text)
		}
	}
	if status == nil || len(status.Files) != 1 || status.Files[0].Path != "f" {
		t.Errorf("the status is %+v", status)
	}
	for name, do := range map[string]func() error{
		"commit": func() error { return r.CommitAll(ctx, "demo.lead", "all") },
		"merge":  func() error { return r.Own(ctx, "demo.lead", "merge", "--quiet", head) },
		"rebase": func() error { return r.Careful(ctx, "demo.lead", "rebase", "--quiet", head) },
	} {
		if err := do(); err == nil || !strings.Contains(err.Error(), "demo.lead may write") || !strings.Contains(err.Error(), "filter.x.clean") && !strings.Contains(err.Error(), "include.path") {
			t.Errorf("%s: %v", name, err)
		}
		if text, err := os.ReadFile(marker); err == nil {
			t.Fatalf("%s ran\n%s", name, text)
		}
	}
	// An object that is not there is not fetched.
	blob := h.Git(dir, "-c", "core.fsmonitor=false", "rev-parse", head+":a")
	_ = os.Remove(marker) // that was git alone
	if err := os.Remove(filepath.Join(dir, ".git", "objects", blob[:2], blob[2:])); err != nil {
		t.Fatal(err)
	}
	h.Write("nested/a", "two")
	if _, _, err := r.Diff(ctx, head, ""); err == nil {
		t.Error("the diff has what is not there")
	}
	if text, err := os.ReadFile(marker); err == nil {
		t.Fatalf("the diff fetched by\n%s", text)
	}
}

// Where no program is named a merge goes on, without the hooks.
func TestAChangeWhereABotMayWriteTheHooks(t *testing.T) {
	h := sonnytest.Fresh(t, sonnytest.NoEnv)
	t.Setenv("HOME", h.Dir)
	ctx := context.Background()
	dir := h.Repo("nested", map[string]string{"a": "one"})
	h.Git(dir, "checkout", "--quiet", "-b", "side")
	h.Git(dir, "commit", "--quiet", "--allow-empty", "--message", "second")
	h.Git(dir, "checkout", "--quiet", "main")
	write(t, filepath.Join(dir, ".git", "hooks", "post-merge"), "#!/bin/sh\ntouch "+h.Path("ran")+"\n")
	r, _, err := Find(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	h.Write("nested/new", "n")
	if err := r.CommitAll(ctx, "demo.lead", "all"); err != nil {
		t.Fatal(err)
	}
	if err := r.Own(ctx, "demo.lead", "merge", "--quiet", "--no-ff", "--no-edit", "side"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(h.Path("ran")); err == nil {
		t.Error("the hook ran")
	}
	if h.Git(dir, "status", "--porcelain") != "" || h.Git(dir, "rev-list", "--count", "HEAD") != "4" {
		t.Errorf("it is\n%s\n%s", h.Git(dir, "status"), h.Git(dir, "log", "--oneline"))
	}
	h.Git(dir, "fsck", "--strict")
}

// What the person's own config defines is the person's program, and runs as ever.
func TestTheOwnFilterGoesOn(t *testing.T) {
	h := sonnytest.Fresh(t, sonnytest.NoEnv)
	t.Setenv("HOME", h.Dir)
	ctx := context.Background()
	dir := h.Repo("demo", map[string]string{"a": "one\n", ".gitattributes": "a filter=own\n"})
	config, err := os.ReadFile(h.Path(".gitconfig"))
	if err != nil {
		t.Fatal(err)
	}
	h.Write(".gitconfig", string(config)+"[filter \"own\"]\n\tclean = tr O o\n\tsmudge = tr o O\n")
	h.Write("demo/a", "One\n")
	r, _, err := Find(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := r.Status(ctx); err != nil || s.Dirty() {
		t.Errorf("%+v, %v", s, err)
	}
	h.Git(dir, "config", "branch.main.remote", ".")
	h.Git(dir, "config", "branch.main.merge", "refs/heads/odd \"name\\")
	h.Git(dir, "config", "remote.a \"b\\.c.fetch", "+refs/heads/*:refs/remotes/x/*")
	if s, err := r.Status(ctx); err != nil || s.Dirty() {
		t.Errorf("with odd names: %+v, %v", s, err)
	}
}

// A .git that leads elsewhere, and a folder that is only made to look like a repository.
func TestWhatLeadsAstray(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	own, _ := made(t)
	config := func(worktree string) string {
		return "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = " + worktree + "\n"
	}
	for name, row := range map[string]struct {
		plant  func(dir string)
		astray bool
	}{
		"a pointer to a repository of the person's": {func(dir string) {
			write(t, filepath.Join(dir, ".git"), "gitdir: "+filepath.Join(own, ".git")+"\n")
		}, true},
		"a link to one": {func(dir string) {
			if err := os.Symlink(filepath.Join(own, ".git"), filepath.Join(dir, ".git")); err != nil {
				t.Fatal(err)
			}
		}, true},
		"a common folder that is one": {func(dir string) {
			runGit(t, dir, "init", "-q")
			write(t, filepath.Join(dir, ".git", "commondir"), filepath.Join(own, ".git")+"\n")
		}, true},
		"a checkout elsewhere": {func(dir string) {
			runGit(t, dir, "init", "-q")
			write(t, filepath.Join(dir, ".git", "config"), config(own))
		}, true},
		"a checkout above": {func(dir string) {
			runGit(t, dir, "init", "-q")
			write(t, filepath.Join(dir, ".git", "config"), config(filepath.Dir(dir)))
		}, true},
		"a folder that looks like a git folder": {func(dir string) {
			runGit(t, dir, "init", "-q", "--bare")
			write(t, filepath.Join(dir, "config"), config(dir))
		}, false},
	} {
		dir := filepath.Join(t.TempDir(), "nested")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		row.plant(dir)
		if r, astray, err := Find(ctx, dir); err != nil || r.There() || (astray != "") != row.astray {
			t.Errorf("%s: %+v, %q, %v", name, r, astray, err)
		}
	}
	sub := filepath.Join(own, "sub")
	runGit(t, own, "-c", "protocol.file.allow=always", "submodule", "add", "-q", own, "sub")
	if r, astray, err := Find(ctx, sub); err != nil || r.Top != sub || astray != "" {
		t.Errorf("a submodule: %+v, %q, %v", r, astray, err)
	}
}
