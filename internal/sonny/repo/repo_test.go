package repo

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agent/internal/sonny/sonnytest"

	"github.com/google/go-cmp/cmp"
)

func TestMain(m *testing.M) { sonnytest.Main(m) }

func runGit(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "init.defaultBranch=main"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// made is a repository with one commit of a.txt.
func made(t *testing.T) (string, Repo) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	runGit(t, dir, "init", "-q")
	write(t, filepath.Join(dir, "a.txt"), "one\n")
	runGit(t, dir, "add", ".")
	runGit(t, dir, "commit", "-qm", "first")
	r, _, err := Find(context.Background(), dir)
	if err != nil || r.Top != dir || r.GitDir != filepath.Join(dir, ".git") || r.Linked() {
		t.Fatalf("found %+v, %v", r, err)
	}
	return dir, r
}

func TestFind(t *testing.T) {
	t.Parallel()
	dir, r := made(t)
	tree := filepath.Join(dir, "..", filepath.Base(dir)+"-tree")
	runGit(t, dir, "worktree", "add", "-q", tree)
	linked, _, err := Find(context.Background(), tree)
	if err != nil || !linked.Linked() || linked.Common != r.Common || linked.Source() != dir {
		t.Errorf("the worktree is %+v, %v", linked, err)
	}
	for name, folder := range map[string]string{"outside": t.TempDir(), "within the git folder": r.GitDir} {
		if none, _, err := Find(context.Background(), folder); err != nil || none.There() {
			t.Errorf("%s: %+v, %v", name, none, err)
		}
	}
}

func TestStatusAndDiff(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir, r := made(t)
	s, err := r.Status(ctx)
	if err != nil || s.Branch != "main" || s.Dirty() || len(s.Commit) != 40 {
		t.Fatalf("clean: %+v, %v", s, err)
	}
	write(t, filepath.Join(dir, "a.txt"), "two\n")
	write(t, filepath.Join(dir, "new name\n.txt"), "x\n")
	if s, err = r.Status(ctx); err != nil {
		t.Fatal(err)
	}
	want := []File{{Path: "a.txt", Code: ".M"}, {Path: "new name\n.txt", Code: "??"}}
	if diff := cmp.Diff(want, s.Files); diff != "" {
		t.Error(diff)
	}
	text, cut, err := r.Diff(ctx, "HEAD", "")
	if err != nil || cut || !strings.Contains(text, "-one\n+two") {
		t.Errorf("diff %q, cut %v, %v", text, cut, err)
	}
	runGit(t, dir, "mv", "-f", "a.txt", "b.txt")
	runGit(t, dir, "checkout", "-q", "HEAD", "--", "a.txt")
	paths, cut, err := r.Paths(ctx, 2)
	if err != nil || !cut || len(paths) != 2 {
		t.Errorf("paths %q, cut %v, %v", paths, cut, err)
	}
}

// An agent made a repository within the checkout, whose config names a filter: what
// Sonny does in the checkout runs none of it (PO-43).
func TestARepositoryWithinRunsNothing(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir, _ := made(t)
	tree := filepath.Join(filepath.Dir(dir), "tree")
	runGit(t, dir, "config", "user.name", "t")
	runGit(t, dir, "config", "user.email", "t@localhost")
	runGit(t, dir, "worktree", "add", "-q", tree)
	r, _, err := Find(ctx, tree)
	if err != nil {
		t.Fatal(err)
	}
	ran := filepath.Join(t.TempDir(), "ran")
	plant := func(name string) {
		t.Helper()
		nested := filepath.Join(tree, name)
		write(t, filepath.Join(nested, "f"), "one\n")
		runGit(t, nested, "init", "-q")
		runGit(t, nested, "add", ".")
		runGit(t, nested, "commit", "-qm", "first")
		runGit(t, nested, "config", "filter.x.clean", "touch "+ran+"; cat")
		write(t, filepath.Join(nested, ".gitattributes"), "* filter=x\n")
		write(t, filepath.Join(nested, "f"), "two\n")
	}
	plant("known")
	runGit(t, tree, "-c", "advice.addEmbeddedRepo=false", "update-index", "--add", "known")
	plant("new")
	write(t, filepath.Join(tree, "b.txt"), "two\n")
	write(t, filepath.Join(tree, "known", ".gitmodules"), "")
	for name, do := range map[string]func() error{
		"status": func() error { _, err := r.Status(ctx); return err },
		"diff":   func() error { _, _, err := r.Diff(ctx, "HEAD", ""); return err },
		"paths":  func() error { _, _, err := r.Paths(ctx, 100); return err },
		"commit": func() error { return r.CommitAll(ctx, "", "all") },
		"rebase": func() error { return r.Careful(ctx, "", "rebase", "--quiet", "main") },
		"merge":  func() error { return r.Own(ctx, "", "merge", "--quiet", "--no-edit", "main") },
	} {
		if err := do(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(ran); err == nil {
			t.Fatalf("%s ran a program that the repository within names", name)
		}
	}
	if within, err := r.Within(ctx); err != nil || len(within) != 1 || within[0] != "known" {
		t.Errorf("within %q, %v", within, err)
	}
	if got := runGit(t, tree, "show", "--name-only", "--format="); !strings.Contains(got, "b.txt") || !strings.Contains(got, "known") {
		t.Errorf("committed %q", got)
	}
	if err := os.RemoveAll(filepath.Join(tree, "new")); err != nil {
		t.Fatal(err)
	}
	from, _, err := Find(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := from.RemoveWorktree(ctx, tree); err == nil {
		t.Error("a worktree was removed that holds a repository within")
	}
}

// Some tools have the hooks in the checkout itself, where agents write (sonny.md 4).
func TestHooksInTheCheckoutDoNotRun(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, c := range map[string]struct {
		path string // of core.hooksPath; "": not set
		runs bool
	}{
		"the repository's own": {"", true}, "a folder of the checkout": {".husky", false},
		"the same by its whole path": {"/.husky", false}, "a link into the checkout": {"link", false},
	} {
		dir, r := made(t)
		runGit(t, dir, "config", "user.name", "t")
		runGit(t, dir, "config", "user.email", "t@localhost")
		hooks := filepath.Join(dir, ".git", "hooks")
		if c.path == "link" {
			if err := os.MkdirAll(hooks, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("../../tools/post-merge", filepath.Join(hooks, "post-merge")); err != nil {
				t.Fatal(err)
			}
			hooks = filepath.Join(dir, "tools")
		} else if c.path != "" {
			hooks = filepath.Join(dir, ".husky")
			set := c.path
			if filepath.IsAbs(set) {
				set = hooks
			}
			runGit(t, dir, "config", "core.hooksPath", set)
		}
		ran := filepath.Join(dir, "ran") // elsewhere nothing that git runs may write
		runGit(t, dir, "checkout", "-q", "-b", "other")
		runGit(t, dir, "commit", "-q", "--allow-empty", "-m", "second")
		runGit(t, dir, "checkout", "-q", "-")
		write(t, filepath.Join(hooks, "post-merge"), "#!/bin/sh\ntouch "+ran+"\n")
		if err := r.Own(ctx, "", "merge", "--quiet", "--no-edit", "other"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(ran); (err == nil) != c.runs {
			t.Errorf("%s: the hook ran: %v", name, err == nil)
		}
	}
}

// An agent rewrote the .git pointer of its worktree to a git folder that names
// programs: what Sonny reads there runs none of them (SO-108, on the reading side).
func TestRewrittenPointerRunsNothing(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir, _ := made(t)
	tree := filepath.Join(filepath.Dir(dir), "tree")
	runGit(t, dir, "worktree", "add", "-q", tree)
	r, _, err := Find(ctx, tree)
	if err != nil {
		t.Fatal(err)
	}
	ran := filepath.Join(t.TempDir(), "ran")
	evil, _ := made(t)
	write(t, filepath.Join(evil, "run.sh"), "#!/bin/sh\necho x >> "+ran+"\n")
	for key, value := range map[string]string{
		"core.fsmonitor": filepath.Join(evil, "run.sh"), "diff.external": filepath.Join(evil, "run.sh"),
		"diff.x.textconv": filepath.Join(evil, "run.sh"), "filter.x.clean": filepath.Join(evil, "run.sh"),
	} {
		runGit(t, evil, "config", key, value)
	}
	write(t, filepath.Join(tree, ".gitattributes"), "* diff=x filter=x\n")
	write(t, filepath.Join(tree, "a.txt"), "changed\n")
	if err := os.WriteFile(filepath.Join(tree, ".git"), []byte("gitdir: "+filepath.Join(evil, ".git")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if s, err := r.Status(ctx); err != nil || !s.Dirty() {
		t.Errorf("status %+v, %v", s, err)
	}
	if text, _, err := r.Diff(ctx, "HEAD", ""); err != nil || !strings.Contains(text, "+changed") {
		t.Errorf("diff %q, %v", text, err)
	}
	if _, _, err := r.Paths(ctx, 100); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a program of the planted git folder ran")
	}
}
