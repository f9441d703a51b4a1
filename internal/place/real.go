package place

import "path/filepath"

// Real is a path with the links in as much of it as exists followed: how a folder is
// called that is still to be made.
func Real(path string) string {
	rest := ""
	for dir := path; ; dir = filepath.Dir(dir) {
		if found, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(found, rest)
		}
		if dir == filepath.Dir(dir) {
			return path
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}
