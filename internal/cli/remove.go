package cli

import (
	"context"

	"agent/protocol"
)

var rmVerb = verb{
	name: "rm", short: "delete a bot",
	long: "Deletes a bot with its turns and its history, but for what forks of it share. A bot\n" +
		"with work under way or in line is refused. Rows are deleted, not scrubbed.",
	declare: func(a *app, t *table) func(context.Context, []string) error {
		c, s := a.common(t), t.starts()
		var r protocol.Delete
		var id int64
		t.filled(&r.Bot, "bot", "NAME", "the bot; required")
		t.number(&id, "bot-id", 1, mostInteger, "only the bot of this id, whoever has the name")
		return a.reading(c, s, t, func(ctx context.Context, l *link) error {
			if id != 0 {
				record, err := l.Inspect(ctx, r.Bot)
				if err != nil {
					return err
				}
				if record.ID != id {
					return protocol.Fail(protocol.BotNotFound, r.Bot+" is another bot by now")
				}
			}
			return a.ask(ctx, l, protocol.OpDelete, &r)
		}, "bot")
	},
}

var pruneVerb = verb{
	name: "prune", short: "drop the records of a bot's older turns",
	long: "Drops events, tool records and kept output of all but a bot's newest finished turns.\n" +
		"The conversation itself stays whole.",
	declare: func(a *app, t *table) func(context.Context, []string) error {
		c, s := a.common(t), t.starts()
		var r protocol.Prune
		t.filled(&r.Bot, "bot", "NAME", "the bot; required")
		t.number(&r.KeepTurns, "keep-turns", 0, mostInteger, "how many finished turns keep their records; required")
		return a.reading(c, s, t, func(ctx context.Context, l *link) error {
			return a.ask(ctx, l, protocol.OpPrune, &r)
		}, "bot", "keep-turns")
	},
}
