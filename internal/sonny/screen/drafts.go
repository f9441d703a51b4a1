package screen

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"agent/internal/sonny/fault"
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
	hand   string              // this Sonny's name in what it keeps
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

// kept is what of a composer is kept.
func (a *App) kept(c *composer) pen.Kept {
	k := pen.Kept{Stash: c.stash.Drafts(), Way: a.ways(c.keptAs), Mark: c.mark, Took: c.took}
	if !c.running {
		k.Draft = c.Editor().Draft()
	}
	if s := c.of; s != nil {
		k.Held = draftsOf(s.held)
		if e := s.editing; e != nil {
			k.Edited = &pen.Edited{Number: e.number, Was: e.out[0].draft, After: draftsOf(e.out[1:]), Before: e.before}
		}
	}
	return k
}

// restore puts what was kept into a composer. What is in it, or was typed meanwhile, comes
// after it.
func (c *composer) restore(k pen.Kept) {
	if c.of == nil || c.of.editing != nil { // one message is changed at a time
		k = k.Settled()
	}
	c.stash.Restore(k.Stash)
	c.took = append(c.took, k.Took...)
	if c.mark = cmp.Or(c.mark, k.Mark); c.mark == "" {
		c.mark = rand.Text()
	}
	if s := c.of; s != nil {
		s.held = append(messagesOf(k.Held), s.held...)
		if e := k.Edited; e != nil {
			s.editing = &lineEdit{number: e.Number, out: append([]message{messageOf(e.Was)}, messagesOf(e.After)...), before: e.Before}
		}
	}
	typed := c.Editor().Draft()
	if s := c.of; s != nil && s.editing != nil && k.Edited == nil {
		s.editing.before = s.editing.before.After(k.Draft)
	} else if !k.Draft.Empty() {
		c.Editor().SetDraft(typed.After(k.Draft))
	}
	if typed.Empty() {
		c.seen = c.version()
	}
}

func draftsOf(list []message) (drafts []edit.Draft) {
	for _, m := range list {
		drafts = append(drafts, m.draft)
	}
	return drafts
}

func messagesOf(drafts []edit.Draft) (list []message) {
	for _, d := range drafts {
		list = append(list, messageOf(d))
	}
	return list
}

// version changes with what is kept, but for what is on its way.
func (c *composer) version() (v [4]int) {
	v[0], v[1] = c.Editor().Changes(), c.stash.Len()
	if s := c.of; s != nil {
		v[2] = len(s.held)
		if s.editing != nil {
			v[3] = s.editing.number
		}
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
	if c.file != "" && (c.unsaved || c.version() != c.seen) {
		a.keepSoon(c.file)
	}
}

// unsaved notes that a file does not say any more what is so.
func (a *App) unsaved(key string) {
	if c := a.composerOf(key); c != nil {
		c.unsaved = true
	}
}

// composerOf is the composer on screen whose text a file keeps; nil for none.
func (a *App) composerOf(key string) *composer {
	for _, c := range a.writing() {
		if c.keptAs == key {
			return c
		}
	}
	return nil
}

// saving is what writes a file as it is now. It is called in the loop; what it gives may
// run beside it, and does nothing where a later state was written before.
func (a *App) saving(key string) func() error {
	a.keeping.n++
	n := a.keeping.n
	k, here := a.keeping.kept[key]
	if c := a.composerOf(key); c != nil && c.file != "" {
		c.seen, c.unsaved = c.version(), false
		k, here = a.kept(c), true
	}
	k.Way = a.ways(key)
	if here {
		a.keeping.kept[key] = k
		return func() error { return a.pen.drafts.Save(key, n, k) }
	}
	return func() error { // nothing of it was given: what this Sonny wrote besides stays
		before, _ := a.pen.drafts.Load(key)
		if before.Way = k.Way; before.Mark == "" {
			before.Mark = rand.Text()
		}
		return a.pen.drafts.Save(key, n, before)
	}
}

// keeper is saving that says what goes wrong: what follows goes on all the same.
func (a *App) keeper(key string) func() {
	save := a.saving(key)
	return func() {
		if err := save(); err != nil {
			a.later(func() {
				a.unsaved(key)
				a.cannotKeep("a draft", err)
			})
		}
	}
}

// keepSoon writes a file as it is now, beside the loop.
func (a *App) keepSoon(key string) {
	keep := a.keeper(key)
	do(a, func(context.Context) (struct{}, error) { keep(); return struct{}{}, nil }, func(struct{}, error) {})
}

// lastDrafts saves what is on screen when it is left, or the terminal is gone, and what
// is on its way.
func (a *App) lastDrafts() {
	a.land()
	var keys []string
	for _, c := range a.writing() {
		if c.file != "" && (c.unsaved || c.version() != c.seen) {
			keys = append(keys, c.file)
		}
	}
	for _, f := range a.flights {
		if f.stage == sending && !slices.Contains(keys, f.key) {
			keys = append(keys, f.key)
		}
	}
	for _, key := range keys {
		_ = a.saving(key)() // nobody is there any more to be told
	}
}

// rewrite changes what is written for a bot or on a start screen: in the composer where
// that is on screen, else in what is kept of it.
func (a *App) rewrite(key string, shown func(*composer), kept func(*pen.Kept)) {
	if c := a.composerOf(key); c != nil {
		shown(c)
		return
	}
	if k, here := a.keeping.kept[key]; here {
		kept(&k)
		a.keeping.kept[key] = k
		a.keepSoon(key)
		return
	}
	do(a, func(context.Context) (pen.Kept, error) { return a.pen.drafts.Load(key) }, func(k pen.Kept, err error) {
		if err != nil {
			a.cannotKeep("a draft", err)
		}
		if _, here := a.keeping.kept[key]; !here {
			a.keeping.kept[key] = k
		}
		a.rewrite(key, shown, kept)
	})
}

// putBack puts a message that did not go out before what is written. While a message of
// the line is edited it waits behind that.
func (a *App) putBack(key string, m message) {
	a.rewrite(key, func(c *composer) {
		if s := c.of; s != nil && s.editing != nil {
			s.editing.before = s.editing.before.After(m.draft)
			c.unsaved = true
			return
		}
		c.Editor().SetDraft(c.Editor().Draft().After(m.draft))
	}, func(k *pen.Kept) {
		if k.Edited != nil {
			edited := *k.Edited
			edited.Before = edited.Before.After(m.draft)
			k.Edited = &edited
			return
		}
		k.Draft = k.Draft.After(m.draft)
	})
}

// hold puts messages before those that are held.
func (a *App) hold(key string, list []message) {
	a.rewrite(key, func(c *composer) { c.of.held = append(slices.Clone(list), c.of.held...) },
		func(k *pen.Kept) { k.Held = append(draftsOf(list), k.Held...) })
}

// holdAfter puts messages behind those that are held.
func (a *App) holdAfter(key string, list []message) {
	a.rewrite(key, func(c *composer) { c.of.held = append(c.of.held, list...) },
		func(k *pen.Kept) { k.Held = append(slices.Clone(k.Held), draftsOf(list)...) })
}

// loadDraft brings back what was kept under a key, with what was written on the start
// screen of another key for it; "" for none. What was typed meanwhile comes after it. So
// does what was left by a Sonny that has ended since it was here.
func (a *App) loadDraft(c *composer, key, start string) {
	c.keptAs = key
	_, here := a.keeping.kept[key]
	if here {
		a.fill(c, start)
	}
	type found struct{ own, left pen.Kept }
	do(a, func(context.Context) (f found, err error) {
		if !here {
			f.own, err = a.pen.drafts.Load(key)
		}
		var failed error
		f.left, _, failed = a.pen.drafts.Left(key)
		return f, errors.Join(err, failed)
	}, func(f found, err error) {
		if err != nil {
			a.cannotKeep("the draft", err)
		}
		if _, here := a.keeping.kept[key]; !here { // else what was changed here meanwhile counts
			a.keeping.kept[key] = f.own
		}
		a.inherit(key, f.left)
		if c.file == "" && a.composerOf(key) == c {
			a.fill(c, start)
		}
		if !f.left.Empty() {
			a.unsaved(key)
			a.keepSoon(key)
		}
	})
}

// inherit puts what another Sonny left where what is kept of it is.
func (a *App) inherit(key string, left pen.Kept) {
	if c := a.composerOf(key); c != nil && c.file != "" {
		c.restore(left)
		a.retake(c, left.Way)
		return
	}
	a.keeping.kept[key] = a.keeping.kept[key].Join(left)
}

// fill puts what is kept into its composer, with what was written on a start screen for it.
func (a *App) fill(c *composer, start string) {
	written := a.keeping.kept[start]
	k := a.keeping.kept[c.keptAs].With(written)
	c.file = c.keptAs
	c.restore(k)
	a.retake(c, k.Way)
	if then := c.then; then != nil {
		c.then = nil
		then()
	}
	switch {
	case !written.Empty():
		a.takeOver(c, start)
	case start != "" || c.of == nil: // there is nothing that could come twice
		c.took = nil
	}
}

// takeOver writes that a start screen's text is a bot's now, and then empties the start
// screen's file.
func (a *App) takeOver(c *composer, start string) {
	keep := a.keeper(c.keptAs)
	delete(a.keeping.kept, start)
	a.keeping.n++
	n := a.keeping.n
	do(a, func(context.Context) (struct{}, error) {
		keep()
		instant("taking over")
		return struct{}{}, a.pen.drafts.Save(start, n, pen.Kept{})
	}, func(_ struct{}, err error) {
		if err == nil {
			c.took, c.unsaved = nil, true
		}
	})
}

// cannotKeep says once what cannot be kept; it stays in memory.
func (a *App) cannotKeep(what string, err error) {
	if a.keeping.failed[what] {
		return
	}
	a.keeping.failed[what] = true
	a.notes.fail(fmt.Errorf("%s; %s is kept in memory alone", cmp.Or(fault.Cause(err), fault.Screen.Words(err)), what))
}
