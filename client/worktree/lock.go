package worktree

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lockWait is how long a repository's lock is waited for, and lockPoll how often
// it is tried. Whoever can read a repository can hold its lock, so that nobody is
// kept waiting for ever.
const (
	lockWait = 30 * time.Second
	lockPoll = 20 * time.Millisecond
)

// alone runs f while nobody else, in this or another program, makes or removes a
// worktree of the repository. Git reads the entries of all worktrees as it makes
// one, and fails on an entry that is half made; and between the look for a branch
// and the making of it nobody must make it. A repository whose file system has no
// locks goes without.
func (p *Plan) alone(ctx context.Context, f func() error) error {
	if dir, err := os.Open(p.Common); err == nil {
		defer dir.Close()
		if lock(ctx, dir) {
			// Closing alone would not do: a child that was forked just now and has
			// not yet become its program holds the descriptor too.
			defer unix.Flock(int(dir.Fd()), unix.LOCK_UN)
		}
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return f()
}

// lock reports whether it got the lock.
func lock(ctx context.Context, dir *os.File) bool {
	for end := time.Now().Add(lockWait); ; {
		err := unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return true
		}
		busy := errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR)
		if !busy || time.Now().After(end) {
			return false
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(lockPoll):
		}
	}
}
