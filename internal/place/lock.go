package place

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// OwnerLock is an advisory exclusive lock on a file of its own. The file is
// never removed: whoever made a second one would hold a second lock.
type OwnerLock struct {
	file *os.File
	same *os.File // the guarded file itself; nil without one
}

// Lock takes the lock at path, made 0600 when missing, for as long as the
// process lives or until Close. Held by anyone else, this process included, it
// is an Error of heldCode at once. A symlink at path is not followed.
func Lock(path string, heldCode string) (*OwnerLock, error) {
	l, err := lockFile(path, flock)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, fail(heldCode, "%s is locked by another daemon", path)
	}
	return l, err
}

// WaitLock is Lock that waits until whoever holds it has given it up: for files
// that several programs change, each for a moment. It cannot be interrupted.
func WaitLock(path string) (*OwnerLock, error) {
	return lockFile(path, func(f *os.File) error {
		for {
			if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); !errors.Is(err, unix.EINTR) {
				return err
			}
		}
	})
}

// lockFile takes the lock at path in a way that waits or does not.
func lockFile(path string, take func(*os.File) error) (*OwnerLock, error) {
	for {
		f, err := OpenPrivate(path, os.O_RDWR|os.O_CREATE)
		if err != nil {
			return nil, err
		}
		if err := take(f); err != nil {
			f.Close()
			return nil, &os.PathError{Op: "flock", Path: path, Err: err}
		}
		if isAt(f, path) {
			return &OwnerLock{file: f}, nil
		}
		f.Close() // replaced between open and lock: this one guards nothing
	}
}

// LockWithin is Lock, but one that is held is waited for until the limit. A lock of
// this kind cannot be waited for with a limit, so it is tried, soon at first.
func LockWithin(path, heldCode string, limit time.Duration) (*OwnerLock, error) {
	end := time.Now().Add(limit)
	return lockWhile(path, heldCode, func() bool { return time.Now().Before(end) })
}

// OwnLock is the lock of what one daemon at a time owns: Lock, but one that is held
// while nobody answers at the socket is waited for, half a second at the most. A
// daemon that was killed is not its last holder: a child that it had forked and that
// has not become its program yet holds the same open file for some milliseconds more.
func OwnLock(path, heldCode, socket string) (*OwnerLock, error) {
	return lockWhile(path, heldCode, unanswered(socket))
}

// deathWait is how long what a dead daemon owned may stay its.
const deathWait = 500 * time.Millisecond

// unanswered says, from now on, whether it is worth waiting for what a daemon at the
// socket may own.
func unanswered(socket string) func() bool {
	end := time.Now().Add(deathWait)
	return func() bool { return time.Now().Before(end) && !answers(socket, end) }
}

func lockWhile(path, heldCode string, more func() bool) (lock *OwnerLock, err error) {
	err = triedWhile(more, func() error {
		lock, err = Lock(path, heldCode)
		return err
	})
	return lock, err
}

// triedWhile takes a lock; one that another holds is tried again for as long as more
// says, soon at first.
func triedWhile(more func() bool, take func() error) error {
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		err := take()
		var held *Error
		if !errors.As(err, &held) || !more() {
			return err
		}
		time.Sleep(pause)
	}
}

// Guard takes a lock on the guarded file itself, too: a file that is mounted
// under a second name has another lock file beside it, but is one file. Only
// Linux has such mounts; elsewhere it does nothing, since there a lock of this
// kind stands in the way of SQLite's own.
//
// The descriptor is closed by Close alone. Closing any descriptor of a file
// drops the locks that SQLite holds on it, so Close comes after SQLite's. It waits as
// OwnLock does.
func (l *OwnerLock) Guard(path, heldCode, socket string) error {
	if !guardsFiles {
		return nil
	}
	f, err := OpenPrivate(path, os.O_RDONLY)
	if err != nil {
		return err
	}
	err = triedWhile(unanswered(socket), func() error {
		err := flock(f)
		if errors.Is(err, unix.EWOULDBLOCK) {
			return fail(heldCode, "%s is another daemon's, under another name", path)
		}
		if err != nil {
			return &os.PathError{Op: "flock", Path: path, Err: err}
		}
		return nil
	})
	if err != nil {
		f.Close()
		return err
	}
	l.same = f
	return nil
}

// ID tells the locked file from every other of this machine, under all its names. It
// is made of digits and a colon.
func (l *OwnerLock) ID() (string, error) {
	info, err := l.file.Stat()
	if err != nil {
		return "", err
	}
	s := info.Sys().(*syscall.Stat_t)
	return fmt.Sprintf("%d:%d", s.Dev, s.Ino), nil
}

// Close gives the lock up. The file stays.
func (l *OwnerLock) Close() error {
	var errs []error
	for _, f := range []*os.File{l.same, l.file} {
		if f != nil {
			// Closing alone would not do: a child that was forked just now and has
			// not yet become its program holds the descriptor, and with it the lock.
			errs = append(errs, unix.Flock(int(f.Fd()), unix.LOCK_UN), f.Close())
		}
	}
	return errors.Join(errs...)
}

// LockDir takes an exclusive lock on a folder itself, for the short while in which a
// file in it is read, changed and replaced. It waits for whoever holds it, and leaves
// no file behind.
func LockDir(dir string) (*OwnerLock, error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	if err := flockAs(f, unix.LOCK_EX); err != nil {
		f.Close()
		return nil, &os.PathError{Op: "flock", Path: dir, Err: err}
	}
	return &OwnerLock{file: f}, nil
}

func flock(f *os.File) error { return flockAs(f, unix.LOCK_EX|unix.LOCK_NB) }

func flockAs(f *os.File, how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how)
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
