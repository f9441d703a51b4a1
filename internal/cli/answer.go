package cli

import (
	"context"

	"agent/protocol"
)

var answerVerb = verb{
	name: "answer", operands: "allow|deny", most: 1, words: []string{"allow", "deny"},
	short: "decide a call that waits for a verdict",
	long: "Gives one gate's verdict on a call that waits, as agent approvals lists it. The\n" +
		"request number is required: a decision is for what was seen, and not for a call that\n" +
		"was announced again meanwhile. --step names the step of a call that waits. With\n" +
		"--overturn a call or step that was denied runs once when it is made again.",
	declare: func(a *app, t *table) func(context.Context, []string) error {
		c, s := a.common(t), t.starts()
		r := protocol.Answer{By: "cli"}
		t.filled(&r.Bot, "bot", "NAME", "the bot; required")
		t.number(&r.Turn, "turn", 1, mostInteger, "its turn; required")
		t.filled(&r.CallID, "call", "ID", "the call; required")
		t.number(&r.Request, "request", 1, mostInteger, "which announcement of it; required")
		t.filled(&r.Tag, "tag", "TAG", "the gate; may be left out when one is open")
		t.text(&r.Reason, "reason", "TEXT", "with deny: what the model reads, at most 16384 bytes")
		t.filled(&r.Step, "step", "NAME", "the step of the call")
		t.toggle(&r.Overturn, "overturn", "with allow: let a denied call run once when it is made again")
		return func(ctx context.Context, operands []string) error {
			if err := t.require("bot", "turn", "call", "request"); err != nil {
				return err
			}
			if len(operands) == 0 {
				return usagef("answer needs a verdict: allow or deny")
			}
			r.Decision = operands[0]
			switch {
			case r.Decision != protocol.Allow && r.Decision != protocol.Deny:
				return usagef("answer takes allow or deny, and %s is neither", operands[0])
			case r.Decision == protocol.Allow && t.given("reason"):
				return usagef("--reason goes with deny")
			case r.Decision == protocol.Deny && r.Overturn:
				return usagef("--overturn goes with allow")
			}
			if inside() {
				return protocol.Fail(protocol.AnswerInToolShell, "a bot does not judge calls; ask the person")
			}
			l, err := a.connect(ctx, c, s, startExisting)
			if err != nil {
				return err
			}
			defer l.Close()
			return a.ask(ctx, l, protocol.OpAnswer, &r)
		}
	},
}
