package screen

import (
	"context"
	"strings"

	"agent/client"
	"agent/internal/sonny/live"
	"agent/protocol"
)

// handoffCommands carry a goal into a fresh context, or make room in this one
// (sonny.md 10.5).
var handoffCommands = feature{
	commands: []slashCommand{
		{"handoff", "GOAL", "a new lead with a brief of this one's work", (*App).handoff},
		{"compact", "[HINT]", "summarize the older part at the next call", (*App).compact},
	},
	event: (*App).handedOff,
}

// waiting is a turn whose end something waits for.
type waiting struct {
	bot     string
	request string
	turn    int64
	then    func(*App, *protocol.TurnFinished)
}

// awaitTurn calls then when the turn of a request has ended.
func (a *App) awaitTurn(bot, request string, then func(*App, *protocol.TurnFinished)) {
	a.awaited = append(a.awaited, &waiting{bot: bot, request: request, then: then})
}

// handedOff hears of turns that something waits for.
func (a *App) handedOff(b *live.Bot, e *protocol.Event) {
	for i := 0; i < len(a.awaited); i++ {
		w := a.awaited[i]
		if w.bot != e.Bot {
			continue
		}
		switch e.Kind {
		case protocol.KindAccepted:
			var d protocol.Accepted
			if e.Decode(&d) == nil && d.RequestID == w.request {
				w.turn = e.Turn
			}
		case protocol.KindTurnFinished:
			var d protocol.TurnFinished
			if w.turn == e.Turn && e.Decode(&d) == nil {
				a.awaited = append(a.awaited[:i], a.awaited[i+1:]...)
				i--
				w.then(a, &d)
			}
		}
	}
}

// briefFor asks for a brief.
func briefFor(goal string) string {
	return "Write a brief for a fresh agent that has none of this conversation. Its goal: " + goal +
		"\nGive what it must know to begin: the state of the work, the files and commands that matter, what was decided and why, what is left. Reply with the brief alone, and run nothing."
}

// handoff asks the bot for a brief, and puts it into the start screen's composer for
// editing: sending it makes the new lead.
func (a *App) handoff(goal string) error {
	s := a.session
	if s == nil || goal == "" {
		return protocol.Fail(protocol.UsageError, "/handoff GOAL: say what the new lead is to reach")
	}
	req := &protocol.Submit{Bot: s.bot, BotID: s.id, RequestID: requestID(), Prompt: briefFor(goal), Delivery: protocol.Queue}
	a.awaitTurn(s.bot, req.RequestID, func(a *App, d *protocol.TurnFinished) {
		if d.Status != protocol.StatusCompleted {
			a.notes.say("no brief came; nothing was handed on")
			return
		}
		a.brief(s.bot, goal)
	})
	a.give(req, func(err error) { a.failing(err) })
	a.notes.say("asked for a brief; it opens here for editing when it is written")
	return nil
}

// brief opens the start screen with what the bot wrote last.
func (a *App) brief(bot, goal string) {
	record := a.recordOf(bot)
	do(a, func(ctx context.Context) (string, error) {
		turn := int64(0)
		for t, err := range a.client().Turns(ctx, bot, 0) {
			if err != nil {
				return "", err
			}
			turn = t.Turn
		}
		out, err := a.client().Result(ctx, bot, turn)
		if err != nil {
			return "", err
		}
		return out.Text, nil
	}, func(text string, err error) {
		if err != nil {
			a.notes.fail(err)
			return
		}
		if err := a.newCommand(""); err != nil {
			a.notes.fail(err)
			return
		}
		if record != nil {
			a.start.model = record.ModelRef()
		}
		a.start.compose.set("Goal: " + goal + "\n\n" + strings.TrimSpace(text))
		a.notes.say("the brief of " + bot + "; edit it, Enter makes the new lead with it")
	})
}

// compact lowers the bot's compaction point for one turn, in which HINT goes in as a
// message.
func (a *App) compact(hint string) error {
	s := a.session
	record := (*protocol.Bot)(nil)
	if s != nil {
		record = a.recordOf(s.bot)
	}
	switch {
	case record == nil:
		return protocol.Fail("failed", "nothing was said yet")
	case s.working(a):
		return protocol.Fail("failed", "a turn runs; /compact is for a bot at rest")
	}
	if hint == "" {
		hint = "Go on; the older part of this conversation was summarized to make room."
	}
	if record.CompactionInstructions == nil {
		return protocol.Fail("failed", "this bot was made with compaction off and cannot summarize; /handoff takes its work to a fresh one")
	}
	at, keep := putBack(record.Settings.CompactAt), putBack(record.Settings.CompactKeep)
	req := &protocol.Submit{Bot: s.bot, BotID: s.id, RequestID: requestID(), Prompt: hint, Delivery: protocol.Queue}
	set := func(ctx context.Context, at, keep protocol.Opt[int64]) error {
		_, err := a.client().Configure(ctx, &protocol.Configure{
			Bot: s.bot, BotID: s.id, Settings: protocol.Set(protocol.Settings{CompactAt: at, CompactKeep: keep}),
		})
		return err
	}
	a.awaitTurn(s.bot, req.RequestID, func(a *App, _ *protocol.TurnFinished) {
		do(a, func(ctx context.Context) (struct{}, error) {
			_, err := client.Retry(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, set(ctx, at, keep) })
			return struct{}{}, err
		}, func(_ struct{}, err error) { a.failing(err) })
	})
	do(a, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, set(ctx, protocol.Set(int64(compactSoon)), protocol.Set(int64(compactSoon-1)))
	},
		func(_ struct{}, err error) {
			if err != nil {
				a.notes.fail(err)
				return
			}
			a.give(req, func(err error) { a.failing(err) })
		})
	return nil
}

// compactSoon is a point that a conversation worth summarizing is past, in percent of
// the window; what is kept is below it.
const compactSoon = 2

// putBack is a setting as it is put back: one that was not set goes back to the daemon's.
func putBack(v protocol.Opt[int64]) protocol.Opt[int64] {
	if _, set := v.Get(); set {
		return v
	}
	return protocol.Null[int64]()
}
