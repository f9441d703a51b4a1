package tool

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"agent/protocol"
)

// target is the file that a call is to change.
type target struct {
	given string      // the path as the call names it, for details
	path  string      // without any link, but to folders that cannot be looked into
	info  os.FileInfo // nil where there is no file yet
	far   bool        // reached by a link from another folder
	was   []byte      // the content that the change is made from, with info
}

// maxLinks bounds how many links are followed at a path's end.
const maxLinks = 40

// target finds the file behind a path: writes go through links, to where a
// dangling one points, too.
func (e *Env) target(given string) (target, *Failure) {
	t := target{given: given, path: e.entry(given)}
	if strings.HasSuffix(given, "/") {
		return t, failuref(protocol.FileNotRegular, "%s: it names a folder", given)
	}
	start := filepath.Dir(t.path)
	for range maxLinks {
		info, err := os.Lstat(t.path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return t, nil
		case err != nil:
			return t, fileFailure(protocol.IoError, given, err)
		case info.Mode()&fs.ModeSymlink == 0:
			return e.existing(t, info, start)
		}
		end, err := os.Readlink(t.path)
		if err != nil {
			return t, fileFailure(protocol.IoError, given, err)
		}
		if !filepath.IsAbs(end) {
			end = filepath.Dir(t.path) + "/" + end
		}
		t.path = located(end)
	}
	return t, failuref(protocol.IoError, "%s: too many links", given)
}

func (e *Env) existing(t target, info os.FileInfo, start string) (target, *Failure) {
	err := e.regular(info)
	if errors.Is(err, errStore) {
		return t, failuref(protocol.IoError, "%s: it belongs to the daemon's own store and is not written", t.given)
	}
	if err != nil {
		return t, fileFailure(protocol.IoError, t.given, err)
	}
	t.info = info
	from, err1 := os.Stat(start)
	to, err2 := os.Stat(filepath.Dir(t.path))
	t.far = err1 != nil || err2 != nil || !os.SameFile(from, to)
	return t, nil
}

// entry is where a path's last name stands, without any link on the way; a link
// there is not followed.
func (e *Env) entry(given string) string { return located(e.resolve(given)) }

// located is an absolute path without the links on its way, as far as its
// folders are there. Links are followed before ".." is applied, as every other
// program does it: after a link to a folder it is that folder's parent.
func located(path string) string {
	folder, name := filepath.Split(path)
	for missing := ""; ; {
		real, err := filepath.EvalSymlinks(folder)
		switch {
		case err == nil:
			return filepath.Join(real, missing, name)
		case !errors.Is(err, fs.ErrNotExist):
			return path // whoever goes there meets the same
		}
		up, last := filepath.Split(strings.TrimRight(folder, "/"))
		folder, missing = up, filepath.Join(last, missing)
	}
}

// unchanged checks that the bot has read or written an existing target as it
// is now, and takes its content.
func (e *Env) unchanged(ctx context.Context, t *target) *Failure {
	seen, ok, err := e.Seen.Seen(ctx, t.path)
	if err != nil {
		return pastFailure(err)
	}
	if !ok {
		return failuref(protocol.FileChanged, "%s exists and you have not read it: read it first, or change a part of it with edit", t.given)
	}
	changed := failuref(protocol.FileChanged, "%s has changed since you read or wrote it: read it again", t.given)
	if seen.Size != t.info.Size() {
		return changed
	}
	data, info, err := e.readWhole(t.path)
	if err != nil {
		return fileFailure(protocol.IoError, t.given, err)
	}
	if sha256.Sum256(data) != seen.Hash {
		return changed
	}
	t.info, t.was = info, data
	return nil
}

// keptEncoding is content as it must be written over old: with the byte-order mark
// that old has and read does not show. It refuses what would damage old
// silently: a change of encoding, and replacement characters that stand for
// bytes which are no UTF-8.
func keptEncoding(t target, old, content []byte) ([]byte, *Failure) {
	mark := []byte(byteOrderMark)
	switch {
	case wideText(old) != "":
		return nil, fileFailure(protocol.IoError, t.given, notUTF8(wideText(old)))
	case !utf8.Valid(old) && bytes.Contains(content, []byte(replacement)):
		return nil, failuref(protocol.FileNotUTF8,
			"%s is not UTF-8, and the content has U+FFFD where read showed its bytes; nothing was written: convert the file with shell (iconv) first", t.given)
	case bytes.HasPrefix(old, mark) && !bytes.HasPrefix(content, mark):
		return append(mark, content...), nil
	}
	return content, nil
}

// current reports whether the target is still the file that info describes,
// with the content the change was made from. Its times alone do not say so:
// a file system may keep them no finer than a clock tick.
func (e *Env) current(t target) bool {
	now, err := os.Lstat(t.path)
	if t.info == nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	return err == nil && os.SameFile(now, t.info) && now.Size() == t.info.Size() &&
		now.ModTime().Equal(t.info.ModTime()) && changeTime(now) == changeTime(t.info) &&
		(t.was == nil || e.holds(t.path, t.was))
}

// writable reports whether this process may write the target, which it need
// not be allowed to replace it.
func (t target) writable() error {
	return unix.Faccessat(unix.AT_FDCWD, t.path, unix.W_OK, unix.AT_EACCESS)
}
