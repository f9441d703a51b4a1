package screen

import (
	"context"
	"iter"
	"maps"
	"slices"

	"agent/internal/sonny/live"
	"agent/internal/sonny/screen/figures"
	"agent/internal/sonny/usage"
	"agent/protocol"
)

// Usage says how what bots use is counted (sonny.md 27).
type Usage struct {
	Prices  usage.Prices
	NoCost  bool    // costs are not shown
	WarnUSD float64 // a notice once a day past this; 0: none
	// Once reports whether a notice of a name is said for the first time, and keeps that
	// it was. It runs beside the loop. nil: each is the first.
	Once func(name string) bool
}

// spending is what is known of what bots used: their turns as the daemon lists them, read
// when a session opens and again after each call of its bot's.
type spending struct {
	ledger  usage.Ledger
	all     bool           // every bot is counted, for the day's sum
	whole   bool           // and all were read once
	owed    map[int64]bool // bots whose turns are to be read
	reading bool           // and are being
	windows map[string]int64
	asked   bool // the providers, for windows

	version int  // counts the changes
	changed bool // since figures were added up
	totals  totals
	warned  string // the day of which the notice was said
}

// totals are the header's sums.
type totals struct {
	of      int64  // the bot
	day     string // the day of today
	session usage.Sum
	known   bool // session's turns were read
	today   usage.Sum
}

// usageWatch keeps the sums true.
var usageWatch = feature{
	event: func(a *App, b *live.Bot, e *protocol.Event) {
		if b != nil && (e.Kind == protocol.KindUsage || e.Kind == protocol.KindTurnFinished) {
			a.spend.used(a, b)
		}
	},
	opened: func(a *App, s *session) {
		a.spend.owe(a, s.id)
		a.spend.findWindow(a)
		a.readNewestCall(s)
		a.spend.widened(a)
	},
}

// widened begins to count every bot, where the day's sum is shown or watched.
func (p *spending) widened(a *App) {
	if !a.o.Usage.NoCost && a.w > figures.Wide || a.o.Usage.WarnUSD > 0 {
		p.countAll(a)
	}
}

// countAll reads what every bot used, once; from then on each call's bot is read again.
func (p *spending) countAll(a *App) {
	if p.all {
		return
	}
	p.all = true
	for b := range a.world.Bots() {
		p.owe(a, b.Record.ID)
	}
}

// used hears that a bot's model was called or its turn ended.
func (p *spending) used(a *App, b *live.Bot) {
	p.widened(a)
	if p.all || a.session != nil && b.Record.ID == a.session.id {
		p.owe(a, b.Record.ID)
	}
}

// owe has a bot's turns read. Those of one bot are read at a time.
func (p *spending) owe(a *App, bot int64) {
	if bot == 0 {
		return // its record is on its way
	}
	if p.owed == nil {
		p.owed = map[int64]bool{}
	}
	p.owed[bot] = true
	p.read(a)
}

func (p *spending) read(a *App) {
	if p.reading {
		return
	}
	if len(p.owed) == 0 {
		if p.all && !p.whole {
			p.whole, p.changed = true, true
		}
		return
	}
	id := slices.Min(slices.Collect(maps.Keys(p.owed)))
	if s := a.session; s != nil && p.owed[s.id] {
		id = s.id
	}
	delete(p.owed, id)
	b := a.world.ByID(id)
	if b == nil {
		p.read(a)
		return
	}
	p.reading = true
	name, after, store := b.Record.Name, p.ledger.After(id), a.ready.Store.Identity
	do(a, func(ctx context.Context) ([]usage.Turn, error) { return turnsOf(a.client().Turns(ctx, name, after)) },
		func(turns []usage.Turn, err error) {
			p.reading = false
			if err == nil && store == a.ready.Store.Identity { // else it is read when it is used next
				for _, t := range turns {
					p.ledger.Take(id, t)
				}
				a.toldOf(id, turns)
				p.version, p.changed = p.version+1, true
			}
			p.read(a)
			p.warn(a)
		})
}

// turnsOf keeps of turns what is counted.
func turnsOf(list iter.Seq2[*protocol.Turn, error]) (out []usage.Turn, err error) {
	for t, err := range list {
		if err != nil {
			return nil, err
		}
		out = append(out, usage.TurnOf(t))
	}
	return out, nil
}

// sums are the header's, added up when something changed.
func (p *spending) sums(a *App) *totals {
	id, day := int64(0), usage.Day(a.o.Clock())
	if a.session != nil {
		id = a.session.id
	}
	f := &p.totals
	if p.changed || f.of != id || f.day != day {
		*f = totals{of: id, day: day, session: p.ledger.Total(a.o.Usage.Prices, "", id).Sum}
		_, f.known = p.ledger.Last(id)
		if p.whole {
			f.today = p.ledger.Total(a.o.Usage.Prices, day, a.botIDs()...).Sum
		}
		p.changed = false
	}
	return f
}

// botIDs are all bots that there are.
func (a *App) botIDs() (ids []int64) {
	for b := range a.world.Bots() {
		ids = append(ids, b.Record.ID)
	}
	return ids
}

// warn says once a day that more was spent than the person wants to know of.
func (p *spending) warn(a *App) {
	if a.o.Usage.WarnUSD <= 0 || !p.whole {
		return
	}
	f := p.sums(a)
	if f.today.USD < a.o.Usage.WarnUSD || p.warned == f.day {
		return
	}
	p.warned = f.day
	line := "today's use has cost " + usage.Money(f.today.USD) + ": more than usage.daily_warn_usd, " + usage.Money(a.o.Usage.WarnUSD)
	once, day := a.o.Usage.Once, f.day // the loop may change both
	do(a, func(context.Context) (bool, error) {
		return once == nil || once("usage.daily_warn_usd "+day), nil
	}, func(first bool, _ error) {
		if first {
			a.notes.say(line)
		}
	})
}

// window is the context window of a model, in tokens; 0 where it is not known.
func (p *spending) window(a *App, model string) int64 {
	if n := p.windows[model]; n > 0 {
		return n
	}
	return usage.Window(a.o.ModelNotes[model])
}

// meter is how full the context of a bot was at its newest call.
func (a *App) meter(b *live.Bot) usage.Meter {
	return usage.Meter{Tokens: b.Usage.InputTokens, Window: a.spend.window(a, b.Record.ModelRef())}
}

// findWindow asks the providers once, where the models file does not tell the window of
// the bot's model.
func (p *spending) findWindow(a *App) {
	b := a.bot()
	if b == nil || p.asked || p.window(a, b.Record.ModelRef()) > 0 {
		return
	}
	p.asked = true
	do(a, func(ctx context.Context) (*protocol.ProviderModels, error) { return a.client().ProviderModels(ctx) },
		func(lists *protocol.ProviderModels, err error) {
			if err != nil {
				return // tokens are shown alone
			}
			p.windows = map[string]int64{}
			for provider, list := range lists.Providers {
				for _, m := range list.Models {
					p.windows[provider+"/"+m.ID] = m.ContextTokens
				}
			}
		})
}

// readNewestCall finds what the newest call of a bot used that was not heard of here.
func (a *App) readNewestCall(s *session) {
	b := a.botAt(s)
	if b == nil || b.Usage.InputTokens > 0 || b.Record.TokensUsed == 0 {
		return
	}
	do(a, func(ctx context.Context) (*protocol.Usage, error) { return usage.NewestCall(ctx, a.client(), s.bot) },
		func(u *protocol.Usage, err error) {
			if b := a.botAt(s); err == nil && u != nil && b != nil && b.Record.ID == s.id && b.Usage.InputTokens == 0 {
				b.Usage = *u
			}
		})
}
