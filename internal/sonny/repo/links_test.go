package repo

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Links that an agent put where git writes: nothing outside the repository is written.
func TestNothingIsWrittenThroughLinksInTheGitFolder(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, row := range []struct {
		link string // below the git folder
		do   func(r Repo) error
	}{
		{"MERGE_MSG", func(r Repo) error { return r.Own(ctx, "", "merge", "--quiet", "--no-ff", "--no-edit", "other") }},
		{"logs/HEAD", func(r Repo) error { return r.Own(ctx, "", "merge", "--quiet", "--no-ff", "--no-edit", "other") }},
		{"logs/refs/heads/main", func(r Repo) error { return r.Own(ctx, "", "merge", "--quiet", "--no-ff", "--no-edit", "other") }},
		{"MERGE_HEAD", func(r Repo) error { return r.Own(ctx, "", "merge", "--quiet", "--no-ff", "--no-commit", "other") }},
		{"SQUASH_MSG", func(r Repo) error { return r.Own(ctx, "", "merge", "--quiet", "--squash", "other") }},
		{"COMMIT_EDITMSG", func(r Repo) error {
			write(t, filepath.Join(r.Top, "new.txt"), "new\n")
			return r.CommitAll(ctx, "", "all")
		}},
		{"logs/HEAD", func(r Repo) error { return r.Careful(ctx, "", "rebase", "--quiet", "other") }},
		{"logs/HEAD", func(r Repo) error { // by a bot that may write the config
			return r.Own(ctx, "demo.lead", "merge", "--quiet", "--no-ff", "--no-edit", "other")
		}},
	} {
		t.Run(row.link, func(t *testing.T) {
			t.Parallel()
			dir, r := made(t)
			runGit(t, dir, "config", "user.name", "t")
			runGit(t, dir, "config", "user.email", "t@localhost")
			runGit(t, dir, "checkout", "-q", "-b", "other")
			write(t, filepath.Join(dir, "b.txt"), "b\n")
			runGit(t, dir, "add", ".")
			runGit(t, dir, "commit", "-qm", "theirs")
			runGit(t, dir, "checkout", "-q", "main")
			write(t, filepath.Join(dir, "c.txt"), "c\n")
			runGit(t, dir, "add", ".")
			runGit(t, dir, "commit", "-qm", "ours")
			precious := filepath.Join(t.TempDir(), "precious")
			write(t, precious, "mine\n")
			at := filepath.Join(dir, ".git", row.link)
			_ = os.Remove(at)
			if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(precious, at); err != nil {
				t.Fatal(err)
			}
			err := row.do(r)
			if got, _ := os.ReadFile(precious); string(got) != "mine\n" {
				t.Errorf("%q was written through it (%v)", got, err)
			}
		})
	}
}

// What the config takes from the checkout, agents write: nothing of it counts.
func TestAConfigThatTakesFromTheCheckout(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, set := range map[string][]string{
		"include.path":            {"include.path", "../.gitconfig"},
		"include.path ":           {"include.path", "extra"}, // in the git folder
		"filter.x.smudge":         {"filter.x.smudge", "tools/clean --smudge"},
		"filter.x.clean":          {"filter.x.clean", "sh tools/clean"},
		"merge.x.driver":          {"merge.x.driver", "./drive %O %A %B"},
		"includeif.gitdir:/.path": {"includeIf.gitdir:/.path", "../.gitconfig"},
	} {
		dir, r := made(t)
		write(t, filepath.Join(dir, "tools", "clean"), "#!/bin/sh\ncat\n")
		runGit(t, dir, "branch", "other")
		runGit(t, dir, "config", set[0], set[1])
		err := r.Own(ctx, "", "merge", "--quiet", "--no-edit", "other")
		if err == nil || !strings.Contains(err.Error(), strings.TrimSpace(name)) || !strings.Contains(err.Error(), "where agents write") {
			t.Errorf("%s: %v", name, err)
		}
	}
	dir, r := made(t)
	runGit(t, dir, "branch", "other")
	runGit(t, dir, "config", "filter.lfs.clean", "git-lfs clean -- %f")
	runGit(t, dir, "config", "include.path", "/etc/gitconfig-of-all")
	if err := r.Own(ctx, "", "merge", "--quiet", "--no-edit", "other"); err != nil {
		t.Error(err)
	}
}
