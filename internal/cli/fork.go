package cli

import (
	"context"

	"agent/protocol"
)

var forkVerb = verb{
	name: "fork", short: "a copy of a bot that goes on by itself",
	long: "Makes a bot with its source's history up to now, its model, instructions, tools and\n" +
		"command rules, confined as it is or narrower.\n" +
		"The two share that history and go on apart. The source may be at work: the fork then\n" +
		"begins at its newest finished round.",
	declare: func(a *app, t *table) func(context.Context, []string) error {
		c := a.common(t)
		var r protocol.Fork
		var checkpoint, budget int64
		var own botSettings
		var sandbox sandboxFlags
		var gate gateFlags
		t.filled(&r.Source, "source", "NAME", "the bot to copy; required")
		t.filled(&r.Bot, "bot", "NAME", "the new bot; required")
		t.number(&checkpoint, "checkpoint", 1, mostInteger, "the node to begin at; default where the source is")
		t.path(&r.Workspace, "workspace", "DIR", "its folder; default the source's")
		t.number(&budget, "budget-tokens", 1, mostInteger, "tokens it may use in all; default no bound")
		t.list(&r.Allow, "allow", "LIST", "the tools it may call, of those that its source may; empty for none")
		sandbox.declare(t, ofVerb, sandboxOfFork)
		gate.declare(t, ofVerb, gateOfFork)
		own.shorthands(t, ofVerb, "retain-turns")
		own.set(t, ofVerb)
		return func(ctx context.Context, _ []string) error {
			if err := t.require("source", "bot"); err != nil {
				return err
			}
			if err := sandbox.check(t, true); err != nil {
				return err
			}
			if err := own.check(); err != nil {
				return err
			}
			if err := gate.check(t, true); err != nil {
				return err
			}
			self, err := creator()
			if err != nil {
				return err
			}
			if checkpoint > 0 {
				r.Checkpoint = protocol.Set(checkpoint)
			}
			if budget > 0 {
				r.BudgetTokens = protocol.Set(budget)
			}
			sandbox.fork(&r)
			if r.Settings, err = own.wire(); err != nil {
				return err
			}
			l, err := a.connect(ctx, c, nil, startNever)
			if err != nil {
				return err
			}
			defer l.Close()
			l.Bot = self
			if err := a.fork(ctx, l, &r, &gate); err != nil {
				return err
			}
			a.noteSandbox(&sandbox)
			return nil
		}
	},
}

// fork makes the copy in its source's folder, which the wire does not inherit.
func (a *app) fork(ctx context.Context, l *link, r *protocol.Fork, flags *gateFlags) error {
	source, err := l.Inspect(ctx, r.Source)
	if err != nil {
		return err
	}
	if r.Workspace == "" && source.Workspace != nil {
		r.Workspace = *source.Workspace
	}
	gate, err := flags.gate(gateable(source))
	if err != nil {
		return err
	}
	asked(gate, &r.Approve, &r.Approver, &r.ApproveExpireMS)
	if automatic(source) || flags.mode == approvalAuto {
		if err := a.approverServes(ctx, l); err != nil {
			return err
		}
	}
	bot, err := l.Fork(ctx, r)
	if err != nil {
		return err
	}
	record, err := protocol.Append(nil, bot)
	if err != nil {
		return err
	}
	return a.printObject(record)
}
