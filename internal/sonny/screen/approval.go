package screen

import (
	"strings"
	"time"

	"agent/internal/sonny/allow"
	"agent/internal/sonny/screen/decide"
	"agent/protocol"
)

// approval is a call in the panel (sonny.md 9.1).
type approval struct{ *decide.Call }

func (q approval) id() string       { return q.ID() }
func (q approval) bot() string      { return q.Bot }
func (q approval) since() time.Time { return q.Since() }

func (q approval) sheet(a *App, w int, whole bool) decide.Sheet {
	return q.Sheet(a.knownOf(q.Bot), w, whole)
}

// knownOf is what a bot's calls are shown with.
func (a *App) knownOf(bot string) decide.Known {
	return decide.Known{Bot: a.record(bot), Now: a.o.Clock()}
}

func (q approval) pick(a *App, n int, words string) {
	switch n {
	case 1:
		a.answerCall(q.Call, protocol.Allow, "")
	case 2:
		if words == decide.EveryBot { // of the plain mode, where no key changes the reach
			q.Rule.Reach = allow.Everywhere
		}
		a.keepRule(&q.Rule, func() { a.answerCall(q.Call, protocol.Allow, "") })
	case 3:
		a.answerCall(q.Call, protocol.Deny, "")
	case 4:
		a.answerCall(q.Call, protocol.Deny, strings.TrimSpace(words))
	}
}

func (q approval) own(a *App, action string) { a.changeRule(&q.Rule, action) }
func (q approval) leave(*App) bool           { return false }
