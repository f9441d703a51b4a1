package sandbox

import "golang.org/x/sys/unix"

// fileKey is one file of the machine.
type fileKey struct{ dev, ino uint64 }

func key(st *unix.Stat_t) fileKey { return fileKey{uint64(st.Dev), st.Ino} }

// replaced are those of the paths at which another file stands than was, or none.
func replaced(was map[string]fileKey) (paths []string) {
	for _, path := range sortedKeys(was) {
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil || key(&st) != was[path] {
			paths = append(paths, path)
		}
	}
	return paths
}
