package screen

import (
	"context"

	"agent/internal/sonny/fault"
	"agent/internal/sonny/lead"
)

// lostFolder says in a session's transcript, as it opens, that its folder or the
// repository that this is of is not there any more: it can be read, and nothing can be
// done there.
var lostFolder = feature{opened: func(a *App, s *session) { s.tellLost(a) }}

// tellLost looks once, when both the transcript and what the book has are here.
func (s *session) tellLost(a *App) {
	if s.looked || !s.story.IsLoaded() || s.kept.BotID == 0 {
		return
	}
	s.looked = true
	folder, checkout := a.workspace(s), s.kept.Repo
	do(a, func(context.Context) (struct{}, error) {
		return struct{}{}, lead.Lost(folder, checkout)
	}, func(_ struct{}, err error) {
		if err != nil && a.shows(s) {
			s.tr.Fail(0, fault.Screen.Told(err).Detail, "")
		}
	})
}
