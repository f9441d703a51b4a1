package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agent/protocol"
)

// A Tree is a worktree that was made.
type Tree struct {
	Path      string // its top; a real path
	Branch    string
	Workspace string // Folder's place in it where the checkout has one, else Path
	GitDir    string // its own git folder, COMMON/worktrees/X

	plan  *Plan
	begun bool // git was asked to make it; without that no branch is ours
}

// Source is the top of the checkout that the worktree was made of.
func (t *Tree) Source() string { return t.plan.Source }

// Roots are the folders that a bot of sandbox workspace-write needs, besides its
// workspace, to work in the whole worktree and to commit there. Of the git folders
// the sandbox keeps hooks, config, modules, commondir and other worktrees
// read-only (sandbox.md 3.2).
func (t *Tree) Roots() []string {
	roots := []string{t.plan.Common, t.GitDir}
	if t.Workspace != t.Path {
		roots = slices.Insert(roots, 0, t.Path)
	}
	return roots
}

// below is a folder of the worktree; its top where the checkout has no such
// folder, or a link on the way to it leads out.
func (t *Tree) below(sub string) string {
	real, err := filepath.EvalSymlinks(filepath.Join(t.Path, sub))
	if err != nil || real != t.Path && !strings.HasPrefix(real, t.Path+"/") {
		return t.Path
	}
	if info, err := os.Stat(real); err != nil || !info.IsDir() {
		return t.Path
	}
	return real
}

// undoLimit is how long Undo takes at most.
const undoLimit = time.Minute

// Undo removes the worktree with all that is in it, and its branch. It makes no
// difference to it whether ctx has ended. Errors say what is left and how to
// remove it: worktree_failed.
func (t *Tree) Undo(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoLimit)
	defer cancel()
	return t.plan.alone(ctx, func() error { return t.remove(ctx) })
}

// RemoveFolder removes the worktree with all that is in it, and keeps its branch.
// Errors say how to remove it: worktree_failed.
func (t *Tree) RemoveFolder(ctx context.Context) error {
	return t.plan.alone(ctx, func() error { return t.removeFolder(ctx) })
}

func (t *Tree) removeFolder(ctx context.Context) error {
	p := t.plan
	_, err := p.in(ctx, "worktree", "remove", "--force", t.Path)
	if err != nil {
		err = t.removeByHand()
	}
	if err != nil {
		return p.failed(fmt.Sprintf("%s is left: %v; remove it with: git -C %s worktree remove --force %s", t.Path, err, quoted(p.Source), quoted(t.Path)))
	}
	return nil
}

// remove is Undo, while nobody else is at it.
func (t *Tree) remove(ctx context.Context) error {
	p := t.plan
	if err := t.removeFolder(ctx); err != nil {
		return err
	}
	if !t.begun {
		return nil
	}
	if _, err := p.ask(ctx, "show-ref", "--verify", "--quiet", p.ref()); err != nil {
		return nil // git had not come so far
	}
	drop := []string{"update-ref", "-d", p.ref()}
	if t.GitDir == "" { // nobody has worked on it
		drop = append(drop, p.Base)
	}
	if _, err := p.in(ctx, drop...); err != nil {
		return p.failed("the branch " + t.Branch + " is left: " + err.Error() + "; remove it with: " + p.dropBranch())
	}
	return nil
}

// Undone is err, after which nothing of the worktree is left; or what is.
func (t *Tree) Undone(err error) error {
	left := t.Undo(context.Background())
	if left == nil {
		return err
	}
	var coded *protocol.Error
	if !errors.As(err, &coded) {
		return errors.Join(err, left)
	}
	both := *coded
	both.Detail += "; " + left.Error()
	return &both
}

// ownGitDir is the worktree's own git folder: the one of the repository's that says
// it is for this worktree. The worktree's .git file is not asked, since an agent may
// have changed it by now.
func (t *Tree) ownGitDir() (string, error) {
	found := ""
	err := t.eachGitDir(func(dir string) error { found = dir; return nil })
	if err == nil && found == "" {
		err = errors.New("git made no folder of its own for it")
	}
	return found, err
}

// eachGitDir calls with each git folder of the repository's that is for this worktree.
func (t *Tree) eachGitDir(do func(dir string) error) error {
	all := filepath.Join(t.plan.Common, "worktrees")
	entries, err := os.ReadDir(all)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		dir := filepath.Join(all, e.Name())
		pointer, err := os.ReadFile(filepath.Join(dir, "gitdir"))
		if err == nil && strings.TrimSuffix(string(pointer), "\n") == filepath.Join(t.Path, ".git") {
			err = do(dir)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// removeByHand removes a worktree that git does not take for one: it was ended
// while it made it, or the setup changed it.
func (t *Tree) removeByHand() error {
	if err := removeAll(t.Path); err != nil {
		return err
	}
	return t.eachGitDir(removeAll)
}

// removeAll removes a folder, also where folders in it may not be written.
func removeAll(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			os.Chmod(path, 0o700) // before it is read
		}
		return nil
	})
	return os.RemoveAll(dir)
}
