package decide

import (
	"strings"
	"time"

	"agent/internal/sonny/plain"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/human"
)

// plainWidth is a width at which nothing that is read aloud is wrapped, in cells.
const plainWidth = 4000

// EveryBot is what is typed after the number of a call's rule to have it hold everywhere.
const EveryBot = "all"

// Spoken is a sheet in the words of the plain mode; sheet lays it out for a width, and
// whole. more is how many other questions are open.
func Spoken(sheet func(w int) Sheet, more int) *plain.Question {
	s := sheet(plainWidth)
	out := &plain.Question{Head: s.Title, More: more}
	for _, line := range s.Body {
		row := line.String()
		if rest, marked := strings.CutPrefix(row, barred[0].Text); marked {
			row = plainBar + rest
		}
		if words := strings.TrimSpace(row); words != "" {
			out.Body = append(out.Body, words)
		}
	}
	for _, c := range s.Choices {
		choice := plain.Choice{Number: c.N, Does: c.Label.String()}
		if c.Words != "" {
			choice.Words = "WORDS"
		}
		out.Choices = append(out.Choices, choice)
	}
	if len(out.Choices) == 0 { // it only tells
		out.Choices = []plain.Choice{{Number: 1, Does: "close it"}}
	}
	return out
}

// Spoken is the call in the words of the plain mode, where its rule's reach is said with
// its number. more is how many other questions are open.
func (q *Call) Spoken(k Known, more int) *plain.Question {
	out := &plain.Question{Head: q.Bot + " " + q.wants(), Body: q.Spelled(), More: more}
	if k.Bot != nil && k.Bot.Workspace != nil {
		out.Head += " in " + human.Path(*k.Bot.Workspace)
	}
	if !q.Whole() {
		out.Body = append(out.Body, "some of it is too long to be shown here: deny what you cannot read")
	}
	for _, t := range q.Target {
		out.Body = append(out.Body, "it wants "+t)
	}
	if q.Justification != "" {
		out.Body = append(out.Body, "reason it gave: "+q.Justification)
	}
	for _, line := range cells.Changes(q.Name, q.Args, plainWidth) {
		out.Body = append(out.Body, plainBar+line.String())
	}
	out.Choices = []plain.Choice{{Number: 1, Does: "allow once"}}
	if q.Rule.There() {
		does := "allow, and stop asking for " + q.Rule.Text() + " in this session (\"2 all\": every bot, every folder)"
		out.Choices = append(out.Choices, plain.Choice{Number: 2, Does: does, Words: EveryBot, Maybe: true})
	}
	out.Choices = append(out.Choices, plain.Choice{Number: 3, Does: "deny"}, plain.Choice{Number: 4, Words: "REASON", Does: "deny with a reason"})
	if q.ExpiresMS != nil {
		out.Limit = cells.SpanWords(max(0, time.UnixMilli(*q.ExpiresMS).Sub(k.Now)))
	}
	return out
}

// wants says what a call is about, as a sentence's beginning.
func (q *Call) wants() string {
	switch q.Cause {
	case "escalation", "outside_write":
		return "wants to run outside the sandbox"
	case "rule_prompt":
		return "asks, since a rule of yours wants it,"
	case "served", "step":
		return "wants to use " + q.Name
	}
	return "asks"
}
