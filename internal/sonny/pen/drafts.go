package pen

import (
	"cmp"
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
	"time"

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

	// Mark names what is written in a composer; Took are the marks of the start screens whose
	// text was taken over into this one. While both are kept it counts once.
	Mark string   `json:"mark,omitempty"`
	Took []string `json:"taken,omitempty"`
	// Pieces are the marks of the files of other Sonnys that this one has what they held of.
	// They are the files' alone.
	Pieces []string `json:"pieces,omitempty"`
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
	return k.Draft.Empty() && len(k.Stash) == 0 && len(k.Held) == 0 && k.Edited == nil && len(k.Way) == 0 && len(k.Took) == 0
}

// Settled is k without a message of the line that is being changed: that one, as it is
// now, and those that waited for it are held, and the draft is what was written before.
func (k Kept) Settled() Kept {
	e := k.Edited
	if e == nil {
		return k
	}
	changed := k.Draft
	if changed.Empty() {
		changed = e.Was
	}
	k.Held = append(append(slices.Clone(k.Held), changed), e.After...)
	k.Draft, k.Edited = e.Before, nil
	return k
}

// With is what is kept of a bot with what was written for it on a start screen, once,
// however often the two are read.
func (k Kept) With(start Kept) Kept {
	taken := func(mark string) bool { return slices.Contains(k.Took, mark) }
	marks := start.Took
	if start.Mark != "" {
		marks = []string{start.Mark}
	}
	if len(marks) > 0 && !slices.ContainsFunc(marks, func(m string) bool { return !taken(m) }) {
		return k
	}
	return k.Join(start)
}

// Join is what is kept with what another composer held behind it. Of two messages of the
// line that are being changed the other one is held.
func (k Kept) Join(other Kept) Kept {
	if other.Empty() {
		return k
	}
	k.Took = slices.Clone(k.Took)
	for _, mark := range append([]string{other.Mark}, other.Took...) {
		if mark != "" && !slices.Contains(k.Took, mark) {
			k.Took = append(k.Took, mark)
		}
	}
	switch {
	case k.Edited != nil:
		other = other.Settled()
		edited := *k.Edited
		edited.Before = other.Draft.After(edited.Before)
		k.Edited = &edited
	case other.Edited != nil:
		edited := *other.Edited
		edited.Before = edited.Before.After(k.Draft)
		k.Edited, k.Draft = &edited, other.Draft
	default:
		k.Draft = other.Draft.After(k.Draft)
	}
	k.Stash = append(slices.Clone(other.Stash), k.Stash...)
	k.Held = append(slices.Clone(k.Held), other.Held...)
	k.Way = slices.Clone(k.Way)
	for _, w := range other.Way {
		if !slices.ContainsFunc(k.Way, func(o OnWay) bool { return o.Request == w.Request }) {
			k.Way = append(k.Way, w)
		}
	}
	return k
}

// Drafts are the composers' texts. Each Sonny that runs has a file of its own for each of
// them, which bears its hand (Sign): so that of two that write for one bot none writes over
// the other. What a Sonny left that has ended is given to the next that asks (Left). Its
// methods may be called at once.
type Drafts struct {
	dir string

	mu    sync.Mutex
	hand  string
	lock  *place.OwnerLock
	saved map[string]int     // the newest change that was written, by key
	given map[string][]given // what Left gave and no file of this Sonny's own holds yet, by key
}

// given is a file that another Sonny left, claimed by this one.
type given struct{ path, mark string }

// DraftsIn are the drafts in Sonny's folder, ~/.agent/sonny.
func DraftsIn(dir string) *Drafts {
	return &Drafts{dir: filepath.Join(dir, "drafts"), saved: map[string]int{}, given: map[string][]given{}}
}

// OfBot is the key of a bot's draft.
func OfBot(store string, bot int64) string { return fmt.Sprintf("bot %s %d", store, bot) }

// OfFolder is the key of a draft on the start screen of a folder without a lead.
func OfFolder(path string) string { return "folder " + path }

// OfNewLead is the key of a draft for a lead beside those that a folder has.
func OfNewLead(path string) string { return "new lead " + path }

// stem begins the names of the files of a key.
func (d *Drafts) stem(key string) string {
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(d.dir, hex.EncodeToString(sum[:16]))
}

// own is this Sonny's file.
func (d *Drafts) own(key string) string { return d.stem(key) + "." + d.hand + ".json" }

// Save keeps what a composer holds after its nth change; an empty one leaves no file. A
// save that comes after one of a later change does nothing.
func (d *Drafts) Save(key string, n int, k Kept) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n <= d.saved[key] {
		return nil
	}
	if err := d.write(key, k); err != nil {
		return err
	}
	d.saved[key] = n
	return nil
}

// write writes the file, and then removes those that it has what they held of.
func (d *Drafts) write(key string, k Kept) error {
	took := d.given[key]
	if k.Empty() {
		if err := remove(took); err != nil {
			return err
		}
		delete(d.given, key)
		return remove([]given{{path: d.own(key)}})
	}
	k.Pieces = nil
	for _, g := range took {
		k.Pieces = append(k.Pieces, g.mark)
	}
	if err := d.put(key, k); err != nil {
		return err
	}
	if err := remove(took); err != nil {
		return err
	}
	delete(d.given, key)
	return nil
}

// put writes the file of this Sonny's own.
func (d *Drafts) put(key string, k Kept) error {
	data, err := json.Marshal(k)
	if err != nil {
		return err
	}
	if len(data) > maxDraft {
		return fmt.Errorf("the draft would take %d MiB, more than the %d that are kept", len(data)>>20, maxDraft>>20)
	}
	if err := d.sign(); err != nil {
		return err
	}
	if err := place.WritePrivate(d.own(key), data); err != nil {
		return err
	}
	return keepNewest(d.dir, maxDrafts)
}

func remove(files []given) error {
	for _, f := range files {
		if err := os.Remove(f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Load is what this Sonny has kept; empty where that is nothing.
func (d *Drafts) Load(key string) (Kept, error) {
	d.mu.Lock()
	path := d.own(key)
	d.mu.Unlock()
	k, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Kept{}, nil
	}
	return k, err
}

func read(path string) (k Kept, err error) {
	data, _, err := place.ReadOwn(path, maxDraft)
	if err != nil {
		return k, err
	}
	if err := json.Unmarshal(data, &k); err != nil {
		aside := path + ".broken"
		return Kept{}, errors.Join(fmt.Errorf("%s: %w; it holds a draft that cannot be read, and is %s from now on", path, err, aside), os.Rename(path, aside))
	}
	return k, nil
}

// Left is what Sonnys that have ended left of a key, the oldest first, and the marks of
// their files. It is this one's from then on: its next Save is to hold it, and no other
// Sonny is given it while this one runs. The error is of what could not be read.
func (d *Drafts) Left(key string) (left Kept, marks []string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	lock, err := place.LockDir(d.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return Kept{}, nil, nil
	}
	if err != nil {
		return Kept{}, nil, err
	}
	defer lock.Close()
	return d.claim(key)
}

// claim makes the files of Sonnys that have ended this one's.
func (d *Drafts) claim(key string) (left Kept, marks []string, failed error) {
	files, pieces, failed := d.ended(key)
	for _, f := range files {
		if slices.Contains(pieces, f.mark) { // another of them has what it held
			failed = errors.Join(failed, remove([]given{f.given}))
		}
	}
	for _, f := range files {
		if slices.Contains(pieces, f.mark) {
			continue
		}
		mine := fmt.Sprintf("%s.%s.%s.json", d.stem(key), d.hand, rand.Text())
		if err := os.Rename(f.path, mine); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		d.given[key] = append(d.given[key], given{mine, f.mark})
		marks = append(marks, f.mark)
		f.kept.Mark = "" // it is no start screen's here
		left = left.Join(f.kept)
	}
	return left, marks, failed
}

// leftFile is a file that a Sonny left.
type leftFile struct {
	given
	kept Kept
	at   time.Time
}

// ended reads the files of a key that are of no Sonny that runs, the oldest first, and the
// marks of those of which others hold everything. A file without a mark has its name's.
func (d *Drafts) ended(key string) (files []leftFile, pieces []string, failed error) {
	paths, err := filepath.Glob(d.stem(key) + "*.json")
	if err != nil {
		return nil, nil, err
	}
	for _, path := range paths {
		hand := handIn(path)
		if hand == d.hand && hand != "" || d.Lives(hand) {
			continue
		}
		info, err := os.Lstat(path)
		if err == nil {
			var k Kept
			if k, err = read(path); err == nil {
				files = append(files, leftFile{given{path, cmp.Or(k.Mark, filepath.Base(path))}, k, info.ModTime()})
				pieces = append(pieces, k.Pieces...)
			}
		}
		if !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, err)
		}
	}
	slices.SortStableFunc(files, func(x, y leftFile) int { return x.at.Compare(y.at) })
	return files, pieces, failed
}

// handIn is the hand that a file's name bears; "" for none.
func handIn(path string) string {
	_, rest, _ := strings.Cut(filepath.Base(path), ".")
	hand, _, _ := strings.Cut(rest, ".")
	if !strings.HasPrefix(hand, "hand_") {
		return ""
	}
	return hand
}

// makeFolder makes a folder of Sonny's folder, and that one too where it was taken away.
func makeFolder(dir string) error {
	if err := place.Remake(filepath.Dir(dir)); err != nil {
		return err
	}
	return place.MakePrivateDir(dir)
}

// Unbegun is the path of the file that says that a command of the person's has not begun.
// Whoever takes it away decides: the command, which begins then, or the next Sonny, for
// which it never will.
func (d *Drafts) Unbegun(request string) string { return filepath.Join(d.dir, request) }

// MarkUnbegun makes that file.
func (d *Drafts) MarkUnbegun(path string) error {
	if err := makeFolder(d.dir); err != nil {
		return err
	}
	return place.CreatePrivate(path, nil)
}

// handHeld is the code of a hand whose Sonny lives.
const handHeld = "hand_held"

// Sign gives the Sonny at hand a name that others know to live as long as its process
// does, or until Unsign. It comes before what is saved and what is given.
func (d *Drafts) Sign() (hand string, err error) {
	d.sweep()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hand = handPrefix + rand.Text()
	return d.hand, d.sign()
}

// sweep removes what is left of Sonnys that were killed.
func (d *Drafts) sweep() {
	entries, _ := os.ReadDir(d.dir) // what cannot be read is not swept
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), handPrefix) {
			d.Lives(e.Name())
		}
	}
}

const handPrefix = "hand_"

// sign sees to it that the name stands in the folder, which may have been taken away.
func (d *Drafts) sign() error {
	if err := makeFolder(d.dir); err != nil {
		return err
	}
	path := filepath.Join(d.dir, d.hand)
	if _, err := os.Lstat(path); d.hand == "" || d.lock != nil && err == nil {
		return nil
	}
	lock, err := place.Lock(path, handHeld)
	if err != nil {
		return err
	}
	if d.lock != nil {
		d.lock.Close()
	}
	d.lock = lock
	return nil
}

// Unsign ends the name that Sign gave: what is saved is the next Sonny's.
func (d *Drafts) Unsign() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lock != nil {
		_ = os.Remove(filepath.Join(d.dir, d.hand))
		d.lock.Close()
		d.lock = nil
	}
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
