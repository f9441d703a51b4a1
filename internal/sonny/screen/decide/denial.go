package decide

import (
	"context"
	"fmt"

	"agent/client"
	"agent/internal/sonny/allow"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/text"
	"agent/protocol"
)

// Denied is a call, or a step, that ended denied: the person may allow that it runs once
// when it is made again (sonny.md 9.5).
type Denied struct {
	cells.Denial
	Bot  string
	Rule allow.Offered
}

// ID names the denial.
func (q *Denied) ID() string {
	return fmt.Sprintf("denial %s %d %s %s", q.Bot, q.Turn, q.Call, q.Step)
}

// Offer is the rule that may be offered for it. It asks the daemon for the bot's lead.
func (q *Denied) Offer(ctx context.Context, c *client.Client, place allow.Place) (allow.Offered, error) {
	if q.Name != "shell" || q.Step != "" {
		return allow.Offered{}, nil
	}
	owner, err := allow.Owner(ctx, c, q.Bot)
	if err != nil {
		return allow.Offered{}, err
	}
	return place.Offer(owner, allow.Script(q.Arguments)), nil
}

// Sheet is the denial for a width in cells: 1 allows the call once, 2 has the person
// decide from here on, where the judge does, and 3 writes the rule that is offered.
func (q *Denied) Sheet(judged bool, w int, whole bool) Sheet {
	call := &Call{Approval: &protocol.Approval{Name: q.Name, Step: q.Step}, Args: q.Arguments}
	s := Sheet{Title: q.Bot + " was denied", Body: call.Subject(w, whole), Hints: []string{"1–3 decide", "v whole call"}}
	s.Body = append(s.Body, text.Line{})
	s.Body = append(s.Body, quoted("", q.Words, text.Fail, w)...)
	s.Choices = []Choice{Plain(1, "allow this call once")}
	if judged {
		s.Choices = append(s.Choices, Plain(2, "switch to manual"))
	}
	s.offer(3, "add a rule for  ", &q.Rule)
	return s
}

// Number is the number under which the call asked last. Where no event of that was seen,
// since it was denied before, the turn's events are read.
func (q *Denied) Number(ctx context.Context, c *client.Client) (request int64, err error) {
	if q.Request != 0 {
		return q.Request, nil
	}
	for e, err := range c.Follow(ctx, q.Bot, client.FollowOptions{Turn: q.Turn, UntilLive: true}) {
		if err != nil {
			return 0, err
		}
		var asked protocol.ApprovalRequested
		if e.Kind != protocol.KindApprovalRequested || e.Decode(&asked) != nil {
			continue
		}
		for _, r := range asked.Calls {
			if r.CallID == q.Call && r.Step == q.Step {
				request = r.Request
			}
		}
	}
	return request, nil
}

// Message is what tells the bot that it may make the call again: the judge reads it as
// the person's word.
func (q *Denied) Message() string {
	if q.Step != "" {
		return "You may now do: " + q.Name
	}
	if command := allow.Script(q.Arguments); command != "" {
		return "You may now run: " + command
	}
	return "You may now use " + q.Name + " with: " + q.Arguments
}
