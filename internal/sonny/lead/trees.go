package lead

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"agent/client/worktree"
	"agent/internal/place"
	"agent/internal/sonny/repo"
	"agent/protocol"
)

// TaskTree is the worktree of a task, as it was when it was made: git never looks for a
// repository in a folder that agents write (sonny.md 4).
type TaskTree struct {
	Store    string            `json:"store"`
	Bot      string            `json:"bot"`
	Source   repo.Repo         `json:"source"` // the checkout that it was made of
	Tree     repo.Repo         `json:"tree"`
	Leftover worktree.Leftover `json:"leftover"`
}

// Branch is the task's branch.
func (t *TaskTree) Branch() string { return t.Leftover.Branch }

func treePath(sonny, store, bot string) string {
	return filepath.Join(sonny, "trees", filepath.Base(markerPath(sonny, store, bot)))
}

// recordTree keeps where a worktree's git folders are.
func (t *TaskStart) recordTree(tree *worktree.Tree) error {
	s := t.by
	if err := place.MakePrivateDir(filepath.Join(s.Sonny, "trees")); err != nil {
		return err
	}
	left := t.Tree.Leftover()
	left.Made, left.Path = true, tree.Path
	text, err := json.Marshal(&TaskTree{
		Store: s.Store, Bot: t.Bot, Leftover: left,
		Source: repo.Repo{Top: t.Tree.Source, GitDir: t.Tree.GitDir, Common: t.Tree.Common},
		Tree:   repo.Repo{Top: tree.Path, GitDir: tree.GitDir, Common: t.Tree.Common},
	})
	if err != nil {
		return err
	}
	return place.WritePrivate(treePath(s.Sonny, s.Store, t.Bot), text)
}

// forgetTree forgets a worktree that is gone.
func forgetTree(sonny, store, bot string) { os.Remove(treePath(sonny, store, bot)) }

// TreeOf is the worktree that Sonny made for a bot; nil where it works in none.
func TreeOf(sonny, store string, b *protocol.Bot) (*TaskTree, error) {
	text, _, err := place.ReadOwn(treePath(sonny, store, b.Name), 1<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	t := new(TaskTree)
	if err := json.Unmarshal(text, t); err != nil {
		return nil, err
	}
	if b.Workspace == nil || !inside(t.Tree.Top, *b.Workspace) {
		return nil, nil // of an earlier bot of the name
	}
	return t, nil
}

// TreeState is what of a task's work would go with its worktree and its branch.
type TreeState struct {
	Uncommitted []string `json:"uncommitted"` // paths, at most repo.MaxFiles; with / a repository within, whatever is in it
	Unmerged    int      `json:"unmerged"`    // commits that the lead's checkout does not have
}

// Keeps reports whether there is anything to lose.
func (s *TreeState) Keeps() bool { return len(s.Uncommitted) > 0 || s.Unmerged > 0 }

// State looks at the task's work.
func (t *TaskTree) State(ctx context.Context) (*TreeState, error) {
	status, err := t.Tree.Status(ctx)
	if err != nil {
		return nil, err
	}
	s := &TreeState{Uncommitted: []string{}}
	for _, f := range status.Files {
		s.Uncommitted = append(s.Uncommitted, f.Path)
	}
	within, err := t.Tree.Within(ctx)
	if err != nil {
		return nil, err
	}
	for _, path := range within {
		s.Uncommitted = append(s.Uncommitted, path+"/")
	}
	s.Unmerged, err = t.Source.Missing(ctx, "refs/heads/"+t.Branch())
	return s, err
}

// Diff is what the task has done since it left the lead's checkout, what it has not
// committed too. cut is true where it was too long to be whole.
func (t *TaskTree) Diff(ctx context.Context) (text string, cut bool, err error) {
	base, err := t.base(ctx)
	if err != nil {
		return "", false, err
	}
	return t.Tree.Diff(ctx, base, "")
}

// base is the newest commit that the task's branch and the lead's checkout share.
func (t *TaskTree) base(ctx context.Context) (string, error) {
	return t.Source.MergeBase(ctx, "HEAD", "refs/heads/"+t.Branch())
}

// RemoveFolder removes the worktree and keeps its branch. What is not committed is
// lost.
func (t *TaskTree) RemoveFolder(ctx context.Context) error {
	tree, err := t.Leftover.Tree()
	if err != nil {
		return err
	}
	return tree.RemoveFolder(ctx)
}

// Remove removes the worktree and its branch. What is not merged is lost.
func (t *TaskTree) Remove(ctx context.Context) error {
	tree, err := t.Leftover.Tree()
	if err != nil {
		return err
	}
	return tree.Undo(ctx)
}

// Forget drops the record of a worktree that was removed.
func (t *TaskTree) Forget(sonny string) { forgetTree(sonny, t.Store, t.Bot) }

// The codes of a merge that was not made, or not to its end.
const (
	mergeRefused  protocol.Code = "merge_refused"
	mergeConflict protocol.Code = "merge_conflict"
)

// MergeStrategy is how a task's commits come to the lead's branch.
type MergeStrategy string

// The strategies.
const (
	MergeCommit MergeStrategy = "merge"  // a merge commit, always
	MergeSquash MergeStrategy = "squash" // one commit with all of it
	MergeRebase MergeStrategy = "rebase" // the task's commits anew, on top of the lead's
)

// Merge brings a task's commits to the branch that the lead's folder is on, as the
// person's own command (sonny.md 5.2). merge_refused, with the paths, where that folder
// has uncommitted changes to the same files; merge_conflict, with the paths, where git
// could not bring both sides together: then the folder is as git leaves it. Where one of
// the bots may write the repository's config and hooks none of those run, and programs
// that the files go through are worktree_failed.
func (t *TaskTree) Merge(ctx context.Context, how MergeStrategy, bots []protocol.Bot) error {
	base, err := t.base(ctx)
	if err != nil {
		return err
	}
	branch := "refs/heads/" + t.Branch()
	touched, err := t.Source.Changed(ctx, base, branch)
	if err != nil {
		return err
	}
	status, err := t.Source.Status(ctx)
	if err != nil {
		return err
	}
	if both := bothOf(touched, status); len(both) > 0 {
		return protocol.Fail(mergeRefused, t.Source.Top+" has uncommitted changes to files that the task changed too: "+strings.Join(both, ", ")+"; commit or stash them first")
	}
	writer := t.writer(bots)
	switch how {
	case MergeSquash:
		if err := t.own(ctx, writer, "merge", "--squash", branch); err != nil {
			return err
		}
		return t.own(ctx, writer, "commit", "--quiet", "--message", "Work of "+t.Bot)
	case MergeRebase:
		if err := t.rebase(ctx, writer); err != nil {
			return err
		}
		return t.own(ctx, writer, "merge", "--quiet", "--ff-only", branch)
	}
	return t.own(ctx, writer, "merge", "--quiet", "--no-ff", "--no-edit", branch)
}

// own runs git in the lead's folder as the person does, with their hooks.
func (t *TaskTree) own(ctx context.Context, writer string, args ...string) error {
	if err := t.Source.Own(ctx, writer, args...); err != nil {
		return t.conflicts(ctx, t.Source, err)
	}
	return nil
}

// rebase puts the task's commits on top of the lead's, in the task's worktree and
// without hooks, since agents write there.
func (t *TaskTree) rebase(ctx context.Context, writer string) error {
	onto, err := t.Source.Resolve(ctx, "HEAD")
	if err != nil {
		return err
	}
	if err := t.Tree.Careful(ctx, writer, "rebase", "--quiet", onto); err != nil {
		return t.conflicts(ctx, t.Tree, err)
	}
	return nil
}

// conflicts is err, or which files git could not bring together.
func (t *TaskTree) conflicts(ctx context.Context, in repo.Repo, err error) error {
	status, failed := in.Status(ctx)
	if failed != nil {
		return protocol.Fail(mergeRefused, err.Error())
	}
	var paths []string
	for _, f := range status.Files {
		if f.Unmerged() {
			paths = append(paths, f.Path)
		}
	}
	if len(paths) == 0 {
		return protocol.Fail(mergeRefused, err.Error()+outOfReach(err))
	}
	return protocol.Fail(mergeConflict, "in "+in.Top+" both sides changed "+strings.Join(paths, ", ")+
		"; resolve that there, or take it back with git merge --abort (git rebase --abort after a rebase)")
}

// outOfReach says why git failed where it, a hook or a signer wanted to write elsewhere.
func outOfReach(err error) string {
	said := strings.ToLower(err.Error())
	if !strings.Contains(said, "gpg") && !strings.Contains(said, "sign") && !strings.Contains(said, "read-only file system") {
		return ""
	}
	return "; git, and what it runs, may write in the repository alone here, since agents write there too: where more is needed, merge yourself"
}

// bothOf are the changed paths of a checkout that are among others.
func bothOf(touched []string, s *repo.Status) (both []string) {
	is := map[string]bool{}
	for _, path := range touched {
		is[path] = true
	}
	for _, f := range s.Files {
		if is[f.Path] || f.From != "" && is[f.From] {
			both = append(both, f.Path)
		}
	}
	return both
}

// CommitAll commits what a task has left uncommitted, in its worktree and without
// hooks. The bots are as with Merge.
func (t *TaskTree) CommitAll(ctx context.Context, message string, bots []protocol.Bot) error {
	return t.Tree.CommitAll(ctx, t.writer(bots), message)
}

// writer is the first of the bots that may write the repository's config; "" for none.
func (t *TaskTree) writer(bots []protocol.Bot) string {
	for i := range bots {
		if worktree.MayConfigure(&bots[i], t.Source.Common) {
			return bots[i].Name
		}
	}
	return ""
}
