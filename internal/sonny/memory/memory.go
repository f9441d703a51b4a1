// Package memory keeps what agents and the person have noted: facts, one Markdown
// file each, below ~/.agents/memory, with a generated index in each folder
// (sonny.md 25). The index is all that bots are shown of the facts before they open
// one.
//
// What is returned has the JSON shape in which the tool answers an agent. Errors are
// *protocol.Error with the codes of sonny.md 25.2; each says what to do.
package memory

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"agent/internal/place"
	"agent/internal/sonny/fault"
	"agent/protocol"
)

// Bounds of a folder (sonny.md 25.1).
const (
	MaxFact    = 4 << 10 // bytes of a fact's file
	MaxIndex   = 4 << 10 // bytes of MEMORY.md
	MaxEntries = 1024    // names in a folder, of whatever kind
)

// The codes of a refusal.
const (
	codeFull           protocol.Code = "memory_full"
	codeInvalid        protocol.Code = "memory_invalid"
	codeFactTooLarge   protocol.Code = "fact_too_large"
	codeInvalidType    protocol.Code = "invalid_type"
	codeInvalidText    protocol.Code = "invalid_text"
	codeProjectUnknown protocol.Code = "project_unknown"
	codeLossGuard      protocol.Code = "loss_guard"
	codeBusy           protocol.Code = "memory_busy"
)

const (
	indexFile = "MEMORY.md"
	lockFile  = ".lock"
	projects  = "projects"
)

// Memory is the facts of one person. Its methods may be called at once, from many
// goroutines and processes: each change is made under its folder's lock.
type Memory struct {
	home     string
	now      func() time.Time
	patience time.Duration
}

// Open is the memory below a home folder; nothing is made or read yet. now gives the
// date that facts are stamped with, in its own time zone.
func Open(home string, now func() time.Time) *Memory { return &Memory{home, now, patience} }

// A Scope says whose facts are meant: the person's, or those of a project.
type Scope struct {
	Project string // "" for the person's
}

// String is the scope as it is written: "user" or "project NAME".
func (s Scope) String() string {
	if s.Project == "" {
		return "user"
	}
	return "project " + s.Project
}

// MarshalText makes the scope its written form in JSON.
func (s Scope) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// ParseScope reads "user", "project NAME" or "", which is the project given: that of
// the folder, "" where there is none. project_unknown.
func ParseScope(text, project string) (Scope, error) {
	switch name, named := strings.CutPrefix(text, "project "); {
	case text == "user":
		return Scope{}, nil
	case text == "" && project == "":
		return Scope{}, protocol.Fail(codeProjectUnknown, `this folder belongs to no project; name the scope: "user", or "project NAME"`)
	case text == "":
		return Scope{project}, checkProject(project)
	case named:
		return Scope{name}, checkProject(name)
	}
	return Scope{}, protocol.Fail(codeProjectUnknown, fmt.Sprintf(`%q is no scope; it is "user" or "project NAME"`, text))
}

func checkProject(name string) error {
	if validProject(name) {
		return nil
	}
	return protocol.Fail(codeProjectUnknown, fmt.Sprintf("%q is no project's name: 1 to 64 of A-Z a-z 0-9 - _ ., not beginning with . or - and not ending with .", name))
}

func validProject(name string) bool {
	return len(name) <= 64 && protocol.ValidBotName(name) && !strings.HasSuffix(name, ".")
}

// Folder is where a scope's facts lie, whether or not it exists.
func (m *Memory) Folder(s Scope) string {
	top := filepath.Join(m.home, ".agents", "memory")
	if s.Project == "" {
		return top
	}
	return filepath.Join(top, projects, s.Project)
}

// Scopes are all that have a folder: the person's first, then the projects by name.
func (m *Memory) Scopes() ([]Scope, error) {
	list := []Scope{{}}
	dir := filepath.Join(m.Folder(Scope{}), projects)
	entries, err := names(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.IsDir() && validProject(e.Name()) {
			list = append(list, Scope{e.Name()})
		}
	}
	return list, nil
}

// makeFolder makes a scope's folder, and those above it, 0700. ~/.agents itself is
// as the person has it, which may be a link.
func (m *Memory) makeFolder(s Scope) error {
	agents := filepath.Join(m.home, ".agents")
	if info, err := os.Stat(agents); err != nil || !info.IsDir() {
		if err := place.MakeOwnDir(agents); err != nil {
			return unusable(err)
		}
	}
	top := m.Folder(Scope{})
	for dir := range dirsFrom(top, m.Folder(s)) {
		if err := place.MakePrivateDir(dir); err != nil {
			return unusable(err)
		}
	}
	return nil
}

// dirsFrom are the folders from top down to dir, which lies in it.
func dirsFrom(top, dir string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		rest := strings.Split(strings.TrimPrefix(strings.TrimPrefix(dir, top), "/"), "/")
		at := top
		if !yield(at) {
			return
		}
		for _, name := range rest {
			if name == "" {
				continue
			}
			at = filepath.Join(at, name)
			if !yield(at) {
				return
			}
		}
	}
}

// patience is how long a change waits for another one of the same folder. A change
// takes milliseconds; whoever holds the lock longer has been stopped, or is no
// change at all.
const patience = 10 * time.Second

// locked does something under a scope's lock, in its folder, which is made.
func (m *Memory) locked(s Scope, do func(dir string) error) error {
	if err := m.makeFolder(s); err != nil {
		return err
	}
	dir := m.Folder(s)
	lock, err := waitFor(filepath.Join(dir, lockFile), m.patience)
	if err != nil {
		return err
	}
	defer lock.Close()
	return do(dir)
}

// waitFor takes a lock.
func waitFor(path string, patience time.Duration) (*place.OwnerLock, error) {
	lock, err := place.LockWithin(path, string(codeBusy), patience)
	switch {
	case err == nil:
		return lock, nil
	case heldBy(err) == codeBusy:
		return nil, protocol.Fail(codeBusy, path+" has been held by another program for "+patience.String()+"; end that one, or try again")
	}
	return nil, unusable(err)
}

// unusable is a file or folder that is in the way.
func unusable(err error) error {
	if fault.OfDisk(err) {
		return err // nothing is wrong with it
	}
	var p *fs.PathError
	detail := err.Error()
	if errors.As(err, &p) {
		detail = p.Path + ": " + p.Err.Error()
	}
	return protocol.Fail(codeInvalid, detail+"; put it right, or move it away")
}
