package tool

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// sweepEvery is how long a folder that was swept is let alone: a large one
	// takes long to list, and only a killed process leaves anything.
	sweepEvery = time.Minute
	// maxSwept bounds how many folders are remembered.
	maxSwept = 256
)

// sweeper knows which folders were swept of late.
type sweeper struct {
	mu   sync.Mutex
	last map[string]time.Time
}

var swept = sweeper{last: map[string]time.Time{}}

// due reports whether a folder is to be swept now, and notes that it was.
func (s *sweeper) due(dir string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, ok := s.last[dir]; ok && now.Sub(at) < sweepEvery {
		return false
	}
	if len(s.last) >= maxSwept {
		maps.DeleteFunc(s.last, func(_ string, at time.Time) bool { return now.Sub(at) >= sweepEvery })
	}
	if len(s.last) >= maxSwept {
		clear(s.last) // some folders are swept sooner than they need
	}
	s.last[dir] = now
	return true
}

// sweep removes the leftovers of writers that were killed from a folder, at
// most once in sweepEvery. What another live call writes to is locked, and
// stays.
func (s *sweeper) sweep(dir string, now time.Time) {
	if !s.due(dir, now) {
		return
	}
	f, err := os.Open(dir)
	if err != nil {
		return
	}
	defer f.Close()
	for {
		names, err := f.Readdirnames(256)
		for _, name := range names {
			if isTemporary(name) {
				sweepOne(filepath.Join(dir, name))
			}
		}
		if err != nil {
			return
		}
	}
}

// isTemporary reports whether a name is one that newTemporary makes.
func isTemporary(name string) bool {
	digits, ok := strings.CutPrefix(name, temporaryPrefix)
	return ok && len(digits) == 16 && strings.Trim(digits, "0123456789abcdef") == ""
}

func sweepOne(path string) {
	fd, err := openFD(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_CLOEXEC)
	if err != nil {
		return
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || flock(f, unix.LOCK_EX|unix.LOCK_NB) != nil {
		return
	}
	// Its writer may have finished between the opening and the lock.
	if now, err := os.Lstat(path); err == nil && os.SameFile(now, info) {
		_ = os.Remove(path)
	}
}
