package allow

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"agent/client"
	"agent/internal/rules"
	"agent/internal/sonny/lead"
	"agent/protocol"
)

// maxLineage bounds how far up makers are looked for.
const maxLineage = 64

// Owner is the bot whose rules a bot goes by: its maker's maker, up to the lead (sonny.md
// 4: tasks go by their lead's rules). It asks the daemon for each of them.
func Owner(ctx context.Context, c *client.Client, bot string) (*protocol.Bot, error) {
	b, err := c.Inspect(ctx, bot)
	for range maxLineage {
		if err != nil || b.CreatedBy == nil || b.CreatedByID == nil {
			return b, err
		}
		maker, err := c.Inspect(ctx, *b.CreatedBy)
		if err != nil || maker.ID != *b.CreatedByID {
			return b, nil // its maker is gone; it has its rules itself
		}
		b = maker
	}
	return b, err
}

// Give gives a lead the rules as they are on disk now, where it has other ones, and
// returns its record. Rules that the daemon cannot parse become the mark that refuses
// every command.
func (p Place) Give(ctx context.Context, c *client.Client, bot *protocol.Bot) (*protocol.Bot, error) {
	have := p.Read(bot.ID)
	if same(bot.Rules, have) {
		return bot, nil
	}
	return lead.SendRules(ctx, c, bot, have)
}

// same reports whether a bot's record tells of these very rules.
func same(has *protocol.RulesInfo, want *protocol.Rules) bool {
	switch {
	case has == nil:
		return false
	case want.Unreadable || has.Unreadable:
		return want.Unreadable && has.Unreadable && want.Reason == has.Reason
	}
	return has.Digest == digestOf(want.Files)
}

// digestOf is how the daemon names a set of rule files in a bot's record. Where it named
// them otherwise, rules would be sent once too often and never too seldom.
func digestOf(files []protocol.RuleFile) string {
	given, err := json.Marshal(append([]protocol.RuleFile{}, files...))
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(given)
	return hex.EncodeToString(sum[:])
}

// Parsed are rules as they decide. An error is invalid_rules, and says what is wrong with
// them.
func Parsed(list *protocol.Rules) (*rules.Set, error) {
	if list.Unreadable {
		return nil, protocol.Fail(protocol.InvalidRules, list.Reason)
	}
	set, err := parse(list, nil)
	if err != nil {
		return nil, protocol.Fail(protocol.InvalidRules, err.Error())
	}
	return set, nil
}

// By names the rule that lets a script run outside the sandbox; "" where none is known.
func By(set *rules.Set, script string) string {
	if set == nil {
		return ""
	}
	if v := set.Decide(script); v.Decision == rules.Allow && len(v.Matches) > 0 {
		return v.Matches[0].String()
	}
	return ""
}
