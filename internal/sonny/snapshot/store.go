package snapshot

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agent/internal/place"
	"agent/internal/sonny/repo"
	"agent/protocol"
)

// Skipped is the code of a state that was not kept.
const Skipped protocol.Code = "snapshot_skipped"

// Limits of one state (sonny.md 10.7).
const (
	MaxFiles = 20_000
	MaxBytes = 512 << 20
	MaxTime  = 2 * time.Second
	MaxDelay = 300 * time.Millisecond // what a message waits for its state at most
)

// maxMarks bounds the states of one checkout, maxBook the file that lists them.
const (
	maxMarks = 5000
	maxBook  = 8 << 20
)

// Store is the folder of all private repositories. It may be used by several goroutines
// and programs.
type Store struct {
	Dir   string        // ~/.agent/snapshots
	Keep  time.Duration // older states go; 0: 14 days
	Bytes int64         // of one repository; the oldest go beyond; 0: 2 GiB
}

// Mark is a state that was kept before a message.
type Mark struct {
	Tree    string    `json:"tree"`
	At      time.Time `json:"at"`
	Bot     int64     `json:"bot"`
	Request string    `json:"request"` // the message's
	Late    bool      `json:"late,omitempty"`
	Beside  beside    `json:"beside,omitzero"`
}

// beside is what was there and is not in a state, since git ignored it then: it does not go
// where the state comes back, whatever git ignores by then.
type beside struct {
	Ignored []string `json:"ignored,omitempty"` // a folder ends with /
	Unknown bool     `json:"unknown,omitempty"` // there was too much to be noted: nothing goes
}

// maxIgnored bounds what is noted, in bytes.
const maxIgnored = 256 << 10

// had reports whether a path may have been there.
func (b *beside) had(path string) bool {
	return b.Unknown || slices.ContainsFunc(b.Ignored, func(p string) bool {
		return p == path || strings.HasSuffix(p, "/") && strings.HasPrefix(path, p)
	})
}

// keep takes out of changes what would take away something that was there.
func (b *beside) keep(list []Change) []Change {
	return slices.DeleteFunc(list, func(c Change) bool { return c.Op == 'D' && b.had(c.Path) })
}

// undone is a step back that can be taken forth again.
type undone struct {
	Mark Mark   `json:"mark"`
	Tree string `json:"tree"` // what there was before the step back

	Beside beside `json:"beside,omitzero"`
}

// book lists a checkout's states, the oldest first.
type book struct {
	Version int      `json:"v"`
	Marks   []Mark   `json:"marks"`
	Undone  []undone `json:"undone,omitempty"`
}

// Room is the private repository of one checkout, seen from a folder of it.
type Room struct {
	store  *Store
	repo   repo.Repo
	dir    string // the private repository
	within string // the folder below the top, "" for the top itself
}

// In is the room of a folder in a checkout. Nothing is made yet.
func (s *Store) In(r repo.Repo, folder string) (*Room, error) {
	within, err := filepath.Rel(r.Top, folder)
	if !r.There() || err != nil || !filepath.IsLocal(within) {
		return nil, protocol.Fail(Skipped, folder+" is in no git checkout that was found when its agent was made; nothing is kept of its files")
	}
	if within == "." {
		within = ""
	}
	sum := sha256.Sum256([]byte(r.Top))
	return &Room{store: s, repo: r, dir: filepath.Join(s.Dir, fmt.Sprintf("%x", sum[:12])), within: within}, nil
}

func (m *Room) bookPath() string { return filepath.Join(m.dir, "sonny.json") }

// read is the list as it is; one that is not there or not to be read is empty.
func (m *Room) read() (*book, error) {
	b := &book{Version: 1}
	text, _, err := place.ReadOwn(m.bookPath(), maxBook)
	if errors.Is(err, fs.ErrNotExist) {
		return b, nil
	}
	if err != nil {
		return nil, err
	}
	if json.Unmarshal(text, b) != nil {
		return &book{Version: 1}, nil
	}
	return b, nil
}

func (m *Room) write(b *book) error {
	text, err := json.Marshal(b)
	if err != nil {
		return err
	}
	return place.WritePrivate(m.bookPath(), append(text, '\n'))
}

// alone does something while no other program works in the room.
func (m *Room) alone(f func() error) error {
	for _, dir := range []string{m.store.Dir, m.dir} {
		if err := place.MakePrivateDir(dir); err != nil {
			return err
		}
	}
	lock, err := place.WaitLock(filepath.Join(m.dir, "sonny.lock"))
	if err != nil {
		return err
	}
	defer lock.Close()
	return f()
}

// Marks are the states of a bot, the oldest first.
func (m *Room) Marks(bot int64) ([]Mark, error) {
	b, err := m.read()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(b.Marks, func(k Mark) bool { return k.Bot != bot }), nil
}

// exists reports whether the private repository was made.
func (m *Room) exists() bool {
	_, err := os.Lstat(filepath.Join(m.dir, "HEAD"))
	return err == nil
}
