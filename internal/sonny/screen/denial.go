package screen

import (
	"context"
	"fmt"
	"time"

	"agent/client"
	"agent/internal/sonny/lead"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/text"
	"agent/protocol"
)

// denial is a call, or a step, that ended denied: the person may allow that it runs once
// when it is made again (sonny.md 9.5).
type denial struct {
	d    cells.Denial
	name string // the bot's
	at   time.Time
	rule ruleChoice
}

// denied is the newest denial of the bot on screen; nil for none that is not dealt with.
func (a *App) denied() asking {
	s := a.session
	if !s.loaded {
		return nil
	}
	d := s.tr.Denied(func(d cells.Denial) bool { return !s.overturned[denialID(s.bot, d)] })
	if d == nil {
		return nil
	}
	q := &denial{d: *d, name: s.bot, at: a.o.Now()}
	q.look(a)
	return q
}

func denialID(bot string, d cells.Denial) string {
	return fmt.Sprintf("denial %s %d %s %s", bot, d.Turn, d.Call, d.Step)
}

// look finds out whether a rule may be offered.
func (q *denial) look(a *App) {
	if q.d.Name != "shell" || q.d.Step != "" {
		return
	}
	do(a, func(ctx context.Context) (ruleChoice, error) {
		owner, err := rulesOwner(ctx, a.client(), q.name)
		if err != nil {
			return ruleChoice{}, err
		}
		return offerRule(a.o.Rules, owner, scriptOf(q.d.Arguments)), nil
	}, func(r ruleChoice, err error) {
		if err == nil {
			q.rule = r
		}
	})
}

func (q *denial) id() string       { return denialID(q.name, q.d) }
func (q *denial) bot() string      { return q.name }
func (q *denial) since() time.Time { return q.at }

func (q *denial) sheet(a *App, w int, whole bool) sheet {
	call := &approval{c: &protocol.Approval{Name: q.d.Name, Step: q.d.Step}, args: q.d.Arguments}
	s := sheet{title: q.name + " was denied", body: call.subject(w, whole), hints: []string{"1–3 decide", "v whole call"}}
	s.body = append(s.body, text.Line{})
	s.body = append(s.body, quoted("", q.d.Words, text.Fail, w)...)
	s.choices = []choice{plainChoice(1, "allow this call once")}
	if a.manualOffered(q.name) {
		s.choices = append(s.choices, plainChoice(2, "switch to manual"))
	}
	if q.rule.offered() {
		s.choices = append(s.choices, choice{n: 3, label: text.Join(
			text.Span{Text: "add a rule for  "},
			text.Span{Text: q.rule.text() + " …", Role: text.Accent},
			text.Span{Text: "  in " + q.rule.reach.String()},
		)})
		s.hints = append(s.hints, "Tab reach", "e edit the rule")
	}
	return s
}

// manualOffered reports whether the judge decides for a bot, so that the person could.
func (a *App) manualOffered(bot string) bool {
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
		a.keepRule(&q.rule, func() {})
	}
	a.settleDenial(q)
}

// settleDenial closes the panel; the denial is not offered again.
func (a *App) settleDenial(q *denial) {
	if s := a.session; s != nil && s.bot == q.name {
		if s.overturned == nil {
			s.overturned = map[string]bool{}
		}
		s.overturned[q.id()] = true
	}
	a.answers.drop(a, q.id(), "")
}

func (q *denial) own(a *App, action string) { q.rule.own(a, action) }
func (q *denial) leave(*App) bool           { return true }

// overturn allows the call once, and tells the bot that it may make it again.
func (a *App) overturn(q *denial) {
	s := a.session
	answer := &protocol.Answer{
		Bot: q.name, Turn: q.d.Turn, CallID: q.d.Call, Step: q.d.Step, Request: q.d.Request,
		Decision: protocol.Allow, By: cells.You, Overturn: true,
	}
	do(a, func(ctx context.Context) (*protocol.Answered, error) {
		if q.d.Request == 0 {
			request, err := requestOf(ctx, a.client(), q.name, q.d)
			if err != nil {
				return nil, err
			}
			answer.Request = request
		}
		return a.client().Answer(ctx, answer)
	},
		func(_ *protocol.Answered, err error) {
			if err != nil {
				delete(s.overturned, q.id())
				a.notes.fail(err)
				return
			}
			a.queueText(s, q.message())
		})
}

// requestOf is the number under which a call asked last, of which no event was seen here:
// it was denied before this screen was opened.
func requestOf(ctx context.Context, c *client.Client, bot string, d cells.Denial) (request int64, err error) {
	for e, err := range c.Follow(ctx, bot, client.FollowOptions{Turn: d.Turn, UntilLive: true}) {
		if err != nil {
			return 0, err
		}
		var asked protocol.ApprovalRequested
		if e.Kind != protocol.KindApprovalRequested || e.Decode(&asked) != nil {
			continue
		}
		for _, r := range asked.Calls {
			if r.CallID == d.Call && r.Step == d.Step {
				request = r.Request
			}
		}
	}
	return request, nil
}

// message is what tells the bot of it: the judge reads it as the person's word.
func (q *denial) message() string {
	if q.d.Step != "" {
		return "You may now do: " + q.d.Name
	}
	if command := scriptOf(q.d.Arguments); command != "" {
		return "You may now run: " + command
	}
	return "You may now use " + q.d.Name + " with: " + q.d.Arguments
}
