package cli

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"agent/protocol"
)

var companionsVerb = verb{
	name: "companions", short: "programs that the daemon keeps running beside itself",
	long: "Lists the companions. --set replaces them by a JSON list of {\"name\",\"command\":[...]};\n" +
		"one whose command and program are what they were keeps running.",
	declare: func(a *app, t *table) func(context.Context, []string) error {
		c, s := a.common(t), t.starts()
		var r protocol.CompanionsRequest
		var set string
		t.filled(&set, "set", "FILE", "replace them by this list; - reads standard input, [] ends them all")
		t.texts(&r.Restart, "restart", "NAME", "restart this one; repeatable")
		list := a.reading(c, s, t, func(ctx context.Context, l *link) error {
			return a.list(companionColumns, companionRow, func() ([]json.RawMessage, bool, error) {
				answer, err := l.raw(ctx, protocol.OpCompanions, &r)
				if err != nil {
					return nil, false, err
				}
				all, _, err := entries(answer, "companions", "")
				return all, false, err
			})
		})
		return func(ctx context.Context, operands []string) (err error) {
			if inside() && (set != "" || r.Restart != nil) {
				return protocol.Fail(protocol.InsideABot, "companions run outside of every sandbox, with the daemon's keys; ask the person")
			}
			if set != "" {
				if r.Set, err = readList[protocol.CompanionSpec](a, "--set", set, protocol.InvalidCompanion, "companions with name and command"); err != nil {
					return err
				}
			}
			return list(ctx, operands)
		}
	},
}

var companionColumns = []string{"NAME", "PID", "SINCE", "RESTARTS", "LAST EXIT"}

func companionRow(entry json.RawMessage) ([]string, error) {
	var c protocol.Companion
	if err := json.Unmarshal(entry, &c); err != nil {
		return nil, err
	}
	pid := "-"
	if c.PID != nil {
		pid = strconv.FormatInt(*c.PID, 10)
	}
	return []string{
		c.Name, pid, time.UnixMilli(c.SinceMS).Format(time.DateTime), strconv.FormatInt(c.Restarts, 10), exitText(c.LastExit),
	}, nil
}

// exitText is how a companion ended last, in a word or two.
func exitText(raw json.RawMessage) string {
	var last struct {
		Code   *int   `json:"exit_code"`
		Signal string `json:"signal"`
		Error  string `json:"error"`
	}
	switch err := json.Unmarshal(raw, &last); {
	case err != nil || string(raw) == "null":
		return "-"
	case last.Error != "":
		return last.Error
	case last.Signal != "":
		return last.Signal
	case last.Code != nil:
		return strconv.Itoa(*last.Code)
	}
	return string(raw)
}
