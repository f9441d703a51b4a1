package screen

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"agent/client"
	"agent/client/items"
	"agent/internal/sonny/allow"
	"agent/internal/sonny/live"
	"agent/internal/sonny/screen/cells"
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
	known  map[callKey]string // the panel's ids of those that are known
	mine   map[string]bool    // those that were answered here, by the same ids
}

// callKey is a call, or a step of one, of a bot.
type callKey struct {
	bot        string
	turn       int64
	call, step string
}

// forPerson reports whether a call waits for somebody who is not the judge.
func forPerson(gates []string) bool {
	return slices.ContainsFunc(gates, func(tag string) bool { return tag != "auto" })
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
	do(a, func(ctx context.Context) ([]*approval, error) { return readApprovals(ctx, a.client(), a.o.Rules, have) },
		func(list []*approval, err error) {
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

// readApprovals lists the calls that wait for a person. What was not had before is made
// whole, and comes with the rule that may be offered for it.
func readApprovals(ctx context.Context, c *client.Client, place allow.Place, have map[string]bool) ([]*approval, error) {
	var out []*approval
	for call, err := range c.Approvals(ctx, client.ApprovalFilter{}) {
		if err != nil {
			return nil, err
		}
		if !forPerson(call.Gates) {
			continue
		}
		q := &approval{c: call}
		if !have[q.id()] {
			q.args = wholeArguments(ctx, c, call)
			if err := q.offer(ctx, c, place); err != nil {
				return nil, err
			}
		}
		out = append(out, q)
	}
	return out, nil
}

// wholeArguments are a call's, read from its item where the listing has a part of them.
func wholeArguments(ctx context.Context, c *client.Client, call *protocol.Approval) string {
	if call.Whole() || call.Step != "" {
		return string(call.Arguments)
	}
	item, err := c.Item(ctx, call.Bot, call.Node)
	if err != nil {
		return string(call.Arguments) // the panel says that it is not whole
	}
	for _, part := range items.Parts(item) {
		if part.Kind == items.Call && part.CallID == call.CallID {
			call.ArgumentsCut, call.ArgumentsOmitted = nil, 0
			return part.Text
		}
	}
	return string(call.Arguments)
}

// listed takes what waits now.
func (p *answers) listed(a *App, list []*approval) {
	c := &p.calls
	now := map[string]bool{}
	known := map[callKey]string{}
	for _, q := range list {
		if c.mine[q.id()] {
			continue
		}
		now[q.id()], known[q.key()] = true, q.id()
	}
	c.known = known
	for _, q := range slices.Clone(p.list) {
		if old, is := q.(*approval); is && !now[old.id()] {
			p.drop(a, old.id(), "it waits no more")
		}
	}
	for _, q := range list {
		if now[q.id()] {
			p.add(a, q)
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
			p.gone(a, callKey{e.Bot, e.Turn, d.CallID, ""}, d.Approvals)
		}
	case protocol.KindToolCompleted:
		var d protocol.ToolCompleted
		if e.Decode(&d) == nil {
			p.gone(a, callKey{e.Bot, e.Turn, d.CallID, ""}, d.Approvals)
		}
	case protocol.KindStepDecided:
		var d protocol.StepDecided
		if e.Decode(&d) == nil {
			p.gone(a, callKey{e.Bot, e.Turn, d.CallID, d.Step}, d.Approvals)
		}
	case protocol.KindTurnFinished:
		for key := range p.calls.known {
			if key.bot == e.Bot && key.turn == e.Turn {
				p.gone(a, key, nil)
			}
		}
	}
}

// gone drops a call that was decided, and says by whom where that was not here.
func (p *answers) gone(a *App, key callKey, verdicts []protocol.Verdict) {
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
	if !p.calls.mine[id] && a.session != nil && a.session.bot == key.bot {
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
func (a *App) answerCall(q *approval, decision, reason string) {
	c := q.c
	answer := &protocol.Answer{
		Bot: c.Bot, Turn: c.Turn, CallID: c.CallID, Request: c.Request, Step: c.Step,
		Tag: q.tag(), Decision: decision, Reason: reason, By: cells.You,
	}
	p := &a.answers
	if p.calls.mine == nil {
		p.calls.mine = map[string]bool{}
	}
	p.calls.mine[q.id()] = true
	p.drop(a, q.id(), "")
	do(a, func(ctx context.Context) (*protocol.Answered, error) { return a.client().Answer(ctx, answer) },
		func(answered *protocol.Answered, err error) {
			switch {
			case err == nil && len(answered.Pending) > 0:
				delete(p.calls.mine, q.id()) // another gate asks, too
				p.refresh(a)
			case err == nil:
			case late(err):
				a.notes.say("too late: " + string(protocol.CodeOf(err)))
			default:
				delete(p.calls.mine, q.id())
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

// callID is the panel's name of a call under a request number.
func callID(c *protocol.Approval) string {
	return fmt.Sprintf("call %s %d %s %s %d %v", c.Bot, c.Turn, c.CallID, c.Step, c.Request, c.Gates)
}
