package engine

import (
	"context"
	"errors"
	"fmt"

	"agent/internal/model"
	"agent/internal/store"
	"agent/protocol"
)

// forking is one fork on its way (runtime.md 15). Its job may run twice.
type forking struct {
	e      *Engine
	by     *Owner
	req    *protocol.Fork
	folder folder
	source int64 // the id whose history the named point was looked up in; 0: none was named
	held   *confining
}

// Fork makes a bot that goes on from a point of another's history. Nothing is
// copied: the new bot's head is a node that the source has.
func (e *Engine) Fork(ctx context.Context, by *Owner, req *protocol.Fork) (*protocol.Bot, *protocol.Error) {
	_, closed := req.Closed.Get()
	if err := by.makes(protocol.OpFork, &req.CreatedBy, &req.CreatedByID, closed); err != nil {
		return nil, err
	}
	f := &forking{e: e, by: by, req: req, folder: checkFolder(req.Workspace)}
	if err := f.check(); err != nil {
		return nil, err
	}
	if node, named := req.Checkpoint.Get(); named {
		// On a reader, since it may walk a long history: what lies at or before
		// a node never changes while its bot is there.
		err := e.read(ctx, "fork_point", func(c *store.Conn) (err error) {
			f.source, err = e.forkPoint(ctx, c, req.Source, node)
			return err
		})
		if err != nil {
			return nil, asError(err)
		}
	}
	for range settleTries {
		record, err := f.make(ctx)
		if !errors.Is(err, errSettleAgain) {
			return record, asError(err)
		}
	}
	return nil, protocol.Fail(protocol.BotBusy, "how "+req.Source+" is confined keeps changing; try again")
}

// make settles how the bot is held, and writes it.
func (f *forking) make(ctx context.Context) (*protocol.Bot, error) {
	var source int64
	err := f.e.read(ctx, "fork_source", func(c *store.Conn) error {
		src, err := findBot(c, f.req.Source, f.source)
		if err != nil {
			return err
		}
		source = src.ID
		return f.by.mayFork(c, &src)
	})
	if err != nil {
		return nil, err
	}
	if f.held, err = f.e.confineNew(ctx, askedByFork(f.req), f.folder.path, source, f.req.CreatedByID); err != nil {
		return nil, err
	}
	var record protocol.Bot
	err = f.e.store.Do("fork", func(tx *store.Tx) error {
		b, err := f.job(tx)
		if err == nil {
			record = f.e.record(b)
		}
		return err
	})
	return &record, err
}

// check makes the checks that need no store, in the order of create's.
func (f *forking) check() *protocol.Error {
	r := f.req
	like := &protocol.Create{
		Bot: r.Bot, BudgetTokens: r.BudgetTokens, CreatedBy: r.CreatedBy, CreatedByID: r.CreatedByID,
		Approve: r.Approve, Approver: r.Approver, ApproveExpireMS: r.ApproveExpireMS,
	}
	if err := f.e.checkShape(like); err != nil {
		return err
	}
	return f.folder.err
}

func (f *forking) job(tx *store.Tx) (*store.Bot, error) {
	c, r := tx.Conn(), f.req
	src, err := findBot(c, r.Source, f.source)
	if err != nil {
		return nil, err
	}
	if err := f.by.mayFork(c, &src); err != nil {
		return nil, err
	}
	b, err := f.inherit(&src)
	if err != nil {
		return nil, err
	}
	if ok, err := f.held.current(f.e, c); err != nil || !ok {
		return nil, errors.Join(err, errSettleAgain)
	}
	b.Sandbox, b.Rules = f.held.encoded(), f.held.ref
	if b.Head, err = f.point(c, &src); err != nil {
		return nil, err
	}
	at, err := store.VersionsAt(c, &src, b.Head)
	if err != nil {
		return nil, err
	}
	b.Note, b.Compaction, b.Elision, b.ContextStart = at.Note, at.Compaction, at.Elision, at.ContextStart
	if err := admitBot(c, f.by, protocol.OpFork, b, r.From); err != nil {
		return nil, err
	}
	own := ownGate(r.Approve, r.Approver, r.ApproveExpireMS)
	if err := gatesNameTools(own, b); err != nil {
		return nil, err
	}
	if err := inheritGates(c, b, &src, own); err != nil {
		return nil, err
	}
	if err := f.write(tx, &src, b); err != nil {
		return nil, err
	}
	data := createdData(b).str("source", src.Name).intOrNull("checkpoint", r.Checkpoint.Or(0)).
		intOrNull("node", b.Head).done()
	_, err = tx.AddEvent(b.ID, b.Name, 0, protocol.KindForked, data)
	return b, err
}

// inherit is the new bot as its source and the request make it, without a
// history.
func (f *forking) inherit(src *store.Bot) (*store.Bot, error) {
	r := f.req
	b := &store.Bot{
		Name: r.Bot, Provider: src.Provider, Family: src.Family, Model: src.Model, Instructions: src.Instructions,
		Reasoning: src.Reasoning, Tools: src.Tools, Allowed: src.Allowed, AllowedSet: src.AllowedSet,
		Workspace: f.folder.path, Budget: r.BudgetTokens.Or(0), CompactionInstructions: src.CompactionInstructions,
		CompactionModel: src.CompactionModel, CreatedBy: r.CreatedBy, CreatedByID: r.CreatedByID,
		CacheBot: src.CacheBot, Fallbacks: src.Fallbacks, ClosedToBots: r.Closed.Or(src.ClosedToBots),
		BotMade:  src.BotMade || r.CreatedByID != 0,
		Settings: mergeSettings(src.Settings, given(r.Settings)), ClientTools: src.ClientTools,
	}
	if b.CacheBot == 0 {
		b.CacheBot = src.ID
	}
	if err := f.e.givenSettings(r.Settings, &b.Settings); err != nil {
		return nil, err
	}
	if r.Allow == nil {
		return b, nil
	}
	declared, err := clientTools(src)
	if err != nil {
		return nil, err
	}
	may := mayCall(src, declared)
	b.AllowedSet, b.Allowed = true, []string{}
	for _, name := range r.Allow {
		if !contains(may, name) {
			return nil, protocol.Fail(protocol.AllowNotSubset, fmt.Sprintf("%s may not call %q", src.Name, name))
		}
		if !contains(b.Allowed, name) {
			b.Allowed = append(b.Allowed, name)
		}
	}
	return b, nil
}

// given is a request's settings without the null ones, which outside of
// configure are as good as absent.
func given(s *protocol.Settings) *protocol.Settings {
	if s == nil {
		return nil
	}
	set := mergeSettings(protocol.Settings{}, s)
	return &set
}

// point is the node the fork begins at, 0 for a source without a history.
func (f *forking) point(c *store.Conn, src *store.Bot) (int64, error) {
	if node, named := f.req.Checkpoint.Get(); named {
		return node, nil
	}
	if src.RunningTurn == 0 {
		return src.Head, nil
	}
	// Between two rounds every call has its result, and the head is a point;
	// else the newest one lies where the round under way began.
	open, err := store.HasOpenCalls(c, src.RunningTurn)
	if err != nil || open {
		return src.Closed, err
	}
	d, err := f.e.itemAt(c, src.Family, src.Head)
	if err != nil || d.Role == "reasoning" {
		return src.Closed, err
	}
	return src.Head, nil
}

// write records the bot with what its lineage needs.
func (f *forking) write(tx *store.Tx, src, b *store.Bot) error {
	if err := tx.InsertBot(b); err != nil {
		return err
	}
	if b.Head == 0 {
		return nil
	}
	if err := tx.ThinkLike(b.ID, src.ID); err != nil {
		return err
	}
	if err := tx.Inherit(b.ID, src.ID, b.Head); err != nil {
		return err
	}
	return tx.AddCheckpoint(b.Name, b.Head)
}

// forkPoint checks that a bot's history may be taken up at a node, and gives the
// bot's id.
func (e *Engine) forkPoint(ctx context.Context, c *store.Conn, source string, node int64) (int64, error) {
	bot, err := findBot(c, source, 0)
	if err != nil {
		return 0, err
	}
	ok, err := store.InLineage(ctx, c, bot.Head, node)
	if err != nil {
		return 0, err
	}
	if !ok || node <= 0 {
		return 0, protocol.Fail(protocol.NodeNotInSourceHistory, fmt.Sprintf("node %d is not in the history of %s", node, source))
	}
	if err := e.noOpenCalls(ctx, c, &bot, node); err != nil {
		return 0, err
	}
	d, err := e.itemAt(c, bot.Family, node)
	if err != nil {
		return 0, err
	}
	if d.Role == "reasoning" {
		return 0, protocol.Fail(protocol.ForkPointSplitsReasoning,
			fmt.Sprintf("node %d is reasoning, which the model's next item must follow; take that or the node before", node))
	}
	return bot.ID, nil
}

// noOpenCalls looks, item by item, for a call at or before a node that has no
// result there. It ends at the start of a turn or where that is known already.
func (e *Engine) noOpenCalls(ctx context.Context, c *store.Conn, bot *store.Bot, node int64) error {
	answered := map[string]bool{}
	var failed error
	err := store.Walk(c, node, func(n store.Node) bool {
		proven, err := store.IsCheckpoint(c, n.ID)
		if err != nil || proven || n.Turn != 0 {
			failed = err
			return false
		}
		var d model.Described
		if d, failed = e.itemAt(c, bot.Family, n.ID); failed != nil {
			return false
		}
		if d.Role == "tool" {
			answered[d.CallID] = true
		}
		for _, call := range d.Calls {
			if !answered[call.ID] {
				failed = protocol.Fail(protocol.ForkPointHasOpenToolCalls,
					fmt.Sprintf("call %s of node %d has no result at or before node %d", call.ID, n.ID, node))
				return false
			}
		}
		return ctx.Err() == nil
	})
	if err == nil {
		err = failed
	}
	if err == nil {
		err = context.Cause(ctx)
	}
	return err
}

// itemAt is what a node's item says.
func (e *Engine) itemAt(c *store.Conn, family string, node int64) (model.Described, error) {
	item, ok, err := store.ItemOf(c, nil, node)
	if err != nil || !ok {
		return model.Described{}, badItem(node, err)
	}
	return e.describe(family, node, item)
}
