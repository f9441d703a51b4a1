package screen

import (
	"context"
	"time"

	"agent/internal/sonny/allow"
	"agent/internal/sonny/lead"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/decide"
	"agent/protocol"
)

// denial is a call in the panel that ended denied (sonny.md 9.5).
type denial struct {
	decide.Denied
	at time.Time
}

// denied is the newest denial of the bot on screen; nil for none that is not dealt with.
func (a *App) denied() asking {
	s := a.session
	if !s.story.IsLoaded() {
		return nil
	}
	d := s.tr.Denied(func(d cells.Denial) bool {
		denied := decide.Denied{Denial: d, Bot: s.bot}
		return !s.overturned[denied.ID()]
	})
	if d == nil {
		return nil
	}
	q := &denial{Denied: decide.Denied{Denial: *d, Bot: s.bot}, at: a.o.Now()}
	q.look(a)
	return q
}

// look finds out whether a rule may be offered.
func (q *denial) look(a *App) {
	do(a, func(ctx context.Context) (allow.Offered, error) { return q.Offer(ctx, a.client(), a.o.Rules) },
		func(rule allow.Offered, err error) {
			if err == nil {
				q.Rule = rule
			}
		})
}

func (q *denial) id() string       { return q.ID() }
func (q *denial) bot() string      { return q.Bot }
func (q *denial) since() time.Time { return q.at }

func (q *denial) sheet(a *App, w int, whole bool) decide.Sheet {
	return q.Sheet(a.judged(q.Bot), w, whole)
}

// judged reports whether the judge decides for a bot, so that the person could.
func (a *App) judged(bot string) bool {
	b := a.world.Bot(bot)
	return b != nil && lead.Confined(&b.Record).Gate == lead.Auto
}

func (q *denial) pick(a *App, n int, _ string) {
	switch n {
	case 1:
		a.overturn(q)
	case 2:
		a.setRow(lead.Manual)
	case 3:
		a.keepRule(&q.Rule, func() {})
	}
	a.settleDenial(q)
}

// settleDenial closes the panel; the denial is not offered again.
func (a *App) settleDenial(q *denial) {
	if s := a.session; s != nil && s.bot == q.Bot {
		if s.overturned == nil {
			s.overturned = map[string]bool{}
		}
		s.overturned[q.id()] = true
	}
	a.answers.drop(a, q.id(), "")
}

func (q *denial) own(a *App, action string) { a.changeRule(&q.Rule, action) }
func (q *denial) leave(*App) bool           { return true }

// overturn allows the call once, and tells the bot that it may make it again.
func (a *App) overturn(q *denial) {
	s := a.session
	answer := &protocol.Answer{
		Bot: q.Bot, Turn: q.Turn, CallID: q.Denial.Call, Step: q.Step,
		Decision: protocol.Allow, By: cells.You, Overturn: true,
	}
	do(a, func(ctx context.Context) (*protocol.Answered, error) {
		request, err := q.Number(ctx, a.client())
		if err != nil {
			return nil, err
		}
		answer.Request = request
		return a.client().Answer(ctx, answer)
	},
		func(_ *protocol.Answered, err error) {
			if err != nil {
				delete(s.overturned, q.id())
				a.notes.fail(err)
				return
			}
			a.out.Queue(&s.compose.Box, q.Message())
		})
}
