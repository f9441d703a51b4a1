// Package place says where things live and makes them: the ~/.agent folder,
// the store's and the sockets' paths, owner locks, and private files. Whatever
// it makes is the person's alone from its first instant (runtime.md 23,
// protocol.md 3).
package place

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Codes of protocol.md 18 that this package answers with. They are repeated
// here because the package imports nothing of ours.
const (
	codeInvalidStorePath   = "invalid_store_path"
	codeStoreUnresolved    = "store_path_unresolved"
	codeInvalidSocketPath  = "invalid_socket_path"
	codeSocketOwned        = "socket_already_owned"
	codeSocketNotSocket    = "socket_path_not_socket"
	codeSocketBindFailed   = "socket_bind_failed"
	codeUnsafeSocketFolder = "unsafe_socket_directory"
)

// Error is a refusal with its stable code (protocol.md 18) and a detail for
// people.
type Error struct{ Code, Detail string }

// Error is "code: detail".
func (e *Error) Error() string { return e.Code + ": " + e.Detail }

func fail(code, format string, args ...any) *Error {
	return &Error{Code: code, Detail: fmt.Sprintf(format, args...)}
}

// Home is the person's home folder: HOME, or the password database's folder
// when HOME is unset or not absolute, so that what must be protected below it
// always has a path.
func Home() (string, error) {
	if home := os.Getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Clean(home), nil
	}
	id := strconv.Itoa(os.Getuid())
	u, err := user.LookupId(id)
	if err != nil || !filepath.IsAbs(u.HomeDir) {
		return "", fail(codeInvalidStorePath,
			"HOME is no absolute path and the password database has no folder for user %s; set HOME", id)
	}
	return filepath.Clean(u.HomeDir), nil
}

// AgentDir is ~/.agent, whether or not it exists.
func AgentDir() (string, error) {
	home, err := Home()
	if err != nil {
		return "", err
	}
	return filepath.Join(home, ".agent"), nil
}

// MakeAgentDir makes ~/.agent 0700 whatever the umask and returns its path. An
// existing one keeps its mode (PO-13).
func MakeAgentDir() (string, error) {
	dir, err := AgentDir()
	if err != nil {
		return "", err
	}
	if _, err := makeDir(dir); err != nil {
		return "", fail(codeInvalidStorePath, "cannot make %s: %v; HOME must be a folder that is there and that you may write to", dir, reason(err))
	}
	return dir, nil
}

// DefaultStore is ~/.agent/state.sqlite.
func DefaultStore() (string, error) {
	dir, err := AgentDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "state.sqlite"), nil
}

// makeDir makes a folder 0700 and reports whether it did; an existing folder,
// or a symlink to one, is left as it is.
func makeDir(dir string) (made bool, err error) {
	err = os.Mkdir(dir, 0o700)
	if err == nil {
		// A umask may have taken the owner's own bits.
		return true, os.Chmod(dir, 0o700)
	}
	if !errors.Is(err, fs.ErrExist) {
		return false, err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return false, err
	}
	if !info.IsDir() {
		return false, syscall.ENOTDIR
	}
	return false, nil
}

// maxStorePath is what SQLite opens, 512 bytes, less the longest ending of a
// file beside the store.
const maxStorePath = 504

// Canonical makes a store's path absolute and resolves the symlinks in the
// longest part that exists; the rest is appended as it is. So the answer is
// the same before and after the store is made and through every alias
// (protocol.md 3). Codes: invalid_store_path, store_path_unresolved (a
// dangling or endless symlink).
func Canonical(store string) (string, error) {
	if store == "" || strings.IndexByte(store, 0) >= 0 {
		return "", fail(codeInvalidStorePath, "a store's path is not empty and holds no NUL byte")
	}
	if strings.HasSuffix(store, "/") {
		return "", fail(codeInvalidStorePath, "%s names a folder; name the store's file", store)
	}
	abs := store
	if !filepath.IsAbs(abs) {
		cwd, err := os.Getwd()
		if err != nil {
			return "", fail(codeInvalidStorePath, "no working folder to start from: %v", reason(err))
		}
		// Not filepath.Join: that would drop x/.. even where x is a symlink.
		abs = cwd + "/" + abs
	}
	existing, rest, err := splitExisting(abs)
	if err != nil {
		return "", err
	}
	path := filepath.Join(append([]string{existing}, rest...)...)
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return "", fail(codeInvalidStorePath, "%s is a folder; name the store's file", path)
	}
	if len(path) > maxStorePath {
		return "", fail(codeInvalidStorePath, "a store's path has at most %d bytes, which is what SQLite opens, this one %d: name a shorter one with --store: %s", maxStorePath, len(path), path)
	}
	return path, nil
}

// splitExisting resolves the longest existing part of an absolute path and
// returns it with the names that follow.
func splitExisting(abs string) (string, []string, error) {
	var rest []string
	for part := abs; ; {
		resolved, err := filepath.EvalSymlinks(part)
		if err == nil {
			return resolved, rest, nil
		}
		if errors.Is(err, syscall.ENOTDIR) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENAMETOOLONG) {
			return "", nil, fail(codeInvalidStorePath, "%s: %v; a store lies below folders that are there and that you may enter: mend the path, or name another with --store", part, reason(err))
		}
		if _, lerr := os.Lstat(part); lerr == nil || !errors.Is(err, fs.ErrNotExist) {
			return "", nil, fail(codeStoreUnresolved, "%s is a symlink that leads nowhere", part)
		}
		i := strings.LastIndexByte(part, '/')
		name := part[i+1:]
		part = strings.TrimRight(part[:i], "/")
		if part == "" {
			part = "/"
		}
		switch name {
		case ".":
			continue
		case "..":
			return "", nil, fail(codeInvalidStorePath, "%s goes up from a folder that does not exist", abs)
		}
		rest = append([]string{name}, rest...)
	}
}

// reason is an error without the path that the caller names already.
func reason(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
