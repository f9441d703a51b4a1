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
//	published      handed to the sink, on the publisher's goroutine
//	read:OP        before a read of that operation
type Faults struct {
	mu    sync.Mutex
	hit   map[string]func() error
	every func(point string) error
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

// Every has hit called at every point, with the point's name, before what At
// set there: for tests that go through all of them by number. It is called by
// many goroutines at once. Nil removes it.
func (f *Faults) Every(hit func(point string) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.every = hit
}

// Hit runs what Every and At set for the point.
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
	every, hit := f.every, f.hit[point]
	f.mu.Unlock()
	if every != nil {
		if err := every(point); err != nil {
			return err
		}
	}
	if hit == nil {
		return nil
	}
	return hit()
}
