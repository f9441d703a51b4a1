// Package pen is what a person writes with, kept in Sonny's folder: messages that were
// sent, drafts, long pastes and pictures (sonny.md 10.1, 31). It knows no screen. What
// it cannot write it says, and its callers keep in memory.
package pen

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agent/internal/place"
)

// Bounds of the history: entries of all projects, and bytes of the file. The oldest go
// first.
const (
	MaxEntries      = 2000
	maxHistoryBytes = 16 << 20
)

// History is the file of sent messages. Several Sonnys share it: each change is made
// under its lock, and the file replaced whole. Its methods may be called at once.
type History struct{ path string }

// HistoryIn is the history in Sonny's folder, ~/.agent/sonny.
func HistoryIn(dir string) *History { return &History{filepath.Join(dir, "history")} }

// entry is a line of the file.
type entry struct {
	At      time.Time `json:"at"`
	Project string    `json:"project"`
	Text    string    `json:"text"`
}

// Sent are the messages of a project, the newest first. Lines that cannot be read are
// left out.
func (h *History) Sent(project string) ([]string, error) {
	all, err := h.read()
	return of(all, project), err
}

// Keeps reports whether a message is kept: not one that begins with a space, and not an
// empty one.
func Keeps(text string) bool {
	return !strings.HasPrefix(text, " ") && strings.TrimSpace(text) != ""
}

// Add keeps a message as the newest of its project, and gives all of that project. The
// same text is kept once.
func (h *History) Add(project, text string, at time.Time) ([]string, error) {
	lock, err := place.WaitLock(h.path + ".lock")
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	all, err := h.read()
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(e entry) bool { return e.Project == project && e.Text == text })
	all = append(all, entry{at.UTC(), project, text})
	data, err := encode(all)
	if err == nil {
		err = place.WritePrivate(h.path, data)
	}
	return of(all, project), err
}

// encode writes the newest entries that fit.
func encode(all []entry) ([]byte, error) {
	var lines [][]byte
	size := 0
	for i := len(all) - 1; i >= 0 && len(lines) < MaxEntries; i-- {
		line, err := json.Marshal(all[i])
		if err != nil {
			return nil, err
		}
		if size += len(line) + 1; size > maxHistoryBytes {
			break
		}
		lines = append(lines, append(line, '\n'))
	}
	slices.Reverse(lines)
	return bytes.Join(lines, nil), nil
}

func (h *History) read() (all []entry, err error) {
	data, _, err := place.ReadOwn(h.path, 2*maxHistoryBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 2*maxHistoryBytes)
	for lines.Scan() {
		var e entry
		if json.Unmarshal(lines.Bytes(), &e) == nil && e.Text != "" {
			all = append(all, e)
		}
	}
	return all, lines.Err()
}

func of(all []entry, project string) (texts []string) {
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].Project == project {
			texts = append(texts, all[i].Text)
		}
	}
	return texts
}
