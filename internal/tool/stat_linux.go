package tool

import (
	"os"
	"syscall"
)

// changeTime is when a file's content, mode or names last changed, in
// nanoseconds; 0 where that is not known.
func changeTime(info os.FileInfo) int64 {
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		return sys.Ctim.Nano()
	}
	return 0
}
