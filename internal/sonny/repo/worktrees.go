package repo

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"agent/internal/git"
	"agent/protocol"
)

// Limits of what is read of a repository's worktrees, in bytes and in number.
const (
	maxWorktreeList = 4 << 20
	maxAdmins       = 10_000
)

// Worktree is one that the repository has on its list. Nothing of it was looked at in
// the worktree's own folder, which agents write.
type Worktree struct {
	Path   string
	Branch string // without refs/heads/; "" for a detached head
}

// Worktrees are those of the repository's list, its checkout among them; cut says that
// there are more.
func (r Repo) Worktrees(ctx context.Context) (list []Worktree, cut bool, err error) {
	out, err := r.plain(ctx, git.Options{Max: maxWorktreeList}, "worktree", "list", "--porcelain", "-z")
	if cut = errors.Is(err, git.ErrTooLong); err != nil && !cut {
		return nil, false, err
	}
	for field := range strings.SplitSeq(out, "\x00") {
		name, value, _ := strings.Cut(field, " ")
		switch {
		case name == "worktree":
			list = append(list, Worktree{Path: value})
		case name == "branch" && len(list) > 0:
			list[len(list)-1].Branch = strings.TrimPrefix(value, "refs/heads/")
		}
	}
	return list, cut, nil
}

// Branch is a branch with its newest commit.
type Branch struct{ Name, Commit string }

// Branches are those whose name begins with a prefix such as "agent/"; cut says that
// there are more.
func (r Repo) Branches(ctx context.Context, prefix string) (list []Branch, cut bool, err error) {
	out, err := r.read(ctx, maxWorktreeList, "for-each-ref", "--format=%(objectname) %(refname)", "refs/heads/"+prefix)
	if cut = errors.Is(err, git.ErrTooLong); err != nil && !cut {
		return nil, false, err
	}
	for line := range strings.SplitSeq(out, "\n") {
		commit, ref, ok := strings.Cut(line, " ")
		if ok {
			list = append(list, Branch{Name: strings.TrimPrefix(ref, "refs/heads/"), Commit: commit})
		}
	}
	return list, cut, nil
}

// Merged reports whether the checkout's own commits hold a commit.
func (r Repo) Merged(ctx context.Context, commit string) bool {
	_, err := r.read(ctx, maxStatus, "merge-base", "--is-ancestor", commit, "HEAD")
	return err == nil
}

// DropBranch removes a branch that still is at its commit. It writes no config, which a
// sandbox that runs would lose (sonny.md 5.1).
func (r Repo) DropBranch(ctx context.Context, b Branch) error {
	_, err := r.plainly(ctx, git.Options{Max: maxStatus}, "update-ref", "-d", "refs/heads/"+b.Name, b.Commit)
	return err
}

// Of is the repository as a worktree's, by the git folder that the repository itself
// keeps for it: what .git in the worktree says is not asked. worktree_failed where the
// repository keeps none for that path.
func (r Repo) Of(path string) (Repo, error) {
	all := filepath.Join(r.Common, "worktrees")
	dir, err := os.Open(all)
	if err != nil {
		return Repo{}, noWorktree(path)
	}
	defer dir.Close()
	entries, _ := dir.ReadDir(maxAdmins)
	for _, e := range entries {
		admin := filepath.Join(all, e.Name())
		pointer, err := os.ReadFile(filepath.Join(admin, "gitdir"))
		if err == nil && strings.TrimSuffix(string(pointer), "\n") == filepath.Join(path, ".git") {
			return Repo{Top: path, GitDir: admin, Common: r.Common}, nil
		}
	}
	return Repo{}, noWorktree(path)
}

func noWorktree(path string) error {
	return protocol.Fail(protocol.WorktreeFailed, "the repository keeps no git folder for "+path)
}

// RemoveWorktree removes a worktree of the repository with all that is in it; its branch
// stays. One with changes that are not committed is worktree_failed, and stays.
func (r Repo) RemoveWorktree(ctx context.Context, path string) error {
	own, err := r.Of(path)
	if err != nil {
		return err
	}
	status, err := own.Status(ctx)
	if err != nil {
		return err
	}
	within, err := own.Within(ctx)
	if err != nil {
		return err
	}
	if status.Dirty() || len(within) > 0 {
		return protocol.Fail(protocol.WorktreeFailed, path+" has changes that are not committed; commit them there, or remove it yourself")
	}
	o := git.Options{Max: maxStatus, Within: git.WritingTo(r.checkout(), filepath.Dir(path))} // the folder itself goes
	_, err = r.plain(ctx, o, "worktree", "remove", "--force", path)
	return err
}
