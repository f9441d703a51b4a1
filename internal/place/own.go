package place

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// ErrNotOwn is why ReadOwn gives nothing of a file: it is a link, no regular file,
// another's, or too long. What wraps it names the path and says which.
var ErrNotOwn = errors.New("not a file of your own that may be read")

// ReadOwn reads a regular file of the caller's own of at most limit bytes, and gives
// its permissions, whatever they are. It follows no link at the last name and never
// waits for a FIFO. A missing file is fs.ErrNotExist, one that is refused ErrNotOwn.
func ReadOwn(path string, limit int) ([]byte, fs.FileMode, error) {
	return read(path, limit, unix.O_NOFOLLOW, true)
}

// ReadRegular is ReadOwn for a file that may be another's, and behind a link.
func ReadRegular(path string, limit int) ([]byte, error) {
	data, _, err := read(path, limit, 0, false)
	return data, err
}

func read(path string, limit, flags int, own bool) ([]byte, fs.FileMode, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|flags, 0)
	if errors.Is(err, unix.ELOOP) {
		return nil, 0, notOwn(path, "is a link; put the file itself there")
	}
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, 0, err
	case !info.Mode().IsRegular():
		return nil, 0, notOwn(path, "is not a regular file")
	case own && owner(info) != os.Geteuid():
		return nil, 0, notOwn(path, "belongs to another user")
	}
	data, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err != nil {
		return nil, 0, err
	}
	if len(data) > limit {
		return nil, 0, notOwn(path, fmt.Sprintf("is longer than %d bytes", limit))
	}
	return data, info.Mode().Perm(), nil
}

func notOwn(path, why string) error { return &ownError{path + " " + why} }

type ownError struct{ text string }

func (e *ownError) Error() string        { return e.text }
func (e *ownError) Is(target error) bool { return target == ErrNotOwn }
