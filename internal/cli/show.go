package cli

import (
	"context"

	"agent/protocol"
)

var showVerb = verb{
	name: "show", short: "one bot's record, instructions included",
	declare: func(a *app, t *table) func(context.Context, []string) error {
		c, s := a.common(t), t.starts()
		var r protocol.Inspect
		t.filled(&r.Bot, "bot", "NAME", "the bot; required")
		return a.reading(c, s, t, func(ctx context.Context, l *link) error {
			return a.ask(ctx, l, protocol.OpInspect, &r)
		}, "bot")
	},
}
