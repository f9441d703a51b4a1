package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

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
	declared  []protocol.ClientTool
	creator   string // "" when it has none
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
	// Of a turn that was parked: what is left to do of that, and how far its
	// unfinished model call had come.
	resumed   *parkRecord
	outcomes  map[string]json.RawMessage
	attempts  int
	callSpent time.Duration

	lim        Limits // the bot's own
	summary    pinnedSummary
	last       *view             // of the last answered call
	purpose    string            // of the call under way, as its usage names it
	summarizer *model.ModelUsage // that the call under way asks, where it is another than the bot's
	triedAt    int64             // the head at which a summary failed: not again there
	summedAt   int64             // the head at which one was made: one step at a boundary
	onLineage  map[int64]bool    // results that read has found on the lineage
	paused     bool              // the provider paused its answer: nothing may come between
	shrunk     bool              // room was made for the call that the provider found too long
	warm       warmer
	lastUser   lastUser
	output     int64 // the last node the model wrote, 0 while not looked up
}

// stop is why a turn is ended from outside; the first one wins.
type stop struct {
	err  protocol.Code // cancelled, paused, daemon_shutdown, approvals_unserved
	why  string
	kind tool.StopCause

	facts map[string]json.RawMessage
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
// task it gives begins its work behind the commit (runtime.md 25).
func (e *Engine) start(tx *store.Tx, bot *store.Bot, turn *store.Turn) (*task, int64, error) {
	t, perr := e.taskFor(bot, turn)
	if perr != nil {
		return nil, 0, perr
	}
	node, err := appendPrompt(tx, t.codec, bot.Head, turn, true)
	if err != nil {
		return nil, 0, err
	}
	if turn.Status != protocol.StatusRunning { // it waited; another is made running
		if err := tx.StartTurn(turn.ID, e.nowMS()); err != nil {
			return nil, 0, err
		}
	}
	if err := tx.RunBot(bot.ID, turn.ID, node); err != nil {
		return nil, 0, err
	}
	t.head = node
	o := newObject().str("request_id", turn.RequestID).int("node", node).str("workspace", t.workspace).str("model", t.model)
	cursor, err := tx.AddEvent(bot.ID, bot.Name, turn.ID, protocol.KindAccepted, authorship(o, turn).done())
	if err != nil {
		return nil, 0, err
	}
	steer, err := store.NewestSteer(tx.Conn(), bot.Name)
	if err != nil {
		return nil, 0, err
	}
	t.steer.Store(steer != 0)
	t.runAfter(tx)
	return t, cursor, nil
}

// taskFor makes the task of a turn from its rows, or says why the turn cannot
// go on with its provider.
func (e *Engine) taskFor(bot *store.Bot, turn *store.Turn) (*task, *protocol.Error) {
	ref := effective(turn.Model, bot.Provider+"/"+bot.Model)
	name, _, _ := protocol.ParseModelRef(ref)
	family := model.Family(bot.Family)
	provider, err := e.provider(name, family)
	if err != nil {
		return nil, err
	}
	declared, derr := clientTools(bot)
	if derr != nil {
		return nil, asError(derr)
	}
	t := &task{
		e: e, bot: bot.ID, name: bot.Name, family: family, codec: e.cfg.Codecs[family], provider: provider, model: ref,
		workspace: effective(turn.Workspace, bot.Workspace), turn: turn.ID, effective: mayCall(bot, declared), declared: declared,
		creator: bot.CreatedBy, creatorID: bot.CreatedByID, head: bot.Head, used: bot.TokensUsed, budget: bot.Budget,
		rounds: turn.Rounds, retries: turn.Retries, pacedMS: turn.PacedMS, lim: e.limitsFor(bot),
	}
	if turn.External != nil {
		if json.Unmarshal(turn.External, &t.external) != nil {
			return nil, protocol.Fail(protocol.StoreRowInvalid, fmt.Sprintf("turns %d: external cannot be read", turn.ID))
		}
	}
	t.ctx, t.cancel = context.WithCancelCause(context.Background())
	return t, nil
}

// appendPrompt puts a turn's user item behind head. own is false for a steer,
// whose item is part of another turn.
func appendPrompt(tx *store.Tx, codec model.Codec, head int64, turn *store.Turn, own bool) (int64, error) {
	pictures, err := store.TurnPictures(tx.Conn(), turn.ID)
	if err != nil {
		return 0, err
	}
	n := store.NewNode{Item: codec.User(senderOf(turn).Text(turn.Prompt), inItem(pictures)), Pictures: pictures}
	if own {
		ordinal, err := nextOrdinal(tx, head)
		if err != nil {
			return 0, err
		}
		n.Turn, n.TurnSeq = turn.ID, ordinal
	}
	node, err := tx.AppendNode(head, n)
	if err == nil && len(pictures) > 0 {
		err = tx.DropTurnPictures(turn.ID)
	}
	if err != nil || !sharable(turn.Prompt) {
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

// runAfter has the turn run once tx, which starts or resumes it, is committed and
// those it serves are answered: many turns at once would hold the answers up.
func (t *task) runAfter(tx *store.Tx) {
	tx.AfterCommit(func() { t.e.goLive(t) })
	tx.AfterAnswers(t.launch)
}

// launch begins the goroutine of a turn.
func (t *task) launch() {
	go func() {
		defer t.e.tasks.Done()
		end := t.loop()
		if end.parked {
			return
		}
		t.warm.settle(t)
		t.finish(end)
	}()
}

// loop is the turn loop of runtime.md 5. It returns how the turn ends.
func (t *task) loop() ending {
	if err := t.takeUp(); err != nil {
		return t.endOf(err)
	}
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
			return t.endOf(err)
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
	if err == errParked {
		return ending{parked: true}
	}
	if s := t.stopped(); s != nil {
		return interrupted(s)
	}
	return failed(err)
}
