package screen

import (
	"strings"

	"agent/internal/sonny/lead"
	"agent/protocol"
)

// settled is called when a page of records has come.
func (a *App) settled() {
	if a.session != nil {
		a.answers.refresh(a)
	}
}

// project is the name of the project on screen.
func (a *App) project() string {
	if a.session != nil {
		return lead.ProjectOf(a.session.bot)
	}
	return a.start.project
}

func noBot(name string) error {
	return protocol.Fail(protocol.BotNotFound, "no bot "+name)
}

// composerWidth is how wide the text is laid out that is being written.
func (a *App) composerWidth() int {
	if a.inSide && a.side != nil {
		return max(1, a.sidePlace(a.w)-4)
	}
	return max(1, a.w-3)
}

// cutSpace parts a line at its first run of spaces.
func cutSpace(s string) (first, rest string, ok bool) {
	first, rest, ok = strings.Cut(strings.TrimSpace(s), " ")
	return first, strings.TrimSpace(rest), ok
}
