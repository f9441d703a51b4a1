package screen

import (
	"context"

	"agent/internal/sonny/allow"
	"agent/protocol"
)

// changeRule does an action of the approval keys that is an offered rule's: Tab changes
// its reach, e its words.
func (a *App) changeRule(r *allow.Offered, action string) {
	if !r.There() {
		return
	}
	switch action {
	case "approve_reach":
		r.Reach = r.Reach.Other()
	case "approve_words":
		f := &writing{label: "the rule's words", take: func(_ *App, typed string) error { return r.Edit(typed) }}
		f.Set(r.Text())
		a.answers.field = f
	}
}

// keepRule writes the rule and gives the rules to the lead; then is called when both
// are done. When either fails the call goes on waiting.
func (a *App) keepRule(r *allow.Offered, then func()) {
	words, reach, owner := r.Words, r.Reach, r.Owner
	do(a, func(ctx context.Context) (*protocol.Bot, error) {
		if err := a.o.Rules.Write(reach, owner.ID, words); err != nil {
			return nil, err
		}
		return a.o.Rules.Give(ctx, a.client(), &owner)
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
