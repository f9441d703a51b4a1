package store

import (
	"sync"

	"zombiezen.com/go/sqlite"
)

// Errors for a fault to return.
var (
	// FaultFull is a disk without room: it ends the whole transaction, as
	// SQLITE_FULL does when a statement keeps no journal of its own.
	FaultFull = sqlite.ResultFull.ToError()
	// FaultSync is a sync that failed.
	FaultSync = sqlite.ResultIOErrFsync.ToError()
	// FaultDamage is what SQLite says of a damaged file.
	FaultDamage = sqlite.ResultCorrupt.ToError()
)

// Faults makes a store fail, stall or die on purpose, in tests. A nil *Faults,
// which every release uses, costs a comparison. It is safe for concurrent use.
//
// The points, in the order a job meets them:
//
//	migrate        a migration step has run, nothing is committed
//	begin          before a group's transaction
//	job:OP         before a job of that operation
//	wrote:OP       it has written; an error undoes the whole transaction
//	commit         before COMMIT, in the place of its sync
//	after-commit   committed, nobody has been answered
//	after-answer   answered, nothing published
//	read:OP        before a read of that operation
type Faults struct {
	mu  sync.Mutex
	hit map[string]func() error
}

// At has hit called whenever the point is reached, on the goroutine that
// reaches it: it may return an error, wait, or end the process. Nil removes it.
func (f *Faults) At(point string, hit func() error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hit == nil {
		f.hit = map[string]func() error{}
	}
	f.hit[point] = hit
}

// Hit runs what At set for the point.
func (f *Faults) Hit(point string) error {
	if f == nil {
		return nil
	}
	return f.run(point)
}

// hitOp is Hit for a point that has an operation.
func (f *Faults) hitOp(point, op string) error {
	if f == nil {
		return nil
	}
	return f.run(point + ":" + op)
}

func (f *Faults) run(point string) error {
	f.mu.Lock()
	hit := f.hit[point]
	f.mu.Unlock()
	if hit == nil {
		return nil
	}
	return hit()
}
