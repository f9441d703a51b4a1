package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"

	"agent/internal/git"
	"agent/protocol"
)

// Step is a way back, or forth again, that was looked at and not yet gone.
type Step struct {
	Mark    Mark
	Changes []Change // what it would do to the files

	to, from string
	forth    bool
}

// Back is the step to a state of a bot: the newest whose files are others than now, or
// the one of a request. Nil where there is none.
func (m *Room) Back(ctx context.Context, bot int64, request string) (step *Step, err error) {
	err = m.alone(func() error {
		b, err := m.read()
		if err != nil {
			return err
		}
		if len(b.Marks) == 0 {
			return nil
		}
		now, err := m.present(ctx)
		if err != nil {
			return err
		}
		for _, k := range slices.Backward(b.Marks) {
			if k.Bot != bot && request == "" || request != "" && k.Request != request {
				continue
			}
			list, err := m.changes(ctx, now, k.Tree)
			if err != nil {
				return err
			}
			if len(list) > 0 {
				step = &Step{Mark: k, Changes: list, to: k.Tree, from: now}
				return nil
			}
		}
		return nil
	})
	return step, err
}

// Forth is the step that takes the last one back. Nil where there is none.
func (m *Room) Forth(ctx context.Context, bot int64) (step *Step, err error) {
	err = m.alone(func() error {
		b, err := m.read()
		if err != nil || len(b.Undone) == 0 {
			return err
		}
		last := b.Undone[len(b.Undone)-1]
		if last.Mark.Bot != bot {
			return nil
		}
		now, err := m.present(ctx)
		if err != nil {
			return err
		}
		list, err := m.changes(ctx, now, last.Tree)
		step = &Step{Mark: last.Mark, Changes: list, to: last.Tree, from: now, forth: true}
		return err
	})
	return step, err
}

// present keeps the folder as it is now.
func (m *Room) present(ctx context.Context) (tree string, err error) {
	if tree, err = m.record(ctx); err != nil {
		return "", err
	}
	return tree, m.hold(ctx, tree)
}

// Go goes the step. The files must be as they were when it was looked at: what
// changed meanwhile is refused with target_changed and nothing is done. The present
// state is kept first, so that it can be brought back.
func (m *Room) Go(ctx context.Context, s *Step) error {
	return m.alone(func() error {
		now, err := m.present(ctx)
		if err != nil {
			return err
		}
		if now != s.from {
			return protocol.Fail("target_changed", "the files changed since they were listed; look at the list again")
		}
		b, err := m.read()
		if err != nil {
			return err
		}
		if s.forth {
			b.Undone = b.Undone[:max(0, len(b.Undone)-1)]
		} else {
			b.Undone = append(b.Undone, undone{Mark: s.Mark, Tree: now})
		}
		if err := m.write(b); err != nil {
			return err
		}
		return m.apply(ctx, s.Changes)
	})
}

// apply puts files back. It never leaves the checkout, whatever links stand there.
func (m *Room) apply(ctx context.Context, list []Change) error {
	root, err := os.OpenRoot(m.repo.Top)
	if err != nil {
		return err
	}
	defer root.Close()
	var failed []error
	for _, c := range list {
		if c.Op == 'D' {
			failed = append(failed, gone(root.Remove(c.Path)))
		}
	}
	for _, c := range list {
		if c.Op != 'D' {
			failed = append(failed, m.put(ctx, root, c))
		}
	}
	return errors.Join(failed...)
}

func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// put writes a file anew, through another name so that it is whole or as it was.
func (m *Room) put(ctx context.Context, root *os.Root, c Change) error {
	text, err := m.git(ctx, git.Options{Max: MaxBytes, Env: nil}, "cat-file", "blob", c.blob)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Path, err)
	}
	// The runner takes a newline away from the end; the size says whether there was one.
	size, err := m.git(ctx, git.Options{}, "cat-file", "-s", c.blob)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Path, err)
	}
	if size != fmt.Sprint(len(text)) {
		text += "\n"
	}
	if dir := path.Dir(c.Path); dir != "." {
		if err := root.MkdirAll(dir, 0o777); err != nil {
			return err
		}
	}
	next := path.Join(path.Dir(c.Path), ".sonny-restore-"+c.blob[:12])
	if c.link {
		err = root.Symlink(text, next)
	} else {
		err = root.WriteFile(next, []byte(text), c.mode)
		if err == nil {
			err = root.Chmod(next, c.mode)
		}
	}
	if err == nil {
		_ = root.Remove(c.Path) // a folder that is empty by now makes way, a full one does not
		err = root.Rename(next, c.Path)
	}
	if err != nil {
		_ = root.Remove(next)
	}
	return err
}

// Diff is what changed in the folder since a state, as git prints it, untracked files
// among it. cut is true where it was too long to be whole.
func (m *Room) Diff(ctx context.Context, since string, max int) (text string, cut bool, err error) {
	err = m.alone(func() error {
		now, err := m.present(ctx)
		if err != nil {
			return err
		}
		text, err = m.git(ctx, git.Options{Max: max}, "diff-tree", "-r", "-p", "--no-ext-diff", "--no-textconv", "--no-color", "--full-index", since, now)
		if errors.Is(err, git.ErrTooLong) {
			cut, err = true, nil
		}
		return err
	})
	return text, cut, err
}
