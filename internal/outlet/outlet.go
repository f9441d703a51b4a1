// Package outlet notices that the reader of an output has gone, also while there is
// nothing to write.
package outlet

import (
	"os"

	"golang.org/x/sys/unix"
)

// Gone is closed when nobody reads from the other end of a file any more. Only a pipe or
// a socket can lose its reader: for anything else it is nil. A goroutine waits for it as
// long as the process lives.
func Gone(f *os.File) <-chan struct{} {
	info, err := f.Stat()
	if err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return nil
	}
	gone := make(chan struct{})
	fd := int32(f.Fd())
	go func() {
		for {
			fds := []unix.PollFd{{Fd: fd}}
			_, err := unix.Poll(fds, -1)
			if err == unix.EINTR {
				continue
			}
			if err == nil && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0 {
				close(gone)
			}
			return
		}
	}()
	return gone
}
