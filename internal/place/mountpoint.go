package place

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Where something is to be mounted and nothing lies, the launcher of confined commands
// makes an empty file. One that was still at it when its daemon was killed may make it
// in a place that the daemon is about to use, where it would shut the daemon out.

// isMountPoint reports whether a file may be what a launcher made: an empty regular
// file of the caller's own, with no second name. Nothing is lost with one.
func isMountPoint(info fs.FileInfo) bool {
	return makesMountPoints && info.Mode().IsRegular() && info.Size() == 0 &&
		owner(info) == os.Geteuid() && info.Sys().(*syscall.Stat_t).Nlink == 1
}

// RemoveMountPoint removes the file at path if a launcher may have made it.
func RemoveMountPoint(path string) error {
	info, err := os.Lstat(path)
	if err != nil || !isMountPoint(info) {
		return nil
	}
	return os.Remove(path)
}

// openMountPoint lets the owner of a file that a launcher made write to it, and
// reports whether it was one.
func openMountPoint(path string) bool {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	return err == nil && isMountPoint(info) && f.Chmod(0o600) == nil
}
