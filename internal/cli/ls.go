package cli

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

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
	return []string{b.Name, b.Status, b.ModelRef(), strconv.FormatInt(b.TokensUsed, 10), confinement(&b), deref(b.Workspace)}, nil
}

// confinement is how a bot is confined, in few words: its mode, and what goes
// beyond it or is held back besides.
func confinement(b *protocol.Bot) string {
	words := []string{b.Sandbox}
	add := func(has bool, word string) {
		if has {
			words = append(words, word)
		}
	}
	confined := b.Sandbox != protocol.SandboxFull
	add(len(b.WritableRoots) == 1, "1 folder")
	add(len(b.WritableRoots) > 1, strconv.Itoa(len(b.WritableRoots))+" folders")
	add(confined && b.Network, "network")
	add(len(b.UnixSockets) > 0, "sockets")
	add(b.Rules != nil && !b.Rules.Unreadable, "rules")
	add(b.Rules != nil && b.Rules.Unreadable, "rules unreadable")
	return strings.Join(words, ", ")
}

func deref(s *string) string {
	if s == nil {
		return "-"
	}
	return *s
}
