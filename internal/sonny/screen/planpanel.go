package screen

import (
	"context"
	"fmt"

	"agent/internal/sonny/host/plans"
	"agent/internal/sonny/live"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/lists"
	"agent/internal/sonny/screen/text"
	"agent/protocol"
)

// planCommands show what a bot means to do (sonny.md 11, 29).
var planCommands = feature{
	commands: []slashCommand{{"plan", "", "what the bot on screen means to do", func(a *App, _ string) error { return a.openPlan() }}},
	event: func(a *App, b *live.Bot, e *protocol.Event) {
		if p, open := a.panel.(*planPanel); open && b != nil && b.Record.ID == p.bot && e.Kind == protocol.KindToolCompleted {
			p.read(a)
		}
	},
}

// planPanel lists the steps of a bot's plan.
type planPanel struct {
	listPanel
	bot   int64
	steps []plans.Step
}

func (a *App) openPlan() error {
	s := a.at()
	if s == nil {
		return noSession()
	}
	p := &planPanel{bot: s.id}
	p.title, p.waits, p.empty = "plan of "+cells.OneLine(s.bot), "reading…", "it has no plan"
	p.rows = func(*App) []lists.Row { return p.listed() }
	p.right = p.progress
	a.panel = p
	p.read(a)
	return nil
}

func (p *planPanel) read(a *App) {
	do(a, func(context.Context) ([]plans.Step, error) { return plans.Read(a.o.Store, p.bot) },
		func(steps []plans.Step, err error) {
			a.failing(err)
			p.steps, p.waits = steps, ""
		})
}

// progress is how much of the plan is done.
func (p *planPanel) progress() string {
	return doneOf(p.steps)
}

// stepMarks are the states of steps, as they are written before them.
var stepMarks = map[string]string{plans.Done: "[x]", plans.Doing: "[>]", plans.Todo: "[ ]"}

func (p *planPanel) listed() (rows []lists.Row) {
	for i, s := range p.steps {
		rows = append(rows, lists.Row{ID: fmt.Sprint(i), Line: text.Of(stepRole(s), stepMarks[s.State]+" "+cells.OneLine(s.Text))})
	}
	return rows
}
