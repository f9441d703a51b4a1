package screen

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"agent/internal/sonny/pen"
	"agent/internal/sonny/screen/edit"
)

// When drafts are saved: after a pause, and while the person types on (sonny.md 10.1).
const (
	draftPause = 500 * time.Millisecond
	draftMost  = 2 * time.Second
)

// pens are what the person writes with, in Sonny's folder.
type pens struct {
	history  *pen.History
	drafts   *pen.Drafts
	pictures *pen.Pictures
}

func pensIn(dir string) pens {
	return pens{history: pen.HistoryIn(dir), drafts: pen.DraftsIn(dir), pictures: pen.PicturesIn(dir)}
}

// keeping is the saving of drafts. Its timer is the loop's.
type keeping struct {
	due    *time.Timer
	since  time.Time           // of the first change that is not saved
	n      int                 // saves so far
	kept   map[string]pen.Kept // the newest of each composer that was saved here
	failed map[string]bool     // what could not be kept, which is said once
	sent   []unsent            // of the history, what is not in its file
	warned bool                // the person was told what leaving now loses
}

// draftKeys put the draft aside, and see to it that none is lost.
var draftKeys = feature{
	actions: map[string]func(*App){"stash": func(a *App) {
		c := a.composing()
		if !c.stash.Toggle(c.Editor()) {
			a.notes.say("nothing is written, and nothing is put aside")
		}
	}},
}

// kept is what of a composer is kept. A message that is taken from the line for editing
// counts as taken out.
func (c *composer) kept() pen.Kept {
	k := pen.Kept{Stash: c.stash.Drafts()}
	if !c.running {
		k.Draft = c.Editor().Draft()
	}
	if c.out != nil {
		k.Held = c.out()
	}
	return k
}

// version changes with what is kept.
func (c *composer) version() (v [3]int) {
	v[0], v[1] = c.Editor().Changes(), c.stash.Len()
	if c.out != nil {
		v[2] = len(c.out())
	}
	return v
}

// writing are the composers on screen whose text is kept.
func (a *App) writing() (list []*composer) {
	if a.session != nil {
		list = append(list, &a.session.compose)
	} else if a.start != nil {
		list = append(list, &a.start.compose)
	}
	if a.side != nil {
		list = append(list, &a.side.compose)
	}
	return list
}

// noteChanges sees whether something was written, and when it is to be saved. It is
// called after each event.
func (a *App) noteChanges() {
	a.readHistory()
	changed := false
	for _, c := range a.writing() {
		if v := c.version(); c.file != "" && v != c.seen {
			c.seen, c.unsaved, changed = v, true, true
		}
	}
	if !changed {
		return
	}
	a.keeping.warned = false
	now := a.o.Now()
	if a.keeping.since.IsZero() {
		a.keeping.since = now
	}
	a.keeping.due.Reset(max(0, min(draftPause, draftMost-now.Sub(a.keeping.since))))
}

// saveDrafts saves what has changed on screen, beside the loop.
func (a *App) saveDrafts() {
	a.keeping.since = time.Time{}
	for _, c := range a.writing() {
		a.saveDraft(c)
	}
}

// saveDraft saves a composer's text where it has changed: it may leave the screen.
func (a *App) saveDraft(c *composer) {
	if save := a.saving(c); save != nil {
		do(a, func(context.Context) (struct{}, error) { return struct{}{}, save() },
			func(_ struct{}, err error) {
				if err != nil {
					c.unsaved = true
					a.cannotKeep("a draft", err)
				}
			})
	}
}

// saving is what saves a composer as it is now; nil where that is saved.
func (a *App) saving(c *composer) func() error {
	if c.file == "" || !c.unsaved && c.version() == c.seen {
		return nil
	}
	c.seen, c.unsaved = c.version(), false
	a.keeping.n++
	key, n, kept := c.file, a.keeping.n, c.kept()
	a.keeping.kept[key] = kept
	return func() error { return a.pen.drafts.Save(key, n, kept) }
}

// lastDrafts saves what is on screen when it is left, or the terminal is gone.
func (a *App) lastDrafts() {
	for _, c := range append(a.writing(), a.holdFlights()...) {
		if save := a.saving(c); save != nil {
			_ = save() // nobody is there any more to be told
		}
	}
}

// loadDraft brings back what was kept under a key. What was typed meanwhile comes after
// it.
func (a *App) loadDraft(c *composer, key string, held func([]edit.Draft)) {
	take := func(k pen.Kept) {
		c.file = key
		c.stash.Restore(k.Stash)
		if held != nil {
			held(k.Held)
		}
		typed := c.Editor().Draft()
		if !k.Draft.Empty() {
			c.Editor().SetDraft(typed.After(k.Draft))
		}
		if typed.Empty() {
			c.seen = c.version()
		}
	}
	if k, here := a.keeping.kept[key]; here {
		take(k)
		return
	}
	do(a, func(context.Context) (pen.Kept, error) { return a.pen.drafts.Load(key) },
		func(k pen.Kept, err error) {
			if err != nil {
				a.cannotKeep("the draft", err)
			}
			take(k)
		})
}

// cannotKeep says once what cannot be kept; it stays in memory.
func (a *App) cannotKeep(what string, err error) {
	if a.keeping.failed[what] {
		return
	}
	a.keeping.failed[what] = true
	why := err.Error()
	if errors.Is(err, syscall.ENOSPC) {
		why = "disk full"
	}
	a.notes.fail(fmt.Errorf("%s; %s is kept in memory alone", why, what))
}
