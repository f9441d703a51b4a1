package outbox

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"agent/internal/sonny/fault"
	"agent/internal/sonny/pen"
	"agent/internal/sonny/screen/beside"
)

// When drafts are saved: after a pause, and while the person types on (sonny.md 10.1).
const (
	draftPause = 500 * time.Millisecond
	draftMost  = 2 * time.Second
)

// keeping is the saving of drafts. Its timer is the loop's.
type keeping struct {
	due    *time.Timer
	since  time.Time           // of the first change that is not saved
	n      int                 // saves so far
	kept   map[string]pen.Kept // the newest of each composer that was saved here
	failed map[string]bool     // what could not be kept, which is said once
	hand   string              // this Sonny's name in what it keeps
	begun  bool                // what was left on start screens is known
	warned bool                // the person was told what leaving now loses
}

// Due tells when what was written is to be saved: Save does that.
func (o *Outbox) Due() <-chan time.Time { return o.keeping.due.C }

// NoteChanges sees whether something was written, and when it is to be saved. It is
// called after each event.
func (o *Outbox) NoteChanges() {
	changed := false
	for _, b := range o.screen.Boxes() {
		if v := b.version(); b.file != "" && v != b.seen {
			b.seen, b.unsaved, changed = v, true, true
		}
	}
	if !changed {
		return
	}
	o.keeping.warned = false
	now := o.now()
	if o.keeping.since.IsZero() {
		o.keeping.since = now
	}
	o.keeping.due.Reset(max(0, min(draftPause, draftMost-now.Sub(o.keeping.since))))
}

// Save saves what has changed on screen, beside the loop.
func (o *Outbox) Save() {
	o.keeping.since = time.Time{}
	for _, b := range o.screen.Boxes() {
		o.Leave(b)
	}
}

// Leave saves a composer's text where it has changed: it may leave the screen.
func (o *Outbox) Leave(b *Box) {
	if b.file != "" && (b.unsaved || b.version() != b.seen) {
		o.keepSoon(b.file)
	}
}

// outdated notes that a file does not say any more what is so.
func (o *Outbox) outdated(key string) {
	if b := o.composerOf(key); b != nil {
		b.unsaved = true
	}
}

// composerOf is the composer on screen whose text a file keeps; nil for none.
func (o *Outbox) composerOf(key string) *Box {
	for _, b := range o.screen.Boxes() {
		if b.key == key {
			return b
		}
	}
	return nil
}

// saving is what writes a file as it is now. It is called in the loop; what it gives may
// run beside it, and does nothing where a later state was written before.
func (o *Outbox) saving(key string) func() error {
	o.keeping.n++
	n := o.keeping.n
	k, here := o.keeping.kept[key]
	if b := o.composerOf(key); b != nil && b.file != "" {
		b.seen, b.unsaved = b.version(), false
		k, here = o.contents(b), true
	}
	k.Way = o.ways(key)
	if here {
		o.keeping.kept[key] = k
		return func() error { return o.drafts.Save(key, n, k) }
	}
	return func() error { // nothing of it was given: what this Sonny wrote besides stays
		before, _ := o.drafts.Load(key)
		if before.Way = k.Way; before.Mark == "" {
			before.Mark = rand.Text()
		}
		return o.drafts.Save(key, n, before)
	}
}

// keeper is saving that says what goes wrong: what follows goes on all the same.
func (o *Outbox) keeper(key string) func() {
	save := o.saving(key)
	return func() {
		if err := save(); err != nil {
			o.screen.Later(func() {
				o.outdated(key)
				o.cannotKeep("a draft", err)
			})
		}
	}
}

// keepSoon writes a file as it is now, beside the loop.
func (o *Outbox) keepSoon(key string) {
	keep := o.keeper(key)
	beside.Do(o.screen, func(context.Context) (struct{}, error) { keep(); return struct{}{}, nil }, func(struct{}, error) {})
}

// Last saves what is on screen when it is left, or the terminal is gone, and what is on
// its way.
func (o *Outbox) Last() {
	var keys []string
	for _, b := range o.screen.Boxes() {
		if b.file != "" && (b.unsaved || b.version() != b.seen) {
			keys = append(keys, b.file)
		}
	}
	for _, f := range o.flights {
		if f.stage == sending && !slices.Contains(keys, f.key) {
			keys = append(keys, f.key)
		}
	}
	for _, key := range keys {
		_ = o.saving(key)() // nobody is there any more to be told
	}
}

// rewrite changes what is written for a bot or on a start screen: in the composer where
// that is on screen, else in what is kept of it.
func (o *Outbox) rewrite(key string, shown func(*Box), kept func(*pen.Kept)) {
	if b := o.composerOf(key); b != nil {
		shown(b)
		return
	}
	if k, here := o.keeping.kept[key]; here {
		kept(&k)
		o.keeping.kept[key] = k
		o.keepSoon(key)
		return
	}
	beside.Do(o.screen, func(context.Context) (pen.Kept, error) { return o.drafts.Load(key) }, func(k pen.Kept, err error) {
		if err != nil {
			o.cannotKeep("a draft", err)
		}
		if _, here := o.keeping.kept[key]; !here {
			o.keeping.kept[key] = k
		}
		o.rewrite(key, shown, kept)
	})
}

// putBack puts a message that did not go out before what is written. While a message of
// the line is edited it waits behind that.
func (o *Outbox) putBack(key string, m Message) {
	o.rewrite(key, func(b *Box) {
		if b.editing != nil {
			b.editing.before = b.editing.before.After(m.draft)
			b.unsaved = true
			return
		}
		b.Editor().SetDraft(b.Editor().Draft().After(m.draft))
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
func (o *Outbox) hold(key string, list []Message) {
	o.rewrite(key, func(b *Box) { b.held = append(slices.Clone(list), b.held...) },
		func(k *pen.Kept) { k.Held = append(draftsOf(list), k.Held...) })
}

// holdAfter puts messages behind those that are held.
func (o *Outbox) holdAfter(key string, list []Message) {
	o.rewrite(key, func(b *Box) { b.held = append(b.held, list...) },
		func(k *pen.Kept) { k.Held = append(slices.Clone(k.Held), draftsOf(list)...) })
}

// cannotKeep says once what cannot be kept; it stays in memory.
func (o *Outbox) cannotKeep(what string, err error) {
	if o.keeping.failed[what] {
		return
	}
	o.keeping.failed[what] = true
	o.screen.Fail(fmt.Errorf("%s; %s is kept in memory alone", cmp.Or(fault.Cause(err), fault.Screen.Words(err)), what))
}
