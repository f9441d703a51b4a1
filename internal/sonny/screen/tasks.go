package screen

import (
	"agent/internal/sonny/lead"
	"agent/internal/sonny/live"
)

// kin are the tasks of the bot on screen, as they were derived last.
type kin struct {
	of   int64
	at   int // the world's Kin then
	list []*live.Bot
}

// tasks are the bots under the one on screen (sonny.md 5.3), by name.
func (a *App) tasks() []*live.Bot {
	b := a.bot()
	if b == nil {
		return nil
	}
	k := &a.kin
	if k.of == b.Record.ID && k.at == a.world.Kin {
		return k.list
	}
	*k = kin{of: b.Record.ID, at: a.world.Kin, list: a.tasksOf(b)}
	return k.list
}

// tasksOf are the bots under any one.
func (a *App) tasksOf(b *live.Bot) (list []*live.Bot) {
	for _, t := range lead.Tasks(&b.Record, lead.ProjectOf(b.Record.Name), a.world.Records(), a.hidden()) {
		if tb := a.world.Bot(t.Name); tb != nil {
			list = append(list, tb)
		}
	}
	return list
}
