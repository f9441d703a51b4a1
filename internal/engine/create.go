package engine

import (
	"errors"
	"fmt"

	"agent/internal/model"
	"agent/internal/store"
	"agent/protocol"
)

// Create makes a bot. done is called once, after the commit, on the store's
// goroutine; it must not block. The checks run in the order of protocol.md 7.
func (e *Engine) Create(by *Owner, req *protocol.Create, done func(*protocol.Bot, *protocol.Error)) {
	err := by.makes(protocol.OpCreate, &req.CreatedBy, &req.CreatedByID, req.Closed || req.Given.Closed)
	if err == nil && by != nil && req.ClientTools != nil {
		err = by.Refuse(protocol.OpCreate, "client_tools are declared by a client on the daemon's own socket")
	}
	var b *store.Bot
	if err == nil {
		b, err = e.newBot(req)
	}
	if err != nil {
		done(nil, err)
		return
	}
	e.create(by, req, b, settleTries, done)
}

// create settles how a checked bot is held and writes it, again when what that
// was settled by has changed meanwhile.
func (e *Engine) create(by *Owner, req *protocol.Create, b *store.Bot, tries int, done func(*protocol.Bot, *protocol.Error)) {
	held, failed := e.confineNew(e.looks.ctx, askedByCreate(req), b.Workspace, 0, req.CreatedByID)
	if failed != nil {
		done(nil, asError(failed))
		return
	}
	b.Sandbox, b.Rules = held.encoded(), held.ref
	var record protocol.Bot
	e.admissions <- struct{}{}
	e.store.Go("create", func(tx *store.Tx) error {
		if err := e.insertBot(tx, by, req, b); err != nil {
			return err
		}
		if ok, err := held.current(e, tx.Conn()); err != nil || !ok {
			return errors.Join(err, errSettleAgain)
		}
		record = e.record(b)
		return held.keepRules(tx)
	}, func(err error) {
		<-e.admissions
		switch {
		case errors.Is(err, errSettleAgain) && tries > 0:
			go e.create(by, req, b, tries-1, done)
		case err != nil:
			done(nil, asError(err))
		default:
			done(&record, nil)
		}
	})
}

// newBot checks a request as far as that needs no store.
func (e *Engine) newBot(r *protocol.Create) (*store.Bot, *protocol.Error) {
	if err := e.checkShape(r); err != nil {
		return nil, err
	}
	place := checkFolder(r.Workspace)
	if place.err != nil {
		return nil, place.err
	}
	b := &store.Bot{
		Name: r.Bot, Instructions: r.Instructions, Reasoning: r.Reasoning, Tools: r.Tools, Workspace: place.path,
		Budget: r.BudgetTokens.Or(0), CompactionInstructions: r.CompactionInstructions, CompactionModel: r.CompactionModel,
		CreatedBy: r.CreatedBy, CreatedByID: r.CreatedByID, Fallbacks: r.Fallbacks, ClosedToBots: r.Closed, BotMade: r.CreatedByID != 0,
		Settings: mergeSettings(protocol.Settings{}, r.Settings),
	}
	if b.Tools == nil {
		b.Tools = []string{}
	}
	if err := e.bindModel(b, r); err != nil {
		return nil, err
	}
	if r.Reasoning != "" && !protocol.ValidReasoning(r.Reasoning) {
		return nil, protocol.Fail(protocol.InvalidReasoningLevel, "reasoning is low, medium, high, xhigh or max")
	}
	if err := checkTexts(r); err != nil {
		return nil, err
	}
	if err := e.checkTools(r); err != nil {
		return nil, err
	}
	var bad error
	if b.ClientTools, bad = encodeClientTools(r.ClientTools); bad != nil {
		return nil, protocol.Fail(protocol.InvalidClientTool, bad.Error())
	}
	if err := e.checkCompaction(b); err != nil {
		return nil, err
	}
	if err := gatesNameTools(ownGate(r.Approve, r.Approver, r.ApproveExpireMS), b); err != nil {
		return nil, err
	}
	return b, e.givenSettings(r.Settings, &b.Settings)
}

// checkShape makes the first checks of create and fork.
func (e *Engine) checkShape(r *protocol.Create) *protocol.Error {
	if budget, given := r.BudgetTokens.Get(); given && budget <= 0 {
		return protocol.Fail(protocol.InvalidBudget, "budget_tokens is above 0")
	}
	if err := e.checkGateAsked(r.Approve, r.Approver, r.ApproveExpireMS); err != nil {
		return err
	}
	switch {
	case !protocol.ValidBotName(r.Bot):
		return protocol.Fail(protocol.InvalidName, "a bot's name is 1 to 128 bytes of letters, digits, - _ . and begins with neither - nor .")
	case (r.CreatedBy == "") != (r.CreatedByID == 0):
		return protocol.Fail(protocol.InvalidCreator, "created_by and created_by_id go together")
	}
	return nil
}

func (e *Engine) bindModel(b *store.Bot, r *protocol.Create) *protocol.Error {
	if r.Absent.Model {
		return protocol.Fail(protocol.ModelRequired, "a bot needs a model, PROVIDER/MODEL")
	}
	name, id, ok := protocol.ParseModelRef(r.Model)
	if !ok {
		return protocol.Fail(protocol.InvalidModel, "a model is PROVIDER/MODEL")
	}
	p, err := e.provider(name, "")
	if err != nil {
		return err
	}
	b.Provider, b.Model, b.Family = name, id, string(p.Info().Family)
	return nil
}

func checkTexts(r *protocol.Create) *protocol.Error {
	switch {
	case r.Absent.Instructions:
		return protocol.Fail(protocol.InstructionsRequired, "instructions may be empty, but must be given")
	case len(r.Instructions) > protocol.MaxText:
		return protocol.Fail(protocol.InstructionsLimit, fmt.Sprintf("%d bytes of at most %d", len(r.Instructions), protocol.MaxText))
	case len(r.CompactionInstructions) > protocol.MaxText:
		return protocol.Fail(protocol.InstructionsLimit, fmt.Sprintf("compaction_instructions: %d bytes of at most %d", len(r.CompactionInstructions), protocol.MaxText))
	}
	return nil
}

func (e *Engine) checkTools(r *protocol.Create) *protocol.Error {
	if r.Absent.Tools {
		return protocol.Fail(protocol.ToolsRequired, "tools may be empty, but must be given")
	}
	given := map[string]bool{}
	for _, name := range r.Tools {
		if e.tools[name] == nil && name != webSearch || given[name] {
			return protocol.Fail(protocol.UnknownTool, fmt.Sprintf("%q: not a tool of this daemon, or named twice", name))
		}
		given[name] = true
	}
	return e.checkClientTools(r.ClientTools)
}

func (e *Engine) checkCompaction(b *store.Bot) *protocol.Error {
	if b.CompactionModel == "" {
		return nil
	}
	name, _, ok := protocol.ParseModelRef(b.CompactionModel)
	if !ok {
		return protocol.Fail(protocol.InvalidModel, "compaction_model is PROVIDER/MODEL")
	}
	_, err := e.provider(name, model.Family(b.Family))
	return err
}

// insertBot makes the checks that need the store and writes the row.
func (e *Engine) insertBot(tx *store.Tx, by *Owner, r *protocol.Create, b *store.Bot) error {
	if err := admitBot(tx.Conn(), by, protocol.OpCreate, b, r.From); err != nil {
		return err
	}
	if err := inheritGates(tx.Conn(), b, nil, ownGate(r.Approve, r.Approver, r.ApproveExpireMS)); err != nil {
		return err
	}
	if err := tx.InsertBot(b); err != nil {
		return err
	}
	_, err := tx.AddEvent(b.ID, b.Name, 0, protocol.KindCreated, createdData(b).done())
	return err
}

// admitBot makes the checks of a new bot that need the store.
func admitBot(c *store.Conn, by *Owner, op string, b *store.Bot, from *protocol.From) error {
	if _, taken, err := store.BotByName(c, b.Name); err != nil {
		return err
	} else if taken {
		return protocol.Fail(protocol.BotExists, b.Name)
	}
	if b.CreatedBy != "" {
		creator, ok, err := store.BotByName(c, b.CreatedBy)
		if err != nil {
			return err
		}
		if !ok || creator.ID != b.CreatedByID || creator.Status == protocol.StatusDeleting {
			return protocol.Fail(protocol.CreatorNotFound, fmt.Sprintf("no bot %s with id %d", b.CreatedBy, max(b.CreatedByID, 0)))
		}
	}
	if by != nil {
		return by.mayMake(c, op, b, from)
	}
	if from == nil {
		return nil
	}
	_, err := checkFrom(c, from)
	return err
}

// createdData is what the events created and forked have in common.
func createdData(b *store.Bot) *object {
	return newObject().int("id", b.ID).str("provider", b.Provider).str("model", b.Model).
		orNull("workspace", b.Workspace).str("status", b.Status).null("running_turn").
		orNull("created_by", b.CreatedBy).intOrNull("created_by_id", b.CreatedByID).raw("gates", gatesText(b.Gates))
}

// record is a bot as the wire gives it.
func (e *Engine) record(b *store.Bot) protocol.Bot {
	r := protocol.Bot{
		Name: b.Name, ID: b.ID, Status: b.Status, RunningTurn: ptr(b.RunningTurn), Head: ptr(b.Head),
		Workspace: ptr(b.Workspace), Provider: b.Provider, Family: b.Family, Model: b.Model,
		Instructions: b.Instructions, Reasoning: ptr(b.Reasoning), Tools: b.Tools, UnavailableTools: e.unavailable(b),
		BudgetTokens: ptr(b.Budget), TokensUsed: b.TokensUsed, InputTokens: b.InputTokens,
		CachedInputTokens: b.CachedTokens, CacheHit: cacheHit(b.CachedTokens, b.InputTokens),
		CreatedBy: ptr(b.CreatedBy), CreatedByID: ptr(b.CreatedByID), Note: ptr(b.Note),
		Compaction: ptr(b.Compaction), Elision: ptr(b.Elision),
		CompactionInstructions: ptr(b.CompactionInstructions), CompactionModel: ptr(b.CompactionModel),
		CacheBot: ptr(b.CacheBot), Fallbacks: b.Fallbacks, Closed: b.ClosedToBots, BotMade: b.BotMade, Gates: []protocol.Gate{},
		Denials: map[string]protocol.Denials{}, WritableRoots: []string{}, UnixSockets: []string{}, ClientTools: []protocol.ClientTool{},
	}
	recordHold(&r, b)
	if gates, err := gatesIn(b.ID, b.Gates); err != nil {
		e.cfg.Log.Error("a bot's record is not whole", "error", err)
	} else {
		r.Gates = append(r.Gates, gates...)
	}
	if counts, err := countsOf(b); err != nil {
		e.cfg.Log.Error("a bot's record is not whole", "error", err)
	} else {
		r.Denials = counts.record()
	}
	r.Settings = b.Settings
	if b.AllowedSet {
		r.Allowed = &b.Allowed
	}
	if declared, err := clientTools(b); err != nil {
		e.cfg.Log.Error("a bot's record is not whole", "error", err)
	} else {
		r.ClientTools = declared
	}
	return r
}

// cacheHit is cached ÷ input to three places.
func cacheHit(cached, input int64) float64 {
	if input == 0 {
		return 0
	}
	return float64(cached*1000/input) / 1000
}

// ptr is nil for a zero value, which stands for null in a row.
func ptr[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}
