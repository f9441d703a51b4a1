package store

import (
	"os"
	"sync"
	"time"

	"agent/protocol"
)

// operationLimit bounds the names counted apart; what is past it is counted as
// "other".
const operationLimit = 128

// bucketsUS are the upper bounds of the histograms' slots in microseconds; the
// last slot has none.
var bucketsUS = [13]int64{100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000}

// sizeBounds are the bounds of the slots of group sizes.
var sizeBounds = [6]int64{1, 2, 4, 8, 16, 32}

// Histogram counts durations by bucketsUS.
type Histogram [len(bucketsUS) + 1]int64

func (h *Histogram) add(d time.Duration) {
	us := d.Microseconds()
	for i, bound := range bucketsUS {
		if us <= bound {
			h[i]++
			return
		}
	}
	h[len(bucketsUS)]++
}

// Stats is stats.store (protocol.md 12). Milliseconds are sums over jobs:
// waiting for the writer, running, and from being queued to being answered.
type Stats struct {
	Bytes         int64                `json:"bytes"`
	WALBytes      int64                `json:"wal_bytes"`
	Jobs          int64                `json:"jobs"`
	QueuedMS      int64                `json:"queued_ms"`
	RanMS         int64                `json:"ran_ms"`
	AnsweredMS    int64                `json:"answered_ms"`
	StorageErrors int64                `json:"storage_errors"` // of reads, too
	BucketsUS     []int64              `json:"buckets_us"`
	Operations    map[string]Operation `json:"operations"`
	Groups        Groups               `json:"groups"`
}

// Operation is what is counted of the jobs of one name.
type Operation struct {
	Count             int64     `json:"count"`
	QueuedMS          int64     `json:"queued_ms"`
	RanMS             int64     `json:"ran_ms"`
	AnsweredMS        int64     `json:"answered_ms"`
	SlowestMS         int64     `json:"slowest_ms"` // of running
	SlowestAnsweredMS int64     `json:"slowest_answered_ms"`
	StorageErrors     int64     `json:"storage_errors"`
	Ran               Histogram `json:"ran"`
	Queued            Histogram `json:"queued"`
	Answered          Histogram `json:"answered"`
}

// Groups is what is counted of groups: how many jobs shared a commit, and how
// long the oldest of each waited from being queued to being answered.
type Groups struct {
	Count           int64     `json:"count"`
	Jobs            int64     `json:"jobs"`
	SizeBounds      []int64   `json:"size_bounds"`
	Sizes           [6]int64  `json:"sizes"`
	Oldest          Histogram `json:"oldest"`
	SlowestOldestMS int64     `json:"slowest_oldest_ms"`
}

// durations are the sums and maxima behind the milliseconds of an answer.
type durations struct {
	queued, ran, answered   time.Duration
	slowest, slowestAnswers time.Duration
}

// counters are what a store has counted since it was opened.
type counters struct {
	mu         sync.Mutex
	sum        durations
	jobs       int64
	errors     int64
	operations map[string]*operation
	groups     Groups
	oldest     time.Duration
}

type operation struct {
	Operation
	sum durations
}

// group counts the jobs of a group at the moment they are answered.
func (c *counters) group(group []*job, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var oldest time.Duration
	for _, j := range group {
		c.job(j, now)
		oldest = max(oldest, now.Sub(j.queuedAt))
	}
	c.groups.Count++
	c.groups.Jobs += int64(len(group))
	for i, bound := range sizeBounds {
		if int64(len(group)) <= bound {
			c.groups.Sizes[i]++
			break
		}
	}
	c.groups.Oldest.add(oldest)
	c.oldest = max(c.oldest, oldest)
}

func (c *counters) job(j *job, now time.Time) {
	answered := now.Sub(j.queuedAt)
	queued := answered // a store that is damaged runs nothing
	if !j.begunAt.IsZero() {
		queued = j.begunAt.Sub(j.queuedAt)
	}
	c.jobs++
	c.sum.add(queued, j.ran, answered)
	o := c.operation(j.op)
	o.Count++
	o.sum.add(queued, j.ran, answered)
	o.Queued.add(queued)
	o.Ran.add(j.ran)
	o.Answered.add(answered)
	if protocol.CodeOf(j.err) == protocol.StorageError {
		o.StorageErrors++
		c.errors++
	}
}

func (c *counters) operation(name string) *operation {
	if o := c.operations[name]; o != nil {
		return o
	}
	if c.operations == nil {
		c.operations = map[string]*operation{}
	}
	if len(c.operations) >= operationLimit-1 && name != "other" {
		return c.operation("other")
	}
	o := &operation{}
	c.operations[name] = o
	return o
}

func (c *counters) readFailed() {
	c.mu.Lock()
	c.errors++
	c.mu.Unlock()
}

func (d *durations) add(queued, ran, answered time.Duration) {
	d.queued += queued
	d.ran += ran
	d.answered += answered
	d.slowest = max(d.slowest, ran)
	d.slowestAnswers = max(d.slowestAnswers, answered)
}

// Stats is what the store has counted since it was opened, and its files'
// sizes.
func (s *Store) Stats() Stats {
	c := &s.stats
	c.mu.Lock()
	defer c.mu.Unlock()
	out := Stats{
		Bytes:         size(s.path),
		WALBytes:      size(s.path + "-wal"),
		Jobs:          c.jobs,
		QueuedMS:      c.sum.queued.Milliseconds(),
		RanMS:         c.sum.ran.Milliseconds(),
		AnsweredMS:    c.sum.answered.Milliseconds(),
		StorageErrors: c.errors,
		BucketsUS:     bucketsUS[:],
		Operations:    make(map[string]Operation, len(c.operations)),
		Groups:        c.groups,
	}
	out.Groups.SizeBounds = sizeBounds[:]
	out.Groups.SlowestOldestMS = c.oldest.Milliseconds()
	for name, o := range c.operations {
		op := o.Operation
		op.QueuedMS = o.sum.queued.Milliseconds()
		op.RanMS = o.sum.ran.Milliseconds()
		op.AnsweredMS = o.sum.answered.Milliseconds()
		op.SlowestMS = o.sum.slowest.Milliseconds()
		op.SlowestAnsweredMS = o.sum.slowestAnswers.Milliseconds()
		out.Operations[name] = op
	}
	return out
}

// size looks a file's size up by its name: the store's files must not be
// opened.
func size(path string) int64 {
	info, err := os.Lstat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
