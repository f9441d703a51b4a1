package sandbox

import (
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"
)

// openAt opens a path, and fails with ELOOP where a link stands anywhere in it.
func openAt(dir int, path string, flags int) (int, error) {
	for {
		fd, err := unix.Openat(dir, path, flags|unix.O_NOFOLLOW_ANY|unix.O_CLOEXEC, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// renameNew renames unless the new name is taken.
func renameNew(fromDir int, from string, toDir int, to string) error {
	return unix.RenameatxNp(fromDir, from, toDir, to, unix.RENAME_EXCL)
}

func links(info fs.FileInfo) uint64 {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 1
	}
	return uint64(s.Nlink)
}

// takeFacts tries what a sandbox must refuse. It runs inside one.
func takeFacts() trials { return tryAll() }
