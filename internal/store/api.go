// Package store keeps everything durable in one SQLite file: bots, turns,
// nodes, tool calls, events. One goroutine writes, in groups that share a
// commit; a few query-only connections read; one publisher hands committed
// events on, in commit order (runtime.md 2, 23 to 27).
//
// The layers, file by file:
//
//	open.go     what is looked at and made before SQLite sees the file; opening
//	close.go    closing
//	judge.go    the verdict on a file's header
//	schema.go   the schema's version, making and migrating it
//	conn.go     connections and their settings
//	writer.go   jobs, groups, commits
//	publish.go  the queue of what was committed
//	read.go     the query-only connections
//	query.go    prepared statements and how they are run
//	rows_*.go   the SQL itself, a file per kind of row
//	spill.go    files beside the store
//	stats.go    what the store counts
//	fault.go    failing on purpose, in tests
//	check.go    a check of a store nobody owns
//
// While a store is open nothing in this process but SQLite may open its file,
// its -wal or its -shm: closing any descriptor of a file drops every POSIX lock
// that the process holds on it, SQLite's included (runtime.md 10).
package store

import (
	"encoding/json"
)

// Event is a durable event, as it is handed to the publisher. Line is the
// whole notification line that followers get, newline included; it is made
// once and shared, so nobody may change it.
type Event struct {
	Cursor int64
	BotID  int64
	Bot    string
	Turn   int64 // 0: none
	Kind   string
	Data   json.RawMessage
	Line   []byte
}

// Batch is what one commit made known: its events in cursor order, then the
// functions to call once they are delivered (outcomes of ended turns). The
// sink calls them; the store does not.
type Batch struct {
	Events []Event
	After  []func()
}

// Sink receives batches in commit order, one at a time, from the publisher's
// goroutine. It may block; then the publisher's queue of 1,024 fills and the
// writer waits.
type Sink interface {
	Publish(Batch)
}
