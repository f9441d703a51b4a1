package cli

import (
	"context"
	"encoding/json"
	"strconv"

	"agent/protocol"
)

var lsVerb = verb{
	name: "ls", short: "all bots",
	declare: func(a *app, t *table) func(context.Context, []string) error {
		c := a.common(t)
		return func(ctx context.Context, _ []string) error {
			l, err := a.connect(ctx, c, nil, startNever)
			if err != nil {
				return err
			}
			defer l.Close()
			var r protocol.Bots
			return a.list(lsColumns, lsRow, func() ([]json.RawMessage, bool, error) {
				answer, err := l.raw(ctx, protocol.OpBots, &r)
				if err != nil {
					return nil, false, err
				}
				page, next, err := entries(answer, "bots", "next_after")
				if err != nil || next == nil {
					return page, false, err
				}
				return page, true, json.Unmarshal(next, &r.After)
			})
		}
	},
}

var lsColumns = []string{"NAME", "STATUS", "MODEL", "TOKENS", "SANDBOX", "WORKSPACE"}

func lsRow(entry json.RawMessage) ([]string, error) {
	var b protocol.Bot
	if err := json.Unmarshal(entry, &b); err != nil {
		return nil, err
	}
	return []string{b.Name, b.Status, b.ModelRef(), strconv.FormatInt(b.TokensUsed, 10), b.Sandbox, deref(b.Workspace)}, nil
}

func deref(s *string) string {
	if s == nil {
		return "-"
	}
	return *s
}
