package sandbox

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// isReal reports whether a path exists without a symbolic link in it.
func isReal(path string) bool {
	real, err := filepath.EvalSymlinks(path)
	return err == nil && real == path
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

// sortedKeys are a map's keys in order.
func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}
