package decide

import (
	"context"
	"fmt"
	"slices"
	"time"

	"agent/client"
	"agent/client/items"
	"agent/internal/sonny/allow"
	"agent/internal/sonny/lead"
	"agent/internal/sonny/screen/text"
	"agent/protocol"
)

// Call is a call, or a step of one, that waits for a verdict (sonny.md 9.1).
type Call struct {
	*protocol.Approval
	Args string // whole where they could be read
	Rule allow.Offered
}

// Key is a call, or a step of one, of a bot.
type Key struct {
	Bot        string
	Turn       int64
	Call, Step string
}

// Known is what a call is shown with besides itself.
type Known struct {
	Bot *protocol.Bot // the record of the bot whose call it is; nil where there is none
	Now time.Time
}

// ID names a call under its request number.
func (q *Call) ID() string {
	return fmt.Sprintf("call %s %d %s %s %d %v", q.Bot, q.Turn, q.CallID, q.Step, q.Request, q.Gates)
}

// Key is the call under whatever request number.
func (q *Call) Key() Key { return Key{q.Bot, q.Turn, q.CallID, q.Step} }

// Since is when the call was announced.
func (q *Call) Since() time.Time { return time.UnixMilli(q.AnnouncedMS) }

// Tag is the gate that the person answers: the first that is not the judge's.
func (q *Call) Tag() string {
	if i := slices.IndexFunc(q.Gates, persons); i >= 0 {
		return q.Gates[i]
	}
	return q.Gates[0]
}

// ForPerson reports whether what waits at these gates waits for somebody who is not the
// judge.
func ForPerson(gates []string) bool { return slices.ContainsFunc(gates, persons) }

func persons(tag string) bool { return tag != string(lead.Auto) }

// ReadCalls asks the daemon for the calls that wait for a person. What have does not name
// is made whole, and comes with the rule that may be offered for it.
func ReadCalls(ctx context.Context, c *client.Client, place allow.Place, have map[string]bool) ([]*Call, error) {
	var out []*Call
	for call, err := range c.Approvals(ctx, client.ApprovalFilter{}) {
		if err != nil {
			return nil, err
		}
		if !ForPerson(call.Gates) {
			continue
		}
		q := &Call{Approval: call}
		if !have[q.ID()] {
			q.Args = wholeArguments(ctx, c, call)
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

// offer finds the rule that choice 2 would write. Only a call that asked to leave the
// sandbox has one: an allow rule lets nothing else through (sandbox.md 7).
func (q *Call) offer(ctx context.Context, c *client.Client, place allow.Place) error {
	if q.Name != "shell" || q.Cause != "escalation" || q.Step != "" || !q.Whole() {
		return nil
	}
	owner, err := allow.Owner(ctx, c, q.Bot)
	if err != nil {
		return err
	}
	q.Rule = place.Offer(owner, allow.Script(q.Args))
	return nil
}

// Sheet is the call for a width in cells: 1 allows it once, 2 writes the rule that is
// offered, 3 denies it, and 4 with a reason.
func (q *Call) Sheet(k Known, w int, whole bool) Sheet {
	s := Sheet{Title: q.Bot + " " + q.why(), Body: q.body(k, w, whole), Hints: []string{"1–4 decide", "↑↓ Enter"}}
	s.Choices = []Choice{Plain(1, "allow once")}
	s.offer(2, "allow, and stop asking for  ", &q.Rule)
	s.Choices = append(s.Choices,
		Choice{N: 3, Label: text.Of(text.Plain, "deny"), Safe: true},
		Choice{N: 4, Label: text.Of(text.Plain, "deny and say why"), Words: "why", Safe: true})
	s.Hints = append(s.Hints, "v whole call")
	return s
}

// why says what a call is about, in the panel's title.
func (q *Call) why() string {
	switch q.Cause {
	case "escalation", "outside_write":
		return "asks to leave the sandbox"
	case "rule_prompt":
		return "asks: a rule of yours wants it"
	case "served", "step":
		return "asks to use " + q.Name
	}
	return "asks"
}
