package tool

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"agent/protocol"
)

const (
	maxPath = 4096    // bytes
	maxFile = 4 << 20 // bytes of a file that is read or edited
)

func checkPath(a arg[string]) *Failure {
	switch path := a.value; {
	case !a.given:
		return invalidf("path is missing")
	case path == "":
		return failuref(protocol.InvalidPath, "path is empty")
	case len(path) > maxPath:
		return failuref(protocol.InvalidPath, "path is %d bytes; at most %d are taken", len(path), maxPath)
	case strings.ContainsRune(path, 0):
		return failuref(protocol.InvalidPath, "path holds a NUL byte")
	}
	return nil
}

// resolve makes a path absolute. It is not cleaned: after a link to a folder,
// ".." is that folder's parent, as it is for every other program.
func (e *Env) resolve(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return e.Workspace + "/" + path
}

// errStore says that a file is one of the store's, which only the helper may
// open.
var errStore = errors.New("a file of the daemon's store")

// openRegular opens a regular file, or what a link to one leads to, without
// waiting and without taking a terminal, and checks what it got once more. It
// refuses the store's own files with errStore and anything else that is not
// regular with *Failure file_not_regular.
func (e *Env) openRegular(path string, flags int) (*quietFile, os.FileInfo, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	if err := e.regular(info); err != nil {
		return nil, nil, err
	}
	fd, err := openFD(path, flags|syscall.O_NONBLOCK|syscall.O_NOCTTY|syscall.O_CLOEXEC)
	if err != nil {
		return nil, nil, err
	}
	f := os.NewFile(uintptr(fd), path)
	if info, err = f.Stat(); err == nil {
		err = e.regular(info)
	}
	if errors.Is(err, errStore) {
		keepOpen(f)
		return nil, nil, err
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return &quietFile{File: f}, info, nil
}

func openFD(path string, flags int) (int, error) {
	for {
		fd, err := syscall.Open(path, flags, 0)
		if !errors.Is(err, syscall.EINTR) {
			return fd, err
		}
	}
}

func (e *Env) regular(info os.FileInfo) error {
	if !info.Mode().IsRegular() {
		return failuref(protocol.FileNotRegular, "it is %s, not a regular file", kindOf(info.Mode()))
	}
	if e.IsStoreFile != nil && e.IsStoreFile(info) {
		return errStore
	}
	return nil
}

var kept struct {
	sync.Mutex
	files []*os.File
}

// keepOpen holds a descriptor of a store file that came in by a path swapped
// between check and open, for as long as the daemon lives: closing it would
// drop the locks that SQLite holds on that file (runtime.md 10).
func keepOpen(f *os.File) {
	kept.Lock()
	defer kept.Unlock()
	kept.files = append(kept.files, f)
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a folder"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "something else"
}

// fileFailure is err, met at path, for the model: under its own code where it
// has one, else under code.
func fileFailure(code protocol.Code, path string, err error) *Failure {
	var f *Failure
	if errors.As(err, &f) {
		return &Failure{f.Code, path + ": " + f.Detail}
	}
	return failuref(code, "%s: %v", path, bare(err))
}

// bare is an error without the call and the path it names.
func bare(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}

// readWhole reads a regular file of at most 4 MiB, as it was when info was
// taken or later.
func (e *Env) readWhole(path string) ([]byte, os.FileInfo, error) {
	f, info, err := e.openRegular(path, os.O_RDONLY)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if info.Size() > maxFile {
		return nil, nil, tooLarge(info.Size())
	}
	data := make([]byte, 0, info.Size()+1) // one more, to see the end
	for {
		n, err := f.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case errors.Is(err, io.EOF):
			return data, info, nil
		case err != nil:
			return nil, nil, err
		case len(data) > maxFile:
			return nil, nil, tooLarge(int64(len(data)))
		case len(data) == cap(data): // it grew
			data = append(data, 0)[:len(data)]
		}
	}
}

func tooLarge(size int64) *Failure {
	return failuref(protocol.FileTooLarge, "it is %d bytes; at most %d can be read: use shell for a part of it", size, maxFile)
}

// seenFile is what is remembered of a file that was read or written.
func seenFile(real string, info os.FileInfo, size int64, hash [32]byte) SeenFile {
	s := SeenFile{Path: real, Size: size, MtimeNS: info.ModTime().UnixNano(), Hash: hash}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		s.Inode = sys.Ino
	}
	return s
}
