package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// opError is a change that was refused, by the words of a Reply.
type opError struct {
	code string
	err  error
}

func (e *opError) Error() string { return e.err.Error() }
func (e *opError) Unwrap() error { return e.err }

func opFail(code, format string, args ...any) error {
	return &opError{code, fmt.Errorf(format, args...)}
}

// failedReply is the answer for operation i, which failed.
func failedReply(i int, err error) Reply {
	r := Reply{Done: i, Code: ReplyIO, Message: err.Error()}
	var errno unix.Errno
	if errors.As(err, &errno) {
		r.Errno = int(errno)
		r.Code = errnoCode(errno)
	}
	var own *opError
	if errors.As(err, &own) {
		r.Code = own.code
	}
	return r
}

func errnoCode(e unix.Errno) string {
	switch e {
	case unix.EROFS, unix.EPERM, unix.EACCES:
		return ReplyReadOnly
	case unix.ELOOP:
		return ReplySymlink
	case unix.EEXIST:
		return ReplyExists
	case unix.ENOENT, unix.ENOTDIR:
		return ReplyMissing
	case unix.EBUSY:
		return ReplyBusy
	case unix.ENOSPC, unix.EDQUOT:
		return ReplyNoSpace
	}
	return ReplyIO
}

// do carries out one operation. Every name is looked up relative to its opened
// folder, which was opened without following a link: what is swapped after the
// check leads nowhere.
func do(op Op) error {
	if !filepath.IsAbs(op.Path) || filepath.Clean(op.Path) != op.Path || op.Path == "/" {
		return opFail(ReplyIO, "%q is not an absolute path to a file", op.Path)
	}
	return inFolder(filepath.Dir(op.Path), op.Parents, func(dir int) error {
		name := filepath.Base(op.Path)
		switch op.Op {
		case "mkdir":
			return errnoIn("make the folder", op.Path, unix.Mkdirat(dir, name, 0o777))
		case "write":
			return write(dir, name, op)
		case "delete":
			return remove(dir, name, op)
		case "move":
			return move(dir, name, op)
		}
		return opFail(ReplyIO, "unknown operation %q", op.Op)
	})
}

// inFolder does something in a folder. What it made of the folder goes again when
// that fails.
func inFolder(path string, parents bool, do func(dir int) error) error {
	var made []string
	dir, err := openFolder(path, parents, &made)
	if err == nil {
		err = do(dir)
		unix.Close(dir)
	}
	if err != nil {
		for _, m := range slices.Backward(made) {
			_ = unlinkAt(m, unix.AT_REMOVEDIR) // not one that something else was put into
		}
	}
	return err
}

// unlinkAt removes a name whose folder is opened without following a link.
func unlinkAt(path string, flags int) error {
	dir, err := openAt(unix.AT_FDCWD, filepath.Dir(path), unix.O_DIRECTORY|unix.O_RDONLY)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	return unix.Unlinkat(dir, filepath.Base(path), flags)
}

// remove deletes a file, or with ExpectLink a symbolic link.
func remove(dir int, name string, op Op) error {
	if op.Expect == ExpectLink {
		var st unix.Stat_t
		err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
		if err == nil && st.Mode&unix.S_IFMT != unix.S_IFLNK {
			return opFail(ReplyChanged, "%s is no link any more", op.Path)
		}
		if err != nil {
			return errnoIn("delete", op.Path, err)
		}
	} else if err := expect(dir, name, op); err != nil {
		return err
	}
	if err := unix.Unlinkat(dir, name, 0); err != nil {
		return errnoIn("delete", op.Path, err)
	}
	return syncFolder(dir)
}

func errnoIn(what, path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", what, path, err)
}

// openFolder opens a folder without following any link, and makes what is
// missing of it, one name at a time; made are those.
func openFolder(path string, parents bool, made *[]string) (int, error) {
	fd, err := openAt(unix.AT_FDCWD, path, unix.O_DIRECTORY|unix.O_RDONLY)
	if err == nil || !parents || !errors.Is(err, unix.ENOENT) {
		return fd, errnoIn("open", path, err)
	}
	if path == "/" {
		return -1, errnoIn("open", path, err)
	}
	up, err := openFolder(filepath.Dir(path), true, made)
	if err != nil {
		return -1, err
	}
	defer unix.Close(up)
	name := filepath.Base(path)
	switch err := unix.Mkdirat(up, name, 0o777); {
	case err == nil:
		*made = append(*made, path)
	case !errors.Is(err, unix.EEXIST):
		return -1, errnoIn("make the folder", path, err)
	}
	fd, err = openAt(up, name, unix.O_DIRECTORY|unix.O_RDONLY)
	return fd, errnoIn("open", path, err)
}

// open opens a regular file in a folder without waiting.
func open(dir int, name string, flags int) (*os.File, error) {
	fd, err := openAt(dir, name, flags|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = opFail(ReplyNotRegular, "%s is no regular file", name)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// expect checks what is at a name.
func expect(dir int, name string, op Op) error {
	_, err := expected(dir, name, op)
	return err
}

// expected is the file at a name when it is what the operation expects; nil for
// none.
func expected(dir int, name string, op Op) (fs.FileInfo, error) {
	f, err := open(dir, name, unix.O_RDONLY)
	if errors.Is(err, unix.ENOENT) {
		if op.Expect == ExpectAbsent || op.Expect == ExpectAny && op.Op == "write" {
			return nil, nil
		}
		return nil, opFail(ReplyMissing, "%s is gone", op.Path)
	}
	if err != nil {
		return nil, errnoIn("open", op.Path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	switch want, hashed := strings.CutPrefix(op.Expect, "sha256:"); {
	case op.Expect == ExpectAbsent:
		return nil, opFail(ReplyExists, "%s exists", op.Path)
	case hashed:
		h := sha256.New()
		if _, err := io.Copy(h, f); err != nil {
			return nil, err
		}
		if hex.EncodeToString(h.Sum(nil)) != want {
			return nil, opFail(ReplyChanged, "%s has changed", op.Path)
		}
	case op.Expect != ExpectAny:
		return nil, opFail(ReplyIO, "unknown expectation %q", op.Expect)
	}
	return info, nil
}

// write gives a file its content: a new file beside it takes its place, so that
// a crash leaves the old content or the new; where that cannot be, it is written
// in place.
func write(dir int, name string, op Op) error {
	was, err := expected(dir, name, op)
	if err != nil {
		return err
	}
	tmp, err := temporary(dir, op, was)
	if was != nil && (err == nil && links(was) > 1 || noNewFile(err)) {
		if err == nil {
			_ = unix.Unlinkat(dir, tmp, 0)
		}
		return overwrite(dir, name, was, op)
	}
	if err != nil {
		return errnoIn("write", op.Path, err)
	}
	if was == nil {
		err = renameNew(dir, tmp, dir, name)
	} else {
		err = unix.Renameat(dir, tmp, dir, name)
	}
	if err != nil {
		_ = unix.Unlinkat(dir, tmp, 0)
		if was != nil && noNewFile(err) {
			return overwrite(dir, name, was, op)
		}
		return errnoIn("write", op.Path, err)
	}
	return syncFolder(dir)
}

func noNewFile(err error) bool {
	return errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EROFS) || errors.Is(err, unix.EBUSY)
}

// temporary makes a synced file with the operation's data, under a name of its
// own, with the mode of the file it is to replace. A lock tells it from the
// leftover of a writer that was killed.
func temporary(dir int, op Op, was fs.FileInfo) (name string, err error) {
	name = fmt.Sprintf(".agent-tmp-%016x", rand.Uint64()) // as the tools name theirs, which sweep both
	fd, err := unix.Openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return "", err
	}
	f := os.NewFile(uintptr(fd), name)
	defer func() {
		f.Close()
		if err != nil {
			_ = unix.Unlinkat(dir, f.Name(), 0)
		}
	}()
	_ = unix.Flock(fd, unix.LOCK_EX)
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil && st.Nlink == 0 {
		err = errors.New("a temporary file was removed as it was made") // swept before it was locked
	}
	if err != nil {
		return "", err
	}
	if _, err = f.Write(op.Data); err != nil {
		return "", err
	}
	switch {
	case was != nil:
		err = like(f, was)
	case op.Mode != 0:
		err = f.Chmod(fs.FileMode(op.Mode) & fs.ModePerm)
	}
	if err != nil {
		return "", err
	}
	return name, f.Sync()
}

// like gives a file the owner, where that is allowed, and the mode of another.
func like(f *os.File, was fs.FileInfo) error {
	now, err := f.Stat()
	if err != nil {
		return err
	}
	mode := was.Mode()
	theirs, ok := was.Sys().(*syscall.Stat_t)
	ours, ok2 := now.Sys().(*syscall.Stat_t)
	if ok && ok2 && (ours.Uid != theirs.Uid || ours.Gid != theirs.Gid) && f.Chown(int(theirs.Uid), int(theirs.Gid)) != nil {
		_ = f.Chown(-1, int(theirs.Gid))
		mode &= fs.ModePerm // what a mode grants to an owner is not for another
	}
	return f.Chmod(mode)
}

// overwrite writes an existing file in place; it is cut to length last.
func overwrite(dir int, name string, was fs.FileInfo, op Op) error {
	f, err := open(dir, name, unix.O_WRONLY)
	if err != nil {
		return errnoIn("write", op.Path, err)
	}
	defer f.Close()
	if now, err := f.Stat(); err != nil || !os.SameFile(now, was) {
		return opFail(ReplyChanged, "%s has changed", op.Path)
	}
	if _, err := f.WriteAt(op.Data, 0); err != nil {
		return err
	}
	if err := f.Truncate(int64(len(op.Data))); err != nil {
		return err
	}
	return f.Sync()
}

// move gives a file another name, which must be free.
func move(dir int, name string, op Op) error {
	if !filepath.IsAbs(op.To) || filepath.Clean(op.To) != op.To || op.To == "/" {
		return opFail(ReplyIO, "%q is not an absolute path to a file", op.To)
	}
	if err := expect(dir, name, op); err != nil {
		return err
	}
	return inFolder(filepath.Dir(op.To), op.Parents, func(to int) error {
		if err := renameNew(dir, name, to, filepath.Base(op.To)); err != nil {
			return errnoIn("move to", op.To, err)
		}
		return errors.Join(syncFolder(to), syncFolder(dir))
	})
}

func syncFolder(dir int) error {
	err := unix.Fsync(dir)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EROFS) {
		return nil // a file system that has no such thing
	}
	return err
}
