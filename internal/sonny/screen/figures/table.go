package figures

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"agent/internal/sonny/live"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/human"
	"agent/internal/sonny/screen/lists"
	"agent/internal/sonny/screen/text"
	"agent/internal/sonny/usage"
	"agent/protocol"
)

// columns are the widths of the columns after the name.
var columns = []int{6, 8, 8, 8}

// nameColumn is that of the name.
const nameColumn = 26

// Table is what /usage shows.
type Table struct {
	Prices   usage.Prices
	NoCost   bool // costs are not shown
	Ledger   *usage.Ledger
	Now      time.Time
	Bot      *live.Bot // on screen; nil for none
	Tasks    []*live.Bot
	Everyone []int64     // all bots
	Judges   []int64     // those of them that the approver judges by
	Plans    []text.Line // how much of a plan is used, by provider
}

// Head is what stands above a table.
func Head(noCost bool) text.Line {
	heads := []string{"TURNS", "IN", "CACHED", "OUT"}
	line := text.Pad("", nameColumn)
	for i, head := range heads {
		line += fmt.Sprintf("%*s", columns[i], head)
	}
	if !noCost {
		line += "  COST"
	}
	return text.Of(text.Dim, line)
}

// Rows are the table's: what the bot on screen and its tasks used, every bot today and in
// seven days, each task and each model, and the plans.
func (t *Table) Rows() (rows []lists.Row) {
	day, week := usage.Day(t.Now), usage.Day(t.Now.AddDate(0, 0, -6))
	add := func(id string, name string, part usage.Part, more string) {
		rows = append(rows, t.row(id, name, part, more))
	}
	heading := func(words string) {
		rows = append(rows, lists.Row{}, lists.Row{Line: text.Of(text.Dim, words)})
	}
	if b := t.Bot; b != nil {
		if last, ok := t.Ledger.Last(b.Record.ID); ok {
			add("turn", "this turn", usage.PartOf(t.Prices, last), human.Count(int(last.Rounds), "round", "rounds"))
		}
		add("session", "this session", t.Ledger.Total(t.Prices, "", b.Record.ID), "")
		if len(t.Tasks) > 0 {
			add("tasks", "its tasks", t.Ledger.Total(t.Prices, "", idsOf(t.Tasks)...), "")
		}
	}
	add("today", "today, every bot", t.Ledger.Total(t.Prices, day, t.Everyone...), "")
	add("week", "seven days, every bot", t.Ledger.Total(t.Prices, week, t.Everyone...), "")
	add("judge", "of it by the judge", t.Ledger.Total(t.Prices, week, t.Judges...), "")
	if len(t.Tasks) > 0 {
		heading("this session's tasks")
		for _, b := range t.Tasks {
			add("task "+b.Record.Name, b.Record.Name, t.Ledger.Total(t.Prices, "", b.Record.ID), budgetWords(b))
		}
	}
	if models := t.Ledger.Models(t.Prices, week, t.Everyone...); len(models) > 0 {
		heading("seven days by model")
		for _, m := range models {
			add("model "+m.Name, m.Name, m, "")
		}
	}
	if len(t.Plans) > 0 {
		heading("plans")
		for _, line := range t.Plans {
			rows = append(rows, lists.Row{ID: line.String(), Line: line})
		}
	}
	return rows
}

func idsOf(bots []*live.Bot) (ids []int64) {
	for _, b := range bots {
		ids = append(ids, b.Record.ID)
	}
	return ids
}

// row is one row of figures.
func (t *Table) row(id, name string, part usage.Part, more string) lists.Row {
	line := ""
	figures := []string{strconv.FormatInt(part.Turns, 10), usage.Short(part.Sum.Input), usage.Short(part.Sum.Cached), usage.Short(part.Sum.Output)}
	for i, f := range figures {
		line += fmt.Sprintf("%*s", columns[i], f)
	}
	if !t.NoCost {
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

// planWindow is a part of a plan, as a provider reports it.
type planWindow struct {
	UsedPercent   float64 `json:"used_percent"`
	WindowMinutes int64   `json:"window_minutes"`
	ResetAt       int64   `json:"reset_at"` // seconds
}

// Plans say how much of each plan is used and when it begins anew.
func Plans(stats *protocol.Stats, now time.Time) (lines []text.Line) {
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
