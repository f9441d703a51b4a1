// Package store keeps everything durable in one SQLite file: bots, turns,
// nodes, tool calls, events. One goroutine writes, in groups that share a
// commit; a few query-only connections read; one publisher hands committed
// events on, in commit order (runtime.md 2, 23 to 27).
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
// functions to call once they are delivered (outcomes of ended turns).
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
