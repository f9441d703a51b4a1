package screen

import (
	"fmt"
	"slices"

	"agent/internal/sonny/live"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/human"
	"agent/internal/sonny/screen/text"
	"agent/internal/sonny/usage"
)

// The widths at which the header tells more (sonny.md 7.1, 17).
const (
	narrow = 60  // below: the context alone
	wide   = 120 // above: model and effort, the cached share, today's cost
)

// header says whose session it is, what it does, and what it used.
func (a *App) header(w int) text.Line {
	if a.session == nil {
		left := text.Join(text.Span{Text: " " + a.start.project, Attr: text.Bold}, text.Span{Text: "  new lead"})
		return left.Right(text.Of(text.Dim, "sonny "+a.o.Version+" "), w)
	}
	left := a.whose(w)
	fields := a.usedFields(w)
	if b := a.bot(); b != nil && w > wide {
		spans := append(slices.Clone(left.Spans), text.Span{Text: "     " + modelWords(b), Role: text.Dim})
		if with := text.Join(spans...); with.Width()+fieldsLine(fields).Width() < w {
			left = with
		}
	}
	for len(fields) > 0 {
		if right := fieldsLine(fields); left.Width()+right.Width() < w {
			return left.Right(right, w)
		}
		fields = withoutLast(fields)
	}
	return left.Cut(w)
}

// whose is the header's left: the session, and what its bot does.
func (a *App) whose(w int) text.Line {
	name, gap := " "+a.session.name(), "  "
	if w > wide && a.session.name() != a.session.bot {
		name = " " + a.session.bot + "  " + a.session.name()
	}
	g := glyphs[a.state()]
	words := g.mark + " " + g.word
	if w < narrow {
		words, gap = g.mark, " "
	}
	if b := a.bot(); b != nil {
		switch a.state() {
		case live.HeldUp:
			words += a.heldWords(b)
		case live.Working, live.Waiting, live.NeedsYou:
			words += " " + human.Clock(a.o.Clock().Sub(b.Since))
		}
	}
	return text.Join(text.Span{Text: cells.OneLine(name), Attr: text.Bold}, text.Span{Text: gap + words, Role: g.role})
}

// modelWords are a bot's model and effort.
func modelWords(b *live.Bot) string {
	words := b.Record.ModelRef()
	if b.Record.Reasoning != nil {
		words += " · " + *b.Record.Reasoning
	}
	return cells.OneLine(words)
}

// told is one of what the header tells at its right.
type told struct {
	span text.Span
	stay int // the higher the longer it stays
}

// usedFields are the header's, in their order on screen.
func (a *App) usedFields(w int) []told {
	b := a.bot()
	if b == nil {
		return nil
	}
	var out []told
	add := func(stay int, role text.Role, words string) {
		out = append(out, told{text.Span{Text: words, Role: role}, stay})
	}
	if b.Usage.InputTokens > 0 {
		m := a.meter(b)
		add(5, levelRole(m), "ctx "+meterWords(m))
	}
	if w < narrow || b.Total.Input+b.Total.Output == 0 {
		return out
	}
	in := human.Tokens(b.Total.Input) + " in"
	if w > wide && b.Total.Cached > 0 {
		in += fmt.Sprintf(" (%d%% cached)", b.Total.Cached*100/max(1, b.Total.Input))
	}
	add(3, text.Dim, in)
	add(2, text.Dim, human.Tokens(b.Total.Output)+" out")
	if a.o.Usage.NoCost {
		return out
	}
	f := a.spend.sums(a)
	if f.known {
		add(4, text.Dim, f.session.CostBrief())
	}
	if w > wide && a.spend.whole {
		add(1, text.Dim, "today "+f.today.CostBrief())
	}
	return out
}

// levelRole is the meter's colour.
func levelRole(m usage.Meter) text.Role {
	switch m.Level() {
	case usage.Full:
		return text.Fail
	case usage.Filled:
		return text.Warn
	}
	return text.Dim
}

// meterWords are the share of the window, or the tokens where that is not known.
func meterWords(m usage.Meter) string {
	if share, ok := m.Percent(); ok {
		return fmt.Sprintf("%d%%", share)
	}
	return human.Tokens(m.Tokens)
}

// withoutLast is fields without the one that goes first.
func withoutLast(fields []told) []told {
	goes := 0
	for i, f := range fields {
		if f.stay < fields[goes].stay {
			goes = i
		}
	}
	return slices.Delete(slices.Clone(fields), goes, goes+1)
}

func fieldsLine(fields []told) (line text.Line) {
	for i, f := range fields {
		if i > 0 {
			line.Spans = append(line.Spans, text.Span{Text: "  "})
		}
		line.Spans = append(line.Spans, f.span)
	}
	line.Spans = append(line.Spans, text.Span{Text: " "})
	return line
}
