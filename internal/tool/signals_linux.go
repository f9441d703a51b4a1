package tool

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// StartClean closes the files that the program inherited, and makes sure that
// commands will start with default signal handlers and an empty mask (runtime.md
// 28, Signals). What a process ignores or blocks
// when it starts, its children inherit, and the Go runtime passes it on: when
// there is such a signal, the program is executed anew without it. The daemon's
// main function calls it first, before it holds anything; it returns nil when
// there is nothing to do, and does not return when there was.
func StartClean() error {
	closeInherited()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var mask, empty unix.Sigset_t
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, nil, &mask); err != nil {
		return os.NewSyscallError("sigprocmask", err)
	}
	ignored := ignoredSignals()
	if mask == empty && ignored == 0 {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &empty, nil); err != nil {
		return os.NewSyscallError("sigprocmask", err)
	}
	for sig := 1; sig <= 64; sig++ {
		if ignored&(1<<(sig-1)) != 0 {
			defaultHandler(sig)
		}
	}
	return os.NewSyscallError("execve", syscall.Exec(self, os.Args, os.Environ()))
}

// ignoredSignals is a bit for each signal that is ignored; the runtime has put
// handlers of its own in the place of most.
func ignoredSignals() uint64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "\nSigIgn:")
	line, _, _ := strings.Cut(rest, "\n")
	bits, _ := strconv.ParseUint(strings.TrimSpace(line), 16, 64)
	return bits
}

// defaultHandler goes past the runtime, which would keep the signal ignored;
// the program is about to be replaced.
func defaultHandler(sig int) {
	var action [8]uint64 // all zero is the default handler
	const maskSize = 8
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&action)), 0, maskSize, 0, 0)
}
