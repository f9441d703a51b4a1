package place

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Scratch is a folder for files of a short life that nobody else may change: a draft
// that an editor has, the store of a daemon that is tried out. The folders for temporary
// files will not do, since every sandbox lets its bot write them.
type Scratch struct {
	Path string
	lock *os.File
}

// NewScratch makes a folder, 0700, in one that is made where it is missing, and removes
// those that a crash left there. The parent of dir must exist, and be out of the reach
// of bots.
func NewScratch(dir string) (*Scratch, error) {
	if err := MakePrivateDir(dir); err != nil {
		return nil, err
	}
	all, err := LockDir(dir)
	if err != nil {
		return nil, err
	}
	defer all.Close()
	if err := sweep(dir); err != nil {
		return nil, err
	}
	path, err := os.MkdirTemp(dir, "")
	if err != nil {
		return nil, err
	}
	lock, err := holdFolder(path)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(path))
	}
	return &Scratch{path, lock}, nil
}

// Close removes the folder with all that is in it.
func (s *Scratch) Close() error {
	return errors.Join(os.RemoveAll(s.Path), s.lock.Close())
}

// SweepScratch removes what a crash left of scratch folders in one. None is fine.
func SweepScratch(dir string) error {
	all, err := LockDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer all.Close()
	return sweep(dir)
}

// sweep removes all that no process holds. A folder is held as long as its process lives.
func sweep(dir string) error {
	list, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range list {
		path := filepath.Join(dir, e.Name())
		lock, err := holdFolder(path)
		if errors.Is(err, unix.EWOULDBLOCK) {
			continue
		}
		if err == nil {
			defer lock.Close() // what it names is gone then
		}
		errs = append(errs, os.RemoveAll(path))
	}
	return errors.Join(errs...)
}

// holdFolder opens a folder and locks it, or fails at once.
func holdFolder(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if err := flock(f); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
