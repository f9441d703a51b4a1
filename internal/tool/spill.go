package tool

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// spill is a file that takes what a capture does not keep in memory
// (runtime.md 12): mode 0600, made exclusively, in a folder of mode 0700.
type spill struct {
	path string
	file *os.File
}

// newSpill makes a file in dir, whose name begins with prefix. It makes dir and
// its parent, too.
func newSpill(dir, prefix string) (*spill, error) {
	if err := privateFolder(dir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, prefix+"-"+randomName())
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	return &spill{path, f}, nil
}

// privateFolder makes dir and its parent where they are missing, 0700, and
// tightens dir where it is looser. A placeholder may have stood for the parent
// and have gone meanwhile.
func privateFolder(dir string) error {
	err := makePrivate(dir)
	for range 10 {
		if !os.IsNotExist(err) {
			break
		}
		err = makePrivate(dir)
	}
	return err
}

func makePrivate(dir string) error {
	for _, folder := range []string{filepath.Dir(dir), dir} {
		err := os.Mkdir(folder, 0o700)
		if err == nil {
			err = syncFolder(filepath.Dir(folder))
		}
		if err != nil && !os.IsExist(err) {
			return err
		}
	}
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a folder", dir)
	case info.Mode().Perm() != 0o700:
		return os.Chmod(dir, 0o700)
	}
	return nil
}

// readBack gives n bytes from at.
func (s *spill) readBack(at, n int64) ([]byte, error) {
	b := make([]byte, n)
	_, err := io.ReadFull(io.NewSectionReader(s.file, at, n), b)
	return b, err
}

// storeRoom is what spilled output leaves of a file system, in bytes: the store
// is on it, too, and must take the result that tells of the output. Its
// write-ahead log alone grows to 4 MiB.
const storeRoom = 8 << 20

// append writes as much of p as the disk takes with storeRoom left.
func (s *spill) append(p []byte) (int, error) {
	var disk unix.Statfs_t
	if unix.Fstatfs(int(s.file.Fd()), &disk) == nil && int64(disk.Bavail)*int64(disk.Bsize) < storeRoom+int64(len(p)) {
		return 0, unix.ENOSPC
	}
	return s.file.Write(p)
}

// seal makes the file last: it and its name are on the disk.
func (s *spill) seal() error {
	if err := s.file.Sync(); err != nil {
		return err
	}
	if err := s.file.Close(); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(s.path))
}

// remove drops the file.
func (s *spill) remove() {
	_ = s.file.Close()
	_ = os.Remove(s.path)
}

func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// randomName is 16 hex digits that nobody else drew.
func randomName() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
