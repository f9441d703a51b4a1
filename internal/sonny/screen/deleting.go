package screen

import (
	"context"

	"agent/protocol"
)

// deleteBot deletes a bot's rows; then is called when they are gone.
func (a *App) deleteBot(name string, then func()) {
	id := int64(0)
	if b := a.world.Bot(name); b != nil {
		id = b.Record.ID
	}
	deleting := func(is bool) {
		for _, s := range []*session{a.session, a.side} {
			if s != nil && s.id == id {
				s.deleting = is
			}
		}
	}
	deleting(true)
	do(a, func(ctx context.Context) (*protocol.Deleted, error) { return a.client().Delete(ctx, name) },
		func(_ *protocol.Deleted, err error) {
			deleting(false)
			if err != nil {
				a.notes.fail(err)
				return
			}
			a.notes.say(name + " is deleted")
			a.world.Apply(&protocol.Event{Kind: protocol.KindDeleted, Bot: name}) // the event may come later
			if a.session != nil && a.session.id == id {
				a.session.gone = true
				_ = a.newCommand("")
			}
			a.seeGone() // it may be beside
			if err := a.o.Rules.Forget(id); err != nil {
				a.notes.fail(err)
			}
			then()
		})
}
