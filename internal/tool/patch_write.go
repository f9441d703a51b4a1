package tool

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"agent/internal/sandbox"
	"agent/protocol"
)

// stepState is what of a step is on the disk.
type stepState int

const (
	stepUntouched stepState = iota
	stepApplied
	stepUnclear // its file may hold a part of the change
)

// writePatch carries out a plan. When a step fails after others were applied
// the result says exactly what is on the disk and what is not (patch_partial).
func (e *Env) writePatch(ctx context.Context, sections []*section, steps []*step) Result {
	var seen []SeenFile
	touched := false
	for _, s := range steps {
		now, err := e.writeStep(ctx, s)
		touched = touched || s.state != stepUntouched
		if err == nil {
			seen = append(seen, now...)
			continue
		}
		f := fileFailure(protocol.IoError, s.first().path, err)
		var own *Failure
		if errors.As(err, &own) {
			f = own
		}
		if touched {
			f = partial(sections, steps, f)
		}
		r := e.refuse(f)
		r.Seen = seen
		return r
	}
	r := e.patchResult(sections)
	r.Seen = seen
	return r
}

// partial is the failure that lists what is and what is not on the disk.
func partial(sections []*section, steps []*step, cause *Failure) *Failure {
	state := map[*section]stepState{}
	for _, s := range steps {
		for _, section := range s.sections {
			state[section] = s.state
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "writing failed after a part of the patch was applied (%s: %s)", cause.Code, cause.Detail)
	for _, list := range []struct {
		state stepState
		title string
	}{{stepApplied, "applied"}, {stepUntouched, "not applied"}, {stepUnclear, "perhaps applied in part, look at it"}} {
		named := false
		for _, s := range sections {
			if state[s] != list.state {
				continue
			}
			if !named {
				fmt.Fprintf(&b, "\n%s:", list.title)
				named = true
			}
			fmt.Fprintf(&b, "\n%s %s", s.action, strings.Join(s.paths(), " to "))
		}
	}
	return &Failure{string(protocol.PatchPartial), b.String()}
}

// writeStep does one step, with the file as it is now: the hunks are located
// anew. It sets the step's state, also when it fails.
func (e *Env) writeStep(ctx context.Context, s *step) ([]SeenFile, error) {
	for range maxTries {
		seen, err := e.tryStep(ctx, s)
		if !errors.Is(err, errMoved) {
			return seen, err
		}
	}
	return nil, failuref(protocol.FileChanged, "%s: %v", s.first().path, errMoved)
}

func (e *Env) tryStep(ctx context.Context, s *step) ([]SeenFile, error) {
	if ctx.Err() != nil {
		return nil, failuref(protocol.Cancelled, "%s: the turn ended first", s.first().path)
	}
	if s.first().action == actionAdd {
		return e.addFile(ctx, s)
	}
	t, f := e.target(s.first().path)
	switch {
	case f != nil:
		return nil, f
	case t.info == nil:
		return nil, failuref(protocol.PatchTargetMissing, "%s: there is no such file any more", t.given)
	}
	content, f := e.patchable(&t)
	if f != nil {
		return nil, f
	}
	for _, section := range s.sections {
		if content, f = e.applyHunks(ctx, section.path, content, section.hunks); f != nil {
			return nil, f
		}
	}
	switch s.first().action {
	case actionDelete:
		return nil, e.deleteFile(ctx, s, t)
	case actionMove:
		return e.moveFile(ctx, s, t, content)
	}
	return e.updateFile(ctx, s, t, content)
}

func (e *Env) updateFile(ctx context.Context, s *step, t target, content []byte) ([]SeenFile, error) {
	seen, err := e.put(ctx, t, content)
	switch {
	case errors.Is(err, errMoved):
	case err == nil || e.holds(t.path, content):
		s.state = stepApplied
	case !e.holds(t.path, t.was):
		s.state = stepUnclear // it was written in place, and the disk did not take it all
	}
	return []SeenFile{seen}, err
}

func (e *Env) addFile(ctx context.Context, s *step) ([]SeenFile, error) {
	content, err := e.newContent(ctx, s)
	if err != nil {
		return nil, err
	}
	t, undo, err := e.place(s.first().path)
	if err != nil {
		return nil, err
	}
	seen, err := e.put(ctx, t, content)
	switch {
	case errors.Is(err, errMoved):
		err = targetExists(t.given)
	case err == nil || e.holds(t.path, content):
		s.state = stepApplied
	}
	if s.state == stepUntouched {
		undo()
	}
	return []SeenFile{seen}, err
}

// newContent is what an added file holds when later sections have changed it.
func (e *Env) newContent(ctx context.Context, s *step) ([]byte, error) {
	content := s.first().content
	for _, section := range s.sections[1:] {
		var f *Failure
		if content, f = e.applyHunks(ctx, section.path, content, section.hunks); f != nil {
			return nil, f
		}
	}
	return content, nil
}

// place is the target of a new file, in a folder that is there. undo removes
// the folders that were made for it.
func (e *Env) place(given string) (t target, undo func(), err error) {
	t = target{given: given, path: e.entry(given)}
	var made []string
	for dir := filepath.Dir(t.path); e.Confinement == nil; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(dir); err == nil || dir == filepath.Dir(dir) {
			break
		}
		made = append(made, dir)
	}
	undo = func() {
		for _, dir := range made {
			_ = unix.Rmdir(dir) // not one that something else was put into
		}
	}
	if err := e.makeFolders(filepath.Dir(t.path)); err != nil {
		undo()
		return t, nil, err
	}
	return t, undo, nil
}

// deleteFile removes the name that the patch gives; of a link the link.
func (e *Env) deleteFile(ctx context.Context, s *step, t target) error {
	err := e.unlink(ctx, t)
	if err == nil {
		s.state = stepApplied
	}
	return err
}

func (e *Env) unlink(ctx context.Context, t target) error {
	if e.Confinement != nil {
		return e.unlinkInside(ctx, t)
	}
	if err := e.mayReplace(ctx, t); err != nil {
		return err
	}
	name := e.entry(t.given)
	for {
		err := unix.Unlink(name) // never a folder
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err == nil {
			_ = syncFolder(filepath.Dir(name)) // a crash may bring the file back whole
		}
		return err
	}
}

// moveFile makes the new file, like the old one, and then removes the old. When
// that fails the new one goes again.
func (e *Env) moveFile(ctx context.Context, s *step, from target, content []byte) ([]SeenFile, error) {
	to, undo, err := e.place(s.first().to)
	if err != nil {
		return nil, err
	}
	seen, err := e.createLike(ctx, to, from.info, content)
	made := err == nil || !errors.Is(err, errMoved) && e.holds(to.path, content)
	if err == nil {
		err = e.unlink(ctx, from)
	}
	switch {
	case err == nil:
		s.state = stepApplied
	case !made:
		undo()
	case e.takeBack(ctx, to, content) != nil:
		s.state = stepUnclear
	default:
		undo()
	}
	if !made && errors.Is(err, errMoved) {
		err = targetExists(to.given)
	}
	return []SeenFile{seen}, err
}

// takeBack removes a file that was just made.
func (e *Env) takeBack(ctx context.Context, t target, content []byte) error {
	if e.Confinement != nil {
		return e.changeInside(ctx, t.given, sandbox.Op{Op: "delete", Path: t.path, Expect: sandbox.ExpectContent(content)})
	}
	return unix.Unlink(t.path)
}

// createLike makes a new file with the mode, and where allowed the owner, of
// another. One that appeared meanwhile is not overwritten: errMoved.
func (e *Env) createLike(ctx context.Context, t target, like os.FileInfo, content []byte) (SeenFile, error) {
	if e.Confinement != nil {
		return e.createInside(ctx, t, like, content)
	}
	dir := filepath.Dir(t.path)
	swept.sweep(dir, time.Now())
	tmp, err := newTemporary(dir, 0o600)
	if err != nil {
		return SeenFile{}, err
	}
	defer tmp.drop()
	if err := tmp.fill(content); err != nil {
		return SeenFile{}, err
	}
	if err := tmp.like(like); err != nil {
		return SeenFile{}, err
	}
	if err := tmp.file.Sync(); err != nil {
		return SeenFile{}, err
	}
	if ctx.Err() != nil {
		return SeenFile{}, failuref(protocol.Cancelled, "%s: the turn ended before the file was made", t.given)
	}
	info, err := tmp.become(t.path, renameNew)
	if errors.Is(err, fs.ErrExist) {
		return SeenFile{}, errMoved
	}
	if err != nil {
		return SeenFile{}, err
	}
	return seenFile(t.path, info, int64(len(content)), sha256.Sum256(content)), nil
}
