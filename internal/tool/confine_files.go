package tool

import (
	"context"
	"crypto/sha256"
	"io/fs"
	"os"
	"slices"
	"strings"

	"agent/internal/sandbox"
	"agent/protocol"
)

// inside refuses changes of files that leave the bot's sandbox. The paths are
// real as far as they exist (sandbox.md 6.1). A call that somebody allowed to
// leave it changes what they were shown and nothing else. Without a sandbox
// nothing is refused.
func (e *Env) inside(paths ...string) *Failure {
	if e.Confinement == nil {
		return nil
	}
	plan, err := e.Confinement.plan(sandbox.Call{Cwd: e.Workspace})
	if err != nil {
		return confineFailure(err)
	}
	if e.Outside != nil {
		return e.judged(paths...)
	}
	for _, path := range paths {
		if !plan.Inside(path) {
			return failuref(protocol.EscalationRefused, "%s is outside what this bot may write (%s), and no approval gate of it covers that: "+
				"nothing was written; write below a writable folder, or say what you need; the person may set a gate (agent configure --approval manual)",
				path, writableFolders(plan))
		}
	}
	return nil
}

// judged refuses paths that are not among those that were allowed.
func (e *Env) judged(paths ...string) *Failure {
	for _, path := range paths {
		if !slices.Contains(e.Outside, path) {
			return failuref(protocol.PathChanged, "%s is not what was judged: the path leads elsewhere by now; nothing was written", path)
		}
	}
	return nil
}

// carryOut has the helper make changes, in the sandbox or, for a call that was
// allowed to leave it, by the same rules outside.
func (e *Env) carryOut(ctx context.Context, ops []sandbox.Op) (sandbox.Reply, error) {
	if e.Outside == nil {
		plan, err := e.Confinement.plan(sandbox.Call{Cwd: e.Workspace})
		if err != nil {
			return sandbox.Reply{}, err
		}
		return e.Confinement.Launcher.Change(ctx, plan, ops)
	}
	for _, op := range ops {
		if f := e.judged(op.Path); f != nil {
			return sandbox.Reply{}, f
		}
	}
	return e.Confinement.Launcher.ChangeOutside(ctx, ops)
}

// changeInside has the helper change files of a confined call.
func (e *Env) changeInside(ctx context.Context, given string, ops ...sandbox.Op) error {
	if err := e.Processes.Acquire(ctx); err != nil {
		return failuref(protocol.Cancelled, "the turn ended before the file was changed")
	}
	defer e.Processes.Release()
	reply, err := e.carryOut(ctx, ops)
	switch {
	case err != nil && ctx.Err() != nil:
		return failuref(protocol.Cancelled, "%s: the turn ended while the file was being changed", given)
	case err != nil:
		return fileFailure(protocol.IoError, given, confineIO(err))
	case reply.OK:
		return nil
	}
	if e.Outside != nil && reply.Code == sandbox.ReplySymlink {
		return failuref(protocol.PathChanged, "%s: a symbolic link was put in its way since it was judged: %s", given, reply.Message)
	}
	switch reply.Code {
	case sandbox.ReplyChanged, sandbox.ReplyExists, sandbox.ReplyMissing:
		return errMoved
	case sandbox.ReplySymlink:
		return failuref(protocol.SandboxDenied, "%s: a symbolic link was put in its way: %s", given, reply.Message)
	case sandbox.ReplyNotRegular:
		return failuref(protocol.FileNotRegular, "%s: %s", given, reply.Message)
	}
	return failuref(protocol.IoError, "%s: %s", given, reply.Message)
}

// confineIO is why the helper could not be asked: under its own code where the
// sandbox is the reason.
func confineIO(err error) error {
	if _, ok := err.(*protocol.Error); ok {
		return confineFailure(err)
	}
	return err
}

// putInside is put for a confined call.
func (e *Env) putInside(ctx context.Context, t target, content []byte) (SeenFile, error) {
	op := sandbox.Op{Op: "write", Path: t.path, Data: content, Expect: sandbox.ExpectAbsent, Parents: true}
	if t.info != nil {
		op.Expect = sandbox.ExpectContent(t.was)
	}
	return e.wroteInside(ctx, t, op)
}

// createInside is createLike for a confined call.
func (e *Env) createInside(ctx context.Context, t target, like os.FileInfo, content []byte) (SeenFile, error) {
	return e.wroteInside(ctx, t, sandbox.Op{
		Op: "write", Path: t.path, Data: content, Expect: sandbox.ExpectAbsent, Parents: true, Mode: uint32(like.Mode().Perm()),
	})
}

func (e *Env) wroteInside(ctx context.Context, t target, op sandbox.Op) (SeenFile, error) {
	if err := e.changeInside(ctx, t.given, op); err != nil {
		return SeenFile{}, err
	}
	info, err := os.Lstat(t.path)
	if err != nil {
		return SeenFile{}, errMoved // gone again already
	}
	return seenFile(t.path, info, int64(len(op.Data)), sha256.Sum256(op.Data)), nil
}

// unlinkInside is unlink for a confined call: of a link the link goes.
func (e *Env) unlinkInside(ctx context.Context, t target) error {
	name := e.entry(t.given)
	op := sandbox.Op{Op: "delete", Path: name, Expect: sandbox.ExpectContent(t.was)}
	if info, err := os.Lstat(name); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		op.Expect = sandbox.ExpectLink
	}
	return e.changeInside(ctx, t.given, op)
}

// targets are the real paths that a patch changes: a link's end, and where a name
// is removed the name.
func (e *Env) targets(sections []*section) (paths []string, f *Failure) {
	for _, s := range sections {
		for _, given := range s.paths() {
			if strings.HasSuffix(given, "/") {
				continue // refused later, as it is without a sandbox
			}
			paths = append(paths, e.entry(given))
			t, f := e.target(given)
			if f != nil {
				return nil, f
			}
			paths = append(paths, t.path)
		}
	}
	return paths, nil
}
