package usage

import (
	"cmp"
	"slices"
	"time"

	"agent/protocol"
)

// Turn is what one turn of a bot used so far.
type Turn struct {
	ID     int64
	Model  string    // PROVIDER/MODEL
	Began  time.Time // zero: it has not begun, or never did
	Over   bool      // it uses nothing more
	Ended  time.Time // when it was over
	Rounds int64
	Tokens
}

// TurnOf is a turn as the daemon lists it. Its tokens do not tell what was written to a
// cache: the daemon counts that by call alone.
func TurnOf(t *protocol.Turn) Turn {
	out := Turn{
		ID: t.Turn, Model: t.Model, Over: t.FinishedMS != nil, Rounds: t.ModelRounds,
		Tokens: Tokens{Input: t.InputTokens, Cached: t.CachedInputTokens, Output: t.OutputTokens},
	}
	if t.FinishedMS != nil {
		out.Ended = time.UnixMilli(*t.FinishedMS)
	}
	if t.StartedMS != nil {
		out.Began = time.UnixMilli(*t.StartedMS)
	}
	return out
}

// Ledger holds what bots' turns used, by the day on which they began and by model. The
// zero value is empty. It belongs to one goroutine. Its size goes with days and models,
// not with turns.
type Ledger struct{ accounts map[int64]*account }

// account is one bot's.
type account struct {
	counts map[entry]*count
	kept   map[int64]Turn // those that may be told anew: no older than the oldest that is not over
	told   int64          // the newest that was told
	last   Turn           // the newest that began
}

type entry struct{ day, model string }

type count struct {
	turns int64
	Tokens
}

// Day is the day of a time, as the ledger's days are: where the person is.
func Day(t time.Time) string { return t.Local().Format(time.DateOnly) }

// Take takes a turn of a bot as it is now, in the place of what was told of it before.
// Turns are told in the order of their ids, each time from After on.
func (l *Ledger) Take(bot int64, t Turn) {
	a := l.accounts[bot]
	if a == nil {
		if l.accounts == nil {
			l.accounts = map[int64]*account{}
		}
		a = &account{counts: map[entry]*count{}, kept: map[int64]Turn{}}
		l.accounts[bot] = a
	}
	old, again := a.kept[t.ID]
	if !again && t.ID <= a.told {
		return // it was over before
	}
	a.add(old, -1)
	a.add(t, 1)
	a.kept[t.ID], a.told = t, max(a.told, t.ID)
	if !t.Began.IsZero() && t.ID >= a.last.ID {
		a.last = t
	}
}

// add adds a turn, or with sign -1 takes it out.
func (a *account) add(t Turn, sign int64) {
	if t.Began.IsZero() {
		return
	}
	e := entry{Day(t.Began), t.Model}
	c := a.counts[e]
	if c == nil {
		c = &count{}
		a.counts[e] = c
	}
	c.turns += sign
	c.Tokens.Add(Tokens{
		Input: sign * t.Input, Cached: sign * t.Cached, CacheWrite: sign * t.CacheWrite,
		Output: sign * t.Output, Reasoning: sign * t.Reasoning,
	})
}

// After is the turn of a bot after which reading goes on: all up to it are over and told.
// 0: nothing was told.
func (l *Ledger) After(bot int64) int64 {
	a := l.accounts[bot]
	if a == nil {
		return 0
	}
	after := a.told
	for _, t := range a.kept {
		if !t.Over {
			after = min(after, t.ID-1)
		}
	}
	for id := range a.kept {
		if id <= after {
			delete(a.kept, id)
		}
	}
	return after
}

// Last is the newest turn of a bot that began; false where none is known.
func (l *Ledger) Last(bot int64) (Turn, bool) {
	a := l.accounts[bot]
	if a == nil || a.last.ID == 0 {
		return Turn{}, false
	}
	return a.last, true
}

// Part is a part of what was used.
type Part struct {
	Name  string
	Turns int64
	Sum   Sum
}

// Join adds another part; the name stays.
func (p *Part) Join(o Part) {
	p.Turns += o.Turns
	p.Sum.Join(o.Sum)
}

// PartOf is one turn as a part.
func PartOf(p Prices, t Turn) Part {
	part := Part{Turns: 1}
	part.Sum.Add(p, t.Model, t.Tokens)
	return part
}

// Total is what bots used in turns that began on a day or later; from "" for all days.
func (l *Ledger) Total(p Prices, from string, bots ...int64) (all Part) {
	for _, m := range l.Models(p, from, bots...) {
		all.Join(m)
	}
	return all
}

// Models is Total apart by model, the most used first.
func (l *Ledger) Models(p Prices, from string, bots ...int64) []Part {
	by := map[string]*count{}
	for _, bot := range bots {
		a := l.accounts[bot]
		if a == nil {
			continue
		}
		for e, c := range a.counts {
			if e.day < from || c.turns == 0 {
				continue
			}
			m := by[e.model]
			if m == nil {
				m = &count{}
				by[e.model] = m
			}
			m.turns += c.turns
			m.Tokens.Add(c.Tokens)
		}
	}
	out := make([]Part, 0, len(by))
	for model, c := range by {
		part := Part{Name: model, Turns: c.turns}
		part.Sum.Add(p, model, c.Tokens)
		out = append(out, part)
	}
	SortParts(out)
	return out
}

// SortParts puts the most used first.
func SortParts(parts []Part) {
	slices.SortFunc(parts, func(x, y Part) int {
		return cmp.Or(cmp.Compare(y.Sum.All(), x.Sum.All()), cmp.Compare(x.Name, y.Name))
	})
}
