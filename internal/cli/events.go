package cli

import (
	"context"

	"agent/protocol"
)

var eventsVerb = verb{
	name: "events", short: "one page of a bot's durable events",
	long: "Prints one page of events. Go on with --after and the page's next_cursor until a\n" +
		"page is empty; a short one is not the end.",
	declare: func(a *app, t *table) func(context.Context, []string) error {
		c, s := a.common(t), t.starts()
		r := protocol.EventsRequest{Limit: protocol.MaxPage}
		t.filled(&r.Bot, "bot", "NAME", "the bot; required")
		t.number(&r.After, "after", 0, mostInteger, "only events after this cursor; default 0")
		t.number(&r.Limit, "limit", 1, protocol.MaxPage, "how many at most; default 256")
		return a.reading(c, s, t, func(ctx context.Context, l *link) error {
			return a.ask(ctx, l, protocol.OpEvents, &r)
		}, "bot")
	},
}
