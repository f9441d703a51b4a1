package screen

import (
	"context"

	"agent/internal/rules"
	"agent/internal/sonny/allow"
	"agent/internal/sonny/screen/cells"
	"agent/protocol"
)

// ruleCommands show the command rules that hold for the bot on screen.
var ruleCommands = feature{
	commands: []slashCommand{{"rules", "", "the command rules that hold here", func(a *App, _ string) error { a.openRules(); return nil }}},
}

// keepRules gives the bot that a message goes to, or the lead that it is a task of, its
// rules. What fails is said; the message goes all the same, under the rules that hold.
func (a *App) keepRules(ctx context.Context, bot string) (*protocol.Bot, *rules.Set, error) {
	owner, err := allow.Owner(ctx, a.client(), bot)
	if err != nil {
		return nil, nil, err
	}
	given := owner
	if owner.CreatedByID == nil { // else its maker is gone, and left it the rules that it has
		if given, err = a.o.Rules.Give(ctx, a.client(), owner); err != nil {
			return nil, nil, err
		}
	}
	set, _ := allow.Parsed(a.o.Rules.Read(owner.ID)) // those that are unreadable name no rule
	return given, set, nil
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
