package git

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Within has git, and whatever it runs, write below some folders alone. In folders that
// agents write, git follows the links that lie there: for the message of a merge, a line of
// a log, a branch. Where commands cannot be confined on this machine no agent is, and git
// runs as ever.
type Within struct {
	Writable []string // real paths of folders that are there
	Kept     []string // in those: what stays as it is. What is not there is left out
}

// WritingTo is what a command may write that changes a checkout: its files and its git
// folders, but for the repository's config and hooks, which every git of the person's runs
// by.
func WritingTo(c Checkout, more ...string) *Within {
	return &Within{
		Writable: append([]string{c.Top, c.GitDir, c.Common}, more...),
		Kept:     []string{filepath.Join(c.Common, "config"), filepath.Join(c.Common, "hooks"), filepath.Join(c.GitDir, "config.worktree")},
	}
}

// kept are those of the paths that are there, and that no link stands for: a link is
// refused, since what it leads to would be kept in its place.
func (w *Within) kept() (paths []string, err error) {
	for _, path := range w.Kept {
		info, err := os.Lstat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return nil, err
		case info.Mode()&fs.ModeSymlink != 0:
			return nil, errors.New(path + " is a link, and so git is not run there; look where it leads, and run git yourself")
		}
		paths = append(paths, path)
	}
	return paths, nil
}
