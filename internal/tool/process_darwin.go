package tool

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// watchable has nothing to ask for here.
func watchable(*syscall.SysProcAttr) *int {
	none := -1
	return &none
}

// awaitEnd returns once the process has ended, and leaves it unreaped.
func awaitEnd(pid, _ int) {
	kq, err := unix.Kqueue()
	if err != nil {
		return // reaping then waits
	}
	defer unix.Close(kq)
	exit := []unix.Kevent_t{{
		Ident: uint64(pid), Filter: unix.EVFILT_PROC,
		Flags: unix.EV_ADD | unix.EV_ONESHOT, Fflags: unix.NOTE_EXIT,
	}}
	events := make([]unix.Kevent_t, 1)
	for {
		// An error other than EINTR says that it has ended already.
		if _, err := unix.Kevent(kq, exit, events, nil); !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// dieWithUs does nothing: the system has no such thing.
func dieWithUs(*syscall.SysProcAttr) {}
