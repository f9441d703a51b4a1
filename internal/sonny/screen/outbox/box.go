package outbox

import (
	"cmp"
	"crypto/rand"

	"agent/internal/sonny/live"
	"agent/internal/sonny/pen"
	"agent/internal/sonny/screen/beside"
	"agent/internal/sonny/screen/edit"
)

// field is what is being written; the screen types into it.
type field = edit.Field

// Box is a composer's messages: the one that is being written, those that were put aside,
// and of a bot's those that wait for the person. The zero value is empty and is kept
// nowhere. It belongs to the loop.
type Box struct {
	field
	stash edit.Stash
	to    Recipient // nil on a start screen

	key     string   // of what is kept
	file    string   // the same; "" until that was read
	mark    string   // of what is kept
	took    []string // the marks of what came here from elsewhere, while that has it too
	seen    [4]int   // the version that was looked at last
	unsaved bool
	then    func() // once, when what is kept is here; nil for nothing
	running bool   // it holds a command that runs now
	reading int    // pictures that are on their way into it

	held    []Message          // withdrawn by an interrupt
	editing *lineEdit          // taken out of line to be changed; nil for none
	moving  bool               // messages are being taken out of line
	mine    map[string]Message // what was sent from here, by request
	order   []string           // of mine
	post    beside.Line        // what goes to the bot, so that it arrives as it was written
}

// Address has a composer write to a bot. What was kept for that is read by Load.
func (o *Outbox) Address(b *Box, to Recipient) {
	b.to, b.key = to, pen.OfBot(o.screen.Store(), to.ID())
}

// Kept reports whether what was kept of the composer is on its way into it or there.
func (b *Box) Kept() bool { return b.key != "" }

// Reading reports whether pictures are on their way into it.
func (b *Box) Reading() bool { return b.reading > 0 }

// Stash puts what is written aside, or brings back what was put aside last. It reports
// whether there was either.
func (b *Box) Stash() bool { return b.stash.Toggle(b.Editor()) }

// Unstash brings back what was put aside last, where nothing is written.
func (b *Box) Unstash() { b.stash.Back(b.Editor()) }

// Stashed is how many texts are put aside.
func (b *Box) Stashed() int { return b.stash.Len() }

// Runs says whether the composer holds a command that runs now, which is not kept.
func (b *Box) Runs(now bool) { b.running = now }

// Changing is the number in line of the message that is being changed, and the prompts of
// it, as it was in line, and of those behind it, which are withheld; 0 for none.
func (b *Box) Changing() (number int, prompt []string) {
	if b.editing == nil {
		return 0, nil
	}
	return b.editing.number, prompts(b.editing.out)
}

// Held are the prompts of the messages that wait for the person, in order.
func (b *Box) Held() []string { return prompts(b.held) }

// bot is what is known of the bot; nil for nothing.
func (b *Box) bot() *live.Bot {
	if b.to == nil {
		return nil
	}
	return b.to.Bot()
}

// contents is what of a composer is kept.
func (o *Outbox) contents(b *Box) pen.Kept {
	k := pen.Kept{Stash: b.stash.Drafts(), Way: o.ways(b.key), Mark: b.mark, Took: b.took}
	if !b.running {
		k.Draft = b.Editor().Draft()
	}
	k.Held = draftsOf(b.held)
	if e := b.editing; e != nil {
		k.Edited = &pen.Edited{Number: e.number, Was: e.out[0].draft, After: draftsOf(e.out[1:]), Before: e.before}
	}
	return k
}

// restore puts what was kept into a composer. What is in it, or was typed meanwhile, comes
// after it.
func (b *Box) restore(k pen.Kept) {
	if b.to == nil || b.editing != nil { // one message is changed at a time
		k = k.Settled()
	}
	b.stash.Restore(k.Stash)
	b.took = append(b.took, k.Took...)
	if b.mark = cmp.Or(b.mark, k.Mark); b.mark == "" {
		b.mark = rand.Text()
	}
	if b.to != nil {
		b.held = append(messagesOf(k.Held), b.held...)
		if e := k.Edited; e != nil {
			b.editing = &lineEdit{number: e.Number, out: append([]Message{Of(e.Was)}, messagesOf(e.After)...), before: e.Before}
		}
	}
	typed := b.Editor().Draft()
	if b.editing != nil && k.Edited == nil {
		b.editing.before = b.editing.before.After(k.Draft)
	} else if !k.Draft.Empty() {
		b.Editor().SetDraft(typed.After(k.Draft))
	}
	if typed.Empty() {
		b.seen = b.version()
	}
}

// version changes with what is kept, but for what is on its way.
func (b *Box) version() (v [4]int) {
	v[0], v[1], v[2] = b.Editor().Changes(), b.stash.Len(), len(b.held)
	if b.editing != nil {
		v[3] = b.editing.number
	}
	return v
}

// remember keeps what a message was written as, for taking it back.
func (b *Box) remember(request string, m Message) {
	if b.mine == nil {
		b.mine = map[string]Message{}
	}
	if len(b.order) >= maxMine {
		delete(b.mine, b.order[0])
		b.order = b.order[1:]
	}
	b.mine[request], b.order = m, append(b.order, request)
}

// maxMine bounds the messages whose drafts are remembered; the oldest are forgotten.
const maxMine = 500

// Heir puts what was written for a bot that is gone into the composer of the one that
// comes after it.
func (o *Outbox) Heir(b, gone *Box) {
	k := o.contents(gone).Settled()
	draft := k.Draft
	for _, held := range k.Held {
		draft = held.After(draft)
	}
	b.stash.Restore(k.Stash)
	b.Editor().SetDraft(draft)
}
