package outbox

import (
	"context"
	"errors"
	"strings"

	"agent/client"
	"agent/internal/sonny/fault"
	"agent/internal/sonny/pen"
	"agent/internal/sonny/screen/beside"
	"agent/internal/sonny/screen/edit"
	"agent/internal/sonny/screen/mention"
	"agent/protocol"
)

// Post hands a message to a bot: into its turn, or as a turn of its own, which queued says
// that it is in any case.
func (o *Outbox) Post(b *Box, m Message, queued bool) {
	if gone := b.to.Gone(); gone != nil {
		o.GiveBack(b, m)
		o.screen.Fail(gone)
		return
	}
	req := &protocol.Submit{Bot: b.to.Name(), BotID: b.to.ID(), RequestID: o.requestFor(b, m), Delivery: protocol.Queue}
	steers := false
	if bot := b.bot(); bot != nil && bot.Turn != 0 && o.screen.World().Paused == nil && !queued {
		req.Delivery, req.ExpectedTurn, steers = protocol.Steer, bot.Turn, true
	}
	b.to.Posted()
	o.submit(b, req, m, steers)
}

// submit hands a message to the daemon, when its file says that it is on its way. It is
// retried with the same request id while the connection is away, so it is taken once.
func (o *Outbox) submit(b *Box, req *protocol.Submit, m Message, steers bool) {
	b.remember(req.RequestID, m)
	f := o.takeOffTo(b, req.RequestID, m, false)
	if b.post.Busy() { // it is not handed over yet, and has left the composer
		o.keepSoon(f.key)
	}
	root := b.to.Workspace()
	b.post.Next(func() {
		keep, kept := o.keeper(f.key), o.screen.KeepFiles(req)
		beside.Do(o.screen, func(ctx context.Context) (struct{}, error) {
			keep()
			b.to.Prepare(ctx)
			kept(ctx)
			Instant("handing")
			err := o.handOnce(ctx, req, m, root)
			Instant("handed")
			return struct{}{}, err
		},
			func(_ struct{}, err error) {
				o.submitted(b, f, m, steers, err)
				b.post.Done()
			})
	})
}

// Queue sends a message that was not written in the composer, as a turn of its own.
func (o *Outbox) Queue(b *Box, prompt string) { o.queueAs(b, NewRequest(), prompt) }

func (o *Outbox) queueAs(b *Box, request, prompt string) {
	e := edit.New()
	e.SetText(prompt)
	o.submit(b, &protocol.Submit{
		Bot: b.to.Name(), BotID: b.to.ID(), RequestID: request, Prompt: prompt, Delivery: protocol.Queue,
	}, Of(e.Draft()), false)
}

// submitted hears what became of a message. One that was refused is given back; a steer
// may still come too late.
func (o *Outbox) submitted(b *Box, f *Flight, m Message, steers bool, err error) {
	request := f.way.Request
	defer o.keepSoon(f.key)
	if err == nil {
		if steers && f.stage == sending && o.flightOf(request) == f {
			f.stage = steering
		} else {
			o.arrived(request)
		}
		if bot := b.bot(); bot != nil {
			bot.Prompted(request, m.prompt)
		}
		return
	}
	o.landed(f)
	delete(b.mine, request)
	o.GiveBack(b, m)
	switch {
	case steers && errors.Is(err, protocol.StaleTurn):
		o.screen.Say(turnEnded)
	case errors.Is(err, protocol.StorageError):
		o.screen.Say(fault.Cause(err) + "; the message is still here")
	default:
		o.screen.Fail(err)
	}
}

// arrived forgets a message that the daemon has, but for one that is being taken out of
// line already.
func (o *Outbox) arrived(request string) {
	if f := o.flightOf(request); f != nil && f.stage != leaving {
		o.landed(f)
	}
}

// hand submits a message, with the files that it inlines. It runs beside the loop.
func (o *Outbox) hand(ctx context.Context, req *protocol.Submit, m Message, root string) (*protocol.Submitted, error) {
	prompt, err := mention.Inlined(root, m.draft, m.prompt)
	if err != nil {
		return nil, err
	}
	req.Prompt, req.Pictures = strings.TrimPrefix(prompt, slashEscape(prompt)), m.pictures
	return client.Retry(ctx, func(ctx context.Context) (*protocol.Submitted, error) { return o.daemon.Submit(ctx, req) })
}

// handOnce is hand where the daemon may have the message already, of which a Sonny that
// was killed did not hear: the request was its own, so it is this message.
func (o *Outbox) handOnce(ctx context.Context, req *protocol.Submit, m Message, root string) error {
	_, err := o.hand(ctx, req, m, root)
	if errors.Is(err, protocol.IdempotencyConflict) {
		return nil
	}
	return err
}

// Give hands a message that was not written in the composer to its bot, after the
// folder's files are kept as far as that is quick. then is told what came of it.
func (o *Outbox) Give(req *protocol.Submit, then func(error)) {
	o.GiveFor(Text(req.Prompt), req, then)
}

// GiveFor is Give for a message that was made of what the person typed: that comes back
// where Sonny is killed before the daemon has the message.
func (o *Outbox) GiveFor(typed Message, req *protocol.Submit, then func(error)) {
	f := o.takeOff(&Flight{key: pen.OfBot(o.screen.Store(), req.BotID), m: typed, way: pen.OnWay{
		Request: req.RequestID, Bot: req.Bot, BotID: req.BotID,
	}})
	keep, kept := o.keeper(f.key), o.screen.KeepFiles(req)
	beside.Do(o.screen, func(ctx context.Context) (*protocol.Submitted, error) {
		keep()
		kept(ctx)
		Instant("handing")
		got, err := client.Retry(ctx, func(ctx context.Context) (*protocol.Submitted, error) { return o.daemon.Submit(ctx, req) })
		Instant("handed")
		return got, err
	}, func(_ *protocol.Submitted, err error) {
		o.landed(f)
		if bot := o.screen.World().Bot(req.Bot); err == nil && bot != nil {
			bot.Prompted(req.RequestID, req.Prompt)
		}
		then(err)
		o.keepSoon(f.key)
	})
}

// slashEscape is the first slash of //text, which sends a message that begins with one.
func slashEscape(prompt string) string {
	if strings.HasPrefix(prompt, "//") {
		return "/"
	}
	return ""
}

// GiveBack puts a message that was refused into the composer, before what is there. A
// bot that has left the screen has it when it is opened again.
func (o *Outbox) GiveBack(b *Box, m Message) { o.putBack(b.key, m) }

// Interrupt ends the turn of the bot that a composer writes to. The person's queued messages are
// withdrawn first and held, so that it never starts the next one (sonny.md 10.4).
func (o *Outbox) Interrupt(b *Box) {
	bot := b.bot()
	if bot == nil || bot.Turn == 0 {
		return
	}
	name, turn := b.to.Name(), bot.Turn
	line := b.Line()
	o.screen.Say("interrupting…")
	keep := o.aside(b, line)
	beside.Do(o.screen, func(ctx context.Context) (taken, error) {
		keep()
		t := o.withdraw(ctx, name, line)
		_, err := o.daemon.Interrupt(ctx, name, turn, "")
		return t, err
	}, func(t taken, err error) {
		o.wentOut(line, t)
		o.holdAfter(b.key, t.out)
		o.keepSoon(b.key)
		if t.err != nil {
			o.screen.Fail(t.err)
		}
		if err != nil && !errors.Is(err, protocol.NoActiveTurn) && !errors.Is(err, protocol.StaleTurn) {
			o.screen.Fail(err)
		}
	})
}

// Resume sends what an interrupt held, in order, or offers to go on.
func (o *Outbox) Resume(b *Box) {
	held := b.held
	b.held = nil
	if len(held) > 0 {
		o.resubmit(b, held, b.post.Next)
		return
	}
	if bot := b.bot(); bot != nil && bot.Turn == 0 && bot.CutOff() {
		b.Set("Continue.")
	}
}
