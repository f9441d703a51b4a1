package screen

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"agent/internal/sonny/lead"
	"agent/protocol"
)

// clock is a duration as the header counts it: 0:42, 1:02:03.
func clock(d time.Duration) string {
	s := int(max(0, d).Seconds())
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

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

// detailOf is what an error says without its code.
func detailOf(err error) string {
	var known *protocol.Error
	if errors.As(err, &known) && known.Detail != "" {
		return known.Detail
	}
	return err.Error()
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
