package screen

import (
	"strings"
	"testing"
	"time"

	"agent/internal/sonny/config"
	"agent/internal/sonny/usage"
	"agent/protocol"
)

// spent is an app whose lead has used the tokens of sonny.md 17's header.
func spent(t *testing.T) *bench {
	b := newBench(t)
	effort := "high"
	b.world.Put(protocol.Bot{
		Name: "demo.lead", ID: 1, Provider: "p", Model: "m", Reasoning: &effort,
		TokensUsed: 430_000, InputTokens: 412_000, CachedInputTokens: 375_000,
	})
	lead := b.world.Bot("demo.lead")
	lead.Usage.InputTokens = 38_000
	lead.Turn, lead.Since = 9, b.now.Add(-42*time.Second)
	price := func(f float64) *float64 { return &f }
	b.o.Usage.Prices = usage.PricesOf(map[string]config.Price{"p/m": {Input: price(1), Output: price(1)}})
	b.o.ModelNotes = map[string]string{"p/m": "100000 tokens of context"}
	b.spend.ledger.Take(1, usage.Turn{ID: 3, Model: "p/m", Began: b.now, Over: true, Tokens: usage.Tokens{Input: 402_000, Output: 18_000}})
	b.spend.ledger.Take(3, usage.Turn{ID: 4, Model: "p/m", Began: b.now, Over: true, Tokens: usage.Tokens{Input: 2_680_000}})
	b.spend.ledger.Take(3, usage.Turn{ID: 5, Model: "p/m", Began: b.now.AddDate(0, 0, -1), Over: true, Tokens: usage.Tokens{Input: 9_000_000}})
	b.spend.all, b.spend.whole = true, true
	return b
}

// headerIs checks both ends of a header, and that nothing stands between them.
func (b *bench) headerIs(t *testing.T, name string, w int, left, right string) {
	t.Helper()
	line := b.header(w)
	middle, ok := strings.CutPrefix(strings.TrimRight(line.String(), " "), left)
	middle, at := strings.CutSuffix(middle, right)
	if !ok || !at || strings.TrimSpace(middle) != "" || line.Width() > w {
		t.Errorf("%s, %d wide: %q", name, w, line.String())
	}
}

func TestTheHeader(t *testing.T) {
	t.Parallel()
	b := spent(t)
	for _, c := range []struct {
		name        string
		w           int
		left, right string
	}{
		{"all of it", 160, " demo.lead  ● working 0:42     p/m · high", "ctx 38%  412k in (91% cached)  18k out  $0.42  today $3.10"},
		{"no wider than 120, no day's cost", 120, " demo.lead  ● working 0:42", "ctx 38%  412k in  18k out  $0.42"},
		{"as in the document", 80, " demo.lead  ● working 0:42", "ctx 38%  412k in  18k out  $0.42"},
		{"a narrow one has the context alone", 48, " demo.lead ● 0:42", "ctx 38%"},
		{"and then none", 22, " demo.lead ● 0:42", ""},
	} {
		b.headerIs(t, c.name, c.w, c.left, c.right)
	}
	b.session.kept.Title = "the login cookie fix"
	b.headerIs(t, "tokens out go first", 69, " the login cookie fix  ● working 0:42", "ctx 38%  412k in  $0.42")
	b.headerIs(t, "then tokens in", 60, " the login cookie fix  ● working 0:42", "ctx 38%  $0.42")
	b.headerIs(t, "with a title a wide one has both", 160, " demo.lead  the login cookie fix  ● working 0:42     p/m · high", "ctx 38%  412k in (91% cached)  18k out  $0.42  today $3.10")
	b.headerIs(t, "the model goes before all", 125, " demo.lead  the login cookie fix  ● working 0:42     p/m · high", "ctx 38%  412k in (91% cached)  18k out  $0.42  today $3.10")
	b.headerIs(t, "where it has no room", 121, " demo.lead  the login cookie fix  ● working 0:42", "ctx 38%  412k in (91% cached)  18k out  $0.42  today $3.10")
	b.o.Usage.NoCost = true
	if got := b.header(160).String(); strings.Contains(got, "$") || !strings.Contains(got, "18k out") {
		t.Errorf("with costs not shown it is %q", got)
	}
	b.o.Usage.NoCost = false
	b.pass(24 * time.Hour)
	if got := b.header(160).String(); !strings.Contains(got, "today $0.00") {
		t.Errorf("on the next day it is %q", got)
	}
}

func TestTheDaysWarning(t *testing.T) {
	t.Parallel()
	b := spent(t)
	asked := 0
	b.o.Usage.WarnUSD = 3
	b.o.Usage.Once = func(name string) bool { asked++; return name == "usage.daily_warn_usd "+usage.Day(b.now) }
	settle := func() {
		b.running.Wait()
		for len(b.calls) > 0 {
			(<-b.calls)()
		}
	}
	for range 2 {
		b.spend.warn(b.App)
		settle()
	}
	if len(b.notes.list) != 1 || !strings.Contains(b.notes.list[0].line, "$3.10") || asked != 1 {
		t.Errorf("%d asked, said: %+v", asked, b.notes.list)
	}
	b.o.Usage.WarnUSD, b.spend.warned = 4, ""
	b.spend.warn(b.App)
	settle()
	if asked != 1 {
		t.Error("it warns of less than it is to")
	}
}

func TestUsageApart(t *testing.T) {
	t.Parallel()
	b := spent(t)
	one, budget := int64(1), int64(200_000)
	b.world.Put(protocol.Bot{Name: "demo.task", ID: 2, CreatedByID: &one, BudgetTokens: &budget, TokensUsed: 12_000})
	b.world.Put(protocol.Bot{Name: "approver.auto.x", ID: 4, Closed: true})
	b.spend.ledger.Take(2, usage.Turn{ID: 6, Model: "p/m", Began: b.now, Tokens: usage.Tokens{Input: 12_000}})
	b.spend.ledger.Take(4, usage.Turn{ID: 7, Model: "p/judge", Began: b.now, Tokens: usage.Tokens{Input: 500}})
	var rows []string
	for _, r := range (&usagePanel{}).make(b.App) {
		if fields := strings.Fields(r.Line.String()); len(fields) > 0 {
			rows = append(rows, strings.Join(fields, " "))
		}
	}
	want := []string{
		"this turn 1 402k 0 18.0k $0.4200 0 rounds", "this session 1 402k 0 18.0k $0.4200", "its tasks 1 12.0k 0 0 $0.0120",
		"today, every bot 4 3.1M 0 18.0k $3.11 + cost ?", "seven days, every bot 5 12.1M 0 18.0k $12.11 + cost ?", "of it by the judge 1 500 0 0 cost ?",
		"this session's tasks", "demo.task 1 12.0k 0 0 $0.0120 budget 12.0k/200k",
		"seven days by model", "p/m 4 12.1M 0 18.0k $12.11", "p/judge 1 500 0 0 cost ?",
	}
	if strings.Join(rows, "\n") != strings.Join(want, "\n") {
		t.Errorf("the rows are\n%s\nwanted\n%s", strings.Join(rows, "\n"), strings.Join(want, "\n"))
	}
}
