package cli

import (
	"context"

	"agent/protocol"
)

var interruptVerb = verb{
	name: "interrupt", short: "end a turn",
	declare: func(a *app, t *table) func(context.Context, []string) error {
		c := a.common(t)
		var r protocol.Interrupt
		t.filled(&r.Bot, "bot", "NAME", "the bot; required")
		t.number(&r.Turn, "turn", 1, mostInteger, "the turn; default the one that runs or waits")
		t.text(&r.Reason, "reason", "TEXT", "why, at most 1024 bytes; it becomes the turn's detail")
		return func(ctx context.Context, _ []string) error {
			if err := t.require("bot"); err != nil {
				return err
			}
			l, err := a.connect(ctx, c, nil, startNever)
			if err != nil {
				return err
			}
			defer l.Close()
			return a.interrupt(ctx, l, &r)
		}
	},
}

func (a *app) interrupt(ctx context.Context, l *link, r *protocol.Interrupt) error {
	if r.Turn == 0 {
		record, err := l.Inspect(ctx, r.Bot)
		if err != nil {
			return err
		}
		if record.RunningTurn == nil {
			return protocol.Fail(protocol.NoActiveTurn, r.Bot+" has no turn that runs or waits")
		}
		r.Turn = *record.RunningTurn
	}
	done, err := l.Interrupt(ctx, r.Bot, r.Turn, r.Reason)
	if err != nil {
		return err
	}
	answer, err := protocol.Append(nil, struct {
		Bot       string         `json:"bot"`
		Turn      int64          `json:"turn"`
		Requested bool           `json:"interrupt_requested"`
		Queued    bool           `json:"queued,omitzero"`
		Parked    bool           `json:"parked,omitzero"`
		Extra     protocol.Extra `json:",embed"`
	}{r.Bot, done.Turn, done.InterruptRequested, done.Queued, done.Parked, done.Extra})
	if err != nil {
		return err
	}
	return a.printObject(answer)
}
