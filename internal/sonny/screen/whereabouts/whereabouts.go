// Package whereabouts is what other programs read of a screen: which session it shows, in
// which pane, and when the person was at it last (sonny.md 28 and 29).
package whereabouts

import (
	"context"
	"os"
	"slices"
	"time"

	"agent/internal/sonny/host/panes"
	"agent/internal/sonny/screen/beside"
)

// keysWritten is how long keys are gathered until the record says when the last came.
// It is well below quietAs, before which nobody asks.
const keysWritten = 2 * time.Second

// Screen is what the record needs of its screen. Its methods are called in the loop.
type Screen interface {
	beside.Loop
	// After calls a function in the loop when a while has gone by.
	After(d time.Duration, call func())
	Fail(err error)
}

// State is where a screen is.
type State struct {
	Store string
	BotID int64 // of the session on screen; 0 for none
	// Tells says whether the terminal tells of its focus, and Focused when it got it last.
	// Where it does not, Key counts: when the last key came.
	Tells   bool
	Focused time.Time
	Key     time.Time
}

// Record keeps the record of a screen. It belongs to the loop.
type Record struct {
	screen Screen
	kept   string // Sonny's folder; "": nothing is written
	now    func() time.Time

	state  State        // as it was told last
	record panes.Record // as it was written last
	post   beside.Line  // its writes, in order
	due    bool         // a write is
	said   bool         // that it cannot be written
}

// In is the record in Sonny's folder, ~/.agent/sonny; "" for none. Close takes it away.
func In(kept string, screen Screen, now func() time.Time) *Record {
	return &Record{screen: screen, kept: kept, now: now, record: panes.Here(os.Getenv, "", 0)}
}

// Close takes the record away. It is called when nothing runs beside the loop any more.
func (r *Record) Close() {
	if r.kept != "" {
		panes.Detach(r.kept)
	}
}

// Sweep takes the records of screens away that were killed.
func (r *Record) Sweep() {
	beside.Do(r.screen, func(context.Context) (struct{}, error) {
		_, err := panes.All(r.kept, "")
		return struct{}{}, err
	}, func(struct{}, error) {}) // what cannot be read is not swept
}

// Note keeps the record true. It is called after everything that happened.
func (r *Record) Note(s State) {
	r.state = s
	if r.kept == "" {
		return
	}
	now := r.record
	now.Store, now.BotID = s.Store, s.BotID
	moved := now.BotID != r.record.BotID || now.Store != r.record.Store
	if moved {
		now.Since = r.now()
	}
	focused := s.Focused.After(now.Looked)
	if focused {
		now.Looked = s.Focused
	}
	switch typed := !s.Tells && s.Key.After(now.Looked); {
	case moved || focused:
		if typed {
			now.Looked = s.Key
		}
		r.write(now)
	case typed && !r.due:
		r.due = true
		r.screen.After(keysWritten, func() {
			r.due = false
			now := r.record
			now.Looked = r.state.Key
			r.write(now)
		})
	}
}

// write writes the record beside the loop.
func (r *Record) write(now panes.Record) {
	r.record = now
	r.post.Next(func() {
		beside.Do(r.screen, func(context.Context) (struct{}, error) { return struct{}{}, panes.Attach(r.kept, now) },
			func(_ struct{}, err error) {
				if err != nil && !r.said {
					r.said = true
					r.screen.Fail(err)
				}
				r.post.Done()
			})
	})
}

// Looked is when the person was at this screen last, as far as is known.
func (r *Record) Looked() time.Time {
	if !r.state.Tells && r.state.Key.After(r.record.Looked) {
		return r.state.Key
	}
	return r.record.Looked
}

// Others are the records of the other screens of a store. It reads files.
func Others(kept, store string) ([]panes.Record, error) {
	list, err := panes.All(kept, store)
	return slices.DeleteFunc(list, func(r panes.Record) bool { return r.PID == os.Getpid() }), err
}
