package screen

import (
	"context"

	"agent/internal/sonny/lead"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/figures"
	"agent/internal/sonny/screen/lists"
	"agent/internal/sonny/screen/text"
	"agent/internal/sonny/usage"
	"agent/protocol"
)

// usageCommands show what was used and what it cost (sonny.md 27).
var usageCommands = feature{
	commands: []slashCommand{{"usage", "", "tokens and what they cost", func(a *App, _ string) error { a.openUsage(); return nil }}},
	actions:  map[string]func(*App){"usage": (*App).openUsage},
}

// usagePanel is what /usage shows. Its rows are made anew when what is counted changed.
type usagePanel struct {
	listPanel
	plans []text.Line // how much of a plan is used, by provider
	made  int         // the spending's version of the rows
	kin   int         // the world's Kin then
	rows  []lists.Row
}

func (a *App) openUsage() {
	of := "every bot"
	if a.session != nil {
		of = a.session.bot
	}
	p := &usagePanel{made: -1}
	p.title = "usage of " + cells.OneLine(of)
	p.empty = "nothing was used yet"
	p.head = figures.Head(a.o.Usage.NoCost)
	p.right = func() string {
		switch {
		case !a.spend.whole:
			return "counting…"
		case a.o.Usage.NoCost:
			return ""
		}
		return "estimates, prices of " + usage.PricesAsOf()
	}
	p.listPanel.rows = func(a *App) []lists.Row { return p.current(a) }
	a.spend.countAll(a)
	p.readPlans(a)
	a.panel = p
}

// current are the rows, made anew where something changed.
func (p *usagePanel) current(a *App) []lists.Row {
	if p.made != a.spend.version || p.kin != a.world.Kin {
		p.made, p.kin = a.spend.version, a.world.Kin
		p.rows = p.make(a)
	}
	return p.rows
}

func (p *usagePanel) make(a *App) []lists.Row {
	everyone, judges := a.counted()
	t := &figures.Table{
		Prices: a.o.Usage.Prices, NoCost: a.o.Usage.NoCost, Ledger: &a.spend.ledger, Now: a.o.Clock(),
		Bot: a.bot(), Tasks: a.tasks(), Everyone: everyone, Judges: judges, Plans: p.plans,
	}
	return t.Rows()
}

// counted are all bots by their ids, and those of them that the approver judges by.
func (a *App) counted() (everyone, judges []int64) {
	for b := range a.world.Bots() {
		everyone = append(everyone, b.Record.ID)
		if lead.Judge(&b.Record) {
			judges = append(judges, b.Record.ID)
		}
	}
	return everyone, judges
}

// readPlans asks the daemon what providers report of plans.
func (p *usagePanel) readPlans(a *App) {
	do(a, func(ctx context.Context) (*protocol.Stats, error) { return a.client().Stats(ctx) },
		func(stats *protocol.Stats, err error) {
			if err != nil {
				a.notes.fail(err)
				return
			}
			p.plans, p.made = figures.Plans(stats, a.o.Clock()), -1
		})
}
