package sandbox

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// within reports whether path is dir or lies below it. Both are clean.
func within(path, dir string) bool {
	return path == dir && dir != "" || below(path, dir)
}

// below reports whether path lies below dir, and is not it.
func below(path, dir string) bool {
	if dir == "" {
		return false
	}
	if dir == "/" {
		return path != "/" && strings.HasPrefix(path, "/")
	}
	return strings.HasPrefix(path, dir) && len(path) > len(dir) && path[len(dir)] == '/'
}

// depth is how many names a clean absolute path has.
func depth(path string) int {
	if path == "/" {
		return 0
	}
	return strings.Count(path, "/")
}

// RealPath is the one path of a file or folder that exists: without symbolic
// links, and on macOS in the spelling of the file system, which may fold case.
// Every path of a World and of a Setting is of this kind, as far as it exists;
// the sandbox compares them byte by byte. Errors are those of the file system.
func RealPath(path string) (string, error) {
	if path == "" {
		return "", os.ErrInvalid // and not the folder that the daemon happens to be in
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	return spelling(real)
}

// isReal reports whether a path exists and is its own RealPath.
func isReal(path string) bool {
	real, err := RealPath(path)
	return err == nil && real == path
}

// noLinkTo reports whether no symbolic link stands at a path or on the way to it.
// The path may have gone a moment ago, as another call's placeholder does.
func noLinkTo(path string) bool {
	real, err := RealPath(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return err == nil && real == path
	}
	info, err := os.Lstat(path)
	return (err != nil || info.Mode()&os.ModeSymlink == 0) && isReal(filepath.Dir(path))
}

// isDir reports whether path itself, and no link, is a folder.
func isDir(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}

func isFile(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular()
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// seen reports whether a path exists. It fails with sandbox_denied where that
// cannot be seen since a folder above, which a command may have closed, is the
// user's own; in another user's no command sees it either.
func seen(path string) (bool, error) {
	_, err := os.Lstat(path)
	switch {
	case err == nil:
		return true, nil
	case !errors.Is(err, fs.ErrPermission):
		return false, nil
	}
	dir := filepath.Dir(path)
	for ; dir != "/" && !exists(dir); dir = filepath.Dir(dir) {
	}
	if info, err := os.Lstat(dir); err == nil {
		if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid != uint32(os.Geteuid()) {
			return false, nil
		}
	}
	return false, denied(path + " cannot be seen, and so not be protected: chmod u+rwx " + dir)
}

// sortedKeys are a map's keys in order.
func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}
