package cli

import (
	"context"

	"agent/protocol"
)

var statsVerb = verb{
	name: "stats", short: "the daemon's load and limits",
	declare: func(a *app, t *table) func(context.Context, []string) error {
		c, s := a.common(t), t.starts()
		return a.reading(c, s, t, func(ctx context.Context, l *link) error {
			return a.ask(ctx, l, protocol.OpStats, nil)
		})
	},
}
