package outbox

import (
	"context"
	"crypto/rand"

	"agent/internal/sonny/pen"
	"agent/internal/sonny/screen/beside"
	"agent/protocol"
)

// What the person wrote that makes something before the daemon has it: a command of theirs,
// a task, a fork, a lead. Whoever makes that writes the file first (Keeper), and tells in
// the end that it is done (Over) or that it is not (Back).

// Run takes a command of the person's off. begin is called beside the loop before the
// command runs: it gives the file that the command takes away when it begins, or "" where
// there can be none.
func (o *Outbox) Run(b *Box) (f *Flight, begin func() (unbegun string)) {
	request := "run_" + rand.Text()
	unbegun := o.drafts.Unbegun(request)
	f = o.takeOff(&Flight{key: b.key, m: Of(b.Editor().Draft()), stage: begins, way: pen.OnWay{Request: request, Begins: unbegun}})
	b.Editor().Sent()
	keep := o.keeper(f.key)
	return f, func() string {
		if o.drafts.MarkUnbegun(unbegun) != nil {
			return "" // the disk is full: it runs all the same
		}
		keep()
		return unbegun
	}
}

// ForTask takes off what was typed to start the task of a bot's name.
func (o *Outbox) ForTask(b *Box, typed, bot string) *Flight {
	return o.takeOff(&Flight{key: b.key, m: Text(typed), stage: begins, way: pen.OnWay{
		Request: "task_" + rand.Text(), Bot: bot, Makes: true,
	}})
}

// ForFork takes off what was typed to ask a fork of that name something.
func (o *Outbox) ForFork(b *Box, typed, bot string) *Flight {
	return o.takeOff(&Flight{key: b.key, m: Text(typed), stage: begins, way: pen.OnWay{Request: NewRequest(), Bot: bot}})
}

// ToFork asks the fork, of which there is a composer now.
func (o *Outbox) ToFork(f *Flight, b *Box, prompt string) { o.queueAs(b, f.way.Request, prompt) }

// ForLead takes the message of a start screen off for which a lead of that name is made.
func (o *Outbox) ForLead(b *Box, m Message, bot string) *Flight {
	f := o.takeOff(&Flight{key: b.key, m: m, way: pen.OnWay{Request: NewRequest(), Bot: bot}})
	b.Editor().Sent()
	return f
}

// ToLead hands the message to the lead, of which there is a composer now.
func (o *Outbox) ToLead(f *Flight, b *Box) {
	f.key, f.way.BotID = b.key, b.to.ID()
	b.then = b.Unstash
	b.to.Posted()
	o.submit(b, &protocol.Submit{Bot: b.to.Name(), BotID: b.to.ID(), RequestID: f.way.Request, Delivery: protocol.Queue}, f.m, false)
}

// OfLead takes the message back for which a lead was made that is taken away again. It
// comes back on the start screen of a key. then is called when its file says so.
func (o *Outbox) OfLead(b *Box, request string, m Message, key string, then func(f *Flight)) {
	f := o.takeOff(&Flight{key: key, m: m, stage: leaving, way: pen.OnWay{Request: request, Bot: b.to.Name(), BotID: b.to.ID()}})
	keep := o.keeper(key)
	beside.Do(o.screen, func(context.Context) (struct{}, error) { keep(); return struct{}{}, nil }, func(struct{}, error) { then(f) })
}

// Before takes off what was typed for a message of which something has to be done first.
// GiveFor hands it over.
func (o *Outbox) Before(b *Box, request string, typed Message) *Flight {
	return o.takeOffTo(b, request, typed, false)
}

// Keeper is what writes that a message is on its way, beside the loop.
func (o *Outbox) Keeper(f *Flight) func() { return o.keeper(f.key) }

// Over says that what was written for has begun, or is there.
func (o *Outbox) Over(f *Flight) {
	o.landed(f)
	o.keepSoon(f.key)
}

// Back says that nothing came of it: it is the person's again, before what is written.
func (o *Outbox) Back(f *Flight) {
	o.landed(f)
	o.putBack(f.key, f.m)
	o.keepSoon(f.key)
}
