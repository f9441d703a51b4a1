package cli

import (
	"context"

	"agent/protocol"
)

var resultVerb = verb{
	name: "result", short: "one turn's outcome",
	long: "Prints how a turn ended, or that it has not. The exit is 0 for a turn that was\n" +
		"completed, or steered into another, and 1 for any other.",
	declare: func(a *app, t *table) func(context.Context, []string) error {
		c, s := a.common(t), t.starts()
		var r protocol.Result
		t.filled(&r.Bot, "bot", "NAME", "the bot; required")
		t.number(&r.Turn, "turn", 1, mostInteger, "the turn; required")
		return a.reading(c, s, t, func(ctx context.Context, l *link) error {
			object, err := l.raw(ctx, protocol.OpResult, &r)
			if err != nil {
				return err
			}
			var out protocol.Outcome
			if err := out.UnmarshalJSON(object); err != nil {
				return err
			}
			if err := a.printObject(object); err != nil {
				return err
			}
			if out.Status != protocol.StatusCompleted && out.Status != protocol.StatusSteered {
				return exit(1)
			}
			return nil
		}, "bot", "turn")
	},
}
