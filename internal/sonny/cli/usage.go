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
	Since      time.Time   `json:"since"`
	By         string      `json:"by"`
	PricesAsOf string      `json:"prices_as_of"`
	Rows       []shownUsed `json:"rows"`
	Total      shownUsed   `json:"total"`

	// Whatever since says, as /usage shows them.
	Today     shownUsed   `json:"today"`
	SevenDays shownUsed   `json:"seven_days"`
	Models    []shownUsed `json:"models"` // of the seven days
	Judge     shownUsed   `json:"judge"`  // of the seven days, what it took to judge calls
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

func shownPart(u usage.Part) shownUsed {
	s := shownUsed{Name: u.Name, Turns: u.Turns, Input: u.Sum.Input, Cached: u.Sum.Cached, Output: u.Sum.Output, Plan: u.Sum.Plan}
	if usd, ok := u.Sum.Priced(); ok {
		s.CostUSD = &usd
	}
	return s
}

// counting is what is added up of all bots' turns.
type counting struct {
	prices usage.Prices
	from   time.Time
	by     string

	rows             map[string]*usage.Part // from from on
	ledger           usage.Ledger           // of all days
	everyone, judges []int64
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
	c := &counting{prices: usage.PricesOf(w.config.Pricing), from: from, by: by, rows: map[string]*usage.Part{}}
	if link != nil {
		defer link.Close()
		if err := c.read(cmd.Context(), link); err != nil {
			return err
		}
	}
	a.sayUsage(c, w.config.Usage.ShowCost)
	return nil
}

// read adds all turns up.
func (c *counting) read(ctx context.Context, link *connect.Link) error {
	for bot, err := range link.Bots(ctx) {
		if err != nil {
			return err
		}
		c.everyone = append(c.everyone, bot.ID)
		if lead.Judge(bot) {
			c.judges = append(c.judges, bot.ID)
		}
		for t, err := range link.Turns(ctx, bot.Name, 0) {
			if err != nil {
				return err
			}
			c.take(bot, t)
		}
	}
	return nil
}

func (c *counting) take(bot *protocol.Bot, t *protocol.Turn) {
	turn := usage.TurnOf(t)
	c.ledger.Take(bot.ID, turn)
	if turn.Began.IsZero() || turn.Began.Before(c.from) {
		return
	}
	name := usedBy(c.by, bot, t)
	if c.rows[name] == nil {
		c.rows[name] = &usage.Part{Name: name}
	}
	c.rows[name].Join(usage.PartOf(c.prices, turn))
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

// shown is the answer, the most used row first, or the newest day.
func (c *counting) shown() (out shownUsage, parts []usage.Part) {
	total := usage.Part{Name: "total"}
	for _, u := range c.rows {
		parts = append(parts, *u)
		total.Join(*u)
	}
	usage.SortParts(parts)
	if c.by == "day" {
		slices.SortFunc(parts, func(x, y usage.Part) int { return cmp.Compare(y.Name, x.Name) })
	}
	out = shownUsage{Since: c.from.UTC(), By: c.by, PricesAsOf: usage.PricesAsOf(), Rows: []shownUsed{}, Models: []shownUsed{}}
	for _, part := range parts {
		out.Rows = append(out.Rows, shownPart(part))
	}
	out.Total = shownPart(total)
	now := time.Now()
	week := usage.Day(now.AddDate(0, 0, -6))
	of := func(name, day string, bots []int64) shownUsed {
		part := c.ledger.Total(c.prices, day, bots...)
		part.Name = name
		return shownPart(part)
	}
	out.Today = of("today", usage.Day(now), c.everyone)
	out.SevenDays, out.Judge = of("seven days", week, c.everyone), of("judge", week, c.judges)
	for _, m := range c.ledger.Models(c.prices, week, c.everyone...) {
		out.Models = append(out.Models, shownPart(m))
	}
	return out, append(parts, total)
}

func (a *app) sayUsage(c *counting, cost bool) {
	out, parts := c.shown()
	if a.json {
		_ = a.printJSON(out) // a stdout that is closed has nobody who would read why
		return
	}
	headings := []string{map[string]string{"bot": "BOT", "model": "MODEL", "day": "DAY"}[c.by], "TURNS", "INPUT", "CACHED", "OUTPUT"}
	if cost {
		headings = append(headings, "COST")
	}
	var lines [][]string
	for _, u := range parts {
		line := []string{u.Name}
		for _, n := range []int64{u.Turns, u.Sum.Input, u.Sum.Cached, u.Sum.Output} {
			line = append(line, strconv.FormatInt(n, 10))
		}
		if cost {
			line = append(line, u.Sum.CostWords())
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
