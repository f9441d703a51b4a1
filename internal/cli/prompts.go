package cli

import (
	"context"

	"agent/protocol"
)

var promptsVerb = verb{
	name: "prompts", short: "who wrote what a turn was asked",
	long: "Prints a turn's prompt and steers with who wrote each, the bot's earlier prompts,\n" +
		"newest first, and the calls that the turn made.",
	declare: func(a *app, t *table) func(context.Context, []string) error {
		c, s := a.common(t), t.starts()
		var r protocol.PromptsRequest
		var bytes *int64
		t.filled(&r.Bot, "bot", "NAME", "the bot; required")
		t.number(&r.Turn, "turn", 1, mostInteger, "the turn; required")
		t.stated(&bytes, "bytes", 1, protocol.MaxPrompt, "bytes of earlier prompts; default 65536")
		return a.reading(c, s, t, func(ctx context.Context, l *link) error {
			if bytes != nil {
				r.Bytes = protocol.Set(*bytes)
			}
			return a.ask(ctx, l, protocol.OpPrompts, &r)
		}, "bot", "turn")
	},
}
