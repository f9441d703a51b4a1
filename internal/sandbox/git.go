package sandbox

import (
	"io"
	"os"
	"path/filepath"
	"strings"
)

// isGitFolder reports whether dir is a git folder: a .git, a bare repository, or
// a linked worktree's (sandbox.md 3.2).
func isGitFolder(dir string) bool {
	if !isFile(filepath.Join(dir, "HEAD")) {
		return false
	}
	return isDir(filepath.Join(dir, "objects")) && isDir(filepath.Join(dir, "refs")) ||
		isFile(filepath.Join(dir, "commondir"))
}

// gitFolders are the real folders behind a .git file, that of the worktree or
// submodule and the common one; none when the file says nothing that can be
// followed. A link on the way that a command may turn, in what is covered, is
// refused; the other error is seen's.
func gitFolders(pointer string, covered func(path string) bool) (dirs []string, err error) {
	text, ok := strings.CutPrefix(firstLine(pointer), "gitdir:")
	if !ok {
		return nil, nil
	}
	dir, err := followed(filepath.Dir(pointer), strings.TrimSpace(text), covered)
	if err != nil || dir == "" {
		return nil, err
	}
	dirs = append(dirs, dir)
	if text = firstLine(filepath.Join(dir, "commondir")); text != "" {
		common, err := followed(dir, strings.TrimSpace(text), covered)
		if err != nil {
			return dirs, err
		}
		if common != "" && common != dir {
			dirs = append(dirs, common)
		}
	}
	return dirs, nil
}

// followed is a path, relative to dir unless it is absolute, as a real folder; ""
// for none. The errors are those of gitFolders.
func followed(dir, path string, covered func(path string) bool) (string, error) {
	if path == "" || strings.IndexByte(path, 0) >= 0 {
		return "", nil
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	if _, err := seen(path); err != nil {
		return "", err
	}
	real, err := RealPath(path)
	if err != nil || !isDir(real) {
		return "", nil
	}
	if path = filepath.Clean(path); real != path && covered(path) {
		return "", denied("a symbolic link stands on the way to the git folder " + path + "; name " + real + " in the .git file instead")
	}
	return real, nil
}

// firstLine is the first line of a small regular file, "" for any other.
func firstLine(path string) string {
	if !isFile(path) {
		return ""
	}
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 8<<10))
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimSuffix(line, "\r")
}

// gitEntry is a name in a git folder that a bot may commit to, which stays as it
// is: what git would run or be led by.
type gitEntry struct {
	name string
	dir  bool   // of a placeholder
	text string // of a placeholder that is a file
	only bool   // protected where it exists, and never made
}

var gitEntries = []gitEntry{
	{name: "hooks", dir: true},
	{name: "config"},
	// One left there comes to life when worktree configuration is switched on.
	{name: "config.worktree"},
	{name: "modules", dir: true},
	{name: "worktrees", dir: true},
	{name: "gitdir", only: true},
	// Git then takes the folder itself for the common one; an empty file would
	// make every git command fail.
	{name: "commondir", text: ".\n"},
}
