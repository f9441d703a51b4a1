// Package modelsfile reads and writes ~/.agent/models, the list of models that clients
// offer (cli.md 13). The daemon never reads it and runs any model.
//
// The file is UTF-8 text of at most 1 MiB with one PROVIDER/MODEL a line. A #
// starts a note, which may stand on a line of its own. Blank lines are skipped.
package modelsfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"agent/internal/place"
	"agent/protocol"
)

// MaxSize is the greatest size of the file, in bytes.
const MaxSize = 1 << 20

// Model is one line of the file.
type Model struct {
	ID   string `json:"id"` // PROVIDER/MODEL
	Note string `json:"note,omitzero"`
}

// DefaultPath is ~/.agent/models.
func DefaultPath() (string, error) {
	dir, err := place.AgentDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "models"), nil
}

// Read returns the models of a file in its order, each id once with its first
// note; there is false when there is no file. Errors: models_unreadable, when it
// cannot be opened or read; models_invalid, naming the path and the line.
func Read(path string) (list []Model, there bool, err error) {
	// Non-blocking: a FIFO must be refused, not waited for.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, true, unreadable(path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, true, unreadable(path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, true, invalid("%s is not a regular file", path)
	}
	text, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err != nil {
		return nil, true, unreadable(path, err)
	}
	list, err = Parse(path, text)
	return list, true, err
}

// Parse reads the file's text. path stands in errors alone.
func Parse(path string, text []byte) ([]Model, error) {
	switch {
	case len(text) > MaxSize:
		return nil, invalid("%s is larger than %d bytes", path, MaxSize)
	case !utf8.Valid(text):
		return nil, invalid("%s is not UTF-8", path)
	}
	list := []Model{}
	seen := map[string]bool{}
	number := 0
	for line := range strings.SplitSeq(string(text), "\n") {
		number++
		id, note, _ := strings.Cut(line, "#")
		if id = strings.TrimSpace(id); id == "" || seen[id] {
			continue
		}
		if !validID(id) {
			return nil, invalid("%s:%d: a line is PROVIDER/MODEL and perhaps # and a note", path, number)
		}
		seen[id] = true
		list = append(list, Model{ID: id, Note: strings.TrimSpace(note)})
	}
	return slices.Clip(list), nil
}

func validID(id string) bool {
	_, _, ok := protocol.ParseModelRef(id)
	return ok && !strings.ContainsFunc(id, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
}

func unreadable(path string, err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return &protocol.Error{Code: protocol.ModelsUnreadable, Detail: fmt.Sprintf("%s cannot be read: %v", path, err), Cause: err}
}

func invalid(format string, args ...any) error {
	return protocol.Fail(protocol.ModelsInvalid, fmt.Sprintf(format, args...))
}
