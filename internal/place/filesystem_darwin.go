package place

import (
	"strings"

	"golang.org/x/sys/unix"
)

// sharedTypes are types that macOS counts as local though a host or a program
// stands behind them.
var sharedTypes = []string{"fuse", "virtiofs", "vmhgfs", "vboxvfs", "vboxsf", "prl", "9p", "webdav"}

func systemFileSystem(path string) (string, bool, error) {
	var st unix.Statfs_t
	for {
		err := unix.Statfs(path, &st)
		if err == nil {
			break
		}
		if err != unix.EINTR {
			return "", false, err
		}
	}
	name := unix.ByteSliceToString(st.Fstypename[:])
	return name, st.Flags&unix.MNT_LOCAL == 0 || isShared(name), nil
}

func isShared(name string) bool {
	lower := strings.ToLower(name)
	for _, t := range sharedTypes {
		if strings.Contains(lower, t) {
			return true
		}
	}
	return false
}
