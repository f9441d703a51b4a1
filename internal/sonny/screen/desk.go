package screen

import (
	"context"
	"time"

	"agent/internal/sonny/live"
	"agent/internal/sonny/screen/outbox"
	"agent/protocol"
)

// newOutbox is the outbox of a screen: whose field a.out is.
func newOutbox(a *App) *outbox.Outbox {
	o := outbox.Options{Screen: desk{a}, Kept: a.o.Kept, Now: a.o.Now, IsCommand: a.isCommand}
	if a.o.Link != nil {
		o.Client = a.client()
	}
	return outbox.New(o)
}

// desk is what the outbox has of the screen.
type desk struct{ a *App }

// Beside runs work at the word of the command at hand, if there is one.
func (d desk) Beside(work func(context.Context) (then func())) {
	a, of := d.a, d.a.commanded
	a.running.Go(func() {
		if a.o.Crashed != nil {
			defer a.o.Crashed()
		}
		then := work(a.ctx)
		a.later(func() { a.within(of, then) })
	})
}

func (d desk) Later(call func())                  { d.a.later(call) }
func (d desk) After(t time.Duration, call func()) { d.a.after(t, call) }
func (d desk) Say(line string)                    { d.a.notes.say(line) }
func (d desk) Fail(err error)                     { d.a.notes.fail(err) }
func (d desk) World() *live.World                 { return d.a.world }
func (d desk) Store() string                      { return d.a.ready.Store.Identity }

func (d desk) KeepFiles(req *protocol.Submit) func(context.Context) { return d.a.keepFiles(req) }

func (d desk) Boxes() (list []*outbox.Box) {
	for _, c := range d.a.writing() {
		list = append(list, &c.Box)
	}
	return list
}

// writing are the composers on screen.
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

// recipient is a session's bot, as the outbox has it.
type recipient struct {
	a *App
	s *session
}

func (r recipient) Name() string      { return r.s.bot }
func (r recipient) ID() int64         { return r.s.id }
func (r recipient) Bot() *live.Bot    { return r.a.botAt(r.s) }
func (r recipient) Newest() int64     { return r.s.story.Newest() }
func (r recipient) Workspace() string { return r.a.workspace(r.s) }

func (r recipient) Gone() error {
	if r.s.gone {
		return goneError(r.s)
	}
	return nil
}

// Posted shows the end, where the message appears.
func (r recipient) Posted() { r.s.up, r.s.mark = 0, pointer{} }

// Prepare sees before a message to what it will meet: the command rules as they are now,
// and who judges. What is wrong is said, and holds no message up.
func (r recipient) Prepare(ctx context.Context) {
	a, s := r.a, r.s
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

// landWithin is how long what is on its way is waited for when Sonny is left.
const landWithin = 500 * time.Millisecond

// land waits a moment for what is on its way, when Sonny is left. Of what the daemon has
// not taken by then the next Sonny asks.
func (a *App) land() {
	late := time.NewTimer(landWithin)
	defer late.Stop()
	for a.out.OnWay() {
		select {
		case call := <-a.calls:
			call()
		case <-late.C:
			return
		}
	}
}

// nowOf is the session on screen that is of the same bot, or s itself.
func (a *App) nowOf(s *session) *session {
	for _, now := range []*session{a.session, a.side} {
		if now != nil && now.id == s.id {
			return now
		}
	}
	return s
}
