package memory

import (
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
	"time"

	"agent/internal/place"
	"agent/protocol"
)

// keptCopies is how many cleanups' copies are kept.
const keptCopies = 14

// maxCopied bounds a file that is copied aside, in bytes.
const maxCopied = 64 << 10

// maxLog bounds the log, in bytes; past it the older half goes.
const maxLog = 256 << 10

// state is ~/.agent/sonny/memory-cleanup.json: the run under way, and when the last
// one ended.
type state struct {
	Bot     string    `json:"bot,omitempty"`
	Copy    string    `json:"copy,omitempty"` // "" while none is under way
	Removed []Change  `json:"removed,omitempty"`
	Ended   time.Time `json:"ended"`
	Digest  string    `json:"digest,omitempty"` // of all facts when it ended
}

// readState reads it. One that cannot be read counts as none: what it tells is only
// when the next cleanup is due, and of a run that was cut short.
func (m *Memory) readState() (s state) {
	data, _, err := place.ReadOwn(m.own("memory-cleanup.json"), 1<<20)
	if err != nil || json.Unmarshal(data, &s) != nil {
		return state{}
	}
	return s
}

func (m *Memory) writeState(change func(*state)) error {
	s := m.readState()
	change(&s)
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := place.WritePrivate(m.own("memory-cleanup.json"), append(data, '\n')); err != nil {
		return unusable(err)
	}
	return nil
}

// UnmarshalText reads a scope as it is written.
func (s *Scope) UnmarshalText(text []byte) (err error) {
	*s, err = ParseScope(string(text), "")
	return err
}

// Due reports whether the daily cleanup is: at, HH:MM of the local day, has passed
// since the last one ended, and facts were saved or removed since then. usage for a
// time of another form; memory_invalid.
func (m *Memory) Due(at string) (bool, error) {
	clock, err := time.Parse("15:04", at)
	if err != nil {
		return false, protocol.Fail(protocol.UsageError, fmt.Sprintf("%q is no time of day, such as 03:30", at))
	}
	now := m.now()
	y, mon, d := now.Date()
	turn := time.Date(y, mon, d, clock.Hour(), clock.Minute(), 0, 0, now.Location())
	if turn.After(now) {
		turn = turn.AddDate(0, 0, -1)
	}
	last := m.readState()
	if !last.Ended.Before(turn) {
		return false, nil
	}
	digest, err := m.digest()
	return err == nil && digest != last.Digest && (last.Digest != "" || digest != none), err
}

// none is the digest where there are no facts.
var none = hex.EncodeToString(sha256.New().Sum(nil))

// digest stands for every fact there is.
func (m *Memory) digest() (string, error) {
	scopes, err := m.Scopes()
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, s := range scopes {
		c, err := readFolder(m.Folder(s))
		if err != nil {
			return "", err
		}
		for _, f := range c.facts {
			fmt.Fprintf(sum, "%s\x00%s\x00", s, f.encode())
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// copyAside copies the files of every folder into a new one of its own, and drops
// the oldest of these past fourteen.
func (m *Memory) copyAside() (string, error) {
	top := m.own("memory-copies")
	if err := place.MakePrivateDir(top); err != nil {
		return "", unusable(err)
	}
	copied, err := newFolder(filepath.Join(top, m.now().UTC().Format("20060102T150405Z")))
	if err != nil {
		return "", err
	}
	scopes, err := m.Scopes()
	if err != nil {
		return "", err
	}
	for _, s := range scopes {
		err := m.existing(s, func(folder *content) error { return folder.copyTo(copyOf(copied, s)) })
		if err != nil {
			return "", err
		}
	}
	return copied, prune(top)
}

// copyOf is a scope's folder in a copy.
func copyOf(copied string, s Scope) string {
	if s.Project == "" {
		return filepath.Join(copied, "user")
	}
	return filepath.Join(copied, projects, s.Project)
}

// newFolder makes a folder of that name, or of the name with a number.
func newFolder(path string) (string, error) {
	for n := 1; ; n++ {
		dir := path
		if n > 1 {
			dir = fmt.Sprintf("%s-%02d", path, n)
		}
		if err := os.Mkdir(dir, 0o700); errors.Is(err, fs.ErrExist) && n < 100 {
			continue
		} else if err != nil {
			return "", unusable(err)
		}
		return dir, place.MakePrivateDir(dir)
	}
}

// copyTo copies the folder's Markdown files. Links, pipes and what is larger than a
// fact can be are not the memory's and stay where they are.
func (c *content) copyTo(dir string) error {
	for _, made := range []string{filepath.Dir(dir), dir} {
		if err := place.MakePrivateDir(made); err != nil {
			return unusable(err)
		}
	}
	list, err := names(c.dir)
	if err != nil {
		return err
	}
	for _, e := range list {
		if !strings.HasSuffix(e.Name(), ".md") {
			continue
		}
		data, _, err := place.ReadOwn(filepath.Join(c.dir, e.Name()), maxCopied)
		if err != nil {
			continue
		}
		if err := place.WritePrivate(filepath.Join(dir, e.Name()), data); err != nil {
			return unusable(err)
		}
	}
	return nil
}

// prune drops the oldest copies.
func prune(top string) error {
	list, err := names(top)
	if err != nil {
		return err
	}
	for len(list) > keptCopies {
		if err := os.RemoveAll(filepath.Join(top, list[0].Name())); err != nil {
			return unusable(err)
		}
		list = list[1:]
	}
	return nil
}

// endCutShort ends a run whose program ended before it did, by the same guard. The
// rule's own work is read back from the state, and what was there from the copy.
func (m *Memory) endCutShort(lock *place.OwnerLock) (*Ended, error) {
	s := m.readState()
	if s.Copy == "" {
		return nil, nil
	}
	c := &Cleanup{Bot: s.Bot, Copy: s.Copy, m: m, lock: lock, before: map[Scope][]Fact{}}
	if err := c.readBack(s.Removed); err != nil {
		return nil, err
	}
	ended, err := c.end()
	if protocol.CodeOf(err) == codeLossGuard {
		err = nil // it was put back, which Ended and the log say
	}
	return ended, err
}

// readBack fills in what the rule had left, from the copy.
func (c *Cleanup) readBack(removed []Change) error {
	if _, err := os.Lstat(c.Copy); errors.Is(err, fs.ErrNotExist) {
		return nil // the person has removed it
	}
	list, err := names(filepath.Join(c.Copy, projects))
	if err != nil {
		return err
	}
	scopes := []Scope{{}}
	for _, e := range list {
		scopes = append(scopes, Scope{e.Name()})
	}
	for _, s := range scopes {
		folder, err := readFolder(copyOf(c.Copy, s))
		if err != nil {
			return err
		}
		c.before[s] = slices.DeleteFunc(folder.facts, func(f Fact) bool {
			byRule := func(gone Change) bool { return gone.Scope == s && gone.Name == f.Name }
			// Cut short within the rule itself, the state does not name them yet.
			return slices.ContainsFunc(removed, byRule) || len(f.External) > 0 && ordersIn(&f) != ""
		})
	}
	return nil
}

// log adds a line for each change to memory-cleanup.log.
func (m *Memory) log(list []Change) error {
	if len(list) == 0 {
		return nil
	}
	path := m.own("memory-cleanup.log")
	old, _, err := place.ReadOwn(path, 2*maxLog)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return unusable(err)
	}
	if len(old) > maxLog {
		old = old[len(old)-maxLog/2:]
		if i := strings.IndexByte(string(old), '\n'); i >= 0 {
			old = old[i+1:]
		}
	}
	stamp := m.now().UTC().Format(time.RFC3339)
	for _, change := range list {
		old = fmt.Appendf(old, "%s %s\n", stamp, change)
	}
	if err := place.WritePrivate(path, old); err != nil {
		return unusable(err)
	}
	return nil
}
