package instructions

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"agent/protocol"
)

// maxHead is how much of a skill or a role is read to index it, in bytes.
const maxHead = 4 << 10

// maxEntries is how many entries a folder may have.
const maxEntries = 4096

// file is a text that was read.
type file struct {
	info os.FileInfo
	text string
}

func (f *file) blank() bool { return strings.TrimSpace(f.text) == "" }

// readText reads a whole file that there is room for; nil where there is none at
// path. instructions_limit, instructions_unreadable.
func readText(path string, room int) (*file, error) {
	return readWithin(path, room, func(size int64) error { return tooLarge(path, size) })
}

// ReadFile reads a whole file of at most that many bytes as a composition does: a
// regular file of UTF-8, which may be reached by a link and is not waited for.
// instructions_unreadable, also where there is none; instructions_limit.
func ReadFile(path string, most int) (string, error) {
	f, err := readWithin(path, most, func(size int64) error {
		return protocol.Fail(protocol.InstructionsLimit, fmt.Sprintf("%s has %d bytes, more than %d; shorten it", escaped(path), size, most))
	})
	if err == nil && f == nil {
		err = unreadable(path, errors.New("it is not there"))
	}
	if err != nil {
		return "", err
	}
	return f.text, nil
}

// readSmall reads a whole file that is not itself a part of the text.
func readSmall(path string, most int) (*file, error) {
	return readWithin(path, most, func(int64) error {
		return unreadable(path, fmt.Errorf("it is larger than %d bytes", most))
	})
}

// readWithin reads a whole file of at most that many bytes, and none beyond them.
func readWithin(path string, most int, over func(size int64) error) (*file, error) {
	f, info, err := open(path)
	if f == nil {
		return nil, err
	}
	defer f.Close()
	if info.Size() > int64(max(most, 0)) {
		return nil, over(info.Size())
	}
	text, err := io.ReadAll(io.LimitReader(f, int64(most)))
	if err != nil {
		return nil, unreadable(path, err)
	}
	// A file that grew, or that has no size of its own, may hold more than was read.
	if len(text) == most && most > 0 && info.Size() != int64(most) {
		return nil, over(int64(len(text)))
	}
	return checked(path, info, text)
}

// readHead reads the beginning of a file; nil where there is none at path.
func readHead(path string) (*file, error) {
	f, info, err := open(path)
	if f == nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxHead))
	if err != nil {
		return nil, unreadable(path, err)
	}
	if len(text) == maxHead {
		text = wholeCharacters(text)
	}
	return checked(path, info, text)
}

// wholeCharacters is text without the first bytes of a character that a cut left
// at its end.
func wholeCharacters(text []byte) []byte {
	for i := len(text) - 1; i >= 0 && i >= len(text)-utf8.UTFMax; i-- {
		if utf8.RuneStart(text[i]) {
			if !utf8.FullRune(text[i:]) {
				return text[:i]
			}
			break
		}
	}
	return text
}

// checked refuses what is no text, and what the system makes up as it is read: a
// checkout may hold a link to /proc/self/environ, and the person's keys are no
// instructions.
func checked(path string, info os.FileInfo, text []byte) (*file, error) {
	if info.Size() == 0 && len(text) > 0 {
		return nil, unreadable(path, errors.New("it has no size of its own, as files of /proc have none"))
	}
	text = bytes.TrimPrefix(text, []byte("\uFEFF"))
	if !utf8.Valid(text) {
		return nil, unreadable(path, errors.New("it is not UTF-8"))
	}
	return &file{info, string(text)}, nil
}

// open opens a regular file; nil and no error where there is none.
func open(path string) (*os.File, os.FileInfo, error) {
	there, err := exists(path)
	if !there {
		return nil, nil, err
	}
	// Non-blocking: a FIFO must be refused, not waited for.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, unreadable(path, err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file")
	}
	if err != nil {
		f.Close()
		return nil, nil, unreadable(path, err)
	}
	return f, info, nil
}

// entries are the names in a folder, sorted; none where there is no folder.
func entries(dir string) ([]os.DirEntry, error) {
	there, err := exists(dir)
	if !there {
		return nil, err
	}
	f, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, unreadable(dir, err)
	}
	defer f.Close()
	list, err := f.ReadDir(maxEntries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, unreadable(dir, err)
	}
	if len(list) > maxEntries {
		return nil, protocol.Fail(protocol.InstructionsLimit, fmt.Sprintf("%s has more than %d entries", escaped(dir), maxEntries))
	}
	slices.SortFunc(list, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, nil
}

// exists reports whether there is something at path. Nothing is there only where
// no part of the path is a link that leads nowhere, or no folder: what such a part
// was to hold is unknown.
func exists(path string) (bool, error) {
	_, err := os.Stat(path)
	if err == nil {
		return true, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return false, unreadable(path, err)
	}
	for _, part := range fromRoot(path) {
		info, err := os.Lstat(part)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		if err == nil && info.Mode()&fs.ModeSymlink != 0 {
			_, err = os.Stat(part)
			if errors.Is(err, fs.ErrNotExist) {
				err = errors.New("it is a link to nothing")
			}
		}
		if err != nil {
			return false, unreadable(part, err)
		}
	}
	return false, nil // it has gone, or come, in between
}

func unreadable(path string, err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return protocol.Fail(protocol.InstructionsUnreadable, fmt.Sprintf("%s cannot be read: %v", escaped(path), err))
}

// inAgents is a path below the .agents of a folder.
func inAgents(dir string, names ...string) string {
	return filepath.Join(append([]string{dir, ".agents"}, names...)...)
}
