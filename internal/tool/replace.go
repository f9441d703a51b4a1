package tool

import (
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"agent/protocol"
)

// errMoved says that a target changed between its check and its writing.
var errMoved = errors.New("it was changed by someone else meanwhile: read it again")

// put gives the target its new content: a crash leaves the old content or the
// new, never a mixture, except where the file must be written in place
// (runtime.md 11, "How it is written"). It is refused with errMoved when the
// target is no longer what the change was made from. Leftovers of killed
// writers in the folder are removed on the way.
func (e *Env) put(ctx context.Context, t target, content []byte) (SeenFile, error) {
	if e.Confinement != nil {
		return e.putInside(ctx, t, content)
	}
	info, err := e.putFile(ctx, t, content)
	if errors.Is(err, errMoved) {
		return SeenFile{}, err
	}
	if err != nil {
		return SeenFile{}, fileFailure(protocol.IoError, t.given, err)
	}
	return seenFile(t.path, info, int64(len(content)), sha256.Sum256(content)), nil
}

func (e *Env) putFile(ctx context.Context, t target, content []byte) (os.FileInfo, error) {
	dir := filepath.Dir(t.path)
	swept.sweep(dir, time.Now())
	if t.info == nil {
		return create(ctx, t, dir, content)
	}
	if err := t.writable(); err != nil {
		return nil, err
	}
	if sys, ok := t.info.Sys().(*syscall.Stat_t); t.far || !ok || sys.Nlink > 1 {
		return e.overwrite(ctx, t, content)
	}
	tmp, err := newTemporary(dir, 0o600)
	if noNewFile(err) {
		return e.overwrite(ctx, t, content)
	}
	if err != nil {
		return nil, err
	}
	defer tmp.drop()
	if err := tmp.fill(content); err != nil {
		return nil, err
	}
	if err := tmp.like(t.info); err != nil {
		return nil, err
	}
	// What is slow is done first, so that next to nothing lies between the last
	// look at the target and its replacement.
	if err := tmp.file.Sync(); err != nil {
		return nil, err
	}
	if err := e.mayReplace(ctx, t); err != nil {
		return nil, err
	}
	info, err := tmp.become(t.path, os.Rename)
	if noNewFile(err) {
		return e.overwrite(ctx, t, content)
	}
	return info, err
}

// mayReplace is asked just before the target is touched. A call that was left
// behind while its disk hung changes nothing any more.
func (e *Env) mayReplace(ctx context.Context, t target) error {
	if !e.current(t) {
		return errMoved
	}
	if ctx.Err() != nil {
		return failuref(protocol.Cancelled, "the turn ended before the file was changed")
	}
	return nil
}

// create makes a new file, its mode left to the umask. One that appeared
// meanwhile is not overwritten.
func create(ctx context.Context, t target, dir string, content []byte) (os.FileInfo, error) {
	tmp, err := newTemporary(dir, 0o666)
	if err != nil {
		return nil, err
	}
	defer tmp.drop()
	if err := tmp.fill(content); err != nil {
		return nil, err
	}
	if err := tmp.file.Sync(); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, failuref(protocol.Cancelled, "the turn ended before the file was made")
	}
	info, err := tmp.become(t.path, renameNew)
	if errors.Is(err, fs.ErrExist) {
		return nil, errMoved
	}
	return info, err
}

// noNewFile reports whether an error says that the folder takes no new file,
// or does not let go of the old one, as with a file mounted by itself.
func noNewFile(err error) bool {
	return errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EROFS) || errors.Is(err, unix.EBUSY)
}

// overwrite writes an existing file in place. It is cut to length last, so
// that a disk that fills up loses nothing that did not have to make way.
func (e *Env) overwrite(ctx context.Context, t target, content []byte) (os.FileInfo, error) {
	f, info, err := e.openRegular(t.path, os.O_WRONLY|syscall.O_NOFOLLOW)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if !os.SameFile(info, t.info) {
		return nil, errMoved
	}
	if err := e.mayReplace(ctx, t); err != nil {
		return nil, err
	}
	if _, err := f.WriteAt(content, 0); err != nil {
		return nil, err
	}
	if err := f.Truncate(int64(len(content))); err != nil {
		return nil, err
	}
	if err := f.Sync(); err != nil {
		return nil, err
	}
	return f.Stat()
}

// temporaryPrefix begins the names of the files that writes go to first.
const temporaryPrefix = ".agent-tmp-"

// temporary is a file in the making. Its writer holds a lock on it for as long
// as it lives, which tells it from the leftover of one that was killed.
type temporary struct {
	file *os.File
	path string
	done bool // it has become the target
}

func newTemporary(dir string, mode os.FileMode) (*temporary, error) {
	for {
		path := filepath.Join(dir, temporaryPrefix+randomName())
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, mode)
		if err != nil {
			return nil, err
		}
		tmp := &temporary{file: f, path: path}
		// Where a file system has no locks nobody sweeps, either.
		_ = flock(f, unix.LOCK_EX)
		info, err := f.Stat()
		if err != nil {
			tmp.drop()
			return nil, err
		}
		if sys, ok := info.Sys().(*syscall.Stat_t); !ok || sys.Nlink > 0 {
			return tmp, nil
		}
		_ = f.Close() // swept before it was locked
	}
}

func flock(f *os.File, how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func (t *temporary) fill(content []byte) error {
	_, err := t.file.Write(content)
	return err
}

// like gives the file the owner, where that is allowed, and the mode of
// another.
func (t *temporary) like(info os.FileInfo) error {
	mode := info.Mode() & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky)
	sys, ok := info.Sys().(*syscall.Stat_t)
	own, err := t.file.Stat()
	if err != nil {
		return err
	}
	if mine, ok2 := own.Sys().(*syscall.Stat_t); ok && ok2 && (mine.Uid != sys.Uid || mine.Gid != sys.Gid) {
		if t.file.Chown(int(sys.Uid), int(sys.Gid)) != nil {
			_ = t.file.Chown(-1, int(sys.Gid))
			mode &= fs.ModePerm // what a mode grants to an owner is not for another
		}
	}
	return t.file.Chmod(mode)
}

// become gives the file, which is synced, its place; its name is then on the
// disk, too.
func (t *temporary) become(path string, rename func(from, to string) error) (os.FileInfo, error) {
	if err := rename(t.path, path); err != nil {
		return nil, err
	}
	t.done = true
	// A folder that may not be read, or has no sync, cannot be made sure of.
	err := syncFolder(filepath.Dir(path))
	if err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, unix.EINVAL) {
		return nil, err
	}
	return t.file.Stat()
}

// drop lets go of the file, and removes it if it has not become the target.
func (t *temporary) drop() {
	if !t.done {
		_ = os.Remove(t.path)
	}
	_ = t.file.Close()
}

// renameNew renames a file unless the new name is taken.
func renameNew(from, to string) error {
	err := renameExclusive(from, to)
	if !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOTSUP) {
		return err
	}
	if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		return fs.ErrExist
	}
	return os.Rename(from, to)
}
