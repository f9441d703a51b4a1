package outbox

import (
	"slices"
	"time"

	"agent/internal/sonny/pen"
	"agent/protocol"
)

// sendingShown is how long a message is on its way before that is shown.
const sendingShown = 300 * time.Millisecond

// stage is how far a message between the composer and the daemon is.
type stage int

const (
	sending  stage = iota // handed over, and neither taken nor refused yet
	steering              // taken in line as a steer, which may still come too late
	leaving               // on its way out of line, by the person's word
	begins                // a command or a task of the person's that begins
	astray                // left by a Sonny that was killed: the daemon is asked for it
)

// Flight is a message that is neither in the composer nor surely with the daemon. It is
// kept in the file of the composer that it left, until it is in one of the two.
type Flight struct {
	key   string // of that file
	way   pen.OnWay
	m     Message
	stage stage
	turn  int64 // its own, where that is known
	since time.Time
}

// Request is the name under which the daemon knows the message, or is to know it.
func (f *Flight) Request() string { return f.way.Request }

// Message is the message itself.
func (f *Flight) Message() Message { return f.m }

// Key names the file that keeps it.
func (f *Flight) Key() string { return f.key }

// flightOf is the flight of a request; nil for none.
func (o *Outbox) flightOf(request string) *Flight {
	for _, f := range o.flights {
		if f.way.Request == request {
			return f
		}
	}
	return nil
}

// takeOff notes that a message has left the composer. It goes to no one before its file
// says so (keeper).
func (o *Outbox) takeOff(f *Flight) *Flight {
	if old := o.flightOf(f.way.Request); old != nil {
		old.way.BotID, old.stage = f.way.BotID, f.stage
		return old
	}
	f.since, f.way.Draft, f.way.Store, f.way.Hand = o.now(), f.m.draft, o.screen.Store(), o.keeping.hand
	o.flights = append(o.flights, f)
	o.outdated(f.key)
	o.screen.After(sendingShown, func() {})
	return f
}

// takeOffTo is takeOff for a message that goes to the bot of a session.
func (o *Outbox) takeOffTo(b *Box, request string, m Message, held bool) *Flight {
	return o.takeOff(&Flight{key: b.key, m: m, way: pen.OnWay{
		Request: request, Bot: b.to.Name(), BotID: b.to.ID(), After: b.to.Newest(), Held: held,
	}})
}

// landed forgets a flight: the message is with the daemon, or in the composer again. The
// caller has its file written when all has its place (keepSoon).
func (o *Outbox) landed(f *Flight) {
	if f == nil {
		return
	}
	o.flights = slices.DeleteFunc(o.flights, func(other *Flight) bool { return other == f })
	o.over[f.way.Request] = true
	o.outdated(f.key)
}

// ways are the flights of a file as it keeps them.
func (o *Outbox) ways(key string) (list []pen.OnWay) {
	for _, f := range o.flights {
		if f.key == key {
			list = append(list, f.way)
		}
	}
	return list
}

// Sending are the prompts of those messages of a composer that take long.
func (o *Outbox) Sending(b *Box) (prompt []string) {
	for _, f := range o.flights {
		if f.key == b.key && f.stage == sending && o.now().Sub(f.since) >= sendingShown {
			prompt = append(prompt, f.m.prompt)
		}
	}
	return prompt
}

// OnWay reports whether something was handed over that the daemon has not taken yet.
func (o *Outbox) OnWay() bool {
	return slices.ContainsFunc(o.flights, func(f *Flight) bool { return f.stage == sending })
}

// Hear hears of an event what became of a flight: the daemon has it, or a steer of its
// own has come too late. The bot still has that one in line.
func (o *Outbox) Hear(e *protocol.Event) {
	switch e.Kind {
	case protocol.KindQueued, protocol.KindAccepted:
		request := requestIn(e)
		if f := o.flightOf(request); f != nil && f.way.Bot == e.Bot {
			f.turn = e.Turn
		}
		o.tookLate(request)
	case protocol.KindTurnFinished:
		var d protocol.TurnFinished
		f := o.flightOfTurn(e)
		if f == nil || f.stage != steering || e.Decode(&d) != nil {
			return
		}
		o.landed(f)
		if d.Missed() {
			o.putBack(f.key, f.m)
			if b := o.composerOf(f.key); b != nil && b.to != nil {
				delete(b.mine, f.way.Request)
			}
			o.screen.Say(turnEnded)
		}
		o.keepSoon(f.key)
	}
}

// requestIn is the request of a turn that an event tells of first.
func requestIn(e *protocol.Event) string {
	var d struct {
		Request string `json:"request_id"`
	}
	if e.Decode(&d) != nil {
		return ""
	}
	return d.Request
}

// flightOfTurn is the flight of the turn that an event is of; nil for none.
func (o *Outbox) flightOfTurn(e *protocol.Event) *Flight {
	for _, f := range o.flights {
		if f.turn == e.Turn && f.way.Bot == e.Bot {
			return f
		}
	}
	if b := o.screen.World().Bot(e.Bot); b != nil {
		for _, t := range b.Queue {
			if t.ID == e.Turn {
				return o.flightOf(t.Request)
			}
		}
	}
	return nil
}
