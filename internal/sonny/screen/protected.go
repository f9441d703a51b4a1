package screen

import (
	"context"
	"time"

	"agent/internal/sonny/notify"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/decide"
)

// exposed tells in the panel that protected paths were replaced while a call ran.
type exposed struct {
	decide.Exposed
	name, call string
	at         time.Time
}

// exposes puts the panel up for a call whose result tells of such paths.
func (a *App) exposes(s *session, c *cells.ToolCall) {
	paths := c.Exposed()
	if len(paths) == 0 {
		return
	}
	q := &exposed{Exposed: decide.Exposed{Subject: c.Name + "  " + c.Subject(), Paths: paths}, name: s.bot, call: c.ID, at: a.o.Now()}
	a.answers.add(a, q)
	a.tell(notify.Note{Event: "question", Bot: s.bot, Body: s.bot + ": protected files were replaced while a call ran"})
}

func (q *exposed) id() string       { return "exposed " + q.name + " " + q.call }
func (q *exposed) bot() string      { return q.name }
func (q *exposed) since() time.Time { return q.at }

func (q *exposed) sheet(_ *App, w int, whole bool) decide.Sheet { return q.Sheet(w, whole) }
func (q *exposed) pick(*App, int, string)                       {}
func (q *exposed) leave(*App) bool                              { return true }

func (q *exposed) own(a *App, action string) {
	switch action {
	case "approve_take":
		a.answers.drop(a, q.id(), "")
	case "approve_whole":
		checkout := a.o.Folder.Repo
		do(a, func(ctx context.Context) ([]string, error) { return decide.NowAt(ctx, checkout, q.Paths), nil },
			func(lines []string, _ error) { q.Shown = lines })
	}
}
