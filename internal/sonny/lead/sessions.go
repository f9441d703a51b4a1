package lead

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"agent/internal/place"
	"agent/internal/sonny/repo"
	"agent/protocol"
)

// Session is what Sonny keeps about a lead, a fork of one, a home or an exec bot. The
// bot is the daemon's; losing this loses only what stands here (sonny.md 26).
type Session struct {
	Store   string    `json:"store"`   // the store's identity
	BotID   int64     `json:"bot_id"`  // together they are the key
	Bot     string    `json:"bot"`     // its name then
	Folder  string    `json:"folder"`  // the workspace: a real path
	Project string    `json:"project"` // whose lead it is
	Kind    Kind      `json:"kind"`
	Repo    repo.Repo `json:"repo,omitzero"` // as found when it was made

	Title    string    `json:"title,omitempty"` // set by the person
	Archived bool      `json:"archived,omitempty"`
	Pinned   bool      `json:"pinned,omitempty"`
	Opened   time.Time `json:"opened,omitzero"`   // last
	Seen     int64     `json:"seen,omitempty"`    // newest turn that was on screen
	SeenAt   time.Time `json:"seen_at,omitzero"`  // when
	ForkOf   int64     `json:"fork_of,omitempty"` // a bot's id
	Before   *Before   `json:"before,omitempty"`  // what /look is to give back
	Compact  *Compact  `json:"compact,omitempty"` // what /compact is to give back
	View     View      `json:"view,omitzero"`     // folds and panes
	Sources  string    `json:"sources,omitempty"` // digest of its instructions' sources
}

// Kind says what a session's bot is.
type Kind string

// The kinds.
const (
	KindLead Kind = "lead"
	KindFork Kind = "fork"
	KindHome Kind = "home"
	KindExec Kind = "exec"
	KindTask Kind = "task" // no session: a bot under a lead, of which a title and a view are kept
)

// Before is the confinement that a lead had before look (sonny.md 4).
type Before struct {
	Gates         []protocol.Gate `json:"gates"`
	Sandbox       string          `json:"sandbox"`
	WritableRoots []string        `json:"writable_roots"`
}

// View is how a session was left on screen.
type View struct {
	Output   bool `json:"output,omitempty"` // unfolded
	Thoughts bool `json:"thoughts,omitempty"`
	Rail     bool `json:"rail,omitempty"`
}

// maxSessions bounds the file; the oldest archived, then the oldest, give way.
const maxSessions = 5000

// maxSessionsFile bounds what is read, in bytes.
const maxSessionsFile = 16 << 20

// Book is sessions.json: the sessions, and the names that folders' projects were
// given. Several Sonnys share it; each change is read, made and replaced whole under
// its lock. Its methods are safe for concurrent use.
type Book struct{ path string }

// BookIn is the book in Sonny's folder, ~/.agent/sonny.
func BookIn(dir string) *Book { return &Book{path: filepath.Join(dir, "sessions.json")} }

// Page is what the book holds.
type Page struct {
	Version  int               `json:"v"`
	Projects map[string]string `json:"projects,omitempty"` // by folder
	Sessions []Session         `json:"sessions"`
}

// Of is the session of a bot, or nil.
func (p *Page) Of(store string, bot int64) *Session {
	i := slices.IndexFunc(p.Sessions, func(s Session) bool { return s.Store == store && s.BotID == bot })
	if i < 0 {
		return nil
	}
	return &p.Sessions[i]
}

// Put adds a session, or replaces the one of the same bot.
func (p *Page) Put(s Session) {
	if old := p.Of(s.Store, s.BotID); old != nil {
		*old = s
		return
	}
	p.Sessions = append(p.Sessions, s)
	if len(p.Sessions) > maxSessions {
		p.dropOldest()
	}
}

func (p *Page) dropOldest() {
	oldest := 0
	for i, s := range p.Sessions {
		o := p.Sessions[oldest]
		if s.Archived != o.Archived {
			if s.Archived {
				oldest = i
			}
		} else if s.Opened.Before(o.Opened) {
			oldest = i
		}
	}
	p.Sessions = slices.Delete(p.Sessions, oldest, oldest+1)
}

// Forget drops a bot's session.
func (p *Page) Forget(store string, bot int64) {
	p.Sessions = slices.DeleteFunc(p.Sessions, func(s Session) bool { return s.Store == store && s.BotID == bot })
}

// bookVersion is what is written. A book with a higher one has what this program does not
// know, and would lose.
const bookVersion = 1

// Read is the book as it is. One that is absent or broken is empty: broken tells which,
// and the next Change sets the broken file aside. One of another user's, or that is no
// file, is an error, and so is a newer Sonny's: neither is read nor written.
func (b *Book) Read() (page *Page, broken error, err error) {
	page = &Page{Version: bookVersion, Projects: map[string]string{}}
	if info, err := os.Lstat(b.path); err == nil && info.Mode().IsRegular() && info.Size() > maxSessionsFile && !place.Foreign(info) {
		return page, fmt.Errorf("%s is over %d MiB", b.path, maxSessionsFile>>20), nil
	}
	text, mode, err := place.ReadOwn(b.path, maxSessionsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return page, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("the list of sessions is not used: %w; look at it, and move it away", err)
	}
	if mode != 0o600 {
		_ = os.Chmod(b.path, 0o600)
	}
	read := &Page{}
	if err := json.Unmarshal(text, read); err != nil {
		return page, fmt.Errorf("%s: %w", b.path, err), nil
	}
	if read.Version > bookVersion {
		return nil, nil, protocol.Fail(protocol.IoError, fmt.Sprintf("%s was written by a newer Sonny (v %d, and this one knows %d): it is left as it is; run the newer one, or move the file away", b.path, read.Version, bookVersion))
	}
	if read.Projects == nil {
		read.Projects = map[string]string{}
	}
	return read, nil, nil
}

// Change reads the book, lets change work on it, and replaces it whole, while no other
// program does.
func (b *Book) Change(change func(*Page) error) error {
	lock, err := place.WaitLock(b.path + ".lock")
	if err != nil {
		return err
	}
	defer lock.Close()
	page, broken, err := b.Read()
	if err != nil {
		return err
	}
	if broken != nil {
		if err := os.Rename(b.path, b.path+".broken"); err != nil {
			return err
		}
	}
	if err := change(page); err != nil {
		return err
	}
	page.Version = bookVersion
	text, err := json.MarshalIndent(page, "", " ")
	if err != nil {
		return err
	}
	return place.WritePrivate(b.path, append(text, '\n'))
}
