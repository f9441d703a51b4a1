package place

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// staleWait is how long whoever is at the socket's path has to refuse a
// connection before it counts as alive.
const staleWait = 250 * time.Millisecond

// Listener is the daemon's own socket with its lock. Accept is safe for
// concurrent use, Close may be called more than once.
type Listener struct {
	*net.UnixListener
	path  string
	bound fs.FileInfo
	lock  *OwnerLock
	once  sync.Once
	err   error
}

// Claim is a socket's lock with a path that can be bound. It lets a daemon
// find out that the socket is another's before it touches its store.
type Claim struct {
	path string
	lock *OwnerLock
}

// ClaimSocket takes the socket's lock, as OwnLock does, and looks at what lies at the
// path (protocol.md 3). It removes nothing yet: a launcher that a killed daemon left
// would make its mount point where the stale socket was, so the daemon ends those
// first, and Listen removes.
//
// Codes: invalid_socket_path, unsafe_socket_directory, socket_already_owned,
// socket_path_not_socket, socket_bind_failed.
func ClaimSocket(socket string) (*Claim, error) {
	if err := CheckSocketPath(socket); err != nil {
		return nil, err
	}
	if err := makeTmpDir(socket); err != nil {
		return nil, err
	}
	lock, err := OwnLock(socket+".owner-lock", codeSocketOwned, socket)
	if err != nil {
		var held *Error
		if errors.As(err, &held) {
			return nil, err
		}
		return nil, fail(codeSocketBindFailed, "cannot lock %s: %v", socket, err)
	}
	if _, err := stale(socket); err != nil {
		lock.Close()
		return nil, err
	}
	return &Claim{path: socket, lock: lock}, nil
}

// Listen clears a stale socket away and binds the path with mode 0600. The listener
// takes the claim over.
//
// It sets the umask of the whole process around the bind: a file, folder or
// child made meanwhile would take it too. Call it once, at start, while nothing
// else makes any.
func (c *Claim) Listen() (*Listener, error) {
	l, err := bindLocked(c.path)
	if err != nil {
		return nil, err
	}
	l.lock = c.lock
	return l, nil
}

// Close gives up a claim that no listener took over.
func (c *Claim) Close() error { return c.lock.Close() }

// Listen is ClaimSocket and Listen of the claim.
func Listen(socket string) (*Listener, error) {
	c, err := ClaimSocket(socket)
	if err != nil {
		return nil, err
	}
	l, err := c.Listen()
	if err != nil {
		c.Close()
	}
	return l, err
}

// bindLocked binds the path, whose lock is held.
func bindLocked(socket string) (*Listener, error) {
	if err := removeStale(socket); err != nil {
		return nil, err
	}
	old := unix.Umask(0o177)
	ul, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	unix.Umask(old)
	if err != nil {
		return nil, fail(codeSocketBindFailed, "%s: %v", socket, bindReason(err))
	}
	ul.SetUnlinkOnClose(false) // by then the name may be another's
	info, err := os.Lstat(socket)
	if err != nil {
		ul.Close()
		return nil, fail(codeSocketBindFailed, "%s: %v", socket, reason(err))
	}
	return &Listener{UnixListener: ul, path: socket, bound: info}, nil
}

// removeStale clears the path of a socket nobody answers at, and of a mount point.
func removeStale(socket string) error {
	there, err := stale(socket)
	if err != nil || !there {
		return err
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fail(codeSocketBindFailed, "cannot remove the stale %s: %v", socket, reason(err))
	}
	return nil
}

// stale reports whether something that may be removed lies at the path: a socket
// nobody answers at, or the mount point that a launcher made in its place. The error
// says that it must stay.
func stale(socket string) (there bool, err error) {
	info, err := os.Lstat(socket)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fail(codeSocketBindFailed, "%s: %v", socket, reason(err))
	case isMountPoint(info):
		return true, nil
	case info.Mode().Type() != fs.ModeSocket:
		return false, fail(codeSocketNotSocket, "%s is not a socket and is left alone; remove it or name another", socket)
	case !refuses(socket):
		return false, fail(codeSocketOwned, "%s is in use by another listener", socket)
	}
	return true, nil
}

// refuses reports whether a connection to path is refused, which only a socket
// without a listener does. One whose last holder goes meanwhile is without.
func refuses(path string) bool {
	end := time.Now().Add(staleWait)
	for {
		err := knock(path, end)
		if !errors.Is(err, syscall.ECONNRESET) {
			return errors.Is(err, syscall.ECONNREFUSED)
		}
	}
}

// answers reports whether somebody says something at path until end. A connection
// alone says little: what a dead daemon's child holds takes one, too.
func answers(path string, end time.Time) bool {
	err := knock(path, end)
	return err == nil || errors.Is(err, io.EOF)
}

// knock connects to path and waits until end for a first byte.
func knock(path string, end time.Time) error {
	conn, err := net.DialTimeout("unix", path, staleWait)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetReadDeadline(end); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 1))
	return err
}

// Stop ends Accept. The path and the lock stay until Close, so that nobody takes
// the socket for free while the daemon ends.
func (l *Listener) Stop() error { return l.UnixListener.Close() }

// Close stops listening and removes the path if it is still the very socket
// that was bound, then gives the lock up. The lock file stays.
func (l *Listener) Close() error {
	l.once.Do(func() {
		if err := l.UnixListener.Close(); !errors.Is(err, net.ErrClosed) {
			l.err = err
		}
		now, err := os.Lstat(l.path)
		// A freed inode number is soon given out again; the time tells the
		// two apart.
		if err == nil && os.SameFile(now, l.bound) && now.ModTime().Equal(l.bound.ModTime()) {
			if err := os.Remove(l.path); err != nil && l.err == nil {
				l.err = err
			}
		}
		if err := l.lock.Close(); err != nil && l.err == nil {
			l.err = err
		}
	})
	return l.err
}

// MakeBotSocketDir makes the folder of the bots' sockets, 0700 whatever the
// umask, and removes the sockets a killed daemon left in it; anything else in
// it is socket_path_not_socket. The socket's lock must be held.
func MakeBotSocketDir(dir string) error {
	if err := makeTmpDir(dir); err != nil {
		return err
	}
	if err := MakePrivateDir(dir); err != nil {
		return fail(codeUnsafeSocketFolder, "%v", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fail(codeSocketBindFailed, "%s: %v", dir, reason(err))
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if e.Type() != fs.ModeSocket {
			return fail(codeSocketNotSocket, "%s is not a socket and is left alone; remove it", path)
		}
		if err := os.Remove(path); err != nil {
			return fail(codeSocketBindFailed, "%s: %v", path, reason(err))
		}
	}
	return nil
}

// ListenBot binds a bot's socket 0600 without touching the umask, so that it
// may be called while the daemon works. The path must be free, its folder 0700.
// Closing the listener removes the path.
func ListenBot(path string) (*net.UnixListener, error) {
	if err := CheckSocketPath(path); err != nil {
		return nil, err
	}
	l, err := listenPrivate(context.Background(), path)
	if err != nil {
		return nil, fail(codeSocketBindFailed, "%s: %v", path, bindReason(err))
	}
	return l, nil
}

// bindReason is the system's own error of a failed bind.
func bindReason(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}
