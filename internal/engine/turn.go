package engine

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"agent/internal/model"
	"agent/internal/store"
	"agent/internal/tool"
	"agent/protocol"
)

// maxRounds is how many model calls a turn may make (runtime.md 5).
const maxRounds = 200

// task is a turn that runs: its goroutine, and what the next commit needs to
// know. Everything else of it is rows.
type task struct {
	e         *Engine
	bot       int64
	name      string
	family    model.Family
	codec     model.Codec
	provider  model.Provider
	model     string // PROVIDER/MODEL
	workspace string
	turn      int64
	effective []string // tools it may call
	creator   string   // "" when it has none
	creatorID int64

	ctx    context.Context
	cancel context.CancelCauseFunc
	once   sync.Once
	// steer says that a steer may be queued; a boundary that finds it unset
	// touches no storage.
	steer atomic.Bool

	// Of the goroutine alone.
	head      int64
	rounds    int64
	used      int64
	budget    int64
	retries   int64
	pacedMS   int64
	external  []string
	turnState string
	sentMS    int64
	note      contextNote
	summary   pinnedSummary
	last      *view  // of the last answered call
	paused    bool   // the provider paused its answer: nothing may come between
	purpose   string // of the call under way, as its usage names it
	triedAt   int64  // the head at which a summary failed: not again there
	summedAt  int64  // the head at which one was made: one step at a boundary
	shrunk    bool   // room was made for the call that the provider found too long
	warm      warmer
	onLineage map[int64]bool // results that read has found on the lineage
	output    int64          // the last node the model wrote, 0 while not looked up
}

// stop is why a turn is ended from outside; the first one wins.
type stop struct {
	err  protocol.Code // cancelled, paused, daemon_shutdown
	why  string
	kind tool.StopCause
}

func (s *stop) Error() string { return string(s.err) }

// stopWith ends the turn's work. Only the first call has an effect.
func (t *task) stopWith(s *stop) { t.once.Do(func() { t.cancel(s) }) }

// stopped is why the turn was ended from outside, nil while it was not.
func (t *task) stopped() *stop {
	if t.ctx.Err() == nil {
		return nil
	}
	if s, ok := context.Cause(t.ctx).(*stop); ok {
		return s
	}
	return &stop{err: protocol.DaemonShutdown, kind: tool.StopShutdown}
}

// start makes a turn run: its prompt joins the lineage and the bot is its. The
// task it gives is launched after the commit (runtime.md 25).
func (e *Engine) start(tx *store.Tx, bot *store.Bot, turn *store.Turn) (*task, int64, error) {
	ref := effective(turn.Model, bot.Provider+"/"+bot.Model)
	name, _, _ := protocol.ParseModelRef(ref)
	family := model.Family(bot.Family)
	provider, perr := e.provider(name, family)
	if perr != nil {
		return nil, 0, perr
	}
	codec := e.cfg.Codecs[family]
	node, err := appendPrompt(tx, codec, bot.Head, turn, true)
	if err != nil {
		return nil, 0, err
	}
	if err := tx.StartTurn(turn.ID, nowMS()); err != nil {
		return nil, 0, err
	}
	if err := tx.RunBot(bot.ID, turn.ID, node); err != nil {
		return nil, 0, err
	}
	workspace := effective(turn.Workspace, bot.Workspace)
	o := newObject().str("request_id", turn.RequestID).int("node", node).str("workspace", workspace).str("model", ref)
	cursor, err := tx.AddEvent(bot.ID, bot.Name, turn.ID, protocol.KindAccepted, authorship(o, turn).done())
	if err != nil {
		return nil, 0, err
	}
	steer, err := store.NewestSteer(tx.Conn(), bot.Name)
	if err != nil {
		return nil, 0, err
	}
	t := &task{
		e: e, bot: bot.ID, name: bot.Name, family: family, codec: codec, provider: provider, model: ref,
		workspace: workspace, turn: turn.ID, effective: bot.Effective(),
		creator: bot.CreatedBy, creatorID: bot.CreatedByID, head: node, used: bot.TokensUsed, budget: bot.Budget,
	}
	t.ctx, t.cancel = context.WithCancelCause(context.Background())
	t.steer.Store(steer != 0)
	tx.AfterCommit(func() {
		e.mu.Lock()
		e.live[t.bot] = t
		e.tasks.Add(1)
		n := len(e.live)
		more := n > e.peak
		e.peak = max(e.peak, n)
		e.mu.Unlock()
		if more && e.cfg.Peak != nil {
			e.cfg.Peak(n)
		}
	})
	return t, cursor, nil
}

// appendPrompt puts a turn's user item behind head. own is false for a steer,
// whose item is part of another turn.
func appendPrompt(tx *store.Tx, codec model.Codec, head int64, turn *store.Turn, own bool) (int64, error) {
	n := store.NewNode{Item: codec.User(senderOf(turn).Text(turn.Prompt), nil)}
	if own {
		ordinal, err := nextOrdinal(tx, head)
		if err != nil {
			return 0, err
		}
		n.Turn, n.TurnSeq = turn.ID, ordinal
	}
	node, err := tx.AppendNode(head, n)
	if err != nil || len(turn.Prompt) < sharedPrompt {
		return node, err
	}
	return node, tx.SharePrompt(turn.ID, node)
}

// nextOrdinal counts on from the newest turn of a lineage.
func nextOrdinal(tx *store.Tx, head int64) (int64, error) {
	ordinal := int64(1)
	if head == 0 {
		return ordinal, nil
	}
	err := store.Walk(tx.Conn(), head, func(n store.Node) bool {
		if n.Turn != 0 {
			ordinal = n.TurnSeq + 1
			return false
		}
		return true
	})
	return ordinal, err
}

func authorship(o *object, t *store.Turn) *object {
	if t.FromBot != "" {
		o.raw("from", newObject().str("bot", t.FromBot).int("bot_id", t.FromBotID).int("turn", t.FromTurn).done())
	}
	return o.opt("origin", t.Origin)
}

// launch begins the goroutine of a turn whose start is committed.
func (t *task) launch() {
	go func() {
		defer t.e.tasks.Done()
		end := t.loop()
		t.warm.settle(t)
		t.finish(end)
	}()
}

// loop is the turn loop of runtime.md 5. It returns how the turn ends.
func (t *task) loop() ending {
	for {
		t.warm.settle(t)
		if s := t.stopped(); s != nil {
			return interrupted(s)
		}
		if end, over := t.overBound(); over {
			return end
		}
		v, again, err := t.fit()
		if err != nil {
			return t.endOf(err)
		}
		if again {
			continue
		}
		done, err := t.call(v)
		if err != nil {
			if err = t.setAside(v, t.shrink(v, err)); err != nil {
				return t.endOf(err)
			}
			continue
		}
		calls, err := t.record(v, done)
		if err != nil {
			return failed(err)
		}
		if len(calls) == 0 && !done.Continue {
			if took, err := t.absorb(); err != nil {
				return failed(err)
			} else if took {
				continue
			}
			return completed(t.head)
		}
		if err := t.runCalls(calls); err != nil {
			return t.endOf(err)
		}
	}
}

// overBound checks what stops the next model call.
func (t *task) overBound() (ending, bool) {
	if t.rounds >= maxRounds {
		return failed(protocol.Fail(protocol.ToolRoundLimit, fmt.Sprintf("%d model calls were made", t.rounds))), true
	}
	if t.budget > 0 && t.used >= t.budget {
		return failed(budgetExhausted(&store.Bot{TokensUsed: t.used, Budget: t.budget})), true
	}
	return ending{}, false
}

// endOf turns the error of a step into the turn's end. What was stopped from
// outside ends by that, whatever the step said of it.
func (t *task) endOf(err error) ending {
	if s := t.stopped(); s != nil {
		return interrupted(s)
	}
	return failed(err)
}
