package tool

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"agent/protocol"
)

// maxHeld bounds, in bytes, the files that a plan holds because a later section
// names them again.
const maxHeld = 4 * maxFile

// step is what is done to one file on the disk: by one section, or by several
// where later ones only change what the first leaves.
type step struct {
	sections []*section
	leaves   string // the file that it leaves, "" of a delete
	state    stepState
}

// first is the section that says what kind of step it is.
func (s *step) first() *section { return s.sections[0] }

// patchPlan plays a patch through without writing anything. It knows files by
// their real paths.
type patchPlan struct {
	env    *Env
	ctx    context.Context
	last   map[string]int     // the last section that names a file
	state  map[string]planned // files as the sections so far leave them
	latest map[string]*step   // the last step that touches a file
	steps  []*step
	held   int // bytes of the contents in state
}

// planned is a file of a plan. Its content is there only while a later section
// names it.
type planned struct {
	exists  bool
	content []byte
}

// planPatch checks that all sections can be applied, one after the other, and
// gives the steps that do it.
func (e *Env) planPatch(ctx context.Context, sections []*section) ([]*step, *Failure) {
	p := &patchPlan{
		env: e, ctx: ctx, last: map[string]int{}, state: map[string]planned{}, latest: map[string]*step{},
	}
	for i, s := range sections {
		for _, given := range s.paths() {
			p.last[e.entry(given)] = i
			if t, f := e.target(given); f == nil {
				p.last[t.path] = i
			}
		}
	}
	for i, s := range sections {
		if ctx.Err() != nil {
			return nil, failuref(protocol.Cancelled, "the turn ended before the patch was applied")
		}
		if f := p.section(i, s); f != nil {
			return nil, f
		}
	}
	return p.steps, nil
}

func (p *patchPlan) section(i int, s *section) *Failure {
	if s.action == actionAdd {
		if f := p.vacant(s.path); f != nil {
			return f
		}
		return p.leave(i, &step{sections: []*section{s}, leaves: p.env.entry(s.path)}, s.content)
	}
	key, content, f := p.content(s.path)
	if f != nil {
		return f
	}
	if s.action == actionDelete {
		s.removed = countLines(content)
		return p.leave(i, &step{sections: []*section{s}}, nil, p.env.entry(s.path))
	}
	content, f = p.env.applyHunks(p.ctx, s.path, content, s.hunks)
	switch {
	case f != nil:
		return f
	case s.action == actionMove:
		if f := p.vacant(s.to); f != nil {
			return f
		}
		return p.leave(i, &step{sections: []*section{s}, leaves: p.env.entry(s.to)}, content, p.env.entry(s.path))
	}
	if before := p.latest[key]; before != nil && before.leaves == key {
		before.sections = append(before.sections, s)
		return p.put(i, key, planned{true, content})
	}
	return p.leave(i, &step{sections: []*section{s}, leaves: key}, content)
}

func countLines(content []byte) int {
	n := bytes.Count(content, []byte(lf))
	if len(content) > 0 && content[len(content)-1] != '\n' {
		n++
	}
	return n
}

// leave adds a step that leaves a file with content, and the places named gone
// without one.
func (p *patchPlan) leave(i int, s *step, content []byte, gone ...string) *Failure {
	p.steps = append(p.steps, s)
	for _, key := range gone {
		p.latest[key] = s
		if f := p.put(i, key, planned{}); f != nil {
			return f
		}
	}
	if s.leaves == "" {
		return nil
	}
	p.latest[s.leaves] = s
	return p.put(i, s.leaves, planned{true, content})
}

// put notes what section i makes of a file.
func (p *patchPlan) put(i int, key string, now planned) *Failure {
	p.held -= len(p.state[key].content)
	if p.last[key] <= i {
		now.content = nil
	}
	p.state[key] = now
	if p.held += len(now.content); p.held > maxHeld {
		return failuref(protocol.ToolOutputLimit, "the files that several sections name are more than %d bytes together: make several patches of it", maxHeld)
	}
	return nil
}

// content is what a file that is to be changed or removed holds when the
// sections so far are applied, and where it is.
func (p *patchPlan) content(given string) (key string, content []byte, f *Failure) {
	missing := failuref(protocol.PatchTargetMissing, "%s: there is no such file", given)
	key = p.env.entry(given)
	now, ok := p.state[key]
	if !ok {
		t, f := p.env.target(given)
		if f != nil {
			return "", nil, f
		}
		key = t.path
		if now, ok = p.state[key]; !ok {
			if t.info == nil {
				return "", nil, missing
			}
			content, f := p.env.patchable(&t)
			return key, content, f
		}
	}
	if !now.exists {
		return "", nil, missing
	}
	return key, now.content, nil
}

// patchable reads a target, with what it is checked against when it is
// written, and refuses what is no UTF-8.
func (e *Env) patchable(t *target) ([]byte, *Failure) {
	data, info, err := e.readWhole(t.path)
	if errors.Is(err, errStore) {
		err = errors.New("it belongs to the daemon's own store and is not changed")
	}
	if err != nil {
		return nil, fileFailure(protocol.FileUnreadable, t.given, err)
	}
	if f := checkUTF8(data); f != nil {
		return nil, fileFailure(protocol.FileNotUTF8, t.given, f)
	}
	t.info, t.was = info, data
	return data, nil
}

// vacant refuses a place for a new file that is taken, by whatever it is, or
// will be.
func (p *patchPlan) vacant(given string) *Failure {
	entry := p.env.entry(given)
	now, known := p.state[entry]
	_, err := os.Lstat(entry)
	switch {
	case known && now.exists, !known && err == nil:
		return targetExists(given)
	case strings.HasSuffix(given, "/"):
		return failuref(protocol.FileNotRegular, "%s: it names a folder", given)
	case !known && !errors.Is(err, fs.ErrNotExist):
		return fileFailure(protocol.IoError, given, err)
	}
	for other, now := range p.state {
		if now.exists && strings.HasPrefix(other, entry+"/") {
			return targetExists(given)
		}
	}
	for dir := filepath.Dir(entry); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if p.state[dir].exists {
			return failuref(protocol.IoError, "%s: %s is a file by an earlier section of the patch", given, dir)
		}
	}
	return nil
}

func targetExists(given string) *Failure {
	return failuref(protocol.PatchTargetExists, "%s exists, and Add and Move overwrite nothing; update or delete it, or choose another path", given)
}
