package cli

import "context"

var followVerb = verb{
	name: "follow", short: "replay, then stream one bot or all",
	long: "Prints a bot's events from a cursor on. While a turn runs it goes on to that turn's\n" +
		"end, which decides the exit; for an idle bot it ends after the replay. --all stays.",
	declare: func(a *app, t *table) func(context.Context, []string) error {
		f := &follow{app: a, common: a.common(t)}
		t.filled(&f.bot, "bot", "NAME", "the bot")
		t.toggle(&f.all, "all", "every bot")
		t.number(&f.after, "after", 0, mostInteger, "only events after this cursor; default 0")
		t.toggle(&f.reconnect, "reconnect", "attach again when the connection is lost, and go on")
		t.toggle(&f.noDeltas, "no-deltas", "leave out text and thinking as it streams")
		return func(ctx context.Context, _ []string) error { return f.run(ctx) }
	},
}

type follow struct {
	app    *app
	common *common

	bot                      string
	after                    int64
	all, reconnect, noDeltas bool
}

func (f *follow) run(ctx context.Context) error {
	switch {
	case f.all && f.bot != "":
		return usagef("--all with --bot: give one, --bot NAME for one bot or --all for every bot")
	case !f.all && f.bot == "":
		return usagef("follow needs --bot NAME or --all")
	}
	if err := refuseBlocking("follow"); err != nil {
		return err
	}
	l, err := f.app.connect(ctx, f.common, nil, startNever)
	if err != nil {
		return err
	}
	defer l.Close()
	turn, bot := int64(0), "*"
	if !f.all {
		// The turn is read before following, so that one that ends while we
		// attach is still seen.
		record, err := l.Inspect(ctx, f.bot)
		if err != nil {
			return err
		}
		bot = f.bot
		if record.RunningTurn != nil {
			turn = *record.RunningTurn
		}
	}
	w := f.app.watch(l, bot, turn, false)
	w.options.After, w.options.Reconnect, w.options.NoDeltas = f.after, f.reconnect, f.noDeltas
	w.options.UntilLive = !f.all && turn == 0
	return w.follow(ctx)
}
