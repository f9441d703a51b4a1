package screen

import (
	"context"
	"errors"
	"slices"

	"agent/internal/sonny/repo"
	"agent/internal/sonny/screen/review"
	"agent/internal/sonny/snapshot"
	"agent/protocol"
)

// repository is the checkout that a session works in, as it was recorded when its bot
// was made; the folder's own where the bot works there and nothing was recorded.
func (a *App) repository(s *session) repo.Repo {
	if s == nil {
		return a.o.Folder.Repo
	}
	if s.kept.Repo.There() {
		return s.kept.Repo
	}
	if b := a.botAt(s); b != nil && b.Record.Workspace != nil && *b.Record.Workspace == a.o.Folder.Path {
		return a.o.Folder.Repo
	}
	return repo.Repo{}
}

// workspaceOf is the folder that a session's bot works in.
func (a *App) workspaceOf(s *session) string {
	if s != nil {
		if b := a.botAt(s); b != nil && b.Record.Workspace != nil {
			return *b.Record.Workspace
		}
	}
	return a.o.Folder.Path
}

// room is where the states of a session's folder are kept; nil for none.
func (a *App) room(s *session) *snapshot.Room {
	r := a.repository(s)
	if a.o.Snapshots == nil || !r.There() {
		return nil
	}
	m, err := a.o.Snapshots.In(r, a.workspaceOf(s))
	if err != nil {
		return nil
	}
	return m
}

// openReview shows what the bot on screen changed.
func (a *App) openReview() error {
	s := a.at()
	if s == nil || !a.repository(s).There() {
		return protocol.Fail("failed", "there is no git checkout here to look at")
	}
	p := &reviewPanel{View: review.New(a.o.Diffs), s: s}
	a.panel = p
	room := a.room(s)
	do(a, func(context.Context) ([]snapshot.Mark, error) {
		if room == nil {
			return nil, nil
		}
		return room.Marks(s.id)
	}, func(marks []snapshot.Mark, err error) {
		if err != nil {
			a.notes.fail(err)
		}
		place := review.Place{Bot: s.bot, Repo: a.repository(s), Room: room, Marks: marks, Tasks: a.tasks()}
		p.Scopes = place.Scopes()
		p.load(a)
	})
	return nil
}

// openTaskReview shows what a task changed.
func (a *App) openTaskReview(task string) error {
	if err := a.openReview(); err != nil {
		return err
	}
	a.panel.(*reviewPanel).want = task
	return nil
}

// reviewCommands are of the panel of changes (sonny.md 11).
var reviewCommands = feature{
	commands: []slashCommand{
		{"diff", "", "what was changed", func(a *App, _ string) error { return a.openReview() }},
		{"review", "", "the same", func(a *App, _ string) error { return a.openReview() }},
	},
	actions: map[string]func(*App){"diff": func(a *App) { a.failing(a.openReview()) }},
}

// load reads the scope that is chosen.
func (p *reviewPanel) load(a *App) {
	if i := slices.IndexFunc(p.Scopes, func(s review.Scope) bool { return p.want != "" && s.Label == review.TaskLabel(p.want) }); i >= 0 {
		p.Scope = i
	}
	p.want = ""
	sc := p.Chosen()
	p.Forget()
	do(a, sc.Read, func(set *review.Set, err error) {
		if a.panel != panel(p) || p.Chosen().Label != sc.Label {
			return
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			p.Failed = err
		}
		if set != nil {
			p.Set = set
		}
	})
}
