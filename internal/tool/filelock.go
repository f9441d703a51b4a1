package tool

import (
	"context"
	"os"
	"sync"
	"syscall"
)

// fileID names a file, whatever path leads to it.
type fileID struct{ device, inode uint64 }

// idOf is a file's name for the locks; false where it has none.
func idOf(info os.FileInfo) (fileID, bool) {
	sys, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileID{}, false
	}
	return fileID{uint64(sys.Dev), sys.Ino}, true
}

// locks let one call at a time change a file, in the order they came. Only
// files that somebody holds or waits for take memory.
type locks struct {
	mu   sync.Mutex
	held map[fileID]*lock
}

type lock struct {
	slots *Slots
	users int // its holder and those that wait
}

// fileLocks is for all bots of the process: what is read, changed and written
// back must not be changed by another bot in between.
var fileLocks = locks{held: map[fileID]*lock{}}

// take waits for the file's lock and gives its release, or the cause of ctx's
// end.
func (l *locks) take(ctx context.Context, id fileID) (release func(), err error) {
	l.mu.Lock()
	k := l.held[id]
	if k == nil {
		k = &lock{slots: NewSlots(1)}
		l.held[id] = k
	}
	k.users++
	l.mu.Unlock()
	leave := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if k.users--; k.users == 0 {
			delete(l.held, id)
		}
	}
	if err := k.slots.Acquire(ctx); err != nil {
		leave()
		return nil, err
	}
	return sync.OnceFunc(func() {
		k.slots.Release()
		leave()
	}), nil
}
