package screen

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"agent/internal/sonny/lead"
	"agent/internal/sonny/live"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/human"
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

// usageColumns are the widths of the columns after the name.
var usageColumns = []int{6, 8, 8, 8}

// nameColumn is that of the name.
const nameColumn = 26

func (a *App) openUsage() {
	of := "every bot"
	if a.session != nil {
		of = a.session.bot
	}
	p := &usagePanel{made: -1}
	p.title = "usage of " + cells.OneLine(of)
	p.empty = "nothing was used yet"
	p.head = usageHead(a)
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

func usageHead(a *App) text.Line {
	heads := []string{"TURNS", "IN", "CACHED", "OUT"}
	line := text.Pad("", nameColumn)
	for i, head := range heads {
		line += fmt.Sprintf("%*s", usageColumns[i], head)
	}
	if !a.o.Usage.NoCost {
		line += "  COST"
	}
	return text.Of(text.Dim, line)
}

// current are the rows, made anew where something changed.
func (p *usagePanel) current(a *App) []lists.Row {
	if p.made != a.spend.version || p.kin != a.world.Kin {
		p.made, p.kin = a.spend.version, a.world.Kin
		p.rows = p.make(a)
	}
	return p.rows
}

func (p *usagePanel) make(a *App) (rows []lists.Row) {
	prices, ledger := a.o.Usage.Prices, &a.spend.ledger
	day, week := usage.Day(a.o.Clock()), usage.Day(a.o.Clock().AddDate(0, 0, -6))
	add := func(id string, name string, part usage.Part, more string) {
		rows = append(rows, usageRow(a, id, name, part, more))
	}
	heading := func(words string) {
		rows = append(rows, lists.Row{}, lists.Row{Line: text.Of(text.Dim, words)})
	}
	everyone, judges := a.counted()
	tasks := a.tasks()
	if b := a.bot(); b != nil {
		if last, ok := ledger.Last(b.Record.ID); ok {
			add("turn", "this turn", usage.PartOf(prices, last), human.Count(int(last.Rounds), "round", "rounds"))
		}
		add("session", "this session", ledger.Total(prices, "", b.Record.ID), "")
		if len(tasks) > 0 {
			add("tasks", "its tasks", ledger.Total(prices, "", idsOf(tasks)...), "")
		}
	}
	add("today", "today, every bot", ledger.Total(prices, day, everyone...), "")
	add("week", "seven days, every bot", ledger.Total(prices, week, everyone...), "")
	add("judge", "of it by the judge", ledger.Total(prices, week, judges...), "")
	if len(tasks) > 0 {
		heading("this session's tasks")
		for _, t := range tasks {
			add("task "+t.Record.Name, t.Record.Name, ledger.Total(prices, "", t.Record.ID), budgetWords(t))
		}
	}
	if models := ledger.Models(prices, week, everyone...); len(models) > 0 {
		heading("seven days by model")
		for _, m := range models {
			add("model "+m.Name, m.Name, m, "")
		}
	}
	if len(p.plans) > 0 {
		heading("plans")
		for _, line := range p.plans {
			rows = append(rows, lists.Row{ID: line.String(), Line: line})
		}
	}
	return rows
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

func idsOf(bots []*live.Bot) (ids []int64) {
	for _, b := range bots {
		ids = append(ids, b.Record.ID)
	}
	return ids
}

// usageRow is one row of figures.
func usageRow(a *App, id, name string, part usage.Part, more string) lists.Row {
	line := ""
	figures := []string{strconv.FormatInt(part.Turns, 10), usage.Short(part.Sum.Input), usage.Short(part.Sum.Cached), usage.Short(part.Sum.Output)}
	for i, f := range figures {
		line += fmt.Sprintf("%*s", usageColumns[i], f)
	}
	if !a.o.Usage.NoCost {
		line += "  " + part.Sum.CostWords()
	}
	if more != "" {
		line += "  " + more
	}
	return lists.Row{ID: id, Match: name, Line: text.Join(
		text.Span{Text: text.Pad(text.Cut(cells.OneLine(name), nameColumn-1, "…"), nameColumn)}, text.Span{Text: line})}
}

// budgetWords are what a bot used of what it may use; "" where it may use what it likes.
func budgetWords(b *live.Bot) string {
	if b.Record.BudgetTokens == nil {
		return ""
	}
	return "budget " + usage.Short(b.Record.TokensUsed) + "/" + usage.Short(*b.Record.BudgetTokens)
}

// readPlans asks the daemon what providers report of plans.
func (p *usagePanel) readPlans(a *App) {
	do(a, func(ctx context.Context) (*protocol.Stats, error) { return a.client().Stats(ctx) },
		func(stats *protocol.Stats, err error) {
			if err != nil {
				a.notes.fail(err)
				return
			}
			p.plans, p.made = planLines(stats, a.o.Clock()), -1
		})
}

// planWindow is a part of a plan, as a provider reports it.
type planWindow struct {
	UsedPercent   float64 `json:"used_percent"`
	WindowMinutes int64   `json:"window_minutes"`
	ResetAt       int64   `json:"reset_at"` // seconds
}

// planLines say how much of each plan is used and when it begins anew.
func planLines(stats *protocol.Stats, now time.Time) (lines []text.Line) {
	for provider, s := range stats.Providers {
		windows := map[string]planWindow{}
		if len(s.Plan) == 0 || json.Unmarshal(s.Plan, &windows) != nil {
			continue
		}
		for _, name := range []string{"primary", "secondary"} {
			w, ok := windows[name]
			if !ok {
				continue
			}
			words := fmt.Sprintf("%s  %.0f%% used of %s", provider, w.UsedPercent, cells.SpanWords(time.Duration(w.WindowMinutes)*time.Minute))
			if w.ResetAt > 0 {
				words += ", anew " + human.When(now, time.Unix(w.ResetAt, 0))
			}
			lines = append(lines, text.Of(text.Plain, cells.OneLine(words)))
		}
	}
	slices.SortFunc(lines, func(x, y text.Line) int { return slices.Compare([]rune(x.String()), []rune(y.String())) })
	return lines
}
