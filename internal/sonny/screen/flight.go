package screen

import (
	"slices"
	"time"

	"agent/internal/sonny/screen/text"
)

const (
	sendingShown = 300 * time.Millisecond // longer on its way: it is shown
	landWithin   = 500 * time.Millisecond // when Sonny is left
)

// flight is a message that was handed to the daemon, which has neither taken nor refused
// it yet.
type flight struct {
	s       *session
	request string
	m       message
	since   time.Time
}

func (a *App) takeOff(s *session, request string, m message) {
	a.flights = append(a.flights, flight{s, request, m, a.o.Now()})
	a.after(sendingShown, func() {})
}

func (a *App) landed(request string) {
	a.flights = slices.DeleteFunc(a.flights, func(f flight) bool { return f.request == request })
}

// sending are rows for those of a session's messages that take long.
func (a *App) sending(s *session, w int) (out []text.Line) {
	for _, f := range a.flights {
		if f.s.id == s.id && a.o.Now().Sub(f.since) >= sendingShown {
			out = append(out, stripLine("sending…", f.m.prompt, "", w))
		}
	}
	return out
}

// holdFlights waits a moment for what is on its way, when Sonny is left. What the daemon
// has not taken by then is held when the bot is opened again. It gives the composers that
// it changed.
func (a *App) holdFlights() (changed []*composer) {
	late := time.NewTimer(landWithin)
	defer late.Stop()
	for waits := true; waits && len(a.flights) > 0; {
		select {
		case call := <-a.calls:
			call()
		case <-late.C:
			waits = false
		}
	}
	for _, f := range slices.Backward(a.flights) {
		s := a.nowOf(f.s)
		s.held = append([]message{f.m}, s.held...)
		s.compose.unsaved = true
		changed = append(changed, &s.compose)
	}
	return changed
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
