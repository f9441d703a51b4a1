package git

import (
	"context"
	"os"
	"path/filepath"
	"strings"
)

// FromCheckout are those settings of a repository's config that lead into the checkout or
// into a git folder of it, where agents write: files that the config includes, and programs
// that a merge, a checkout or a commit would run. Their order is the file's.
func (g Program) FromCheckout(ctx context.Context, c Checkout) (keys []string, err error) {
	for _, path := range []string{filepath.Join(c.Common, "config"), filepath.Join(c.GitDir, "config.worktree")} {
		all, err := g.entries(ctx, path)
		if err != nil {
			return nil, err
		}
		for _, s := range all {
			if s.leadsInto(c, filepath.Dir(path)) {
				keys = append(keys, s.key)
			}
		}
	}
	return keys, nil
}

// leadsInto reports whether the setting is of a file or a program in the checkout. dir is
// the folder of the config that it stands in.
func (s setting) leadsInto(c Checkout, dir string) bool {
	section, _, name := parts(s.key)
	switch {
	case (section == "include" || section == "includeif") && name == "path":
		return c.Holds(fromHome(s.value), dir)
	case section == "filter" && name != "required", section == "merge" && name == "driver", section == "gpg" && name == "program":
	case s.key == "core.sshcommand", section == "credential" && name == "helper":
	default:
		return false
	}
	for _, word := range strings.FieldsFunc(s.value, func(r rune) bool { return strings.ContainsRune(" \t\n\"';&|()<>=", r) }) {
		if strings.Contains(word, "/") && c.Holds(fromHome(word), c.Top) || isThere(filepath.Join(c.Top, word)) {
			return true
		}
	}
	return false
}

// Holds reports whether a path, which may be relative to dir, is in the checkout or in its
// git folders, by its name or by where its links lead.
func (c Checkout) Holds(path, dir string) bool {
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	paths := []string{filepath.Clean(path)}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		paths = append(paths, real)
	}
	for _, path := range paths {
		for _, folder := range []string{c.Top, c.GitDir, c.Common} {
			if rel, err := filepath.Rel(folder, path); err == nil && filepath.IsLocal(rel) {
				return true
			}
		}
	}
	return false
}

// fromHome is a path of which ~ stands for the home folder.
func fromHome(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	return path
}

func isThere(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
