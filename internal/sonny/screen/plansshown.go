package screen

import (
	"context"
	"fmt"
	"strings"

	"agent/internal/sonny/host/plans"
	"agent/internal/sonny/live"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/human"
	"agent/internal/sonny/screen/roster"
	"agent/internal/sonny/screen/text"
)

// planStates are the plans of the bots that were looked at, by their ids. They are read
// when something shows them, and again when the bot has changed its plan.
type planStates map[int64]*planState

type planState struct {
	steps []plans.Step
	of    int  // live.Bot.Plans when it was read
	read  bool // or it is being read
}

// planOf is a bot's plan as far as it is known; it has it read where it is not.
func (a *App) planOf(b *live.Bot) []plans.Step {
	id := b.Record.ID
	p := a.plans[id]
	if p == nil {
		p = &planState{}
		if a.plans == nil {
			a.plans = planStates{}
		}
		a.plans[id] = p
	}
	if p.read && p.of == b.Plans {
		return p.steps
	}
	p.read, p.of = true, b.Plans
	do(a, func(context.Context) ([]plans.Step, error) { return plans.Read(a.o.Store, id) },
		func(steps []plans.Step, err error) {
			a.failing(err)
			p.steps = steps
		})
	return p.steps
}

// doneOf is how much of a plan is done, 2/4; "" for no plan.
func doneOf(steps []plans.Step) string {
	if len(steps) == 0 {
		return ""
	}
	done := 0
	for _, s := range steps {
		if s.State == plans.Done {
			done++
		}
	}
	return fmt.Sprintf("%d/%d", done, len(steps))
}

// planWords are how far a bot is and what it is at: 2/4 signing tests; "" for no plan.
func (a *App) planWords(b *live.Bot) string {
	steps := a.planOf(b)
	words := doneOf(steps)
	for _, s := range steps {
		if s.State == plans.Doing {
			return words + " " + s.Text
		}
	}
	return words
}

// card is a task as the transcript of its lead shows it.
func (a *App) card(bot string) *cells.Card {
	b := a.world.Bot(bot)
	if b == nil {
		return nil
	}
	g := roster.Looks[b.State(false)]
	c := &cells.Card{Mark: text.Span{Text: g.Mark, Role: g.Role}, Name: bot, Plan: a.planWords(b)}
	if b.Activity != "" {
		c.Last = "▸ " + b.Activity
	}
	if b.Turn != 0 {
		c.Took = human.Clock(a.o.Clock().Sub(b.Since))
	}
	return c
}

// planRow is what stands above a transcript whose bot has a plan that is not done.
func (a *App) planRow(s *session, w int) (row text.Line, shown bool) {
	b := a.botAt(s)
	if b == nil {
		return row, false
	}
	steps := a.planOf(b)
	left := false
	for _, step := range steps {
		left = left || step.State != plans.Done
	}
	if !left {
		return row, false
	}
	count, doing, _ := strings.Cut(a.planWords(b), " ")
	return text.Join(text.Span{Text: " plan ", Role: text.Dim}, text.Span{Text: count, Role: text.Run},
		text.Span{Text: "  " + cells.OneLine(doing)}).Right(text.Of(text.Dim, "/plan "), w), true
}

// stepLines are a plan's steps in two columns, where they fit.
func stepLines(steps []plans.Step, w, most int) (out []text.Line) {
	columns := 1
	if w >= 70 {
		columns = 2
	}
	wide := w / columns
	for i := 0; i < len(steps); i += columns {
		if len(out) == most {
			out[most-1] = text.Of(text.Dim, fmt.Sprintf("+%d steps", len(steps)-i+columns))
			return out
		}
		var line text.Line
		for _, s := range steps[i:min(i+columns, len(steps))] {
			line.Spans = append(line.Spans, text.Span{Text: text.Pad(stepMarks[s.State]+" "+cells.OneLine(s.Text), wide-1) + " ", Role: stepRole(s)})
		}
		out = append(out, line.Cut(w))
	}
	return out
}

func stepRole(s plans.Step) text.Role {
	switch s.State {
	case plans.Done:
		return text.Dim
	case plans.Doing:
		return text.Run
	}
	return text.Plain
}
