package screen

import (
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

// pasted is what was pasted, with the line ends of the screen and without controls.
func pasted(s string) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	s = strings.ReplaceAll(s, "\r", "\n")
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, s)
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

func noBot(name string) error {
	return protocol.Fail(protocol.BotNotFound, "no bot "+name)
}
