package screen

import (
	"slices"
	"time"

	"agent/internal/sonny/pen"
	"agent/internal/sonny/screen/text"
	"agent/protocol"
)

const (
	sendingShown = 300 * time.Millisecond // longer on its way: it is shown
	landWithin   = 500 * time.Millisecond // when Sonny is left
)

// stage is how far a message between the composer and the daemon is.
type stage int

const (
	sending  stage = iota // handed over, and neither taken nor refused yet
	steering              // taken in line as a steer, which may still come too late
	leaving               // on its way out of line, by the person's word
	begins                // a command or a task of the person's that begins
	astray                // left by a Sonny that was killed: the daemon is asked for it
)

// flight is a message that is neither in the composer nor surely with the daemon. It is
// kept in the file of the composer that it left, until it is in one of the two.
type flight struct {
	key   string // of that file
	way   pen.OnWay
	m     message
	stage stage
	turn  int64 // its own, where that is known
	since time.Time
}

// flightOf is the flight of a request; nil for none.
func (a *App) flightOf(request string) *flight {
	for _, f := range a.flights {
		if f.way.Request == request {
			return f
		}
	}
	return nil
}

// takeOff notes that a message has left the composer. It goes to no one before its file
// says so (keeper).
func (a *App) takeOff(f *flight) *flight {
	if old := a.flightOf(f.way.Request); old != nil {
		old.way.BotID, old.stage = f.way.BotID, f.stage
		return old
	}
	f.since, f.way.Draft, f.way.Store, f.way.Hand = a.o.Now(), f.m.draft, a.ready.Store.Identity, a.keeping.hand
	a.flights = append(a.flights, f)
	a.unsaved(f.key)
	a.after(sendingShown, func() {})
	return f
}

// takeOffTo is takeOff for a message that goes to the bot of a session.
func (a *App) takeOffTo(s *session, request string, m message, held bool) *flight {
	return a.takeOff(&flight{key: s.compose.keptAs, m: m, way: pen.OnWay{
		Request: request, Bot: s.bot, BotID: s.id, After: s.newest, Held: held,
	}})
}

// landed forgets a flight: the message is with the daemon, or in the composer again. The
// caller has its file written when all has its place (keepSoon).
func (a *App) landed(f *flight) {
	if f == nil {
		return
	}
	a.flights = slices.DeleteFunc(a.flights, func(o *flight) bool { return o == f })
	if a.over == nil {
		a.over = map[string]bool{}
	}
	a.over[f.way.Request] = true
	a.unsaved(f.key)
}

// ways are the flights of a file as it keeps them.
func (a *App) ways(key string) (list []pen.OnWay) {
	for _, f := range a.flights {
		if f.key == key {
			list = append(list, f.way)
		}
	}
	return list
}

// sendingRows are rows for those messages of a file that take long.
func (a *App) sendingRows(key string, w int) (out []text.Line) {
	for _, f := range a.flights {
		if f.key == key && f.stage == sending && a.o.Now().Sub(f.since) >= sendingShown {
			out = append(out, stripLine("sending…", f.m.prompt, "", w))
		}
	}
	return out
}

// flown hears of an event what became of a flight: the daemon has it, or a steer of its
// own has come too late. The bot still has that one in line.
func (a *App) flown(e *protocol.Event) {
	switch e.Kind {
	case protocol.KindQueued, protocol.KindAccepted:
		request := requestIn(e)
		if f := a.flightOf(request); f != nil && f.way.Bot == e.Bot {
			f.turn = e.Turn
		}
		a.tookLate(request)
	case protocol.KindTurnFinished:
		var d protocol.TurnFinished
		f := a.flightOfTurn(e)
		if f == nil || f.stage != steering || e.Decode(&d) != nil {
			return
		}
		a.landed(f)
		if d.Missed() {
			a.putBack(f.key, f.m)
			if c := a.composerOf(f.key); c != nil && c.of != nil {
				delete(c.of.mine, f.way.Request)
			}
			a.notes.say(turnEnded)
		}
		a.keepSoon(f.key)
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
func (a *App) flightOfTurn(e *protocol.Event) *flight {
	for _, f := range a.flights {
		if f.turn == e.Turn && f.way.Bot == e.Bot {
			return f
		}
	}
	if b := a.world.Bot(e.Bot); b != nil {
		for _, t := range b.Queue {
			if t.ID == e.Turn {
				return a.flightOf(t.Request)
			}
		}
	}
	return nil
}

// land waits a moment for what is on its way, when Sonny is left. Of what the daemon has
// not taken by then the next Sonny asks.
func (a *App) land() {
	late := time.NewTimer(landWithin)
	defer late.Stop()
	onWay := func() bool {
		return slices.ContainsFunc(a.flights, func(f *flight) bool { return f.stage == sending })
	}
	for onWay() {
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
