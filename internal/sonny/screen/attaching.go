package screen

import (
	"context"
	"os"
	"slices"
	"time"

	"agent/internal/sonny/host/panes"
	"agent/internal/sonny/screen/beside"
)

// attaching is what other programs read of this screen: which session it shows, in which
// pane, and when the person was at it last (sonny.md 28 and 29).
type attaching struct {
	record panes.Record // as it was written last
	post   beside.Line  // its writes, in order
	due    bool         // a write is
	said   bool         // that it cannot be written
}

// keysWritten is how long keys are gathered until the record says when the last came.
// It is well below quietAs, before which nobody asks.
const keysWritten = 2 * time.Second

// whereabouts keeps the record true. It is called after everything that happened.
func (a *App) whereabouts() {
	if a.o.Kept == "" {
		return
	}
	at := &a.attaching
	now := at.record
	now.Store, now.BotID = a.ready.Store.Identity, 0
	if a.session != nil {
		now.BotID = a.session.id
	}
	if now.BotID != at.record.BotID || now.Store != at.record.Store {
		now.Since = a.o.Now()
	}
	focused := a.telling.focusAt.After(now.Looked)
	if focused {
		now.Looked = a.telling.focusAt
	}
	switch typed := a.telling.focus == nil && a.lastKey.After(now.Looked); {
	case now.BotID != at.record.BotID || now.Store != at.record.Store || focused:
		if typed {
			now.Looked = a.lastKey
		}
		a.writeAttached(now)
	case typed && !at.due:
		at.due = true
		a.after(keysWritten, func() {
			at.due = false
			now := at.record
			now.Looked = a.lastKey
			a.writeAttached(now)
		})
	}
}

// writeAttached writes the record beside the loop.
func (a *App) writeAttached(r panes.Record) {
	at := &a.attaching
	at.record = r
	at.post.Next(func() {
		do(a, func(context.Context) (struct{}, error) { return struct{}{}, panes.Attach(a.o.Kept, r) },
			func(_ struct{}, err error) {
				if err != nil && !at.said {
					at.said = true
					a.notes.fail(err)
				}
				at.post.Done()
			})
	})
}

// detach takes the record away, when nothing runs beside the loop any more.
func (a *App) detach() {
	if a.o.Kept != "" {
		panes.Detach(a.o.Kept)
	}
}

// here is the record with which the screen begins.
func (a *App) here() { a.attaching.record = panes.Here(os.Getenv, "", 0) }

// sweepPanes takes the records of screens away that were killed.
func (a *App) sweepPanes() {
	do(a, func(context.Context) (struct{}, error) {
		_, err := panes.All(a.o.Kept, "")
		return struct{}{}, err
	}, func(struct{}, error) {})
}

// others are the records of the other screens of a store. It reads files.
func others(kept, store string) ([]panes.Record, error) {
	list, err := panes.All(kept, store)
	return slices.DeleteFunc(list, func(r panes.Record) bool { return r.PID == os.Getpid() }), err
}

// lookedLater reports whether one of other screens has a bot or whose task it is, and had
// the person later than this one. "" is every bot.
func (a *App) lookedLater(others []panes.Record, bot string) bool {
	mine := a.attaching.record.Looked
	if a.telling.focus == nil && a.lastKey.After(mine) {
		mine = a.lastKey
	}
	return slices.ContainsFunc(others, func(r panes.Record) bool {
		return r.Looked.After(mine) && (bot == "" || a.isOn(r, bot))
	})
}

// isOn reports whether a screen shows a bot, or one whose task it is.
func (a *App) isOn(r panes.Record, bot string) bool {
	on, b := a.world.ByID(r.BotID), a.world.Bot(bot)
	return on != nil && b != nil && (r.BotID == b.Record.ID || slices.Contains(a.tasksOf(on), b))
}
