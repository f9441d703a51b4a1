package fault

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"agent/internal/place"
	"agent/internal/sonny/screen/human"
	"agent/protocol"
)

// trouble is why something could not be written, and what helps.
type trouble struct{ cause, remedy string }

var (
	full     = trouble{"disk full", "make room, then do it again"}
	quota    = trouble{"disk quota used up", "delete something of yours, then do it again"}
	readOnly = trouble{"read-only disk", "make it writable, then do it again"}
	closed   = trouble{"read-only folder", "make it writable for you, then do it again"}
	broken   = trouble{"disk error", "save what is on that disk, and have it looked at"}
	refused  = trouble{"the store cannot be written", "sonny doctor looks for what is wrong"}
)

// ofErrno are the faults of a disk, whatever was asked of it.
var ofErrno = map[syscall.Errno]trouble{
	syscall.ENOSPC: full,
	syscall.EDQUOT: quota,
	syscall.EROFS:  readOnly,
	syscall.EIO:    broken,
}

// changes are the operations of an fs.PathError that write: only there does a permission
// that is missing mean that something is read-only.
var changes = []string{place.OpReplace, place.OpCreate, "write", "mkdir", "rename", "link", "symlink", "remove", "unlink", "unlinkat", "chmod", "sync", "truncate"}

// Cause is in a few words why something could not be written, such as "disk full": a file,
// or the daemon's store. It is "" for any other error.
func Cause(err error) string {
	if t, _, ok := disk(err); ok {
		return t.cause
	}
	if t, _, ok := store(err); ok {
		return t.cause
	}
	return ""
}

// OfDisk reports whether an error says that a file could not be written for want of room
// or of the right to: then nothing is wrong with what is in it.
func OfDisk(err error) bool {
	_, _, ok := disk(err)
	return ok
}

// failing is an error of the system with the file that it is about.
type failing struct {
	op, path string
	whole    error // as it stands in a longer text
}

// disk finds in err's chain that a file could not be written.
func disk(err error) (trouble, failing, bool) {
	var no syscall.Errno
	if err == nil || !errors.As(err, &no) {
		return trouble{}, failing{}, false
	}
	of := failing{whole: no}
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		of = failing{path.Op, path.Path, path}
	case errors.As(err, &link):
		of = failing{link.Op, link.New, link}
	}
	t, ok := ofErrno[no]
	if (no == syscall.EACCES || no == syscall.EPERM) && slices.Contains(changes, of.op) {
		t, ok = closed, true
	}
	return t, of, ok
}

// words say what became of the file.
func (f failing) words(t trouble) string {
	if f.path == "" {
		return t.cause + "; " + t.remedy
	}
	path := f.path
	for _, lock := range []string{".lock", ".owner-lock"} { // of a file that the person knows
		path = strings.TrimSuffix(path, lock)
	}
	became := "could not be written"
	switch f.op {
	case place.OpReplace:
		became += " and stays as it was"
	case place.OpCreate, "mkdir", "link":
		became = "could not be made"
	}
	what := t.cause
	if t == closed {
		what += " " + human.Path(filepath.Dir(path))
	}
	return fmt.Sprintf("%s: %s %s; %s", what, human.Path(path), became, t.remedy)
}

// within puts words in the place of the system's in a longer text. One that lacks the
// system's gives way.
func (f failing) within(text, words string) string {
	if before, after, ok := strings.Cut(text, f.whole.Error()); ok {
		return before + words + after
	}
	return words
}

// codes are how the daemon says what SQLite refused (protocol.md 18): its primary and its
// extended result code.
var codes = regexp.MustCompile(`(?:storage_error: )?sqlite_primary=(\d+) sqlite_extended=(\d+)(?:: )?`)

// ofStore are the faults that SQLite has codes for: SQLITE_FULL, SQLITE_READONLY,
// SQLITE_IOERR, of which SQLITE_IOERR_SHMSIZE is a full disk.
func ofStore(primary, extended string) trouble {
	switch {
	case primary == "13", extended == "4874":
		return full
	case primary == "8":
		return readOnly
	case primary == "10":
		return broken
	}
	return refused
}

// store finds in err's chain that the daemon could not write its store. rest is what the
// daemon says of it besides SQLite's codes.
func store(err error) (t trouble, rest string, ok bool) {
	var e *protocol.Error
	if !errors.As(err, &e) || e.Code != protocol.StorageError {
		return trouble{}, "", false
	}
	m := codes.FindStringSubmatch(e.Detail)
	if m == nil {
		return refused, e.Detail, true
	}
	return ofStore(m[1], m[2]), codes.ReplaceAllString(e.Detail, ""), true
}

// storeWords are those of a refusal of the store. What the daemon says of it comes in the
// place of the general remedy.
func storeWords(t trouble, rest string) string {
	if rest == "" {
		rest = t.remedy
	}
	if t == refused {
		return t.cause + ": " + rest
	}
	return t.cause + ": the daemon's store could not be written; " + rest
}

// unstored puts words in the place of SQLite's codes in a longer text, such as that of a
// daemon that did not start.
func unstored(s string) string {
	return codes.ReplaceAllStringFunc(s, func(found string) string {
		m := codes.FindStringSubmatch(found)
		return ofStore(m[1], m[2]).cause + ": "
	})
}
