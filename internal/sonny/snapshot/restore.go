package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

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
			if list = k.Beside.keep(list); len(list) > 0 {
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
		list = last.Beside.keep(list)
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
		ignored, err := m.ignored(ctx)
		if err != nil {
			return err
		}
		b, err := m.read()
		if err != nil {
			return err
		}
		if s.forth {
			b.Undone = b.Undone[:max(0, len(b.Undone)-1)]
		} else {
			b.Undone = append(b.Undone, undone{Mark: s.Mark, Tree: now, Beside: ignored})
		}
		if err := m.write(b); err != nil {
			return err
		}
		return m.apply(ctx, s.Changes)
	})
}

// apply puts files back. It never leaves the checkout, and goes through no link: an
// agent may have put one where a folder was, to what it must not write (PO-34).
func (m *Room) apply(ctx context.Context, list []Change) error {
	root, err := os.OpenRoot(m.repo.Top)
	if err != nil {
		return err
	}
	defer root.Close()
	var failed []error
	for _, c := range list {
		if c.Op == 'D' {
			failed = append(failed, within(root, c.Path, false, func(dir *os.Root, name string) error { return dir.Remove(name) }))
		}
	}
	for _, c := range list {
		if c.Op != 'D' {
			failed = append(failed, m.put(ctx, root, c))
		}
	}
	return errors.Join(failed...)
}

// within calls do with the folder that a path names and the last name of it. What is
// missing of the folders is made, or there is nothing to do.
func within(root *os.Root, file string, making bool, do func(dir *os.Root, name string) error) error {
	dir, err := folder(root, path.Dir(file), making)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !making:
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", file, err)
	}
	defer dir.Close()
	if err = do(dir, path.Base(file)); err != nil && (making || !errors.Is(err, fs.ErrNotExist)) {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// folder opens a folder below another, name by name. Each is looked at, opened, and
// compared with what was looked at, so that no link is followed, not even one that
// takes a folder's place in the middle.
func folder(root *os.Root, dir string, making bool) (*os.Root, error) {
	at, err := root.OpenRoot(".")
	if err != nil || dir == "." {
		return at, err
	}
	for name := range strings.SplitSeq(dir, "/") {
		next, err := step(at, name, making)
		at.Close()
		if err != nil {
			return nil, err
		}
		at = next
	}
	return at, nil
}

func step(at *os.Root, name string, making bool) (*os.Root, error) {
	if making {
		if err := at.Mkdir(name, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	seen, err := at.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !seen.IsDir() {
		return nil, errNoFolder(name)
	}
	next, err := at.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	opened, err := next.Stat(".")
	if err == nil && !os.SameFile(seen, opened) {
		err = errNoFolder(name)
	}
	if err != nil {
		next.Close()
		return nil, err
	}
	return next, nil
}

func errNoFolder(name string) error {
	return protocol.Fail("target_changed", name+" is a link or a file now, where a folder was; nothing is put back through it")
}

// put writes a file anew, through another name so that it is whole or as it was.
func (m *Room) put(ctx context.Context, root *os.Root, c Change) error {
	text, err := m.blob(ctx, c)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Path, err)
	}
	return within(root, c.Path, true, func(dir *os.Root, name string) error {
		next := ".sonny-restore-" + c.blob[:12]
		err := fresh(dir, next, text, c)
		if err == nil {
			_ = dir.Remove(name) // a folder that is empty by now makes way, a full one does not
			err = dir.Rename(next, name)
		}
		if err != nil {
			_ = dir.Remove(next)
		}
		return err
	})
}

// fresh makes a file or a link that was not there.
func fresh(dir *os.Root, name, text string, c Change) error {
	_ = dir.Remove(name) // of a restore that was cut short
	if c.link {
		return dir.Symlink(text, name)
	}
	f, err := dir.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, c.mode)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err == nil {
		err = f.Chmod(c.mode)
	}
	return errors.Join(err, f.Close())
}

// blob is what a change's file held.
func (m *Room) blob(ctx context.Context, c Change) (string, error) {
	text, err := m.git(ctx, git.Options{Max: MaxBytes}, "cat-file", "blob", c.blob)
	if err != nil {
		return "", err
	}
	// The runner takes a newline away from the end; the size says whether there was one.
	size, err := m.git(ctx, git.Options{}, "cat-file", "-s", c.blob)
	if err == nil && size != fmt.Sprint(len(text)) {
		text += "\n"
	}
	return text, err
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
