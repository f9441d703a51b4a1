package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"agent/internal/place"
)

// ErrNoCheckout is of a folder that lies in no checkout.
var ErrNoCheckout = errors.New("it lies in no git checkout")

// ErrAstray is of a checkout whose .git leads to a git folder that does not lead back:
// whoever wrote that .git may have had another repository in mind than the person. What
// wraps it says which.
var ErrAstray = errors.New("its .git leads astray")

// Discover looks for the checkout that holds a folder, as git does, and believes only
// what both sides say. An agent can write a .git in any folder but the top of its own:
// one that leads to a repository of the person's elsewhere, whose git folder would then
// be given to a bot, or one whose config puts the checkout elsewhere. A folder that
// merely looks like a git folder is none. Nothing is run. Errors: ErrNoCheckout,
// ErrAstray, ctx's.
func (g Program) Discover(ctx context.Context, folder string) (c Checkout, err error) {
	answer, err := g.Run(ctx, folder, "-c", "safe.bareRepository=explicit",
		"rev-parse", "--show-toplevel", "--absolute-git-dir", "--path-format=absolute", "--git-common-dir")
	if cause := context.Cause(ctx); cause != nil {
		return c, cause
	}
	lines := strings.Split(answer, "\n")
	if err != nil || len(lines) != 3 {
		return c, fmt.Errorf("%w: %v", ErrNoCheckout, err) // one without a checkout, or a folder within .git
	}
	real := [3]string{}
	for i := range lines {
		if real[i], err = filepath.EvalSymlinks(lines[i]); err != nil {
			return c, fmt.Errorf("%w: git says, by core.worktree or a file of its own, that what it is of is %s: %w", ErrAstray, lines[i], err)
		}
	}
	c = Checkout{Top: real[0], GitDir: real[1], Common: real[2]}
	return c, g.leadsBack(ctx, c, folder)
}

// leadsBack checks that the checkout is where its .git lies, and that its git folder is
// its own.
func (g Program) leadsBack(ctx context.Context, c Checkout, folder string) error {
	if top := byPlace(folder); top != c.Top {
		return fmt.Errorf("%w: that in %s says that the checkout is %s", ErrAstray, top, c.Top)
	}
	pointer := filepath.Join(c.Top, ".git")
	linked := c.GitDir != c.Common
	switch {
	case !linked && c.GitDir == pointer:
		return nil
	case linked && filepath.Dir(c.GitDir) == filepath.Join(c.Common, "worktrees"):
		text, err := place.ReadRegular(filepath.Join(c.GitDir, "gitdir"), maxConfig)
		if back := strings.TrimSuffix(string(text), "\n"); err == nil && within(c.GitDir, back) == pointer {
			return nil
		}
	case !linked: // a submodule's
		all, err := g.entries(ctx, filepath.Join(c.GitDir, "config"))
		for _, s := range all {
			if err == nil && s.key == "core.worktree" && within(c.GitDir, s.value) == c.Top {
				return nil
			}
		}
	}
	return fmt.Errorf("%w: %s names the git folder %s, which does not name it", ErrAstray, pointer, c.GitDir)
}

// byPlace is the nearest folder at or above one that has a .git; "" for none. A folder of
// that name which holds no HEAD is none to git either: a sandbox puts one where nobody may
// make a repository.
func byPlace(folder string) string {
	dir := place.Real(folder)
	for {
		at := filepath.Join(dir, ".git")
		if info, err := os.Lstat(at); err == nil && (!info.IsDir() || isThere(filepath.Join(at, "HEAD"))) {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
		dir = filepath.Dir(dir)
	}
}

// within is a path that a git folder's file names, for its folder a real one.
func within(gitDir, path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(gitDir, path)
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(dir, filepath.Base(path))
	}
	return filepath.Clean(path)
}
