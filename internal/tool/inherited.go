package tool

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// closeInherited closes the files that whoever started the program left open in
// it, but for the standard ones: a daemon would hold their locks and pipes for
// as long as it lives, and every command of a bot would get them. What the
// program opened itself is close-on-exec, and stays.
func closeInherited() {
	dir, err := os.Open("/dev/fd")
	if err != nil {
		return // nothing tells what there is
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		fd, err := strconv.Atoi(name)
		if err != nil || fd <= 2 {
			continue
		}
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err == nil && flags&unix.FD_CLOEXEC == 0 {
			_ = unix.Close(fd)
		}
	}
}
