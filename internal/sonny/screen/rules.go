package screen

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"agent/client"
	"agent/internal/rules"
	"agent/internal/sonny/allow"
	"agent/internal/sonny/lead"
	"agent/internal/sonny/screen/cells"
	"agent/protocol"
)

// ruleCommands show the command rules that hold for the bot on screen.
var ruleCommands = feature{
	commands: []slashCommand{{"rules", "", "the command rules that hold here", func(a *App, _ string) error { a.openRules(); return nil }}},
}

// giveRules gives a lead the rules as they are on disk now, where it has other ones.
// Rules that the daemon cannot parse become the mark that refuses every command.
func giveRules(ctx context.Context, c *client.Client, place allow.Place, bot *protocol.Bot) (*protocol.Bot, error) {
	have := place.Read(bot.ID)
	if sameRules(bot.Rules, have) {
		return bot, nil
	}
	return lead.SendRules(ctx, c, bot, have)
}

// sameRules reports whether a bot's record tells of these very rules.
func sameRules(has *protocol.RulesInfo, want *protocol.Rules) bool {
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

// keepRules gives the bot that a message goes to, or the lead that it is a task of, its
// rules. What fails is said; the message goes all the same, under the rules that hold.
func (a *App) keepRules(ctx context.Context, bot string) (*protocol.Bot, *rules.Set, error) {
	owner, err := rulesOwner(ctx, a.client(), bot)
	if err != nil {
		return nil, nil, err
	}
	given := owner
	if owner.CreatedByID == nil { // else its maker is gone, and left it the rules that it has
		if given, err = giveRules(ctx, a.client(), a.o.Rules, owner); err != nil {
			return nil, nil, err
		}
	}
	set, _ := parsed(a.o.Rules.Read(owner.ID)) // those that are unreadable name no rule
	return given, set, nil
}

// parsed are rules as they decide. An error says what is wrong with them.
func parsed(list *protocol.Rules) (*rules.Set, error) {
	if list.Unreadable {
		return nil, protocol.Fail(protocol.InvalidRules, list.Reason)
	}
	files := make([]rules.File, 0, len(list.Files))
	for _, f := range list.Files {
		files = append(files, rules.File{Name: f.Name, Text: f.Text})
	}
	set, err := rules.Parse(files)
	if err != nil {
		return nil, protocol.Fail(protocol.InvalidRules, err.Error())
	}
	return set, nil
}

// ruleOf names the rule that lets a script run outside; "" where none is known.
func ruleOf(set *rules.Set, script string) string {
	if set == nil {
		return ""
	}
	if v := set.Decide(script); v.Decision == rules.Allow && len(v.Matches) > 0 {
		return v.Matches[0].String()
	}
	return ""
}

// unreadable is why the rules of the bot on screen refuse every command; "" where they
// do not.
func (a *App) unreadable() string {
	b := a.bot()
	if b == nil || b.Record.Rules == nil || !b.Record.Rules.Unreadable {
		return ""
	}
	return "rules: " + cells.OneLine(b.Record.Rules.Reason)
}
