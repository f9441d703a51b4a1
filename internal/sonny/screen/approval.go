package screen

import (
	"context"
	"slices"
	"strings"
	"time"

	"agent/client"
	"agent/internal/sonny/allow"
	"agent/internal/sonny/lead"
	"agent/internal/sonny/screen/text"
	"agent/protocol"
)

// approval is a call that waits for the person (sonny.md 9.1).
type approval struct {
	c    *protocol.Approval
	args string // whole where they could be read
	rule ruleChoice
}

func (q *approval) id() string       { return callID(q.c) }
func (q *approval) key() callKey     { return callKey{q.c.Bot, q.c.Turn, q.c.CallID, q.c.Step} }
func (q *approval) bot() string      { return q.c.Bot }
func (q *approval) since() time.Time { return time.UnixMilli(q.c.AnnouncedMS) }

// tag is the gate that the person answers: the first that is not the judge's.
func (q *approval) tag() string {
	if i := slices.IndexFunc(q.c.Gates, func(tag string) bool { return tag != string(lead.Auto) }); i >= 0 {
		return q.c.Gates[i]
	}
	return q.c.Gates[0]
}

// offer finds the rule that choice 2 would write. Only a call that asked to leave the
// sandbox has one: an allow rule lets nothing else through (sandbox.md 7).
func (q *approval) offer(ctx context.Context, c *client.Client, place allow.Place) error {
	if q.c.Name != "shell" || q.c.Cause != "escalation" || q.c.Step != "" || !q.c.Whole() {
		return nil
	}
	owner, err := rulesOwner(ctx, c, q.c.Bot)
	if err != nil {
		return err
	}
	q.rule = offerRule(place, owner, scriptOf(q.args))
	return nil
}

func (q *approval) sheet(a *App, w int, whole bool) sheet {
	s := sheet{title: q.c.Bot + " " + why(q.c), body: q.body(a, w, whole), hints: []string{"1–4 decide", "↑↓ Enter"}}
	s.choices = []choice{plainChoice(1, "allow once")}
	if q.rule.offered() {
		s.choices = append(s.choices, choice{n: 2, label: text.Join(
			text.Span{Text: "allow, and stop asking for  "},
			text.Span{Text: q.rule.text() + " …", Role: text.Accent},
			text.Span{Text: "  in " + q.rule.reach.String()},
		)})
		s.hints = append(s.hints, "Tab reach", "e edit the rule")
	}
	s.choices = append(s.choices, plainChoice(3, "deny"), choice{n: 4, label: text.Of(text.Plain, "deny and say why"), words: "why"})
	s.hints = append(s.hints, "v whole call")
	return s
}

func (q *approval) pick(a *App, n int, words string) {
	switch n {
	case 1:
		a.answerCall(q, protocol.Allow, "")
	case 2:
		if words == everyBot { // of the plain mode, where no key changes the reach
			q.rule.reach = allow.Everywhere
		}
		a.keepRule(&q.rule, func() { a.answerCall(q, protocol.Allow, "") })
	case 3:
		a.answerCall(q, protocol.Deny, "")
	case 4:
		a.answerCall(q, protocol.Deny, strings.TrimSpace(words))
	}
}

func (q *approval) own(a *App, action string) { q.rule.own(a, action) }
func (q *approval) leave(*App) bool           { return false }

// why says what a call is about, in the panel's title.
func why(c *protocol.Approval) string {
	switch c.Cause {
	case "escalation", "outside_write":
		return "asks to leave the sandbox"
	case "rule_prompt":
		return "asks: a rule of yours wants it"
	case "served", "step":
		return "asks to use " + c.Name
	}
	return "asks"
}
