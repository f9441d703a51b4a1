package headless

import (
	"context"
	"errors"
	"time"

	"agent/client"
	"agent/client/items"
	"agent/protocol"
)

// item is what the follower hands over: an event, or the error that ended it.
type item struct {
	event *protocol.Event
	err   error
}

// lostFor is how long a daemon that went away may be gone.
const lostFor = 10 * time.Second

// follow starts to follow all bots from a cursor on: the bot's tasks are others. What it
// returns ends it and waits for it.
func (r *run) follow(ctx context.Context, after int64) func() {
	ctx, cancel := context.WithCancel(ctx)
	r.events = make(chan item, 64)
	done := make(chan struct{})
	var since time.Time
	o := client.FollowOptions{After: after, Reconnect: true, Backoff: func(attempt int) time.Duration {
		if attempt == 1 {
			since = time.Now()
		}
		if time.Since(since) > lostFor {
			cancel()
		}
		return 200 * time.Millisecond
	}}
	give := func(i item) bool {
		select {
		case r.events <- i:
			return true
		case <-ctx.Done():
			return false
		}
	}
	go func() {
		defer close(done)
		defer close(r.events)
		for e, err := range r.c.Follow(ctx, "*", o) {
			if err != nil && ctx.Err() != nil {
				return
			}
			if !give(item{e, err}) {
				return
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// live waits until what happens is told as it happens: text that streams before is told
// to nobody.
func (r *run) live(ctx context.Context) error {
	for i := range r.events {
		if i.err != nil {
			return lostBy(i.err)
		}
		if i.event.Kind == protocol.KindFollowLive {
			return nil
		}
		if i.event.Bot != r.bot.Name {
			if err := r.kin(ctx, i.event); err != nil {
				return err
			}
		}
	}
	return lostBy(context.Cause(ctx))
}

// await follows the turn, and with WaitTasks the tasks that it started, to their end.
// A signal, the timeout and a closed stdout interrupt the turn; its ending is then
// waited for a while.
func (r *run) await(ctx context.Context, timeout <-chan time.Time) (ended, error) {
	var end *ended
	var late <-chan time.Time
	gone, closed := r.Gone, false
	stop := func(why reason, says string) {
		if r.why.is == itself {
			r.why = why
		}
		late = time.After(grace)
		if end == nil {
			r.interrupt(ctx, says)
		}
	}
	for end == nil || r.why.is == itself && r.WaitTasks && r.family.busy() {
		select {
		case i, ok := <-r.events:
			if !ok || i.err != nil {
				return ended{}, lostBy(i.err)
			}
			e, err := r.take(ctx, i.event)
			if err != nil {
				return ended{}, err
			}
			if e != nil {
				end = e
			}
		case s := <-r.Signals:
			if r.why.is == bySignal {
				return unfinished(end), nil
			}
			r.why = reason{} // it goes before a timeout
			stop(reason{is: bySignal, signal: number(s)}, "sonny exec was interrupted")
		case <-timeout:
			stop(reason{is: byTimeout}, "the time that sonny exec was given is over")
		case <-gone:
			closed, gone = true, nil
		case <-late:
			return unfinished(end), nil
		}
		switch {
		case !closed && r.out.closed == nil || r.why.is != itself:
		case r.DetachOnEnd:
			r.left = true
			return ended{}, errLeft
		case r.out.lost() != nil:
			stop(reason{is: byClosedOutput}, "sonny exec can write no output")
		default:
			stop(reason{is: byClosedOutput}, "the reader of sonny exec has gone")
		}
	}
	return *end, nil
}

// unfinished is a turn whose ending nobody waited for.
func unfinished(end *ended) ended {
	if end != nil {
		return *end
	}
	return ended{status: protocol.StatusInterrupted, code: protocol.Cancelled, detail: "the turn was told to end and had not ended when sonny left"}
}

func lostBy(err error) error {
	if err != nil {
		return err
	}
	return protocol.Fail(protocol.DaemonDisconnected, "the daemon went away and did not come back; the turn ended with it, or goes on where it still runs: sonny tasks or sonny status shows it")
}

// interrupt asks the daemon to end the turn. A turn that ended meanwhile needs none.
func (r *run) interrupt(ctx context.Context, says string) {
	_, err := r.c.Interrupt(ctx, r.bot.Name, r.turn, says)
	if err != nil && !errors.Is(err, protocol.NoActiveTurn) && !errors.Is(err, protocol.StaleTurn) {
		f := failureOf(err)
		r.out.tell(&noteEvent{fault: true, Code: string(f.Code), Detail: f.Detail})
	}
}

// take takes an event. It returns the end of the turn that is followed.
func (r *run) take(ctx context.Context, e *protocol.Event) (*ended, error) {
	if e.Kind == protocol.KindReconnected {
		r.out.note("reconnected", "the connection to the daemon was lost and stands again")
		return nil, nil
	}
	if e.Kind == protocol.KindPruned {
		return r.outcome(ctx)
	}
	if e.Bot != r.bot.Name {
		return nil, r.kin(ctx, e)
	}
	if e.Kind == protocol.KindDeleted {
		return nil, protocol.Fail(protocol.BotNotFound, "the bot was deleted while its turn ran")
	}
	if e.Turn != r.turn {
		return nil, nil
	}
	if e.Kind == protocol.KindTurnFinished {
		return r.finished(e)
	}
	if take, ok := takers[e.Kind]; ok {
		return nil, take(r, ctx, e)
	}
	return nil, nil
}

// finished takes the end of the turn. One that joined another goes on as that.
func (r *run) finished(e *protocol.Event) (*ended, error) {
	var d protocol.TurnFinished
	if err := e.Decode(&d); err != nil {
		return nil, err
	}
	if d.Status == protocol.StatusSteered {
		r.out.tell(&waitEvent{what: "steered", Into: d.Into})
		r.turn = d.Into
		r.out.on(r.bot.Name, r.turn)
		return nil, nil
	}
	end := endOf(&d)
	return &end, nil
}

// outcome asks how the turn stands, after events of it may have been lost.
func (r *run) outcome(ctx context.Context) (*ended, error) {
	out, err := r.c.Result(ctx, r.bot.Name, r.turn)
	if err != nil || !out.Finished {
		return nil, err
	}
	r.reply = out.Text
	end := endOf(&protocol.TurnFinished{Status: out.Status, Error: out.Error, Detail: out.Detail})
	return &end, nil
}

// takers tell of the events of the turn.
var takers = map[string]func(*run, context.Context, *protocol.Event) error{
	protocol.KindQueued: func(r *run, _ context.Context, e *protocol.Event) error {
		r.out.tell(&waitEvent{what: "queued"})
		return nil
	},
	protocol.KindAccepted: func(r *run, _ context.Context, e *protocol.Event) error {
		r.out.tell(r.begun)
		return nil
	},
	protocol.KindMessage:           (*run).message,
	protocol.KindUsage:             (*run).usage,
	protocol.KindToolStarted:       (*run).toolStarted,
	protocol.KindToolCompleted:     (*run).toolCompleted,
	protocol.KindApprovalRequested: (*run).asked,
	protocol.KindStepDecided:       (*run).stepDecided,
	protocol.KindTextDelta:         (*run).delta,
	protocol.KindThinkingDelta:     (*run).delta,
	protocol.KindTurnWaiting: func(r *run, _ context.Context, e *protocol.Event) error {
		var d protocol.TurnWaiting
		if err := e.Decode(&d); err != nil || len(d.Handles) == 0 {
			return err
		}
		r.out.tell(&waitEvent{what: "waiting", Handles: d.Handles})
		return nil
	},
	protocol.KindTurnPaced: func(r *run, _ context.Context, e *protocol.Event) error {
		var d protocol.TurnPaced
		if err := e.Decode(&d); err != nil {
			return err
		}
		r.out.tell(&waitEvent{what: "paced", ResumeAt: stamp(time.UnixMilli(d.ResumeAtMS))})
		return nil
	},
	protocol.KindRetry: func(r *run, _ context.Context, e *protocol.Event) error {
		var d protocol.Retry
		if err := e.Decode(&d); err != nil {
			return err
		}
		r.out.note(d.Error, "the model call is tried again: "+d.Detail)
		return nil
	},
	protocol.KindCompacted:        noticed("compacted", "the older part of the history was summarized"),
	protocol.KindElided:           noticed("elided", "older results were left out of what the model is shown"),
	protocol.KindModelFallback:    noticed("model_fallback", "another model answered"),
	protocol.KindThinkingDropped:  noticed("thinking_dropped", "thinking of another model was left out"),
	protocol.KindCompactionFailed: noticed("compaction_failed", "the history could not be summarized"),
}

func noticed(code protocol.Code, detail string) func(*run, context.Context, *protocol.Event) error {
	return func(r *run, _ context.Context, _ *protocol.Event) error {
		r.out.note(code, detail)
		return nil
	}
}

func (r *run) delta(_ context.Context, e *protocol.Event) error {
	if r.out.JSON && r.out.Deltas {
		r.out.tell(&deltaEvent{thinking: e.Kind == protocol.KindThinkingDelta, Delta: e.Text()})
	}
	return nil
}

// message tells a reply, and notes the calls that the model made.
func (r *run) message(ctx context.Context, e *protocol.Event) error {
	var d protocol.Message
	if err := e.Decode(&d); err != nil {
		return err
	}
	raw, err := r.c.Item(ctx, r.bot.Name, d.Node)
	if err != nil {
		return err
	}
	text := ""
	for _, p := range items.Parts(raw) {
		switch p.Kind {
		case items.Assistant:
			text += p.Text
		case items.Call:
			r.calls[p.CallID] = newCall(p.CallID, p.Name, p.Text)
		}
	}
	if text != "" {
		r.reply = text
		r.out.tell(&messageEvent{Text: text, Round: r.rounds + 1})
	}
	return nil
}

// usage counts a model call. One that answered ends a round; a summary's does not.
func (r *run) usage(_ context.Context, e *protocol.Event) error {
	var d protocol.Usage
	if err := e.Decode(&d); err != nil {
		return err
	}
	if d.Purpose == "" {
		r.rounds++
	}
	r.sum.Call(r.Prices, r.model, &d)
	r.out.tell(&usageEvent{Usage: usageOf(&r.sum)})
	return nil
}
