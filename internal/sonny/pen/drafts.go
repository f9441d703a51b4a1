package pen

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"agent/internal/place"
	"agent/internal/sonny/screen/edit"
)

// Bounds of the drafts: of one in bytes, and of how many are kept. The oldest go first.
const (
	maxDraft  = 40 << 20
	maxDrafts = 1000
)

// Kept is what is kept of a composer: what is being written, and what was put aside.
type Kept struct {
	Draft edit.Draft   `json:"draft"`
	Stash []edit.Draft `json:"stash,omitempty"` // the newest last
	Held  []edit.Draft `json:"held,omitempty"`  // messages taken out of line, in order
}

// Empty reports whether there is nothing to keep.
func (k Kept) Empty() bool { return k.Draft.Empty() && len(k.Stash) == 0 && len(k.Held) == 0 }

// Drafts are the composers' texts, a file each. Its methods may be called at once.
type Drafts struct {
	dir string

	mu    sync.Mutex
	saved map[string]int // the newest change that was written, by key
}

// DraftsIn are the drafts in Sonny's folder, ~/.agent/sonny.
func DraftsIn(dir string) *Drafts {
	return &Drafts{dir: filepath.Join(dir, "drafts"), saved: map[string]int{}}
}

// OfBot is the key of a bot's draft, OfFolder that of a folder without a bot.
func OfBot(store string, bot int64) string { return fmt.Sprintf("bot %s %d", store, bot) }

// OfFolder is the key of a draft on a folder's start screen.
func OfFolder(path string) string { return "folder " + path }

func (d *Drafts) path(key string) string {
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(d.dir, hex.EncodeToString(sum[:16])+".json")
}

// Save keeps what a composer holds after its nth change; an empty one leaves no file. A
// save that comes after one of a later change does nothing.
func (d *Drafts) Save(key string, n int, k Kept) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n <= d.saved[key] {
		return nil
	}
	if err := d.write(d.path(key), k); err != nil {
		return err
	}
	d.saved[key] = n
	return nil
}

func (d *Drafts) write(path string, k Kept) error {
	if k.Empty() {
		err := os.Remove(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	data, err := json.Marshal(k)
	if err != nil {
		return err
	}
	if len(data) > maxDraft {
		return fmt.Errorf("the draft would take %d MiB, more than the %d that are kept", len(data)>>20, maxDraft>>20)
	}
	if err := place.MakePrivateDir(d.dir); err != nil {
		return err
	}
	if err := place.WritePrivate(path, data); err != nil {
		return err
	}
	return keepNewest(d.dir, maxDrafts)
}

// Load is what was kept; empty where nothing was.
func (d *Drafts) Load(key string) (k Kept, err error) {
	data, _, err := place.ReadOwn(d.path(key), maxDraft)
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err != nil {
		return k, err
	}
	if err := json.Unmarshal(data, &k); err != nil {
		return Kept{}, fmt.Errorf("%s: %w; it holds a draft that cannot be read, and is replaced by the next", d.path(key), err)
	}
	return k, nil
}

// keepNewest takes the oldest files of a folder away, so that most are left.
func keepNewest(dir string, most int) error {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) <= most {
		return err
	}
	var files []fs.FileInfo
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			files = append(files, info)
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return cmp.Compare(a.ModTime().UnixNano(), b.ModTime().UnixNano()) })
	for _, f := range files[:max(0, len(files)-most)] {
		if err := os.Remove(filepath.Join(dir, f.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
