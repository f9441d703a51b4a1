package screen

import (
	"context"
	"encoding/json"

	"agent/client"
	"agent/internal/sonny/allow"
	"agent/protocol"
)

// ruleChoice is the rule that "allow, and stop asking" would write.
type ruleChoice struct {
	words  []string // nil: none is offered
	reach  allow.Reach
	owner  protocol.Bot // whose rules it joins: the lead of the bot that asks
	script string
	have   *protocol.Rules
}

func (r *ruleChoice) offered() bool { return r.words != nil }
func (r *ruleChoice) text() string  { return allow.Text(r.words) }

// offerRule is the rule that is offered for a script of a bot whose rules owner has.
func offerRule(place allow.Place, owner *protocol.Bot, script string) ruleChoice {
	r := ruleChoice{owner: *owner, script: script, have: place.Read(owner.ID)}
	r.words = allow.Offer(r.have, script)
	return r
}

// rulesOwner is the bot whose rules a bot goes by: its maker's maker, up to the lead
// (sonny.md 4: tasks go by their lead's rules).
func rulesOwner(ctx context.Context, c *client.Client, name string) (*protocol.Bot, error) {
	b, err := c.Inspect(ctx, name)
	for range maxLineage {
		if err != nil || b.CreatedBy == nil || b.CreatedByID == nil {
			return b, err
		}
		maker, err := c.Inspect(ctx, *b.CreatedBy)
		if err != nil || maker.ID != *b.CreatedByID {
			return b, nil // its maker is gone; it has its rules itself
		}
		b = maker
	}
	return b, err
}

// maxLineage bounds how far up makers are looked for.
const maxLineage = 64

// scriptOf is the command among a call's arguments.
func scriptOf(arguments string) string {
	var args struct {
		Command string `json:"command"`
	}
	_ = json.Unmarshal([]byte(arguments), &args) // without one there is none to offer a rule for
	return args.Command
}

// own changes the rule: Tab its reach, e its words.
func (r *ruleChoice) own(a *App, action string) {
	if !r.offered() {
		return
	}
	switch action {
	case "approve_reach":
		r.reach = r.reach.Other()
	case "approve_words":
		f := &writing{label: "the rule's words", take: func(_ *App, typed string) error { return r.edited(typed) }}
		f.Set(r.text())
		a.answers.field = f
	}
}

// edited takes words that the person wrote. What would not let the call through, or
// allows more than can be seen, stays to be written.
func (r *ruleChoice) edited(typed string) error {
	words, err := allow.Words(typed)
	if err == nil {
		err = allow.Check(r.have, words, r.script)
	}
	if err == nil {
		r.words = words
	}
	return err
}

// keepRule writes the rule and gives the rules to the lead; then is called when both
// are done. When either fails the call goes on waiting.
func (a *App) keepRule(r *ruleChoice, then func()) {
	words, reach, owner := r.words, r.reach, r.owner
	do(a, func(ctx context.Context) (*protocol.Bot, error) {
		if err := a.o.Rules.Write(reach, owner.ID, words); err != nil {
			return nil, err
		}
		return giveRules(ctx, a.client(), a.o.Rules, &owner)
	}, func(record *protocol.Bot, err error) {
		if err != nil {
			a.notes.fail(err)
			return
		}
		a.world.Put(*record)
		a.notes.say("from here on " + allow.Text(words) + " … runs unasked in " + reach.String())
		then()
	})
}
