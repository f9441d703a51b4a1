package pen

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"agent/internal/place"
	"agent/internal/sonny/screen/edit"
)

// Bounds of the drafts: of one in bytes, and of how many are kept. The oldest go first.
const (
	maxDraft  = 40 << 20
	maxDrafts = 1000
)

// Kept is what is kept of a composer: what is being written, what was put aside, and what
// is out of it and not known to be with the daemon. One write tells all of it, so that
// whenever Sonny is killed each message is in one place.
type Kept struct {
	Draft  edit.Draft   `json:"draft"`
	Stash  []edit.Draft `json:"stash,omitempty"` // the newest last
	Held   []edit.Draft `json:"held,omitempty"`  // messages taken out of line, in order
	Edited *Edited      `json:"edited,omitempty"`
	Way    []OnWay      `json:"way,omitempty"` // in the order in which they were sent

	// Mark names what is written on a start screen; Took is the mark of the start screen
	// whose text was taken over into this one. While both are kept it counts once.
	Mark string `json:"mark,omitempty"`
	Took string `json:"took,omitempty"`
}

// Edited says that the draft is a message which was taken out of line to be changed.
type Edited struct {
	Number int          `json:"number"`          // of it in line, from 1
	Was    edit.Draft   `json:"was"`             // as it was in line
	After  []edit.Draft `json:"after,omitempty"` // those behind it, withheld until it is back
	Before edit.Draft   `json:"before"`          // what the composer held
}

// OnWay is a message between the composer and the daemon: it is handed over, or taken
// back. Whether the daemon has it is asked when it is read again.
type OnWay struct {
	Request string     `json:"request"` // under which the daemon knows it
	Hand    string     `json:"hand"`    // the Sonny that handed it over: see Drafts.Sign
	Store   string     `json:"store"`
	Bot     string     `json:"bot"`
	BotID   int64      `json:"bot_id,omitempty"` // 0: of a bot that is made for it
	After   int64      `json:"after,omitempty"`  // a turn of the bot that is older than its own
	Draft   edit.Draft `json:"draft"`
	Held    bool       `json:"held,omitempty"`   // it was in line, or held: it comes back held
	Makes   bool       `json:"makes,omitempty"`  // it is the brief of a task: the daemon has it when there is the bot
	Begins  string     `json:"begins,omitempty"` // of a command of the person's: the file that it takes away when it begins
}

// Empty reports whether there is nothing to keep.
func (k Kept) Empty() bool {
	return k.Draft.Empty() && len(k.Stash) == 0 && len(k.Held) == 0 && k.Edited == nil && len(k.Way) == 0 && k.Took == ""
}

// With is what is kept of a bot with what was written for it on a start screen, once,
// however often the two are read.
func (k Kept) With(start Kept) Kept {
	if start.Empty() || start.Mark != "" && start.Mark == k.Took {
		return k
	}
	k.Took = start.Mark
	if k.Edited != nil {
		edited := *k.Edited
		edited.Before = start.Draft.After(edited.Before)
		k.Edited = &edited
	} else {
		k.Draft = start.Draft.After(k.Draft)
	}
	k.Stash = append(slices.Clone(start.Stash), k.Stash...)
	k.Way = slices.Clone(k.Way)
	for _, w := range start.Way {
		if !slices.ContainsFunc(k.Way, func(o OnWay) bool { return o.Request == w.Request }) {
			k.Way = append(k.Way, w)
		}
	}
	return k
}

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

// OfBot is the key of a bot's draft.
func OfBot(store string, bot int64) string { return fmt.Sprintf("bot %s %d", store, bot) }

// OfFolder is the key of a draft on the start screen of a folder without a lead.
func OfFolder(path string) string { return "folder " + path }

// OfNewLead is the key of a draft for a lead beside those that a folder has.
func OfNewLead(path string) string { return "new lead " + path }

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

// Unbegun is the path of the file that says that a command of the person's has not begun.
// Whoever takes it away decides: the command, which begins then, or the next Sonny, for
// which it never will.
func (d *Drafts) Unbegun(request string) string { return filepath.Join(d.dir, request) }

// MarkUnbegun makes that file.
func (d *Drafts) MarkUnbegun(path string) error {
	if err := place.MakePrivateDir(d.dir); err != nil {
		return err
	}
	return place.CreatePrivate(path, nil)
}

// handHeld is the code of a hand whose Sonny lives.
const handHeld = "hand_held"

// Sign gives the Sonny at hand a name that others know to live as long as its process
// does, or until the lock is closed.
func (d *Drafts) Sign() (hand string, _ *place.OwnerLock, err error) {
	if err := place.MakePrivateDir(d.dir); err != nil {
		return "", nil, err
	}
	d.sweep()
	var lock *place.OwnerLock
	for range 4 { // somebody who sweeps may hold a new one for a moment
		hand = handPrefix + rand.Text()
		if lock, err = place.Lock(filepath.Join(d.dir, hand), handHeld); err == nil {
			break
		}
	}
	return hand, lock, err
}

const handPrefix = "hand_"

// sweep removes what is left of Sonnys that were killed.
func (d *Drafts) sweep() {
	entries, _ := os.ReadDir(d.dir) // what cannot be read is not swept
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), handPrefix) {
			d.Lives(e.Name())
		}
	}
}

// Unsign ends a name that Sign gave.
func (d *Drafts) Unsign(hand string, lock *place.OwnerLock) {
	_ = os.Remove(filepath.Join(d.dir, hand))
	lock.Close()
}

// Lives reports whether the Sonny of a name runs. What is left of one that does not is
// removed.
func (d *Drafts) Lives(hand string) bool {
	path := filepath.Join(d.dir, filepath.Base(hand))
	if _, err := os.Lstat(path); hand == "" || err != nil {
		return false
	}
	lock, err := place.Lock(path, handHeld)
	if err != nil {
		var held *place.Error
		return errors.As(err, &held) && held.Code == handHeld
	}
	defer lock.Close()
	_ = os.Remove(path)
	return false
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
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, f := range files[:max(0, len(files)-most)] {
		if err := os.Remove(filepath.Join(dir, f.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
