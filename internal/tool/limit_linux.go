//go:build !race

package tool

import (
	"os"

	"golang.org/x/sys/unix"
)

// limitChild bounds what a picture child may take, whatever a picture makes its
// decoder do: 1 GiB of memory, which twice the 8,000 by 8,000 pixels of the
// largest one fit into, and 30 seconds of a processor, after which it is dead
// also where nobody waits for it any more. When memory is short the system ends
// it before anything else.
func limitChild() error {
	for what, limit := range map[int]uint64{unix.RLIMIT_DATA: 1 << 30, unix.RLIMIT_CPU: 30, unix.RLIMIT_CORE: 0} {
		if err := unix.Setrlimit(what, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
			return os.NewSyscallError("setrlimit", err)
		}
	}
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0) // as good as it gets without
	return nil
}
