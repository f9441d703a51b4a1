package memory

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agent/internal/place"
	"agent/protocol"
)

// A Problem is what is wrong in a folder.
type Problem struct {
	File   string `json:"file"` // its path
	Detail string `json:"detail"`
}

func (p Problem) String() string { return p.File + ": " + p.Detail }

// content is what a folder holds.
type content struct {
	dir      string
	facts    []Fact // by name
	problems []Problem
	leftover []string // what a write that was cut short has left
}

// readFolder reads a folder, which need not exist. It changes nothing. A folder that
// cannot be listed, or has too many entries, is memory_invalid; a file that is no
// valid fact is one of the problems.
func readFolder(dir string) (*content, error) {
	entries, err := names(dir)
	if err != nil {
		return nil, err
	}
	c := &content{dir: dir}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		name, markdown := strings.CutSuffix(e.Name(), ".md")
		switch {
		case strings.HasPrefix(e.Name(), ".") && strings.HasSuffix(e.Name(), ".tmp"):
			c.leftover = append(c.leftover, path)
		case strings.HasPrefix(e.Name(), "."), !markdown:
		case e.Name() == indexFile:
			if !e.Type().IsRegular() {
				c.problems = append(c.problems, Problem{path, "it is not a regular file"})
			}
		default:
			c.add(name, path)
		}
	}
	return c, nil
}

// add reads a fact.
func (c *content) add(name, path string) {
	data, _, err := place.ReadOwn(path, MaxFact)
	if errors.Is(err, fs.ErrNotExist) {
		return // it has gone
	}
	var f *Fact
	if err == nil {
		f, err = parseFact(name, data)
	}
	if err != nil {
		c.problems = append(c.problems, Problem{path, strings.TrimPrefix(reason(err), path+" ")})
		return
	}
	c.facts = append(c.facts, *f)
}

// reason is an error's words, without its code and without the path that is said
// anyway.
func reason(err error) string {
	var coded *protocol.Error
	var path *fs.PathError
	switch {
	case errors.As(err, &coded):
		return coded.Detail
	case errors.As(err, &path):
		return path.Err.Error()
	}
	return err.Error()
}

// names are the entries of a folder, sorted; none where there is none.
func names(dir string) ([]os.DirEntry, error) {
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a folder", dir)
	}
	if err != nil {
		return nil, unusable(err)
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil, unusable(err)
	}
	defer f.Close()
	list, err := f.ReadDir(MaxEntries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, unusable(err)
	}
	if len(list) > MaxEntries {
		return nil, protocol.Fail(codeInvalid, fmt.Sprintf("%s has more than %d entries; move away what is no fact", dir, MaxEntries))
	}
	slices.SortFunc(list, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, nil
}

// sound is an error where a file of the folder is no valid fact: what is not read
// would be left out of the index.
func (c *content) sound() error {
	if len(c.problems) == 0 {
		return nil
	}
	return protocol.Fail(codeInvalid, c.problems[0].String()+"; correct the file, or remove it")
}

// find is the fact of a name; nil where there is none.
func (c *content) find(name string) *Fact {
	for i := range c.facts {
		if c.facts[i].Name == name {
			return &c.facts[i]
		}
	}
	return nil
}

// put sets the fact of a name among those that were read.
func (c *content) put(f Fact) {
	if old := c.find(f.Name); old != nil {
		*old = f
		return
	}
	c.facts = append(c.facts, f)
	slices.SortFunc(c.facts, func(a, b Fact) int { return strings.Compare(a.Name, b.Name) })
}

func (c *content) drop(name string) {
	c.facts = slices.DeleteFunc(c.facts, func(f Fact) bool { return f.Name == name })
}

// index is the folder's MEMORY.md.
func (c *content) index() string {
	var b strings.Builder
	for i := range c.facts {
		b.WriteString(c.facts[i].Line())
	}
	return b.String()
}

// fits is memory_full where the index would be too large.
func (c *content) fits() error {
	if n := len(c.index()); n > MaxIndex {
		return protocol.Fail(codeFull, fmt.Sprintf("the index %s would have %d bytes, more than %d; remove a fact, merge some, or shorten descriptions",
			filepath.Join(c.dir, indexFile), n, MaxIndex))
	}
	return nil
}

// written is what MEMORY.md holds now, "" where it is not there. memory_invalid.
func (c *content) written() (string, error) {
	data, _, err := place.ReadOwn(filepath.Join(c.dir, indexFile), 2*MaxIndex)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", unusable(err)
	}
	return string(data), nil
}

// writeIndex writes MEMORY.md, and clears away what cut-short writes have left. The
// caller has the lock.
func (c *content) writeIndex() error {
	for _, path := range c.leftover {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return unusable(err)
		}
	}
	if err := place.WritePrivate(filepath.Join(c.dir, indexFile), []byte(c.index())); err != nil {
		return unusable(err)
	}
	return nil
}

// writeFact writes one fact's file.
func (c *content) writeFact(f *Fact) error {
	if err := place.WritePrivate(c.path(f.Name), []byte(f.encode())); err != nil {
		return unusable(err)
	}
	return nil
}

func (c *content) path(name string) string { return filepath.Join(c.dir, name+".md") }
