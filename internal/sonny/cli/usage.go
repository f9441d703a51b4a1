package cli

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strconv"
	"time"

	"agent/internal/sonny/connect"
	"agent/internal/sonny/lead"
	"agent/internal/sonny/usage"
	"agent/protocol"

	"github.com/spf13/cobra"
)

// usageVerb is sonny usage: what was used, and what that cost (sonny.md 27).
func (a *app) usageVerb() *cobra.Command {
	var since, by string
	cmd := &cobra.Command{
		Use: "usage", Short: "Tokens and what they cost, by bot, model or day", Args: cobra.NoArgs,
		Long: "Costs are estimates, by [pricing] of config.toml and by a table that comes with Sonny; the\n" +
			"turns that the daemon still has are counted, by the day on which they began.",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.usage(cmd, since, by) },
	}
	cmd.Flags().StringVar(&since, "since", "7d", "from `WHEN` on: 24h, 7d, or a day as 2006-01-02")
	cmd.Flags().StringVar(&by, "by", "bot", "bot, model or day")
	cmd.Flags().BoolVar(&a.json, "json", false, "one JSON object")
	return cmd
}

// shownUsage is the answer with --json.
type shownUsage struct {
	SinceMS    int64       `json:"since_ms"`
	By         string      `json:"by"`
	PricesAsOf string      `json:"prices_as_of"`
	Rows       []shownUsed `json:"rows"`
	Total      shownUsed   `json:"total"`
}

type shownUsed struct {
	Name    string   `json:"name"`
	Turns   int64    `json:"turns"`
	Input   int64    `json:"input"`
	Cached  int64    `json:"cached"`
	Output  int64    `json:"output"`
	CostUSD *float64 `json:"cost_usd"` // null where a price is not known, or a plan pays
	Plan    bool     `json:"plan,omitempty"`
}

// used is a row under way.
type used struct {
	turns int64
	sum   usage.Sum
}

func (u *used) shown(name string) shownUsed {
	s := shownUsed{Name: name, Turns: u.turns, Input: u.sum.Input, Cached: u.sum.Cached, Output: u.sum.Output, Plan: u.sum.Plan}
	if usd, ok := u.sum.Priced(); ok {
		s.CostUSD = &usd
	}
	return s
}

func (a *app) usage(cmd *cobra.Command, since, by string) error {
	from, err := sinceTime(since, time.Now())
	if err != nil {
		return err
	}
	if by != "bot" && by != "model" && by != "day" {
		return usagef("--by is bot, model or day")
	}
	w, link, err := a.reach(cmd)
	if err != nil {
		return err
	}
	rows := map[string]*used{}
	if link != nil {
		defer link.Close()
		if err := sumUp(cmd.Context(), link, usage.PricesOf(w.config.Pricing), from, by, rows); err != nil {
			return err
		}
	}
	a.sayUsage(from, by, rows, w.config.Usage.ShowCost)
	return nil
}

// sumUp adds the turns up that began at a time or later.
func sumUp(ctx context.Context, link *connect.Link, prices usage.Prices, from time.Time, by string, rows map[string]*used) error {
	for bot, err := range link.Bots(ctx) {
		if err != nil {
			return err
		}
		for t, err := range link.Turns(ctx, bot.Name, 0) {
			if err != nil {
				return err
			}
			if t.StartedMS == nil || *t.StartedMS < from.UnixMilli() {
				continue
			}
			key := usedBy(by, bot, t)
			if rows[key] == nil {
				rows[key] = &used{}
			}
			rows[key].turns++
			rows[key].sum.Add(prices, t.Model, usage.Tokens{Input: t.InputTokens, Cached: t.CachedInputTokens, Output: t.OutputTokens})
		}
	}
	return nil
}

// usedBy is the row that a turn counts in. The judges' bots are one row.
func usedBy(by string, bot *protocol.Bot, t *protocol.Turn) string {
	switch {
	case by == "model":
		return t.Model
	case by == "day":
		return time.UnixMilli(*t.StartedMS).Local().Format(time.DateOnly)
	case lead.Judge(bot):
		return "judge"
	}
	return bot.Name
}

func (a *app) sayUsage(from time.Time, by string, rows map[string]*used, cost bool) {
	out := shownUsage{SinceMS: from.UnixMilli(), By: by, PricesAsOf: usage.PricesAsOf(), Rows: []shownUsed{}}
	var total used
	for name, u := range rows {
		out.Rows = append(out.Rows, u.shown(name))
		total.turns += u.turns
		total.sum.Join(u.sum)
	}
	slices.SortFunc(out.Rows, func(x, y shownUsed) int {
		if by == "day" {
			return cmp.Compare(y.Name, x.Name)
		}
		return cmp.Or(cmp.Compare(y.Input+y.Output, x.Input+x.Output), cmp.Compare(x.Name, y.Name))
	})
	out.Total = total.shown("total")
	if a.json {
		_ = a.printJSON(out) // a stdout that is closed has nobody who would read why
		return
	}
	headings := []string{map[string]string{"bot": "BOT", "model": "MODEL", "day": "DAY"}[by], "TURNS", "INPUT", "CACHED", "OUTPUT"}
	if cost {
		headings = append(headings, "COST")
	}
	var lines [][]string
	for _, r := range append(out.Rows, out.Total) {
		u := rows[r.Name]
		if r.Name == "total" && u == nil {
			u = &total
		}
		line := []string{r.Name, strconv.FormatInt(r.Turns, 10), strconv.FormatInt(r.Input, 10), strconv.FormatInt(r.Cached, 10), strconv.FormatInt(r.Output, 10)}
		if cost {
			line = append(line, u.sum.CostWords())
		}
		lines = append(lines, line)
	}
	a.table(headings, lines)
	if cost {
		a.notice("costs are estimates; the built-in prices are of " + usage.PricesAsOf())
	}
}

// days is a time as a number of days back.
var days = regexp.MustCompile(`^(\d{1,5})d$`)

// sinceTime reads the value of --since.
func sinceTime(text string, now time.Time) (time.Time, error) {
	if m := days.FindStringSubmatch(text); m != nil {
		n, _ := strconv.Atoi(m[1])
		return now.AddDate(0, 0, -n), nil
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return now.Add(-d), nil
	}
	if day, err := time.ParseInLocation(time.DateOnly, text, time.Local); err == nil {
		return day, nil
	}
	return time.Time{}, usagef("--since %q: it is a time back, such as 24h or 7d, or a day as 2006-01-02", text)
}
