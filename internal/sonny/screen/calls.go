package screen

import (
	"context"
	"errors"
	"slices"

	"agent/internal/sonny/live"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/decide"
	"agent/protocol"
)

// approvalCommands move to what waits, and list it.
var approvalCommands = feature{
	commands: []slashCommand{{"approvals", "", "all calls that wait, of every bot", func(a *App, _ string) error { a.listApprovals(); return nil }}},
	actions:  map[string]func(*App){"answer": func(a *App) { a.answers.step(a) }},
	event:    func(a *App, b *live.Bot, e *protocol.Event) { a.answers.hear(a, b, e) },
}

// calls is what is known of the calls that wait for the person.
type calls struct {
	asking bool
	again  bool
	known  map[decide.Key]string // the panel's ids of those that are known
	mine   map[string]bool       // those that were answered here, by the same ids
}

// waitsForPerson reports whether any bot's call does.
func (a *App) waitsForPerson() bool {
	for b := range a.world.Bots() {
		if b.ForPerson() > b.Questions {
			return true
		}
	}
	return false
}

// refresh reads the calls that wait, where there may be other ones now.
func (p *answers) refresh(a *App) {
	c := &p.calls
	if a.session == nil || len(c.known) == 0 && !a.waitsForPerson() {
		return
	}
	if c.asking {
		c.again = true
		return
	}
	c.asking = true
	have := map[string]bool{}
	for _, id := range c.known {
		have[id] = true
	}
	do(a, func(ctx context.Context) ([]*decide.Call, error) {
		return decide.ReadCalls(ctx, a.client(), a.o.Rules, have)
	},
		func(list []*decide.Call, err error) {
			c.asking = false
			if err == nil {
				p.listed(a, list)
			}
			if c.again {
				c.again = false
				p.refresh(a)
			}
		})
}

// listed takes what waits now.
func (p *answers) listed(a *App, list []*decide.Call) {
	c := &p.calls
	now := map[string]bool{}
	known := map[decide.Key]string{}
	for _, q := range list {
		if c.mine[q.ID()] {
			continue
		}
		now[q.ID()], known[q.Key()] = true, q.ID()
	}
	c.known = known
	for _, q := range slices.Clone(p.list) {
		if old, is := q.(approval); is && !now[old.id()] {
			p.drop(a, old.id(), "it waits no more")
		}
	}
	for _, q := range list {
		if now[q.ID()] {
			p.add(a, approval{q})
		}
	}
}

// hear takes the events by which a call waits no longer, so that the panel closes at
// once and says why.
func (p *answers) hear(a *App, b *live.Bot, e *protocol.Event) {
	if b == nil {
		return
	}
	switch e.Kind {
	case protocol.KindToolStarted:
		var d protocol.ToolStarted
		if e.Decode(&d) == nil {
			p.gone(a, decide.Key{Bot: e.Bot, Turn: e.Turn, Call: d.CallID}, d.Approvals)
		}
	case protocol.KindToolCompleted:
		var d protocol.ToolCompleted
		if e.Decode(&d) == nil {
			p.gone(a, decide.Key{Bot: e.Bot, Turn: e.Turn, Call: d.CallID}, d.Approvals)
		}
	case protocol.KindStepDecided:
		var d protocol.StepDecided
		if e.Decode(&d) == nil {
			p.gone(a, decide.Key{Bot: e.Bot, Turn: e.Turn, Call: d.CallID, Step: d.Step}, d.Approvals)
		}
	case protocol.KindTurnFinished:
		for key := range p.calls.known {
			if key.Bot == e.Bot && key.Turn == e.Turn {
				p.gone(a, key, nil)
			}
		}
	}
}

// gone drops a call that was decided, and says by whom where that was not here.
func (p *answers) gone(a *App, key decide.Key, verdicts []protocol.Verdict) {
	id, known := p.calls.known[key]
	if !known {
		return
	}
	delete(p.calls.known, key)
	why := "withdrawn"
	for _, v := range verdicts {
		why = "answered by " + answerer(v.By)
		if v.By == nil {
			why = "expired"
		}
	}
	if !p.calls.mine[id] && a.session != nil && a.session.bot == key.Bot {
		a.notes.say(why)
	}
	p.drop(a, id, why)
}

// answerer is who gave a verdict that was not given here. The label of every Sonny's
// person is the same.
func answerer(by *string) string {
	switch {
	case by == nil:
		return "nobody"
	case *by == cells.You || *by == "":
		return "you, on another screen"
	}
	return cells.OneLine(*by)
}

// answerCall gives the person's verdict on a call under its own request number.
func (a *App) answerCall(q *decide.Call, decision, reason string) {
	answer := &protocol.Answer{
		Bot: q.Bot, Turn: q.Turn, CallID: q.CallID, Request: q.Request, Step: q.Step,
		Tag: q.Tag(), Decision: decision, Reason: reason, By: cells.You,
	}
	p := &a.answers
	if p.calls.mine == nil {
		p.calls.mine = map[string]bool{}
	}
	p.calls.mine[q.ID()] = true
	p.drop(a, q.ID(), "")
	do(a, func(ctx context.Context) (*protocol.Answered, error) { return a.client().Answer(ctx, answer) },
		func(answered *protocol.Answered, err error) {
			switch {
			case err == nil && len(answered.Pending) > 0:
				delete(p.calls.mine, q.ID()) // another gate asks, too
				p.refresh(a)
			case err == nil:
			case late(err):
				a.notes.say("too late: " + string(protocol.CodeOf(err)))
			default:
				delete(p.calls.mine, q.ID())
				a.notes.fail(err)
				p.refresh(a)
			}
		})
}

// late reports whether somebody or something was faster.
func late(err error) bool {
	return slices.ContainsFunc([]protocol.Code{
		protocol.ApprovalSuperseded, protocol.ApprovalAlreadyAnswered, protocol.NoPendingApproval, protocol.StaleTurn,
	}, func(code protocol.Code) bool { return errors.Is(err, code) })
}
