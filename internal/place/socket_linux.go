package place

import (
	"context"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

const maxSocketPath = 107

// listenPrivate binds path 0600: on Linux a name takes the mode that was set on
// the socket before it was bound.
func listenPrivate(ctx context.Context, path string) (*net.UnixListener, error) {
	cfg := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var failed error
		if err := c.Control(func(fd uintptr) { failed = unix.Fchmod(int(fd), 0o600) }); err != nil {
			return err
		}
		return failed
	}}
	l, err := cfg.Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	return l.(*net.UnixListener), nil
}
