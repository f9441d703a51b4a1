package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"agent/internal/model"
	"agent/internal/store"
	"agent/protocol"
)

// parkRecord is what a parked turn's row keeps (runtime.md 8).
type parkRecord struct {
	Kind       string       `json:"kind"`
	CallID     string       `json:"call_id"`
	Handles    []string     `json:"handles,omitempty"`
	Any        bool         `json:"any,omitempty"`
	DeadlineMS int64        `json:"deadline_ms,omitempty"`
	Pending    []parkedCall `json:"pending,omitempty"` // of the same response, still to run

	PacedSinceMS int64  `json:"paced_since_ms,omitempty"`
	CallAttempts int    `json:"call_attempts,omitempty"`
	CallSpentMS  int64  `json:"call_spent_ms,omitempty"`
	Route        string `json:"route,omitempty"`

	// Of the context: whether an answer was paused, and the heads at which a
	// summary failed or was made.
	Paused   bool  `json:"paused,omitempty"`
	TriedAt  int64 `json:"tried_at,omitempty"`
	SummedAt int64 `json:"summed_at,omitempty"`
}

const (
	parkWait  = "wait"
	parkPaced = "paced"
)

type parkedCall struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Invalid   string          `json:"invalid,omitempty"`
}

func toParked(calls []model.Call) (out []parkedCall) {
	for _, c := range calls {
		out = append(out, parkedCall{c.ID, c.Name, c.Arguments, c.Invalid})
	}
	return out
}

func fromParked(calls []parkedCall) (out []model.Call) {
	for _, c := range calls {
		out = append(out, model.Call{ID: c.ID, Name: c.Name, Arguments: c.Arguments, Invalid: c.Invalid})
	}
	return out
}

// parkedTurn is a parked turn in memory: this and its deadline in the one heap
// are all it costs.
type parkedTurn struct {
	bot    int64
	name   string
	turn   int64
	kind   string
	callID string    // that it waits on; "" when paced
	since  time.Time // of a paced one: the beginning
	waiter *waiter
}

// pacedMS is how long a turn has been paced by now; 0 for one that is not.
func (p *parkedTurn) pacedMS() int64 {
	if p == nil || p.kind != parkPaced {
		return 0
	}
	return time.Since(p.since).Milliseconds()
}

// errParked ends a task whose turn goes on without one.
var errParked = errors.New("the turn is parked")

// park makes the turn wait without a task. It returns errParked, or why the
// turn could not be parked.
func (t *task) park(rec parkRecord) error { return t.parkWith(rec, nil) }

// parkWith is park with more to write in the same commit.
func (t *task) parkWith(rec parkRecord, also func(*store.Tx) error) error {
	t.warm.settle(t)
	rec.Route, rec.Paused, rec.TriedAt, rec.SummedAt = t.turnState, t.paused, t.triedAt, t.summedAt
	raw, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	status, kind, data := protocol.StatusWaiting, protocol.KindTurnWaiting, waitingData(&rec)
	if rec.Kind == parkPaced {
		status, kind, data = protocol.StatusPaced, protocol.KindTurnPaced, newObject().int("resume_at_ms", rec.DeadlineMS).done()
	}
	var parked *parkedTurn
	err = t.e.store.Do("park", func(tx *store.Tx) error {
		if s := t.stopped(); s != nil {
			return s
		}
		if also != nil {
			if err := also(tx); err != nil {
				return err
			}
		}
		if err := tx.ParkTurn(t.turn, status, raw, t.retries, t.pacedMS); err != nil {
			return err
		}
		if err := tx.SetBotStatus(t.bot, t.turn, status); err != nil {
			return err
		}
		if _, err := tx.AddEvent(t.bot, t.name, t.turn, kind, data); err != nil {
			return err
		}
		tx.AfterCommit(func() {
			parked = t.e.enterParked(t.bot, t.name, t.turn, &rec)
			if rec.Kind == parkVerdict {
				t.e.parkOn(t.turn, rec.CallID, true)
			}
		})
		return nil
	})
	if err != nil {
		return err
	}
	t.cancel(nil)
	t.e.lookUp(parked, rec.Handles)
	return errParked
}

func waitingData(rec *parkRecord) json.RawMessage {
	if rec.Kind == parkServed {
		return newObject().str("call_id", rec.CallID).bool("served", true).intOrNull("deadline_ms", rec.DeadlineMS).done()
	}
	if rec.Kind == parkVerdict {
		return newObject().str("call_id", rec.CallID).bool("approval", true).intOrNull("deadline_ms", rec.DeadlineMS).done()
	}
	return newObject().str("call_id", rec.CallID).strs("handles", rec.Handles).
		intOrNull("deadline_ms", rec.DeadlineMS).bool("any", rec.Any).done()
}

// longestClosure is the longest that a provider can have its pool closed
// (providers.md 17).
const longestClosure = time.Hour

// enterParked puts a parked turn into the registry in place of its task.
func (e *Engine) enterParked(bot int64, name string, turn int64, rec *parkRecord) *parkedTurn {
	p := &parkedTurn{bot: bot, name: name, turn: turn, kind: rec.Kind, callID: rec.CallID}
	var deadline time.Time
	if rec.DeadlineMS != 0 && rec.Kind != parkServed && rec.Kind != parkVerdict { // those calls have their own
		deadline = e.deadline(rec.DeadlineMS)
	}
	if rec.Kind == parkPaced {
		p.since = e.past(rec.PacedSinceMS)
		if latest := time.Now().Add(longestClosure); deadline.After(latest) {
			deadline = latest // the wall clock was set back since it was parked
		}
	}
	p.waiter = newWaiter(rec.Handles, rec.Any, deadline, func() { e.wake(p) })
	e.mu.Lock()
	e.parked[bot] = p
	e.mu.Unlock()
	e.waits.add(p.waiter)
	e.goIdle(bot)
	return p
}

// lookUp resolves what of a parked turn's handles had been resolved before it
// stood in the registry.
func (e *Engine) lookUp(p *parkedTurn, handles []string) {
	for _, h := range handles {
		var done bool
		err := e.read(context.Background(), "handle", func(c *store.Conn) (err error) {
			_, done, err = e.handleValue(c, h, p.bot)
			return err
		})
		if err != nil {
			e.cfg.Log.Error("a handle cannot be looked up", "handle", h, "error", err)
		}
		if done {
			e.waits.resolveFor(p.waiter, h)
		}
	}
}

// wake queues a parked turn whose condition is met for the next free slot.
func (e *Engine) wake(p *parkedTurn) {
	e.mu.Lock()
	e.wakes = append(e.wakes, p)
	e.mu.Unlock()
	e.dispatch()
}

// unpark takes a parked turn that ended out of the registry.
func (e *Engine) unpark(bot int64) {
	e.mu.Lock()
	p := e.parked[bot]
	delete(e.parked, bot)
	e.mu.Unlock()
	if p != nil {
		e.waits.drop(p.waiter)
	}
}

// parkedCounts are the parked turns that wait and that are paced.
func (e *Engine) parkedCounts() (waiting, paced int64) {
	for _, p := range e.parked {
		if p.kind == parkPaced {
			paced++
		} else {
			waiting++
		}
	}
	return waiting, paced
}

// resume makes a parked turn run again. It gives no task when the turn is not
// parked any more, or ended here because it cannot go on.
func (e *Engine) resume(tx *store.Tx, p *parkedTurn) (*task, error) {
	c := tx.Conn()
	bot, ok, err := store.BotByID(c, p.bot)
	if err != nil {
		return nil, err
	}
	if !ok || bot.RunningTurn != p.turn || bot.Status != protocol.StatusWaiting && bot.Status != protocol.StatusPaced {
		return nil, nil
	}
	turn, _, err := store.TurnByID(c, p.turn)
	if err != nil {
		return nil, err
	}
	raw, err := store.ParkRecord(c, p.turn)
	if err != nil {
		return nil, err
	}
	var rec parkRecord
	if err := json.Unmarshal(raw, &rec); err != nil {
		return nil, protocol.Fail(protocol.StoreRowInvalid, fmt.Sprintf("the park record of turn %d cannot be read", p.turn))
	}
	t, perr := e.taskFor(&bot, &turn)
	if perr != nil {
		end := failed(perr)
		end.retries, end.pacedMS = turn.Retries, turn.PacedMS
		return nil, e.endTurn(tx, p.bot, p.turn, end)
	}
	if rec.Kind == parkPaced {
		t.pacedMS += p.pacedMS()
	}
	t.resumed, t.turnState = &rec, rec.Route
	t.paused, t.triedAt, t.summedAt = rec.Paused, rec.TriedAt, rec.SummedAt
	t.outcomes = p.waiter.outcomes
	if err := tx.ResumeTurn(p.turn, t.pacedMS); err != nil {
		return nil, err
	}
	if err := tx.SetBotStatus(p.bot, p.turn, protocol.StatusRunning); err != nil {
		return nil, err
	}
	data := newObject().str("call_id", rec.CallID).done()
	if _, err := tx.AddEvent(p.bot, p.name, p.turn, protocol.KindTurnResumed, data); err != nil {
		return nil, err
	}
	steer, err := store.NewestSteer(c, bot.Name)
	if err != nil {
		return nil, err
	}
	t.steer.Store(steer != 0)
	tx.AfterCommit(func() {
		e.mu.Lock()
		delete(e.parked, p.bot)
		e.mu.Unlock()
		if rec.Kind == parkVerdict {
			e.parkOn(p.turn, rec.CallID, false)
		}
	})
	t.runAfter(tx)
	return t, nil
}

// takeUp does what was left when the turn was parked: the wait's result, then
// the calls behind it.
func (t *task) takeUp() error {
	rec := t.resumed
	t.resumed = nil
	if rec == nil {
		return nil
	}
	if rec.Kind == parkPaced {
		t.attempts, t.callSpent = rec.CallAttempts, time.Duration(rec.CallSpentMS)*time.Millisecond
		return nil
	}
	if rec.Kind == parkServed || rec.Kind == parkVerdict {
		// A served call's result was committed as it came; a judged call is the
		// first of what is left.
		return t.runCalls(fromParked(rec.Pending))
	}
	call := model.Call{ID: rec.CallID, Name: "wait"}
	res, procs, err := t.waitResult(rec.Handles, t.outcomes)
	t.outcomes = nil
	if err != nil {
		return err
	}
	if err := t.finishCallWith(&call, res, procs); err != nil {
		return err
	}
	return t.runCalls(fromParked(rec.Pending))
}

// registerParked enters the turns found parked at start, deadlines passed
// meanwhile included.
func (e *Engine) registerParked() error {
	type found struct {
		p   *parkedTurn
		rec parkRecord
	}
	var list []found
	var waiting []*announced
	var bad error
	err := e.read(context.Background(), "parked", func(c *store.Conn) error {
		list, waiting = nil, nil
		type row struct {
			turn int64
			bot  string
			rec  parkRecord
		}
		var rows []row
		err := store.ParkedTurns(c, func(turn int64, bot string, raw json.RawMessage) {
			r := row{turn: turn, bot: bot}
			if err := json.Unmarshal(raw, &r.rec); err != nil {
				bad = protocol.Fail(protocol.StoreRowInvalid, fmt.Sprintf("the park record of turn %d cannot be read", turn))
			}
			rows = append(rows, r)
		})
		if err != nil {
			return err
		}
		for _, r := range rows {
			bot, _, err := store.BotByName(c, r.bot)
			if err != nil {
				return err
			}
			waiting = append(waiting, e.storedApprovals(c, bot.ID, r.bot, r.turn)...)
			list = append(list, found{e.enterParked(bot.ID, r.bot, r.turn, &r.rec), r.rec})
		}
		return nil
	})
	if err == nil {
		err = bad
	}
	if err != nil {
		return err
	}
	e.restoreApprovals(waiting)
	for _, f := range list {
		if f.rec.Kind == parkServed {
			if err := e.restoreServed(f.p, f.rec.CallID); err != nil {
				return err
			}
		}
		if f.rec.Kind == parkVerdict {
			if err := e.restoreVerdict(f.p); err != nil {
				return err
			}
		}
		e.lookUp(f.p, f.rec.Handles)
	}
	return nil
}
