package screen

import (
	"slices"

	"agent/internal/sonny/live"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/figures"
	"agent/internal/sonny/screen/human"
	"agent/internal/sonny/screen/text"
)

// header says whose session it is, what it does, and what it used.
func (a *App) header(w int) text.Line {
	if a.session == nil {
		left := text.Join(text.Span{Text: " " + a.start.project, Attr: text.Bold}, text.Span{Text: "  new lead"})
		return left.Right(text.Of(text.Dim, "sonny "+a.o.Version+" "), w)
	}
	left := a.whose(w)
	fields := a.used().Fields(w)
	if b := a.bot(); b != nil && w > figures.Wide {
		spans := append(slices.Clone(left.Spans), text.Span{Text: "     " + modelWords(b), Role: text.Dim})
		if with := text.Join(spans...); with.Width()+figures.Line(fields).Width() < w {
			left = with
		}
	}
	return figures.Fit(left, fields, w)
}

// leastName is how wide a name made of a message may be on the narrowest screen, in cells.
const leastName = 16

// whose is the header's left: the session, and what its bot does.
func (a *App) whose(w int) text.Line {
	called, gap := cells.OneLine(a.called(a.session)), "  "
	if a.session.kept.Title == "" { // a message takes no field's room
		called = text.Cut(called, max(leastName, w/3), "…")
	}
	name := " " + called
	if w > figures.Wide && called != a.session.bot {
		name = " " + cells.OneLine(a.session.bot) + "  " + called
	}
	g := a.lookOf(a.session)
	words := g.Mark + " " + g.Word
	if w < figures.Narrow {
		words, gap = g.Mark, " "
	}
	if b := a.bot(); b != nil {
		switch a.state() {
		case live.HeldUp:
			words += a.heldWords(b)
		case live.Working, live.Waiting, live.NeedsYou:
			words += " " + human.Clock(a.o.Clock().Sub(b.Since))
		}
	}
	return text.Join(text.Span{Text: name, Attr: text.Bold}, text.Span{Text: gap + words, Role: g.Role})
}

// modelWords are a bot's model and effort.
func modelWords(b *live.Bot) string {
	words := b.Record.ModelRef()
	if b.Record.Reasoning != nil {
		words += " · " + *b.Record.Reasoning
	}
	return cells.OneLine(words)
}

// used is what the header tells of what the bot on screen used.
func (a *App) used() *figures.Used {
	b := a.bot()
	if b == nil {
		return &figures.Used{}
	}
	out := &figures.Used{Meter: a.meter(b), Total: b.Total, NoCost: a.o.Usage.NoCost}
	if out.NoCost {
		return out
	}
	f := a.spend.sums(a)
	if f.known {
		out.Session = &f.session
	}
	if a.spend.whole {
		out.Today = &f.today
	}
	return out
}
