package screen

import (
	"context"

	"agent/internal/sonny/lead"
	"agent/internal/sonny/live"
	"agent/internal/sonny/screen/roster"
	"agent/protocol"
)

// railKeys are of the list of sessions at the left (sonny.md 7.1, 11).
var railKeys = feature{
	actions: map[string]func(*App){"rail": (*App).openRail},
	event: func(a *App, b *live.Bot, _ *protocol.Event) {
		if b != nil {
			a.rail.Heard(b)
		}
	},
	opened: func(a *App, s *session) {
		if s == a.session {
			a.rail.read(a)
		}
	},
}

// rail is the list of sessions on screen.
type rail struct {
	roster.Rail
	shown   bool // as a column, where the screen is wide enough for one
	decided bool // the person has opened or hidden it, or a session said how it was left
	panel   *railPanel
}

// read reads the book anew, where the rail is on screen.
func (r *rail) read(a *App) {
	if !a.railOpen() {
		return
	}
	do(a, func(context.Context) (*lead.Page, error) { page, _, err := a.o.Book.Read(); return page, err },
		func(page *lead.Page, err error) {
			if err != nil {
				a.notes.fail(err)
				return
			}
			r.Take(page)
		})
}

// freshRail sees to it that the rail's rows are of what there is now.
func (a *App) freshRail() {
	a.rail.Fresh(a.world, roster.Place{Store: a.ready.Store.Identity, Folder: a.o.Folder.Path, Hidden: a.hidden, Title: a.titleOf})
}

// railNow is the session on screen as the rail tells of it.
func (a *App) railNow() roster.Shown {
	s := a.session
	if s == nil {
		return roster.Shown{}
	}
	now := roster.Shown{Bot: s.bot, Name: a.called(s)}
	if s.story.IsWhole() && s.story.Turns() > 0 {
		now.Turns = s.turnWords()
	}
	return now
}
