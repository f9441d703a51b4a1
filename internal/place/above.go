package place

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Stop is the folder at which a way up ends, and why.
type Stop struct{ Dir, Why string }

// Above are the folders above an absolute one, the nearest first, as far as what lies in
// them is the caller's word: up to the first, which is not among them, that a user
// besides the caller and root may write, or where every sandboxed bot may, as in /tmp.
// stop is that one; nil where the way led to the root. What lies above it is nobody's to
// vouch for either: a bot that wrote there chose the folders below it.
func Above(folder string) (dirs []string, stop *Stop) {
	shared := sharedFolders()
	for dir := filepath.Dir(folder); dir != folder; folder, dir = dir, filepath.Dir(dir) {
		if why := othersWrite(dir, shared, os.Geteuid()); why != "" {
			return dirs, &Stop{dir, why}
		}
		dirs = append(dirs, dir)
	}
	return dirs, nil
}

// sharedFolders are those for temporary files, which every sandbox lets its bot write
// unless it is told otherwise, and the bots run as the caller.
func sharedFolders() (shared []os.FileInfo) {
	for _, dir := range []string{"/tmp", "/var/tmp", os.Getenv("TMPDIR")} {
		if info, err := os.Stat(dir); err == nil {
			shared = append(shared, info)
		}
	}
	return shared
}

// othersWrite says who besides the user and root writes a folder; "" for nobody.
func othersWrite(dir string, shared []os.FileInfo, self int) string {
	info, err := os.Stat(dir)
	if err != nil {
		return "who writes " + dir + " cannot be found out"
	}
	for _, s := range shared {
		if os.SameFile(s, info) {
			return "every bot may write " + dir
		}
	}
	mode := info.Mode().Perm()
	switch {
	case foreign(info, self):
		return dir + " belongs to another user"
	case mode&0o002 != 0:
		return "everybody may write " + dir
	case mode&0o020 != 0 && !ownGroup(info, self):
		return "a group may write " + dir
	}
	return ""
}

// ownGroup reports whether a file's group is the one that many systems make for each
// user alone, which has the user's number.
func ownGroup(info fs.FileInfo, self int) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Gid) == self
}

// Foreign reports whether a file belongs to a user who is neither the caller nor root.
func Foreign(info fs.FileInfo) bool { return foreign(info, os.Geteuid()) }

func foreign(info fs.FileInfo, self int) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return !ok || st.Uid != 0 && int(st.Uid) != self
}
