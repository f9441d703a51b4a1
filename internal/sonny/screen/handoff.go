package screen

import (
	"context"
	"strings"

	"agent/internal/sonny/lead"
	"agent/internal/sonny/live"
	"agent/internal/sonny/screen/outbox"
	"agent/protocol"
)

// handoffCommands carry a goal into a fresh context, or make room in this one
// (sonny.md 10.5).
var handoffCommands = feature{
	commands: []slashCommand{
		{"handoff", "GOAL", "a new lead with a brief of this one's work", (*App).handoff},
		{"compact", "[HINT]", "summarize the older part at the next call", (*App).compact},
	},
	event:  (*App).handedOff,
	opened: (*App).leftCompact,
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
	req := &protocol.Submit{Bot: s.bot, BotID: s.id, RequestID: outbox.NewRequest(), Prompt: briefFor(goal), Delivery: protocol.Queue}
	a.awaitTurn(s.bot, req.RequestID, func(a *App, d *protocol.TurnFinished) {
		if d.Status != protocol.StatusCompleted {
			a.notes.say("no brief came; nothing was handed on")
			return
		}
		a.brief(s.bot, goal)
	})
	typed := outbox.Text("/handoff " + goal)
	a.out.GiveFor(typed, req, func(err error) {
		if err != nil {
			a.notes.fail(err)
			a.out.GiveBack(&s.compose.Box, typed)
		}
	})
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
		a.start.compose.Set("Goal: " + goal + "\n\n" + strings.TrimSpace(text))
		a.notes.say("the brief of " + bot + "; edit it, Enter makes the new lead with it")
	})
}

// compact lowers the bot's compaction point for one turn, in which HINT goes in as a
// message. The tool host gives it back when the turn has ended, also with Sonny closed.
func (a *App) compact(hint string) error {
	s := a.session
	b := a.bot()
	switch {
	case b == nil:
		return protocol.Fail("failed", "nothing was said yet")
	case s.working(a):
		return protocol.Fail("failed", "a turn runs; /compact is for a bot at rest")
	}
	record := &b.Record
	typed := outbox.Text(strings.TrimSpace("/compact " + hint))
	if hint == "" {
		hint = "Go on; the older part of this conversation was summarized to make room."
	}
	if record.CompactionInstructions == nil {
		return protocol.Fail("failed", "this bot was made with compaction off and cannot summarize; /handoff takes its work to a fresh one")
	}
	req := &protocol.Submit{Bot: s.bot, BotID: s.id, RequestID: outbox.NewRequest(), Prompt: hint, Delivery: protocol.Queue}
	kept := s.kept
	kept.Store, kept.BotID, kept.Bot = a.ready.Store.Identity, s.id, s.bot
	after := b.EndedOf
	low := s.compactSoon()
	refused := func(err error) {
		a.uncompact(s)
		a.notes.fail(err)
	}
	f := a.out.Before(&s.compose.Box, req.RequestID, typed)
	keep := a.out.Keeper(f)
	do(a, func(ctx context.Context) (struct{}, error) {
		keep()
		now, err := a.client().Inspect(ctx, s.bot) // the record here may be older
		if err != nil {
			return struct{}{}, err
		}
		back := lead.Compact{
			Request: req.RequestID, After: after,
			At: given(now.Settings.CompactAt), Keep: given(now.Settings.CompactKeep), Items: given(now.Settings.ContextItems),
		}
		if err := a.o.Book.Lowers(kept, back); err != nil {
			return struct{}{}, err
		}
		_, err = a.client().Configure(ctx, &protocol.Configure{
			Bot: s.bot, BotID: s.id, Settings: protocol.Set(low),
		})
		return struct{}{}, err
	}, func(_ struct{}, err error) {
		if err != nil {
			refused(err)
			a.out.Back(f)
			return
		}
		a.out.GiveFor(typed, req, func(err error) {
			if err != nil {
				refused(err)
				a.out.GiveBack(&s.compose.Box, typed)
			}
		})
	})
	return nil
}

// uncompact gives back what /compact lowered for a turn that will not run.
func (a *App) uncompact(s *session) {
	store := a.ready.Store.Identity
	do(a, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, a.o.Book.GiveBack(ctx, a.client(), store, s.id, func(*lead.Compact) bool { return true })
	}, func(_ struct{}, err error) { a.failing(err) })
}

// leftCompact gives back what was left lowered, where no turn runs or waits that it could
// be for. While one does, the tool host sees to it.
func (a *App) leftCompact(s *session) {
	if b := a.botAt(s); b != nil && b.Turn == 0 && len(b.Queue) == 0 {
		a.uncompact(s)
	}
}

// The point at which a conversation is summarized for /compact, and how much of it stays
// as it is, in percent of an envelope of twice its items, or of least ones.
const (
	soonAt    = 10
	soonKeep  = 1
	leastRoom = 80 // items: with fewer than a tenth of them there is nothing to summarize
)

// compactSoon are the settings by which the next call of a bot summarizes what came
// before. The envelope is in items, since a conversation that is long for its model may
// be a small part of one in bytes. Where not all of it is known the daemon's stays.
func (s *session) compactSoon() protocol.Settings {
	low := protocol.Settings{CompactAt: protocol.Set(int64(soonAt)), CompactKeep: protocol.Set(int64(soonKeep))}
	if s.story.IsWhole() {
		low.ContextItems = protocol.Set(int64(max(leastRoom, 2*s.story.Items())))
	}
	return low
}

// given is a setting of a bot's own; nil where it has the daemon's.
func given(v protocol.Opt[int64]) *int64 {
	if n, set := v.Get(); set {
		return &n
	}
	return nil
}
