package tool

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"

	"agent/protocol"
)

// maxTries bounds how often a change begins anew because somebody outside the
// daemon keeps changing the file.
const maxTries = 5

// changed is what one try of a change came to.
type changed struct {
	result  Result
	moved   bool // the target is another file than the one that was locked
	outside bool // somebody changed it in spite of the lock
}

// change finds the file behind a path and has do change it, with no other call
// of this daemon changing the same file meanwhile (runtime.md 11, "Stale
// files"). do gets the target as it is under the lock; when the file changes
// all the same between do's reading and its writing, errMoved, do is asked
// again with the file as it is then. A target that does not exist needs no
// lock: making it fails when it has appeared.
func (e *Env) change(ctx context.Context, given string, do func(context.Context, *target) (Result, error)) Result {
	for tries := 0; ; {
		found, err := beside(ctx, fileWork, func() found { return e.find(given) })
		if err != nil {
			return e.refuse(leftFailure(given, err))
		}
		if found.f != nil {
			return e.refuse(found.f)
		}
		release := func() {}
		id, exists := found.id()
		if exists {
			if release, err = fileLocks.take(ctx, id); err != nil {
				return e.refuse(leftFailure(given, err))
			}
		}
		c, err := beside(ctx, fileWork, func() changed {
			defer release() // when the work ends, which may be after the call
			return e.tryChange(ctx, given, id, exists, do)
		})
		switch {
		case err != nil:
			if !errors.As(err, new(leftBehind)) {
				release()
			}
			return e.refuse(leftFailure(given, err))
		case c.outside:
			if tries++; tries == maxTries {
				return e.refuse(failuref(protocol.FileChanged, "%s: %v", given, errMoved))
			}
		case !c.moved:
			return c.result
		}
	}
}

// found is a target with what was wrong with it.
type found struct {
	target
	f *Failure
}

func (e *Env) find(given string) found {
	t, f := e.target(given)
	return found{t, f}
}

// id is the target's name for the locks; false for a file that is to be made.
func (f found) id() (fileID, bool) {
	if f.info == nil {
		return fileID{}, false
	}
	return idOf(f.info)
}

// tryChange looks again, now under the lock: whoever held it before has most
// likely put another file in the target's place.
func (e *Env) tryChange(ctx context.Context, given string, id fileID, exists bool, do func(context.Context, *target) (Result, error)) changed {
	now := e.find(given)
	if now.f != nil {
		return changed{result: e.refuse(now.f)}
	}
	if nowID, nowExists := now.id(); nowID != id || nowExists != exists {
		return changed{moved: true}
	}
	r, err := do(ctx, &now.target)
	var refused *Failure
	switch {
	case errors.Is(err, errMoved):
		return changed{outside: true}
	case errors.As(err, &refused):
		return changed{result: e.refuse(refused)}
	case err != nil:
		return changed{result: e.refuse(fileFailure(protocol.IoError, given, err))}
	}
	return changed{result: r}
}

// holds reports whether a regular file has exactly this content.
func (e *Env) holds(path string, content []byte) bool {
	f, info, err := e.openRegular(path, os.O_RDONLY)
	if err != nil {
		return false
	}
	defer f.Close()
	if info.Size() != int64(len(content)) {
		return false
	}
	buffer := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buffer)
	for {
		n, err := f.Read(buffer[:])
		if n > len(content) || !bytes.Equal(buffer[:n], content[:n]) {
			return false
		}
		content = content[n:]
		if errors.Is(err, io.EOF) {
			return len(content) == 0
		}
		if err != nil {
			return false
		}
	}
}
