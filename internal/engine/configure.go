package engine

import (
	"fmt"

	"agent/internal/model"
	"agent/internal/store"
	"agent/protocol"
)

// Configure replaces the named parts of a bot. A turn under way meets its new
// settings, reasoning and budget at its next model call; the model and the
// workspace are those of later turns (protocol.md 7).
func (e *Engine) Configure(req *protocol.Configure) (*protocol.Bot, *protocol.Error) {
	place, err := checkConfigure(req)
	if err != nil {
		return nil, err
	}
	var record protocol.Bot
	failed := e.store.Do("configure", func(tx *store.Tx) error {
		bot, err := findBot(tx.Conn(), req.Bot, req.BotID)
		if err != nil {
			return err
		}
		changed, err := e.reconfigure(&bot, req, place)
		if err != nil {
			return err
		}
		record = e.record(&bot)
		if len(changed) == 0 {
			return nil
		}
		if err := tx.ConfigureBot(&bot); err != nil {
			return err
		}
		_, err = tx.AddEvent(bot.ID, bot.Name, 0, protocol.KindConfigured, newObject().strs("changed", changed).done())
		return err
	})
	if failed != nil {
		return nil, asError(failed)
	}
	return &record, nil
}

// checkConfigure makes the checks that need no store, and looks at the
// workspace.
func checkConfigure(r *protocol.Configure) (place folder, err *protocol.Error) {
	if n, ok := r.BudgetTokens.Get(); ok && n <= 0 {
		return place, protocol.Fail(protocol.InvalidBudget, "budget_tokens is above 0; null is no budget")
	}
	if len(r.Gates.Or(nil)) > 0 {
		return place, protocol.Fail(protocol.InvalidGate, "this daemon keeps no approval gates (its capabilities lack approvals)")
	}
	if path, ok := r.Workspace.Get(); ok {
		if path == "" {
			return place, protocol.Fail(protocol.WorkspaceMustExistAndBeAbsolute, "workspace is empty; null clears it")
		}
		if place = checkFolder(path); place.err != nil {
			return place, place.err
		}
	}
	if level, ok := r.Reasoning.Get(); ok && !protocol.ValidReasoning(level) {
		return place, protocol.Fail(protocol.InvalidReasoningLevel, "reasoning is low, medium, high, xhigh or max; null clears it")
	}
	if r.Model.IsNull() {
		return place, protocol.Fail(protocol.InvalidModel, "a bot has a model; name another, PROVIDER/MODEL")
	}
	if mode, ok := r.Sandbox.Get(); ok && mode == "" {
		return place, protocol.Fail(protocol.InvalidSandbox, "sandbox is empty; null clears it")
	}
	like := &protocol.Create{
		Sandbox: r.Sandbox.Or(""), WritableRoots: r.WritableRoots.Or(nil), Network: r.Network,
		UnixSockets: r.UnixSockets.Or(nil), ExcludeSlashTmp: r.ExcludeSlashTmp,
		ExcludeTmpdirEnvVar: r.ExcludeTmpdirEnvVar,
	}
	if rules, ok := r.Rules.Get(); ok {
		like.Rules = &rules
	}
	return place, refuseUnbuilt(like)
}

// reconfigure changes a bot as asked and names the fields.
func (e *Engine) reconfigure(bot *store.Bot, r *protocol.Configure, place folder) (changed []string, err error) {
	if !r.Settings.IsZero() {
		changed = append(changed, "settings")
		if err := e.resettle(bot, r); err != nil {
			return nil, err
		}
	}
	if !r.Workspace.IsZero() {
		changed = append(changed, "workspace")
		bot.Workspace = place.path
	}
	if !r.BudgetTokens.IsZero() {
		changed = append(changed, "budget_tokens")
		bot.Budget = r.BudgetTokens.Or(0)
	}
	if !r.Reasoning.IsZero() {
		changed = append(changed, "reasoning")
		bot.Reasoning = r.Reasoning.Or("")
	}
	if ref, ok := r.Model.Get(); ok {
		changed = append(changed, "model")
		name, id, ok := protocol.ParseModelRef(ref)
		if !ok {
			return nil, protocol.Fail(protocol.InvalidModel, "a model is PROVIDER/MODEL")
		}
		if _, err := e.provider(name, model.Family(bot.Family)); err != nil {
			return nil, err
		}
		bot.Provider, bot.Model = name, id
	}
	if !r.ClientTools.IsZero() {
		changed = append(changed, "client_tools")
		if err := e.redeclare(bot, r.ClientTools.Or(nil)); err != nil {
			return nil, err
		}
	}
	return changed, nil
}

// redeclare replaces the tools that a client serves to a bot. A turn under way
// keeps what its model was shown, so there must be none.
func (e *Engine) redeclare(bot *store.Bot, list []protocol.ClientTool) error {
	if err := e.checkClientTools(list); err != nil {
		return err
	}
	if bot.RunningTurn != 0 {
		return protocol.Fail(protocol.BotBusy, fmt.Sprintf("turn %d of %s runs; client_tools can be replaced when it is over", bot.RunningTurn, bot.Name))
	}
	encoded, err := encodeClientTools(list)
	bot.ClientTools = encoded
	return err
}

// resettle merges settings; null in their place clears them all.
func (e *Engine) resettle(bot *store.Bot, r *protocol.Configure) error {
	given, ok := r.Settings.Get()
	if !ok {
		bot.Settings = protocol.Settings{}
		return nil
	}
	bot.Settings = mergeSettings(bot.Settings, &given)
	if err := e.givenSettings(&given, &bot.Settings); err != nil {
		return err
	}
	return nil
}
