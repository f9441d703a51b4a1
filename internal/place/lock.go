package place

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// OwnerLock is an advisory exclusive lock on a file of its own. The file is
// never removed: whoever made a second one would hold a second lock.
type OwnerLock struct{ file *os.File }

// Lock takes the lock at path, made 0600 when missing, for as long as the
// process lives or until Close. Held by anyone else, this process included, it
// is an Error of heldCode at once. A symlink at path is not followed.
func Lock(path string, heldCode string) (*OwnerLock, error) {
	for {
		f, err := OpenPrivate(path, os.O_RDWR|os.O_CREATE)
		if err != nil {
			return nil, err
		}
		err = flock(f)
		if errors.Is(err, unix.EWOULDBLOCK) {
			f.Close()
			return nil, fail(heldCode, "%s is locked by another daemon", path)
		}
		if err != nil {
			f.Close()
			return nil, &os.PathError{Op: "flock", Path: path, Err: err}
		}
		if isAt(f, path) {
			return &OwnerLock{file: f}, nil
		}
		f.Close() // replaced between open and lock: this one guards nothing
	}
}

// Close gives the lock up. The file stays.
func (l *OwnerLock) Close() error {
	// Closing alone would not do: a child that was forked just now and has not
	// yet become its program holds the descriptor, and with it the lock.
	err := unix.Flock(int(l.file.Fd()), unix.LOCK_UN)
	return errors.Join(err, l.file.Close())
}

func flock(f *os.File) error {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err != unix.EINTR {
			return err
		}
	}
}

// isAt reports whether path still names the open file.
func isAt(f *os.File, path string) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(path)
	return err == nil && os.SameFile(open, named)
}
