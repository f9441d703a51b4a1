package outbox

import (
	"context"
	"errors"
	"maps"

	"agent/internal/sonny/pen"
	"agent/internal/sonny/screen/beside"
	"agent/internal/sonny/screen/edit"
)

// Begin reads what Sonnys that have ended left under the keys of start screens. then is
// called when it is known: before that nothing is loaded.
func (o *Outbox) Begin(keys []string, then func()) {
	type kept struct {
		found map[string]pen.Kept
		hand  string
	}
	beside.Do(o.screen, func(context.Context) (kept, error) {
		k := kept{found: map[string]pen.Kept{}}
		var failed error
		k.hand, failed = o.drafts.Sign()
		for _, key := range keys {
			written, marks, err := o.drafts.Left(key)
			if failed = errors.Join(failed, err); !written.Empty() {
				written.Took = append(written.Took, marks...)
				k.found[key] = written
			}
		}
		return k, failed
	}, func(k kept, err error) {
		if err != nil {
			o.cannotKeep("the draft", err)
		}
		o.keeping.hand = k.hand
		maps.Copy(o.keeping.kept, k.found)
		o.keeping.begun = true
		then()
	})
}

// Begun reports whether what Begin reads is known.
func (o *Outbox) Begun() bool { return o.keeping.begun }

// Waits reports whether something that was written is kept under a key.
func (o *Outbox) Waits(key string) bool {
	_, waits := o.keeping.kept[key]
	return waits
}

// WrittenFor is the one of some keys of start screens under which a message for a bot is
// kept that is not there yet; "" for none.
func (o *Outbox) WrittenFor(keys []string, bot string) string {
	for _, key := range keys {
		for _, w := range append(o.ways(key), o.keeping.kept[key].Way...) {
			if w.Bot == bot && w.Store == o.screen.Store() {
				return key
			}
		}
	}
	return ""
}

// HandOver leaves a start screen for a bot to which goes what is kept under a key. It gives
// what was typed before that was read: it goes to the bot as it is.
func (o *Outbox) HandOver(b *Box, key string) (typed edit.Draft) {
	switch b.file {
	case "":
		return b.Editor().Draft()
	case key:
		o.keeping.kept[key] = o.contents(b)
	default:
		o.Leave(b)
	}
	return typed
}

// Load brings back what was kept for the bot that a composer writes to, with what was
// written on the start screen of a key for it; "" for none. What was typed meanwhile comes
// after it. So does what was left by a Sonny that has ended since it was here.
func (o *Outbox) Load(b *Box, start string) { o.LoadStart(b, b.key, start) }

// LoadStart is Load for the start screen of a key, and for what was written on another.
func (o *Outbox) LoadStart(b *Box, key, start string) {
	b.key = key
	_, here := o.keeping.kept[key]
	if here {
		o.fill(b, start)
	}
	type found struct{ own, left pen.Kept }
	beside.Do(o.screen, func(context.Context) (f found, err error) {
		if !here {
			f.own, err = o.drafts.Load(key)
		}
		var failed error
		f.left, _, failed = o.drafts.Left(key)
		return f, errors.Join(err, failed)
	}, func(f found, err error) {
		if err != nil {
			o.cannotKeep("the draft", err)
		}
		if _, here := o.keeping.kept[key]; !here { // else what was changed here meanwhile counts
			o.keeping.kept[key] = f.own
		}
		o.inherit(key, f.left)
		if b.file == "" && o.composerOf(key) == b {
			o.fill(b, start)
		}
		if !f.left.Empty() {
			o.outdated(key)
			o.keepSoon(key)
		}
	})
}

// inherit puts what another Sonny left where what is kept of it is.
func (o *Outbox) inherit(key string, left pen.Kept) {
	if b := o.composerOf(key); b != nil && b.file != "" {
		b.restore(left)
		o.retake(b, left.Way)
		return
	}
	o.keeping.kept[key] = o.keeping.kept[key].Join(left)
}

// fill puts what is kept into its composer, with what was written on a start screen for it.
func (o *Outbox) fill(b *Box, start string) {
	written := o.keeping.kept[start]
	k := o.keeping.kept[b.key].With(written)
	b.file = b.key
	b.restore(k)
	o.retake(b, k.Way)
	if then := b.then; then != nil {
		b.then = nil
		then()
	}
	switch {
	case !written.Empty():
		o.takeOver(b, start)
	case start != "" || b.to == nil: // there is nothing that could come twice
		b.took = nil
	}
}

// takeOver writes that a start screen's text is a bot's now, and then empties the start
// screen's file.
func (o *Outbox) takeOver(b *Box, start string) {
	keep := o.keeper(b.key)
	delete(o.keeping.kept, start)
	o.keeping.n++
	n := o.keeping.n
	beside.Do(o.screen, func(context.Context) (struct{}, error) {
		keep()
		Instant("taking over")
		return struct{}{}, o.drafts.Save(start, n, pen.Kept{})
	}, func(_ struct{}, err error) {
		if err == nil {
			b.took, b.unsaved = nil, true
		}
	})
}
