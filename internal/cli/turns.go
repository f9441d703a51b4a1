package cli

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"agent/protocol"
)

var turnsVerb = verb{
	name: "turns", short: "a bot's turns",
	declare: func(a *app, t *table) func(context.Context, []string) error {
		c, s := a.common(t), t.starts()
		var r protocol.Turns
		t.filled(&r.Bot, "bot", "NAME", "the bot; required")
		t.number(&r.After, "after", 0, mostInteger, "only turns after this one; default 0")
		return a.reading(c, s, t, func(ctx context.Context, l *link) error {
			return a.list(turnsColumns, turnsRow, func() ([]json.RawMessage, bool, error) {
				answer, err := l.raw(ctx, protocol.OpTurns, &r)
				if err != nil {
					return nil, false, err
				}
				page, next, err := entries(answer, "turns", "next_after")
				if err != nil || next == nil {
					return page, false, err
				}
				return page, true, json.Unmarshal(next, &r.After)
			})
		}, "bot")
	},
}

var turnsColumns = []string{"TURN", "STATUS", "IN", "OUT", "ROUNDS", "STARTED", "WORKSPACE", "PROMPT"}

func turnsRow(entry json.RawMessage) ([]string, error) {
	var t protocol.Turn
	if err := json.Unmarshal(entry, &t); err != nil {
		return nil, err
	}
	started := "-"
	if t.StartedMS != nil {
		started = time.UnixMilli(*t.StartedMS).Format(time.DateTime)
	}
	first, rest, _ := strings.Cut(strings.TrimSpace(t.Prompt), "\n")
	if rest != "" || t.PromptTruncated {
		first += "…"
	}
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	return []string{
		number(t.Turn), t.Status, number(t.InputTokens), number(t.OutputTokens), number(t.ModelRounds),
		started, deref(t.Workspace), first,
	}, nil
}
