package chatgpt_test

import (
	"os"
	"syscall"
	"testing"
	"time"
)

// accessed is when a file was last read.
func accessed(t *testing.T, path string) time.Time {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	at := info.Sys().(*syscall.Stat_t).Atim
	return time.Unix(at.Sec, at.Nsec)
}
