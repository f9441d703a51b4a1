package cli

import (
	"context"
	"errors"
	"iter"

	"agent/client"
	"agent/client/termsafe"
	"agent/client/worktree"
	"agent/protocol"
)

// watch shows a bot's events, as run and follow do.
type watch struct {
	app     *app
	link    *link
	bot     string
	turn    int64 // the turn whose end decides; 0: none
	options client.FollowOptions

	view   view
	cursor int64 // of the last event shown
	end    *protocol.TurnFinished
}

// view is how events are shown: as JSON lines or the pretty way.
type view interface {
	event(ctx context.Context, e *protocol.Event) error
	finish() error
}

// watch is ready to follow a bot; turn 0 selects none. made says that this
// command made the bot.
func (a *app) watch(l *link, bot string, turn int64, made bool) *watch {
	w := &watch{app: a, link: l, bot: bot, turn: turn}
	w.options.Turn = turn
	if a.pretty {
		w.view = a.prettyView(l, made)
	} else {
		w.view = jsonLines{a}
	}
	return w
}

// follow shows events until the selected turn's end, which decides the exit,
// or until what the options say.
func (w *watch) follow(ctx context.Context) error {
	ctx = w.app.watchOutput(ctx)
	w.cursor = w.options.After
	if err := w.show(ctx, w.link.Follow(ctx, w.bot, w.options)); err != nil {
		return w.broken(err)
	}
	return w.verdict()
}

// submitted selects the turn that a run has just made, or repeats.
func (w *watch) submitted(sub *protocol.Submitted, tree *worktree.Tree) {
	w.turn = sub.Turn
	if sub.Cursor != nil {
		w.cursor = *sub.Cursor - 1
	}
	if p, ok := w.view.(*pretty); ok {
		p.turn = sub.Turn
		if tree != nil {
			p.branch = tree.Branch
		}
	}
}

// show shows a stream of events to its end.
func (w *watch) show(ctx context.Context, events iter.Seq2[*protocol.Event, error]) error {
	for e, err := range events {
		if err != nil {
			return err
		}
		if err := w.take(ctx, e); err != nil {
			return err
		}
	}
	return w.view.finish()
}

func (w *watch) take(ctx context.Context, e *protocol.Event) error {
	if err := w.view.event(ctx, e); err != nil {
		return err
	}
	w.cursor = max(w.cursor, e.Cursor)
	if e.Kind == protocol.KindTurnFinished && w.turn != 0 && e.Turn == w.turn {
		w.end = &protocol.TurnFinished{}
		return e.Decode(w.end)
	}
	return nil
}

// broken is a stream that did not reach its end, with the place to come back
// to.
func (w *watch) broken(err error) error {
	w.view.finish()
	if errors.Is(err, errOutputClosed) {
		return errOutputClosed
	}
	at := w.spot()
	return stopped{at.facts(err), at}
}

func (w *watch) spot() spot {
	who := " --all"
	if w.bot != "*" {
		who = " --bot " + termsafe.ShellWord(w.bot)
	}
	if w.app.pretty {
		who += " --pretty"
	}
	s := spot{cursor: w.cursor, again: "agent follow" + targetFlags(w.link.target) + who}
	if w.turn != 0 {
		s.handle = protocol.TurnHandle(w.bot, w.turn).String()
	}
	return s
}

// verdict is the exit by the selected turn's status.
func (w *watch) verdict() error {
	if w.turn == 0 {
		return nil
	}
	if w.end == nil {
		return w.broken(protocol.Fail(protocol.DaemonDisconnected, "the stream ended before the turn did"))
	}
	if w.end.Status == protocol.StatusCompleted || w.end.Status == protocol.StatusSteered {
		return nil
	}
	if w.app.pretty {
		return exit(1) // the view has said it
	}
	e := &protocol.Error{Code: protocol.Code(w.end.Status), Facts: w.end.Extra}
	if w.end.Error != nil {
		e.Code = *w.end.Error
	}
	if w.end.Detail != nil {
		e.Detail = *w.end.Detail
	}
	return withFact(e, "handle", protocol.TurnHandle(w.bot, w.turn).String())
}

// jsonLines shows each event as its line, at once.
type jsonLines struct{ app *app }

func (j jsonLines) event(_ context.Context, e *protocol.Event) error {
	if len(e.Line) == 0 { // made by the client: a new connection
		return nil
	}
	return j.app.write(append(termsafe.AppendJSON(nil, e.Line), '\n'))
}

func (j jsonLines) finish() error { return nil }
