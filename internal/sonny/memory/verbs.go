package memory

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agent/internal/place"
	"agent/protocol"
)

// A Draft is a fact to be saved.
type Draft struct {
	Name, Type, Description, Source, Text string

	// By is the turn that saves, turn:BOT/N, as the daemon names it; "" for the
	// person. External is what that turn has read of outside content. Both are the
	// tool host's to say and never an agent's.
	By       string
	External []string
}

// Saved is the answer to a save.
type Saved struct {
	Name       string   `json:"name"`
	Scope      Scope    `json:"scope"`
	Path       string   `json:"path"`
	Verified   string   `json:"verified"`
	External   []string `json:"external,omitempty"`
	Replaced   bool     `json:"replaced"`    // another text, type or description stood there
	Duplicate  bool     `json:"duplicate"`   // the same stood there; its date is today's now
	Bytes      int      `json:"bytes"`       // of the fact
	IndexBytes int      `json:"index_bytes"` // of MEMORY.md, at most 4096
}

// between runs after a fact was written or removed and before the index is.
var between = func() {}

// Save writes a fact and the index. The same text, type and description again
// refreshes its date. A mark that stood on the fact stays. invalid_name,
// invalid_type, invalid_text, fact_too_large, memory_full, memory_invalid: nothing
// was changed then.
func (m *Memory) Save(s Scope, d Draft) (*Saved, error) {
	f := Fact{
		Name: d.Name, Type: d.Type, Description: d.Description, Source: d.Source, Text: trimmed(d.Text),
		By: d.By, External: d.External, Verified: m.now().Format(dateForm),
	}
	if err := f.check(); err != nil {
		return nil, err
	}
	var saved *Saved
	return saved, m.locked(s, func(dir string) (err error) {
		saved, err = save(dir, s, f)
		return err
	})
}

func save(dir string, s Scope, f Fact) (*Saved, error) {
	c, err := readFolder(dir)
	if err == nil {
		err = c.sound()
	}
	if err != nil {
		return nil, err
	}
	old := c.find(f.Name)
	same := old != nil && old.Text == f.Text && old.Type == f.Type && old.Description == f.Description
	if old != nil {
		f.External = union(f.External, old.External)
	} else {
		f.External = union(f.External, nil)
	}
	size := len(f.encode())
	if size > MaxFact {
		return nil, protocol.Fail(codeFactTooLarge, fmt.Sprintf("the fact %s would have %d bytes, more than %d; shorten its text, or make two of it", f.Name, size, MaxFact))
	}
	replaced := old != nil && !same
	c.put(f)
	if err := c.fits(); err != nil {
		return nil, err
	}
	if err := c.writeFact(&f); err != nil {
		return nil, err
	}
	between()
	return &Saved{
		Name: f.Name, Scope: s, Path: c.path(f.Name), Verified: f.Verified, External: f.External,
		Replaced: replaced, Duplicate: same, Bytes: size, IndexBytes: len(c.index()),
	}, c.writeIndex()
}

// union is every mark of both, sorted.
func union(a, b []string) []string {
	all := append(slices.Clone(a), b...)
	slices.Sort(all)
	return slices.Compact(all)
}

// Removed is the answer to a removal.
type Removed struct {
	Name       string    `json:"name"`
	Scope      Scope     `json:"scope"`
	Duplicate  bool      `json:"duplicate"` // it was gone already
	IndexBytes int       `json:"index_bytes"`
	Problems   []Problem `json:"problems,omitempty"` // they keep the index from being written
}

// Remove removes a fact, one that is no valid fact too, and writes the index unless
// another file of the folder is wrong. Nothing that is no regular file of the
// person's is removed: memory_invalid. invalid_name.
func (m *Memory) Remove(s Scope, name string) (*Removed, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	if _, err := os.Lstat(m.Folder(s)); errors.Is(err, fs.ErrNotExist) {
		return &Removed{Name: name, Scope: s, Duplicate: true}, nil
	}
	var removed *Removed
	return removed, m.locked(s, func(dir string) (err error) {
		removed, err = remove(dir, s, name)
		return err
	})
}

func remove(dir string, s Scope, name string) (*Removed, error) {
	c, err := readFolder(dir)
	if err != nil {
		return nil, err
	}
	r := &Removed{Name: name, Scope: s}
	path := c.path(name)
	_, _, err = place.ReadOwn(path, 1<<20)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.Duplicate = true
	case err != nil:
		return nil, unusable(err)
	default:
		if err := os.Remove(path); err != nil {
			return nil, unusable(err)
		}
	}
	c.drop(name)
	c.problems = slices.DeleteFunc(c.problems, func(p Problem) bool { return p.File == path })
	between()
	if r.Problems = c.problems; len(r.Problems) > 0 {
		return r, nil
	}
	r.IndexBytes = len(c.index())
	return r, c.writeIndex()
}

// Indexed is the answer to a rewriting of an index.
type Indexed struct {
	Scope      Scope  `json:"scope"`
	Path       string `json:"path"`
	Facts      int    `json:"facts"`
	IndexBytes int    `json:"index_bytes"`
	Changed    bool   `json:"changed"`
}

// Index writes MEMORY.md anew. memory_invalid, memory_full: it is as it was then.
func (m *Memory) Index(s Scope) (*Indexed, error) {
	var done *Indexed
	return done, m.locked(s, func(dir string) error {
		c, err := readFolder(dir)
		for _, step := range []func() error{func() error { return err }, func() error { return c.sound() }, func() error { return c.fits() }} {
			if err := step(); err != nil {
				return err
			}
		}
		before, err := c.written()
		if err != nil {
			return err
		}
		done = &Indexed{s, filepath.Join(c.dir, indexFile), len(c.facts), len(c.index()), before != c.index()}
		return c.writeIndex()
	})
}

// Checked is what is wrong with a folder; Problems is empty where nothing is.
type Checked struct {
	Scope      Scope     `json:"scope"`
	Folder     string    `json:"folder"`
	Facts      int       `json:"facts"`
	IndexBytes int       `json:"index_bytes"`
	Problems   []Problem `json:"problems"`
}

// Check looks at a folder and changes nothing. memory_invalid where the folder
// itself cannot be read.
func (m *Memory) Check(s Scope) (*Checked, error) {
	c, err := readFolder(m.Folder(s))
	if err != nil {
		return nil, err
	}
	_, problems := c.checked()
	return &Checked{s, c.dir, len(c.facts), len(c.index()), problems}, nil
}

// checked is the index as it stands, and everything that is wrong in the folder.
func (c *content) checked() (index string, problems []Problem) {
	problems = append([]Problem{}, c.problems...)
	at := filepath.Join(c.dir, indexFile)
	if err := c.fits(); err != nil {
		problems = append(problems, Problem{at, reason(err)})
	}
	index, err := c.written()
	switch {
	case err != nil:
		problems = append(problems, Problem{at, strings.TrimPrefix(reason(err), at+" ")})
	case index != c.index():
		problems = append(problems, Problem{at, "it is not what the facts say; sonny memory index writes it anew"})
	}
	return index, problems
}

// Trust takes the marks of outside content off a fact. It is the person's alone to
// ask for. invalid_name where there is no such fact; memory_invalid.
func (m *Memory) Trust(s Scope, name string) (*Saved, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	var saved *Saved
	return saved, m.locked(s, func(dir string) error {
		c, err := readFolder(dir)
		if err == nil {
			err = c.sound()
		}
		if err != nil {
			return err
		}
		f := c.find(name)
		if f == nil {
			return protocol.Fail(protocol.InvalidName, "there is no fact "+name+" in "+dir)
		}
		duplicate := len(f.External) == 0
		f.External = nil
		if err := c.writeFact(f); err != nil {
			return err
		}
		between()
		saved = &Saved{
			Name: name, Scope: s, Path: c.path(name), Verified: f.Verified, Replaced: !duplicate, Duplicate: duplicate,
			Bytes: len(f.encode()), IndexBytes: len(c.index()),
		}
		return c.writeIndex()
	})
}

// Shown is the two indexes that concern a bot.
type Shown struct {
	User    *Index `json:"user"`
	Project *Index `json:"project"` // null outside a project
}

// An Index is a folder's MEMORY.md as it stands.
type Index struct {
	Scope    Scope     `json:"scope"`
	Folder   string    `json:"folder"`
	Facts    int       `json:"facts"`
	Index    string    `json:"index"`
	Problems []Problem `json:"problems,omitempty"` // such as an index that is not what the facts say
	external []string
}

// Show reads the person's index and that of a project, "" for none. memory_invalid
// where a folder cannot be read.
func (m *Memory) Show(project string) (*Shown, error) {
	user, err := m.showOne(Scope{})
	if err != nil || project == "" {
		return &Shown{User: user}, err
	}
	of, err := m.showOne(Scope{project})
	return &Shown{user, of}, err
}

func (m *Memory) showOne(s Scope) (*Index, error) {
	c, err := readFolder(m.Folder(s))
	if err != nil {
		return nil, err
	}
	x := &Index{Scope: s, Folder: c.dir, Facts: len(c.facts)}
	x.Index, x.Problems = c.checked()
	for _, f := range c.facts {
		x.external = union(x.external, f.External)
	}
	return x, nil
}

// Marks are what the shown facts came from: a turn that has read them has read that
// outside content.
func (s *Shown) Marks() []string {
	if s.Project == nil {
		return union(s.User.external, nil)
	}
	return union(s.User.external, s.Project.external)
}

// List is every fact of a scope, by name, with what is wrong beside them.
// memory_invalid where the folder cannot be read.
func (m *Memory) List(s Scope) ([]Fact, []Problem, error) {
	c, err := readFolder(m.Folder(s))
	if err != nil {
		return nil, nil, err
	}
	return c.facts, c.problems, nil
}
