package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"agent/internal/model"
	"agent/internal/store"
	"agent/protocol"
)

// Configure replaces the named parts of a bot. A turn under way meets its new
// settings, reasoning and budget at its next model call; the model and the
// workspace are those of later turns (protocol.md 7).
func (e *Engine) Configure(req *protocol.Configure) (*protocol.Bot, *protocol.Error) {
	place, err := e.checkConfigure(req)
	if err != nil {
		return nil, err
	}
	for range settleTries {
		record, err := e.configure(req, place)
		if !errors.Is(err, errSettleAgain) {
			return record, asError(err)
		}
	}
	return nil, protocol.Fail(protocol.BotBusy, "how "+req.Bot+" is confined keeps changing; try again")
}

// configure settles how the bot is held from now on, and writes what is changed.
func (e *Engine) configure(req *protocol.Configure, place folder) (*protocol.Bot, error) {
	held, err := e.heldAnew(req, place)
	if err != nil {
		return nil, err
	}
	var record protocol.Bot
	err = e.store.Do("configure", func(tx *store.Tx) error {
		bot, err := findBot(tx.Conn(), req.Bot, req.BotID)
		if err != nil {
			return err
		}
		changed, err := e.reconfigure(&bot, req, place)
		if err != nil {
			return err
		}
		more, err := held.apply(e, tx, &bot, req)
		if err != nil {
			return err
		}
		changed = append(changed, more...)
		record = e.record(&bot)
		if len(changed) == 0 {
			return nil
		}
		if err := tx.ConfigureBot(&bot); err != nil {
			return err
		}
		if contains(changed, "gates") || len(more) > 0 {
			if err := dropAllows(tx, bot.ID); err != nil {
				return err
			}
		}
		if held != nil && held.rules != bot.Rules {
			if err := tx.DropRules(held.rules); err != nil {
				return err
			}
		}
		data := newObject().strs("changed", changed)
		if contains(changed, "gates") {
			data.raw("gates", gatesText(bot.Gates))
		}
		_, err = tx.AddEvent(bot.ID, bot.Name, 0, protocol.KindConfigured, data.done())
		return err
	})
	return &record, err
}

// holding is a confinement that configure settles, for the bot that it was
// settled for; nil where nothing of it is asked.
type holding struct {
	*confining
	bot   int64
	was   json.RawMessage
	rules string
}

// heldAnew settles what a request changes of a bot's confinement. Another
// workspace is another writable folder.
func (e *Engine) heldAnew(req *protocol.Configure, place folder) (*holding, error) {
	asked := askedByConfigure(req)
	if !asked.place() && asked.rules.IsZero() && req.Workspace.IsZero() {
		return nil, nil
	}
	var bot store.Bot
	err := e.read(e.looks.ctx, "configured", func(c *store.Conn) (err error) {
		bot, err = findBot(c, req.Bot, req.BotID)
		return err
	})
	if err != nil {
		return nil, err
	}
	workspace := bot.Workspace
	if !req.Workspace.IsZero() {
		workspace = place.path
	}
	held, err := e.confineAnew(e.looks.ctx, asked, &bot, workspace)
	if err != nil {
		return nil, err
	}
	return &holding{held, bot.ID, bot.Sandbox, bot.Rules}, nil
}

// apply writes what was settled into a bot's row and names the fields.
func (h *holding) apply(e *Engine, tx *store.Tx, bot *store.Bot, r *protocol.Configure) (changed []string, err error) {
	if h == nil {
		return nil, nil
	}
	ok, err := h.current(e, tx.Conn())
	if err != nil || !ok || bot.ID != h.bot || !bytes.Equal(bot.Sandbox, h.was) || bot.Rules != h.rules {
		return nil, errors.Join(err, errSettleAgain)
	}
	setting := h.encoded()
	if !bytes.Equal(setting, bot.Sandbox) {
		changed = placesAsked(r)
		if len(changed) > 0 && bot.RunningTurn != 0 {
			return nil, protocol.Fail(protocol.BotBusy, fmt.Sprintf("turn %d of %s runs; its sandbox can be changed when it is over", bot.RunningTurn, bot.Name))
		}
	}
	if h.ref != bot.Rules {
		changed = append(changed, "rules")
	}
	bot.Sandbox, bot.Rules = setting, h.ref
	return changed, h.keepRules(tx)
}

// placesAsked names the fields of a request that say how a bot is confined.
func placesAsked(r *protocol.Configure) (names []string) {
	for _, f := range []struct {
		name   string
		absent bool
	}{
		{"sandbox", r.Sandbox.IsZero()},
		{"writable_roots", r.WritableRoots.IsZero()},
		{"network", r.Network.IsZero()},
		{"unix_sockets", r.UnixSockets.IsZero()},
		{"exclude_slash_tmp", r.ExcludeSlashTmp.IsZero()},
		{"exclude_tmpdir_env_var", r.ExcludeTmpdirEnvVar.IsZero()},
	} {
		if !f.absent {
			names = append(names, f.name)
		}
	}
	return names
}

// checkConfigure makes the checks that need no store, and looks at the
// workspace.
func (e *Engine) checkConfigure(r *protocol.Configure) (place folder, err *protocol.Error) {
	if n, ok := r.BudgetTokens.Get(); ok && n <= 0 {
		return place, protocol.Fail(protocol.InvalidBudget, "budget_tokens is above 0; null is no budget")
	}
	for _, g := range r.Gates.Or(nil) {
		if err := e.checkGate(g); err != nil {
			return place, err
		}
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
	return place, nil
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
	if !r.Gates.IsZero() {
		was := bot.Gates
		if err := regate(bot, r.Gates.Or(nil)); err != nil {
			return nil, err
		}
		if !bytes.Equal(was, bot.Gates) {
			changed = append(changed, "gates")
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
