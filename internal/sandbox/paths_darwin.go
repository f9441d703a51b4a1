package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

// foldsNames says that one file may have names that differ in case.
const foldsNames = true

// spelling is a path without links as the file system spells it. A folder has
// many names where case and the forms of letters fold, and Seatbelt goes by the
// one that it was made with. The last name of a file stays as it is given.
func spelling(path string) (string, error) {
	if path == "/" {
		return path, nil
	}
	fd, err := openAt(unix.AT_FDCWD, path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK)
	switch {
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		// A file, or a folder that may not be read: its own folder says the rest.
		dir, err := spelling(filepath.Dir(path))
		return filepath.Join(dir, filepath.Base(path)), err
	case err != nil:
		return "", &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	// The call that reads a lock takes any pointer; F_GETPATH wants PathMax bytes.
	var buf struct {
		lock unix.Flock_t
		rest [unix.PathMax]byte
	}
	if err := unix.FcntlFlock(uintptr(fd), unix.F_GETPATH, &buf.lock); err != nil {
		return "", &os.PathError{Op: "fcntl", Path: path, Err: err}
	}
	return unix.ByteSliceToString(unsafe.Slice((*byte)(unsafe.Pointer(&buf)), unix.PathMax)), nil
}
