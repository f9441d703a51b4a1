package cli

import (
	"context"
	"os"

	"agent/protocol"
)

var pauseVerb = verb{
	name: "pause", short: "stop everything until resume",
	long: "Pulls the andon cord: every current turn is interrupted, those that wait too,\n" +
		"background and detached commands end, and nothing starts until agent resume.\n" +
		"Any bot may pull it.",
	declare: func(a *app, t *table) func(context.Context, []string) error {
		c := a.common(t)
		var r protocol.PauseRequest
		t.text(&r.Reason, "reason", "TEXT", "why, at most 1024 bytes; everyone is told")
		return func(ctx context.Context, _ []string) error {
			l, err := a.connect(ctx, c, nil, startNever)
			if err != nil {
				return err
			}
			defer l.Close()
			r.By, r.From = puller()
			return a.ask(ctx, l, protocol.OpPause, &r)
		}
	},
}

// puller is who a pause is declared by: the bot whose shell this is, with its
// turn where that is known, else a person. On a bot's own socket the daemon
// knows better.
func puller() (by string, from *protocol.From) {
	bot := os.Getenv("AGENT_BOT")
	if bot == "" {
		return "person", nil
	}
	if turn, ok := digits(os.Getenv("AGENT_TURN")); ok && turn >= 1 && turn <= mostInteger {
		return "", &protocol.From{Bot: bot, Turn: turn}
	}
	return bot, nil
}

var resumeVerb = verb{
	name: "resume", short: "lift a pause",
	long: "Lifts the pause that stands: what waits in the bots' lines starts, in order. What\n" +
		"the pause interrupted is not taken up again. To go on with a bot: agent run --bot.",
	declare: func(a *app, t *table) func(context.Context, []string) error {
		c := a.common(t)
		return func(ctx context.Context, _ []string) error {
			if inside() {
				return protocol.Fail(protocol.InsideABot, "a person lifts a pause, from outside of every bot")
			}
			l, err := a.connect(ctx, c, nil, startNever)
			if err != nil {
				return err
			}
			defer l.Close()
			return a.ask(ctx, l, protocol.OpResume, nil)
		}
	},
}
