package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"agent/internal/sonny/live"
	"agent/internal/sonny/screen/beside"
	"agent/internal/sonny/screen/edit"
	"agent/protocol"
)

// Queued is a message of the person's in line.
type Queued struct {
	turn    int64
	request string
	steer   bool
	m       Message
	cut     bool // only its first characters are known
}

// Prompt is what the model will be told.
func (q Queued) Prompt() string { return q.m.prompt }

// Steers reports whether it goes into the running turn.
func (q Queued) Steers() bool { return q.steer }

// Line are the person's messages in line, in order, without those that steer.
func (b *Box) Line() []Queued {
	return slices.DeleteFunc(b.LineUp(), func(q Queued) bool { return q.steer })
}

// LineUp is Line with those that steer.
func (b *Box) LineUp() (list []Queued) {
	bot := b.bot()
	if bot == nil {
		return nil
	}
	for _, t := range bot.Queue {
		if !Own(t) {
			continue
		}
		m, known := b.mine[t.Request]
		if !known {
			m = Text(t.Prompt)
		}
		list = append(list, Queued{turn: t.ID, request: t.Request, steer: t.Steer, m: m, cut: !known && t.Cut})
	}
	return list
}

// turnEnded is said of a steer that came too late.
const turnEnded = "turn ended; Enter sends"

// Own reports whether a turn in line is a message that the person wrote in Sonny.
func Own(t live.Turn) bool { return t.From == "" && strings.HasPrefix(t.Request, persons) }

// lineEdit is a message that was taken out of line to be changed, with those after it.
type lineEdit struct {
	number int       // of it, from 1
	out    []Message // it, and those that are withheld, in order
	before edit.Draft
}

// EditQueued takes the nth message into the composer. Those after it are withheld until
// it is sent again.
func (o *Outbox) EditQueued(b *Box, n int) {
	line := b.Line()
	if b.editing != nil {
		o.screen.Say("one is being edited; Enter puts it back, Esc as it was")
		return
	}
	if n == len(line)+1 && len(line) == 0 && len(b.held) > 0 || n == 0 && len(b.held) > 0 {
		o.editHeld(b)
		return
	}
	if n < 1 || n > len(line) {
		o.screen.Say(fmt.Sprintf("there is no message %d in line", max(n, 1)))
		return
	}
	o.takeOut(b, n, func(out []Message) []Message {
		now := o.composerOf(b.key)
		if now == nil { // it left the screen meanwhile
			return out
		}
		now.editing = &lineEdit{number: n, out: out, before: now.Editor().Draft()}
		now.Editor().SetDraft(out[0].draft)
		return nil
	})
}

// editHeld takes the newest message that an interrupt held into the composer.
func (o *Outbox) editHeld(b *Box) {
	last := len(b.held) - 1
	m := b.held[last]
	b.held = b.held[:last]
	o.GiveBack(b, m)
}

// PutBack puts the message that was changed back where it was in line, as it is in the
// composer now, with those that were withheld. An empty one is dropped.
func (o *Outbox) PutBack(b *Box) {
	m := Of(b.Editor().Draft())
	list := b.editing.out
	if m.Empty() {
		list = list[1:]
	} else {
		list[0] = m
	}
	o.endEdit(b, list)
}

// Unchanged puts the message that is being changed back as it was, and those behind it.
func (o *Outbox) Unchanged(b *Box) { o.endEdit(b, b.editing.out) }

func (o *Outbox) endEdit(b *Box, list []Message) {
	before := b.editing.before
	b.editing = nil
	b.Editor().Sent()
	if !before.Empty() {
		b.Editor().SetDraft(before)
	}
	if len(b.held) > 0 { // the turn was interrupted meanwhile: what was in line waits for the person
		b.held = append(b.held, list...)
		return
	}
	o.resubmit(b, list, b.post.Next)
}

// taken is what came of taking messages out of line.
type taken struct {
	out     []Message // in order
	started bool      // one of them had begun meanwhile
	err     error
}

// aside notes that messages are about to be taken out of line. It gives what writes that:
// should Sonny be killed, those that are out come back. wentOut ends it.
func (o *Outbox) aside(b *Box, line []Queued) func() {
	for _, q := range line {
		f := o.takeOffTo(b, q.request, q.m, true)
		f.stage, f.turn, f.way.Held, f.way.After = leaving, q.turn, true, q.turn-1
	}
	return o.keeper(b.key)
}

// wentOut forgets what aside noted. Where it is not known whether one is out of line the
// daemon is asked.
func (o *Outbox) wentOut(line []Queued, t taken) {
	var unclear []*Flight
	for i, q := range line {
		f := o.flightOf(q.request)
		if f != nil && t.err != nil && i < len(line)-len(t.out) {
			f.stage = astray
			unclear = append(unclear, f)
			continue
		}
		o.landed(f)
	}
	o.askFor(unclear)
}

// withdraw takes messages out of line, the last first, so that none starts before one
// that is still in line. It runs beside the loop. One that has begun meanwhile goes on,
// and ends the taking: those after it are out all the same.
func (o *Outbox) withdraw(ctx context.Context, bot string, line []Queued) (t taken) {
	defer Instant("withdrawn")
	for _, q := range slices.Backward(line) {
		_, err := o.daemon.Withdraw(ctx, bot, q.turn, "taken back by the person")
		switch {
		case errors.Is(err, protocol.StaleTurn), errors.Is(err, protocol.NoActiveTurn):
			t.started = true
			return t
		case err != nil:
			t.err = err
			return t
		}
		t.out = append([]Message{q.m}, t.out...)
	}
	return t
}

// takeOut withdraws the messages from the nth on. use gets them in order, and gives what
// is to stand in line in their place. Where one has started, all is as it was.
func (o *Outbox) takeOut(b *Box, n int, use func(out []Message) []Message) {
	line := b.Line()
	if b.moving || n > len(line) {
		return
	}
	if i := slices.IndexFunc(line[n-1:], func(q Queued) bool { return q.cut }); i >= 0 {
		o.screen.Say("that message was queued elsewhere and is known in part alone; it can be dropped")
		return
	}
	b.moving = true
	bot, part := b.to.Name(), slices.Clone(line[n-1:])
	b.post.Next(func() {
		keep := o.aside(b, part)
		beside.Do(o.screen, func(ctx context.Context) (taken, error) {
			keep()
			Instant("withdrawing")
			t := o.withdraw(ctx, bot, part)
			return t, t.err
		}, func(t taken, err error) {
			b.moving = false
			if err != nil {
				o.screen.Fail(err)
			}
			if t.started {
				o.screen.Say("it has started; nothing was changed")
			}
			o.wentOut(part, t)
			if len(t.out) == len(part) {
				t.out = use(t.out)
			}
			o.resubmit(b, t.out, b.post.First)
			o.keepSoon(b.key)
			b.post.Done()
		})
	})
}

// resubmit puts messages in line, in order, when it is their turn. Those that are refused
// are held.
func (o *Outbox) resubmit(b *Box, list []Message, when func(func())) {
	if len(list) == 0 {
		return
	}
	root := b.to.Workspace()
	var reqs []*protocol.Submit
	for _, m := range list {
		req := &protocol.Submit{Bot: b.to.Name(), BotID: b.to.ID(), RequestID: o.requestFor(b, m), Delivery: protocol.Queue}
		reqs = append(reqs, req)
		b.remember(req.RequestID, m)
		o.takeOffTo(b, req.RequestID, m, true)
	}
	when(func() {
		var kept []func(context.Context)
		for _, req := range reqs {
			kept = append(kept, o.screen.KeepFiles(req))
		}
		keep := o.keeper(b.key)
		beside.Do(o.screen, func(ctx context.Context) (int, error) {
			keep()
			for i, req := range reqs {
				kept[i](ctx)
				Instant("handing")
				if err := o.handOnce(ctx, req, list[i], root); err != nil {
					return i, err
				}
				Instant("handed")
			}
			return len(reqs), nil
		}, func(n int, err error) {
			for _, req := range reqs {
				o.arrived(req.RequestID)
			}
			if err != nil {
				o.hold(b.key, list[n:])
				o.screen.Fail(err)
			}
			o.keepSoon(b.key)
			b.post.Done()
		})
	})
}

// heldAt is the place among the held of a row's number; below 0 for one in line.
func (o *Outbox) heldAt(b *Box, n int) int { return n - 1 - len(b.Line()) }

// EditNumber takes the message with a number, of those in line and then of those that are
// held, into the composer.
func (o *Outbox) EditNumber(b *Box, n int) {
	if i := o.heldAt(b, n); i >= 0 {
		m := b.held[i]
		b.held = slices.Delete(b.held, i, i+1)
		o.GiveBack(b, m)
		return
	}
	o.EditQueued(b, n)
}

// Drop takes the nth out of line for good.
func (o *Outbox) Drop(b *Box, n int) {
	if i := o.heldAt(b, n); i >= 0 {
		b.held = slices.Delete(b.held, i, i+1)
		return
	}
	line := b.Line()
	if n > len(line) {
		return
	}
	bot, one := b.to.Name(), line[n-1:n]
	beside.Do(o.screen, func(ctx context.Context) (taken, error) { t := o.withdraw(ctx, bot, one); return t, t.err },
		func(t taken, err error) {
			switch {
			case err != nil:
				o.screen.Fail(err)
			case t.started:
				o.screen.Say("it has started; nothing was changed")
			}
		})
}

// Move swaps the nth with a neighbour, and gives the number that it will have.
func (o *Outbox) Move(b *Box, n, to int) int {
	first, last := min(n, to), max(n, to)
	if first < 1 || o.heldAt(b, last) >= 0 {
		return n
	}
	o.takeOut(b, first, func(out []Message) []Message {
		out[0], out[1] = out[1], out[0]
		return out
	})
	return to
}

// Join makes one message of the nth and the one before it.
func (o *Outbox) Join(b *Box, n int) {
	if o.heldAt(b, n) >= 0 || n < 2 {
		return
	}
	o.takeOut(b, n-1, func(out []Message) []Message {
		return append([]Message{Of(out[1].draft.After(out[0].draft))}, out[2:]...)
	})
}

// Steer sends the nth into the running turn.
func (o *Outbox) Steer(b *Box, n int) {
	if i := o.heldAt(b, n); i >= 0 {
		m := b.held[i]
		b.held = slices.Delete(b.held, i, i+1)
		o.Post(b, m, false)
		return
	}
	line := b.Line()
	if n > len(line) {
		return
	}
	bot, one := b.to.Name(), line[n-1:n]
	if one[0].cut {
		o.screen.Say("that message was queued elsewhere and is known in part alone")
		return
	}
	keep := o.aside(b, one)
	beside.Do(o.screen, func(ctx context.Context) (taken, error) {
		keep()
		t := o.withdraw(ctx, bot, one)
		return t, t.err
	},
		func(t taken, err error) {
			o.wentOut(one, t)
			switch {
			case err != nil:
				o.screen.Fail(err)
			case t.started:
				o.screen.Say("it has started already")
			default:
				o.Post(b, t.out[0], false)
			}
			o.keepSoon(b.key)
		})
}
