package place

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// tmpRoot holds the folder of sockets whose store's path is too long. TMPDIR is
// not consulted: client and daemon may have different ones. Tests replace it.
var tmpRoot = "/tmp"

// tmpDir is /tmp/agent-UID.
func tmpDir() string {
	return filepath.Join(tmpRoot, "agent-"+strconv.Itoa(os.Geteuid()))
}

// FallbackDir is /tmp/agent-UID, which holds the sockets whose own place has too
// long a path.
func FallbackDir() string { return tmpDir() }

// hashName is the name in tmpDir for a store: v1- and the 128-bit FNV-1a hash
// of its canonical path, in hex.
func hashName(canonicalStore string) string {
	h := fnv.New128a()
	h.Write([]byte(canonicalStore))
	return fmt.Sprintf("v1-%x.sock", h.Sum(nil))
}

// MaxSocketPath is how many bytes a socket's path may have: 107 on Linux, 103
// on macOS.
func MaxSocketPath() int { return maxSocketPath }

// SocketFor is the daemon's socket for a store: next to it, or in /tmp/agent-UID
// when that path does not fit an address. It makes nothing.
func SocketFor(canonicalStore string) (string, error) {
	if !filepath.IsAbs(canonicalStore) {
		return "", fail(codeInvalidStorePath, "%s is not an absolute path", canonicalStore)
	}
	if path := canonicalStore + ".sock"; len(path) <= maxSocketPath {
		return path, nil
	}
	path := filepath.Join(tmpDir(), hashName(canonicalStore))
	return path, CheckSocketPath(path)
}

// CheckSocketPath says whether a path fits a socket's address, as
// invalid_socket_path.
func CheckSocketPath(socket string) error {
	if socket == "" || len(socket) > maxSocketPath {
		return fail(codeInvalidSocketPath, "a socket's path has 1 to %d bytes here, this one has %d: %s",
			maxSocketPath, len(socket), socket)
	}
	for i := range len(socket) {
		if socket[i] == 0 {
			return fail(codeInvalidSocketPath, "a socket's path holds no NUL byte")
		}
	}
	return nil
}

// BotSocketDir is the folder of the sandboxed bots' sockets: SOCKET.d, or a
// folder in /tmp/agent-UID when a bot's id of 19 digits would not fit.
func BotSocketDir(socket, canonicalStore string) string {
	dir := socket + ".d"
	if len(dir)+1+19 <= maxSocketPath {
		return dir
	}
	return filepath.Join(tmpDir(), hashName(canonicalStore)+".d")
}

// CheckSocketDir refuses a socket in /tmp/agent-UID whose folder anyone else
// could reach: it must be a real folder, owned by the caller, without group or
// other bits, else unsafe_socket_directory. Sockets elsewhere, and a folder not
// yet made, pass. A client asks it before it connects.
func CheckSocketDir(socket string) error {
	dir := filepath.Dir(socket)
	if dir != tmpDir() {
		return nil
	}
	return checkOwnDir(dir, os.Geteuid())
}

func checkOwnDir(dir string, uid int) error {
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fail(codeUnsafeSocketFolder, "%s: %v", dir, reason(err))
	case !info.IsDir():
		return fail(codeUnsafeSocketFolder, "%s is not a real folder; remove it", dir)
	case owner(info) != uid:
		return fail(codeUnsafeSocketFolder, "%s belongs to user %d; name another place with --socket", dir, owner(info))
	case info.Mode().Perm()&0o077 != 0:
		return fail(codeUnsafeSocketFolder, "%s is open to others (mode %#o); chmod 700 it if it is yours alone",
			dir, info.Mode().Perm())
	}
	return nil
}

// makeTmpDir makes /tmp/agent-UID when path lies in it, and checks it.
func makeTmpDir(path string) error {
	dir := filepath.Dir(path)
	if dir != tmpDir() {
		return nil
	}
	err := os.Mkdir(dir, 0o700)
	if err == nil {
		err = os.Chmod(dir, 0o700)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fail(codeSocketBindFailed, "cannot make %s: %v", dir, reason(err))
	}
	return checkOwnDir(dir, os.Geteuid())
}

func owner(info fs.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Uid) }
