package cli

import (
	"context"

	"agent/protocol"
)

var statsVerb = verb{
	name:  "stats",
	short: "the daemon's load and limits",
	declare: func(a *app, t *table) func(context.Context, []string) error {
		c, s := a.common(t), t.starts()
		return func(ctx context.Context, _ []string) error {
			l, err := a.connect(ctx, c, s, startExisting)
			if err != nil {
				return err
			}
			return a.ask(ctx, l, protocol.OpStats, nil)
		}
	},
}
