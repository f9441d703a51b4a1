package place

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// OpenPrivate opens a file that only its owner may read or write: 0600 from
// its first instant when flag makes it, tightened when it is looser. It
// follows no symlink at the last name and takes regular files only, so that
// neither a planted link nor a FIFO can stand in for the file. An empty one that
// its owner may not write to is a launcher's mount point, and taken for the file.
func OpenPrivate(path string, flag int) (*os.File, error) {
	f, err := os.OpenFile(path, flag|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if errors.Is(err, fs.ErrPermission) && openMountPoint(path) {
		f, err = os.OpenFile(path, flag|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	}
	if err != nil {
		return nil, err
	}
	if err := tighten(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return f, nil
}

// tighten makes an open regular file 0600 unless it is.
func tighten(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("not a regular file")
	}
	if info.Mode().Perm() == 0o600 {
		return nil
	}
	return f.Chmod(0o600)
}

// What could not be done, in the Op of the fs.PathError of WritePrivate and of
// CreatePrivate.
const (
	OpReplace = "replace" // path stays as it was
	OpCreate  = "create"  // path was not made
)

// WritePrivate replaces path by a 0600 file of data as one step: whoever reads
// it, after a crash too, finds the old content or the new, whole. The parent
// folder must exist. A symlink at path is replaced, not followed. An error that leaves
// path as it was is an fs.PathError of path, whose Op is OpReplace.
func WritePrivate(path string, data []byte) error {
	return written(OpReplace, path, data, os.Rename)
}

// CreatePrivate is WritePrivate for a file that must not be there yet: it is made whole
// or not at all, and one that is there stays, which is fs.ErrExist. The Op of an error is
// OpCreate.
func CreatePrivate(path string, data []byte) error {
	return written(OpCreate, path, data, func(whole, path string) error {
		defer os.Remove(whole)
		return os.Link(whole, path) // a rename would replace
	})
}

// ofPath is an error of a temporary file as one of the file that the caller knows.
func ofPath(op, path string, err error) error {
	var of *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &of):
		err = of.Err
	case errors.As(err, &link):
		err = link.Err
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
}

// written fills a temporary file beside path, which put gives its name. op is what is
// done to path, for an error.
func written(op, path string, data []byte, put func(whole, path string) error) error {
	if err := whole(path, data, put); err != nil {
		return ofPath(op, path, err)
	}
	return SyncDir(filepath.Dir(path))
}

func whole(path string, data []byte, put func(whole, path string) error) error {
	f, err := os.OpenFile(filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"."+rand.Text()+".tmp"),
		os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	if err := fill(f, data); err != nil {
		os.Remove(f.Name())
		return err
	}
	if err := put(f.Name(), path); err != nil {
		os.Remove(f.Name())
		return err
	}
	return nil
}

// fill writes, syncs and closes f.
func fill(f *os.File, data []byte) error {
	defer f.Close()
	if err := f.Chmod(0o600); err != nil { // the umask may have taken the owner's bits
		return err
	}
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return f.Close()
}

// SyncDir makes the names in a folder durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// MakePrivateDir makes a folder 0700 whatever the umask; the parent must
// exist. One that exists must be a real folder of the caller's own and is made
// 0700 when it is looser.
func MakePrivateDir(dir string) error {
	err := os.Mkdir(dir, 0o700)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() || owner(info) != os.Geteuid() {
		return fmt.Errorf("%s is not a folder of your own", dir)
	}
	if info.Mode().Perm() == 0o700 {
		return nil
	}
	return os.Chmod(dir, 0o700)
}

// Remake makes a private folder that was taken away since the program began, so that what
// is kept in it goes on being kept. One that is there stays as it is.
func Remake(dir string) error {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return MakePrivateDir(dir)
}

// MakeOwnDir makes a folder 0700 whatever the umask; the parent must exist. One
// that exists keeps its mode and must be a real folder of the caller's own.
func MakeOwnDir(dir string) error {
	err := os.Mkdir(dir, 0o700)
	if err == nil {
		return os.Chmod(dir, 0o700)
	}
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() || owner(info) != os.Geteuid() {
		return fmt.Errorf("%s is not a folder of your own", dir)
	}
	return nil
}
