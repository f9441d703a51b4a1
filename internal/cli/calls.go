package cli

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"agent/protocol"
)

var callsVerb = verb{
	name: "calls", short: "calls of client-declared tools that wait for a result",
	declare: func(a *app, t *table) func(context.Context, []string) error {
		c, s := a.common(t), t.starts()
		var r protocol.ToolCallsRequest
		t.filled(&r.Bot, "bot", "NAME", "only those of this bot")
		t.filled(&r.Tag, "tag", "TAG", "only those of this tag")
		return a.reading(c, s, t, func(ctx context.Context, l *link) error {
			return a.list(callsColumns, callsRow, func() ([]json.RawMessage, bool, error) {
				answer, err := l.raw(ctx, protocol.OpToolCalls, &r)
				if err != nil {
					return nil, false, err
				}
				page, next, err := entries(answer, "calls", "next_after")
				if err != nil || next == nil {
					return page, false, err
				}
				return page, true, json.Unmarshal(next, &r.After)
			})
		})
	},
}

var callsColumns = []string{"BOT", "TURN", "TAG", "TOOL", "AGE", "EXPIRES"}

func callsRow(entry json.RawMessage) ([]string, error) {
	var c protocol.ToolCall
	if err := json.Unmarshal(entry, &c); err != nil {
		return nil, err
	}
	age := max(time.Since(time.UnixMilli(c.AnnouncedMS)), 0).Truncate(time.Second)
	return []string{
		c.Bot, strconv.FormatInt(c.Turn, 10), c.Tag, c.Name, age.String(),
		time.UnixMilli(c.ExpiresMS).Format(time.DateTime),
	}, nil
}
