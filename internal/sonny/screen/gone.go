package screen

import (
	"agent/internal/sonny/live"
	"agent/internal/sonny/screen/cells"
	"agent/protocol"
)

// goneWatch sees a bot being deleted elsewhere while it is on screen: what was said stays
// there to be read, and what is written is not lost (sonny.md 3.2).
var goneWatch = feature{event: func(a *App, _ *live.Bot, e *protocol.Event) {
	if e.Kind != protocol.KindDeleted || a.deletes[e.Bot] {
		return
	}
	for _, s := range []*session{a.session, a.side} {
		if s != nil && s.bot == e.Bot {
			a.lose(s)
		}
	}
}}

// lostMeanwhile sees what was deleted while the connection was away, when all bots are known.
func (a *App) lostMeanwhile() {
	for _, s := range []*session{a.session, a.side} {
		if s == nil || s.gone || a.deletes[s.bot] {
			continue
		}
		if b := a.world.Bot(s.bot); b == nil || b.Record.ID != 0 && b.Record.ID != s.id {
			a.lose(s)
		}
	}
}

func (a *App) lose(s *session) {
	s.gone = true
	a.answers.refresh(a)
	a.notes.say(cells.OneLine(s.bot) + " was deleted elsewhere; Enter starts another")
}

// goneHere is why nothing can be done with the bot on screen; nil where it is there.
func (a *App) goneHere() error {
	if a.session == nil || !a.session.gone {
		return nil
	}
	return protocol.Fail(protocol.BotNotFound, a.session.bot+" was deleted elsewhere; Enter starts another")
}

// ofBots are the commands that do something to the bot on screen, or ask the daemon about it.
var ofBots = map[string]bool{
	"approval": true, "look": true, "sandbox": true, "network": true, "writable": true, "model": true, "effort": true,
	"context": true, "compact": true, "undo": true, "redo": true, "fork": true, "side": true, "rewind": true, "handoff": true,
	"tree": true, "task": true, "merge": true, "init": true, "export": true, "queue": true, "archive": true, "delete": true,
	"rename": true, "plan": true,
}

// offerGone asks what is to become of a session whose bot is gone. What is written in it
// comes along to the next.
func (a *App) offerGone(s *session) {
	if s != a.session {
		a.notes.say(cells.OneLine(s.bot) + " is gone: it was deleted elsewhere")
		return
	}
	a.ask(&question{text: cells.OneLine(s.name()) + " is gone: its bot was deleted elsewhere. Forget it, and start another with what is written here?", yes: func(a *App) {
		if a.session == s {
			a.startOver(s)
		}
	}, no: func(a *App) { a.panel = nil }})
}

// startOver forgets a session that is gone, and goes to the start screen with its draft.
func (a *App) startOver(s *session) {
	e := s.compose.Editor()
	draft := e.Draft()
	for i := len(s.held) - 1; i >= 0; i-- {
		draft = draft.After(s.held[i].draft)
	}
	e.Clear()
	s.held = nil
	a.forgetSession(s.id)
	_ = a.newCommand("") // which leaves the session as any other
	a.start.compose.Editor().SetDraft(draft)
}
