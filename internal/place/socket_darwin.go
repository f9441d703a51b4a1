package place

import (
	"context"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

const maxSocketPath = 103

// listenPrivate binds path, makes it 0600 and only then listens: macOS has no
// way to set a name's mode before it exists, and until it listens nobody
// connects. The 0700 folder covers the instant between.
func listenPrivate(_ context.Context, path string) (*net.UnixListener, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, err
	}
	unix.CloseOnExec(fd)
	f := os.NewFile(uintptr(fd), path)
	defer f.Close() // FileListener works on a duplicate
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		return nil, err
	}
	l, err := listenBound(fd, f, path)
	if err != nil {
		os.Remove(path)
		return nil, err
	}
	l.SetUnlinkOnClose(true)
	return l, nil
}

func listenBound(fd int, f *os.File, path string) (*net.UnixListener, error) {
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, err
	}
	if err := unix.Listen(fd, unix.SOMAXCONN); err != nil {
		return nil, err
	}
	l, err := net.FileListener(f)
	if err != nil {
		return nil, err
	}
	return l.(*net.UnixListener), nil
}
