package screen

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"

	"agent/client"
	"agent/internal/sonny/fault"
	"agent/internal/sonny/pen"
	"agent/internal/sonny/screen/edit"
	"agent/internal/sonny/screen/mention"
	"agent/protocol"
)

// delivery is how a message goes.
type delivery struct {
	queue bool // its own turn after this one
}

// message is what goes out: the draft as it was written, which comes back where it is
// refused, and what is made of it.
type message struct {
	draft    edit.Draft
	prompt   string
	pictures []string // paths
}

// messageOf is the message that a draft makes.
func messageOf(d edit.Draft) message {
	prompt, pictures := d.Message()
	m := message{draft: d, prompt: strings.TrimRight(prompt, "\n")}
	for _, p := range pictures {
		m.pictures = append(m.pictures, p.Path)
	}
	if strings.TrimSpace(m.prompt) == "" && len(pictures) > 0 {
		m.prompt = "(see the picture)"
	}
	return m
}

// text is a message of words alone.
func textMessage(prompt string) message {
	return message{draft: edit.Text(prompt), prompt: prompt}
}

func (m message) empty() bool { return strings.TrimSpace(m.prompt) == "" }

// enter is the key that sends: a chip under the caret opens instead, and a text that
// was typed for something else than a message does that.
func (a *App) enter(d delivery) {
	c := a.composing()
	e := c.Editor()
	switch {
	case e.Backslash(), e.ExpandHere(), a.wakeDaemon():
	case a.at() != nil && a.at().editing != nil && !a.at().gone:
		a.edited()
	case a.act("mode " + string(e.Mode())):
	default:
		a.send(d)
	}
}

// send sends what the composer holds. The text is gone from it only when the daemon has
// it (sonny.md 10.2): a refusal loses nothing.
func (a *App) send(d delivery) {
	c := a.composing()
	m := messageOf(c.Editor().Draft())
	if s := a.at(); s != nil && s.gone {
		a.openGone(s)
		return
	}
	if m.empty() {
		if a.at() != nil && !a.openMarked() {
			a.resumeHeld()
		}
		return
	}
	if !a.goes(c, m) {
		return
	}
	s := a.at()
	if s == nil {
		a.start.send(a, m)
		return
	}
	a.gone(c, m)
	a.post(s, m, d)
}

// goes reports whether a message can go out as it is, and says why not.
func (a *App) goes(c *composer, m message) bool {
	if c.reading > 0 {
		a.notes.say("a picture is still being read; Enter again when its chip is there")
		return false
	}
	if len(m.prompt) > protocol.MaxPrompt {
		a.tooLarge(c, len(m.prompt))
		return false
	}
	if model, blind := a.blind(); blind && len(m.pictures) > 0 {
		a.notes.fail(protocol.Fail(pen.Unsupported, model+" takes no pictures by the note in ~/.agent/models; pick another with /model, or take the picture out"))
		return false
	}
	return true
}

// gone empties the composer of a message that is on its way, and brings back what was
// put aside.
func (a *App) gone(c *composer, m message) {
	a.told(m)
	c.Editor().Sent()
	c.offer = nil
	c.stash.Back(c.Editor())
}

// told tells the parts of the screen of a message that was sent, as it was typed.
func (a *App) told(m message) {
	typed, _ := m.draft.Message()
	for _, keep := range a.sent {
		keep(a, strings.TrimRight(typed, "\n"))
	}
}

// post hands a message to a bot: into its turn, or as a turn of its own.
func (a *App) post(s *session, m message, d delivery) {
	if s.gone {
		a.giveBack(s, m)
		a.notes.fail(goneError(s))
		return
	}
	req := &protocol.Submit{Bot: s.bot, BotID: s.id, RequestID: a.requestFor(s, m), Delivery: protocol.Queue}
	steers := false
	if b := a.botAt(s); b != nil && b.Turn != 0 && a.world.Paused == nil && !d.queue {
		req.Delivery, req.ExpectedTurn, steers = protocol.Steer, b.Turn, true
	}
	s.up, s.mark = 0, pointer{}
	a.submit(s, req, m, steers)
}

// wakeDaemon starts a daemon that was ended, or that is not started unasked any more, on
// the person's word. It reports whether
// there was need.
func (a *App) wakeDaemon() bool {
	if a.lost == nil || !a.lost.Stopped && !a.lost.Spent {
		return false
	}
	select {
	case a.wake <- struct{}{}:
	default:
	}
	return true
}

// outbox is what goes to a bot one after another, so that messages arrive in the order
// in which they were written.
type outbox struct {
	busy bool
	wait []func()
}

// next begins what goes to the bot, when what began before is done; that calls done.
func (o *outbox) next(begin func()) {
	if o.busy {
		o.wait = append(o.wait, begin)
		return
	}
	o.busy = true
	begin()
}

// first is next before what waits already.
func (o *outbox) first(begin func()) {
	if !o.busy {
		o.next(begin)
		return
	}
	o.wait = append([]func(){begin}, o.wait...)
}

func (o *outbox) done() {
	if o.busy = len(o.wait) > 0; o.busy {
		begin := o.wait[0]
		o.wait = o.wait[1:]
		begin()
	}
}

// prepare sees before a message to what it will meet: the command rules as they are now,
// and who judges. What is wrong is said, and holds no message up.
func (a *App) prepare(ctx context.Context, s *session) {
	given, set, err := a.keepRules(ctx, s.bot)
	down, judge := a.checkApprover(ctx, s.bot)
	a.later(func() {
		if given != nil {
			a.world.Put(*given)
		}
		s.rules, a.judging.down = set, down
		for _, err := range []error{err, judge} {
			if err != nil && a.lost == nil {
				a.notes.fail(err)
			}
		}
	})
}

// submit hands a message to the daemon, when its file says that it is on its way. It is
// retried with the same request id while the connection is away, so it is taken once.
func (a *App) submit(s *session, req *protocol.Submit, m message, steers bool) {
	s.remember(req.RequestID, m)
	f := a.takeOffTo(s, req.RequestID, m, false)
	if s.post.busy { // it is not handed over yet, and has left the composer
		a.keepSoon(f.key)
	}
	root := a.workspace(s)
	s.post.next(func() {
		keep, kept := a.keeper(f.key), a.keepFiles(req)
		do(a, func(ctx context.Context) (struct{}, error) {
			keep()
			a.prepare(ctx, s)
			kept(ctx)
			instant("handing")
			err := a.handOnce(ctx, req, m, root)
			instant("handed")
			return struct{}{}, err
		},
			func(_ struct{}, err error) {
				a.submitted(s, f, m, steers, err)
				s.post.done()
			})
	})
}

// queueText sends a message that was not written in the composer, as a turn of its own.
func (a *App) queueText(s *session, prompt string) { a.queueAs(s, requestID(), prompt) }

func (a *App) queueAs(s *session, request, prompt string) {
	e := edit.New()
	e.SetText(prompt)
	a.submit(s, &protocol.Submit{
		Bot: s.bot, BotID: s.id, RequestID: request, Prompt: prompt, Delivery: protocol.Queue,
	}, messageOf(e.Draft()), false)
}

// submitted hears what became of a message. One that was refused is given back; a steer
// may still come too late.
func (a *App) submitted(s *session, f *flight, m message, steers bool, err error) {
	request := f.way.Request
	defer a.keepSoon(f.key)
	if err == nil {
		if steers && f.stage == sending && a.flightOf(request) == f {
			f.stage = steering
		} else {
			a.arrived(request)
		}
		if b := a.botAt(s); b != nil {
			b.Prompted(request, m.prompt)
		}
		return
	}
	a.landed(f)
	delete(s.mine, request)
	a.giveBack(s, m)
	switch {
	case steers && errors.Is(err, protocol.StaleTurn):
		a.notes.say(turnEnded)
	case errors.Is(err, protocol.StorageError):
		a.notes.say(fault.Cause(err) + "; the message is still here")
	default:
		a.notes.fail(err)
	}
}

// arrived forgets a message that the daemon has, but for one that is being taken out of
// line already.
func (a *App) arrived(request string) {
	if f := a.flightOf(request); f != nil && f.stage != leaving {
		a.landed(f)
	}
}

// hand submits a message, with the files that it inlines. It runs beside the loop.
func (a *App) hand(ctx context.Context, req *protocol.Submit, m message, root string) (*protocol.Submitted, error) {
	prompt, err := mention.Inlined(root, m.draft, m.prompt)
	if err != nil {
		return nil, err
	}
	req.Prompt, req.Pictures = strings.TrimPrefix(prompt, slashEscape(prompt)), m.pictures
	return client.Retry(ctx, func(ctx context.Context) (*protocol.Submitted, error) { return a.client().Submit(ctx, req) })
}

// handOnce is hand where the daemon may have the message already, of which a Sonny that
// was killed did not hear: the request was its own, so it is this message.
func (a *App) handOnce(ctx context.Context, req *protocol.Submit, m message, root string) error {
	_, err := a.hand(ctx, req, m, root)
	if errors.Is(err, protocol.IdempotencyConflict) {
		return nil
	}
	return err
}

// give hands a message that was not written in the composer to its bot, after the
// folder's files are kept as far as that is quick. then is told what came of it.
func (a *App) give(req *protocol.Submit, then func(error)) {
	a.giveFor(textMessage(req.Prompt), req, then)
}

// giveFor is give for a message that was made of what the person typed: that comes back
// where Sonny is killed before the daemon has the message.
func (a *App) giveFor(typed message, req *protocol.Submit, then func(error)) {
	f := a.takeOff(&flight{key: pen.OfBot(a.ready.Store.Identity, req.BotID), m: typed, way: pen.OnWay{
		Request: req.RequestID, Bot: req.Bot, BotID: req.BotID,
	}})
	keep, kept := a.keeper(f.key), a.keepFiles(req)
	do(a, func(ctx context.Context) (*protocol.Submitted, error) {
		keep()
		kept(ctx)
		instant("handing")
		got, err := client.Retry(ctx, func(ctx context.Context) (*protocol.Submitted, error) { return a.client().Submit(ctx, req) })
		instant("handed")
		return got, err
	}, func(_ *protocol.Submitted, err error) {
		a.landed(f)
		if b := a.world.Bot(req.Bot); err == nil && b != nil {
			b.Prompted(req.RequestID, req.Prompt)
		}
		then(err)
		a.keepSoon(f.key)
	})
}

// slashEscape is the first slash of //text, which sends a message that begins with one.
func slashEscape(prompt string) string {
	if strings.HasPrefix(prompt, "//") {
		return "/"
	}
	return ""
}

// giveBack puts a message that was refused into the composer, before what is there. A
// bot that has left the screen has it when it is opened again.
func (a *App) giveBack(s *session, m message) { a.putBack(s.compose.keptAs, m) }

// workspace is where a bot works.
func (a *App) workspace(s *session) string {
	if s != nil {
		if b := a.botAt(s); b != nil && b.Record.Workspace != nil {
			return *b.Record.Workspace
		}
	}
	return a.o.Folder.Path
}

func requestID() string { return "sonny_" + rand.Text() }

// interrupt ends the turn of the bot on screen. The person's queued messages are
// withdrawn first and held, so that it never starts the next one (sonny.md 10.4).
func (a *App) interrupt() {
	s := a.at()
	if s == nil {
		return
	}
	b := a.botAt(s)
	if b == nil || b.Turn == 0 {
		return
	}
	turn := b.Turn
	line := s.line(b)
	a.notes.say("interrupting…")
	keep := a.aside(s, line)
	do(a, func(ctx context.Context) (taken, error) {
		keep()
		t := a.withdraw(ctx, s.bot, line)
		_, err := a.client().Interrupt(ctx, s.bot, turn, "")
		return t, err
	}, func(t taken, err error) {
		a.wentOut(line, t)
		a.holdAfter(s.compose.keptAs, t.out)
		a.keepSoon(s.compose.keptAs)
		if t.err != nil {
			a.notes.fail(t.err)
		}
		if err != nil && !errors.Is(err, protocol.NoActiveTurn) && !errors.Is(err, protocol.StaleTurn) {
			a.notes.fail(err)
		}
	})
}

// resumeHeld sends what an interrupt held, in order, or offers to go on.
func (a *App) resumeHeld() {
	s := a.at()
	held := s.held
	s.held = nil
	if len(held) > 0 {
		a.resubmit(s, held, s.post.next)
		return
	}
	if b := a.botAt(s); b != nil && b.Turn == 0 && b.CutOff() {
		s.compose.Set("Continue.")
	}
}
