//go:build !linux || race

package tool

import (
	"os"

	"golang.org/x/sys/unix"
)

// limitChild bounds what a picture child may take: 30 seconds of a processor.
// Here no limit on memory is one that holds, or, with the race detector, one
// that can be met.
func limitChild() error {
	for what, limit := range map[int]uint64{unix.RLIMIT_CPU: 30, unix.RLIMIT_CORE: 0} {
		if err := unix.Setrlimit(what, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
			return os.NewSyscallError("setrlimit", err)
		}
	}
	return nil
}
