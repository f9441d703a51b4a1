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
	do(a, func(ctx context.Context) (*protocol.Deleted, error) { return a.client().Delete(ctx, name) },
		func(_ *protocol.Deleted, err error) {
			if err != nil {
				a.notes.fail(err)
				return
			}
			a.notes.say(name + " is deleted")
			a.world.Apply(&protocol.Event{Kind: protocol.KindDeleted, Bot: name}) // the event may come later
			if a.session != nil && a.session.bot == name {
				_ = a.newCommand("")
			}
			if err := a.o.Rules.Forget(id); err != nil {
				a.notes.fail(err)
			}
			then()
		})
}
