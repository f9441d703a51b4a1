package screen

import (
	"fmt"
	"slices"

	"agent/internal/sonny/lead"
	"agent/internal/sonny/live"
	"agent/internal/sonny/screen/lists"
	"agent/internal/sonny/screen/roster"
	"agent/internal/sonny/screen/text"
	"agent/protocol"
)

// A session on screen whose bot is deleted elsewhere stays, to be read: it is gone, and
// can be forgotten, or left for a new lead (sonny.md 3.2).

// botAt is what is known of a session's bot; nil where nothing is, and where it is gone:
// what has its name then is another.
func (a *App) botAt(s *session) *live.Bot {
	if b := a.world.Bot(s.bot); b != nil && b.Record.ID == s.id && !s.gone {
		return b
	}
	return nil
}

// seeGone notes which bots on screen are gone. The bots must be known, all of them.
func (a *App) seeGone() {
	for _, s := range []*session{a.session, a.side} {
		if s == nil || s.gone || s.deleting || !a.allKnown {
			continue
		}
		if b := a.world.Bot(s.bot); b == nil || b.Record.ID != 0 && b.Record.ID != s.id {
			s.gone = true
			s.after, s.afterWords, s.stepped = nil, "", ""
			s.story.Forget()
			a.answers.refresh(a)
			a.notes.fail(goneError(s))
		}
	}
}

// goneLook is how a session that is gone is shown.
var goneLook = roster.Look{Mark: "✘", Word: "gone", Role: text.Fail}

// lookOf is what a session's bot does, as it is shown.
func (a *App) lookOf(s *session) roster.Look {
	if s.gone {
		return goneLook
	}
	if s == a.session {
		return roster.Looks[a.state()]
	}
	if b := a.botAt(s); b != nil {
		return roster.Looks[b.State(false)]
	}
	return roster.Looks[live.Idle]
}

func goneError(s *session) error {
	return protocol.Fail(lead.SessionGone, s.bot+" was deleted; Enter forgets its session, or begins a new lead")
}

// ofABot are the commands and actions that do something with the session on screen's bot,
// and ofBeside those of the bot that has the keyboard, which may be beside it.
var (
	ofABot = []string{
		"approval", "look", "sandbox", "network", "writable", "row_next", "model", "effort", "task", "mode &", "compact", "handoff",
		"fork", "side", "rewind", "context", "export", "delete",
	}
	ofBeside = []string{"undo", "redo", "init", "queue", "queue_edit"}
)

// refusesGone reports whether a command or an action does nothing, since the bot that it
// is for is gone. It says so.
func (a *App) refusesGone(name string) bool {
	var s *session
	switch {
	case slices.Contains(ofABot, name):
		s = a.session
	case slices.Contains(ofBeside, name):
		s = a.at()
	}
	if s == nil || !s.gone {
		return false
	}
	a.notes.fail(goneError(s))
	return true
}

// openGone offers what can be done with a session that is gone. What is written for it
// goes to the new lead, of which the start screen asks first.
func (a *App) openGone(s *session) {
	if s == a.side {
		a.notes.fail(protocol.Fail(lead.SessionGone, s.bot+" was deleted; Esc closes this pane"))
		return
	}
	a.panel = &listPanel{
		title: s.bot + " is gone: its bot was deleted", hint: []string{"Enter take it", "Esc stay here"},
		rows: func(*App) []lists.Row {
			return []lists.Row{
				{ID: "forget", Line: text.Of(text.Plain, "forget it, and begin a new lead")},
				{ID: "new", Line: text.Of(text.Plain, "begin a new lead; the list of sessions keeps it, as gone")},
			}
		},
		detail: func(_ *App, _ lists.Row, w int) []text.Line {
			return []text.Line{text.Of(text.Dim, fmt.Sprintf("%s of it can be read here until then; what you wrote goes to the new lead.", s.turnWords())).Cut(w)}
		},
		keys: map[string]func(*App, lists.Row) bool{"enter": func(a *App, r lists.Row) bool {
			a.panel = nil
			_ = a.newCommand("")
			if r.ID == "forget" {
				a.forgetSession(s.id)
			}
			return true
		}},
	}
}
