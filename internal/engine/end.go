package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"time"

	"agent/internal/model"
	"agent/internal/store"
	"agent/internal/tool"
	"agent/protocol"
)

// ending is how a turn ends.
type ending struct {
	parked     bool // the turn goes on without its task
	status     string
	checkpoint int64
	err        protocol.Code
	detail     string
	facts      map[string]json.RawMessage
	retries    int64
	pacedMS    int64
}

func completed(head int64) ending {
	return ending{status: protocol.StatusCompleted, checkpoint: head}
}

func interrupted(s *stop) ending {
	return ending{status: protocol.StatusInterrupted, err: s.err, detail: s.why, facts: s.facts}
}

// failed is the end by an error of the runtime or the provider.
func failed(err error) ending {
	var m *model.Error
	if errors.As(err, &m) {
		return ending{status: protocol.StatusFailed, err: protocol.Code(m.Code), detail: m.Detail}
	}
	p := asError(err)
	return ending{status: protocol.StatusFailed, err: p.Code, detail: p.Detail, facts: p.Facts}
}

// asError gives err's wire form. An error without a code is a defect of ours
// or of the machine; it is named rather than hidden.
func asError(err error) *protocol.Error {
	if err == nil {
		return nil
	}
	var p *protocol.Error
	if errors.As(err, &p) {
		return p
	}
	return protocol.Fail(protocol.StorageError, err.Error())
}

const outcomeUnknownDetail = "The turn ended before this call had a result. It may have had effects, and work it began may still run: look before you repeat it."

// firstEndWait is the wait after a store has first refused a turn's end.
const firstEndWait = 10 * time.Millisecond

// finish commits the end of a turn. A store that refuses it is asked again,
// 10 ms doubling to 1 s, while the bot stays durably busy; an interrupt
// meanwhile turns the next try into one (runtime.md 25).
func (t *task) finish(end ending) {
	for wait := firstEndWait; ; wait = min(2*wait, time.Second) {
		err := t.e.store.Do("end_turn", func(tx *store.Tx) error {
			if s := t.stopped(); s != nil && end.status == protocol.StatusCompleted {
				end = interrupted(s)
			}
			end.retries, end.pacedMS = t.retries, t.pacedMS
			return t.e.endTurn(tx, t.bot, t.turn, end)
		})
		if err == nil {
			t.cancel(nil)
			return
		}
		if wait == firstEndWait { // once, however long the disk stays full
			t.e.cfg.Log.Error("a turn's end was refused by the store", "bot", t.name, "turn", t.turn, "error", err)
		}
		if protocol.CodeOf(err) != protocol.StorageError || !t.e.sleepOpen(wait) {
			t.e.release()
			return // the next daemon finds it running
		}
	}
}

// endTurn ends a bot's current turn in tx: every call without a result gets
// one, so that the history stays acceptable, then the bot is free and the next
// in its line is ready.
func (e *Engine) endTurn(tx *store.Tx, botID, turnID int64, end ending) error {
	c := tx.Conn()
	bot, ok, err := store.BotByID(c, botID)
	if err != nil {
		return err
	}
	if !ok || bot.RunningTurn != turnID {
		return fmt.Errorf("turn %d is not the current one of bot %d", turnID, botID)
	}
	closed, err := e.closeCalls(tx, &bot, turnID)
	if err != nil {
		return err
	}
	if closed > 0 && end.status == protocol.StatusCompleted {
		end = ending{status: protocol.StatusInterrupted, err: protocol.Cancelled, retries: end.retries, pacedMS: end.pacedMS}
	}
	if end.status == protocol.StatusCompleted {
		if err := tx.AddCheckpoint(bot.Name, end.checkpoint); err != nil {
			return err
		}
	}
	if err := tx.EndTurn(turnID, end.status, e.nowMS(), end.retries, end.pacedMS); err != nil {
		return err
	}
	if err := tx.EndBot(botID, turnID, end.status); err != nil {
		return err
	}
	if _, err := tx.AddEvent(botID, bot.Name, turnID, protocol.KindTurnFinished, end.data()); err != nil {
		return err
	}
	if err := e.announce(tx, &bot, turnID); err != nil {
		return err
	}
	if err := e.promote(tx, &bot); err != nil {
		return err
	}
	if end.err == protocol.Paused {
		tx.AfterCommit(e.cord.ended)
	}
	tx.AfterCommit(func() { // last: whom these ends woke stands before ready work
		e.unpark(botID)
		e.leaveServed(turnID, true)
		e.withdraw(turnID, "")
		e.goIdle(botID)
	})
	return e.retain(tx, &bot, turnID)
}

// announce tells those who wait for a turn that it has ended. Its outcome is
// taken now where someone waits already: retention may remove it before they
// look.
func (e *Engine) announce(tx *store.Tx, bot *store.Bot, turn int64) error {
	handle := protocol.TurnHandle(bot.Name, turn).String()
	var outcome json.RawMessage
	if e.waits.waited(handle) {
		value, done, err := e.handleValue(tx.Conn(), handle, anyBot)
		if err != nil {
			return err
		}
		if done {
			outcome = value
		}
	}
	e.tellWaiters(tx, handle, outcome)
	return nil
}

// tellWaiters resolves a handle by what tx commits: for parked turns at once, so
// that they stand before ready work when a slot is given up, for clients behind
// the events.
func (e *Engine) tellWaiters(tx *store.Tx, handle string, outcome json.RawMessage) {
	tx.AfterCommit(func() { e.waits.resolve(handle, outcome, false) })
	tx.AfterPublish(func() { e.waits.resolve(handle, outcome, true) })
}

func (end *ending) data() json.RawMessage {
	return newObject().str("status", end.status).intOrNull("checkpoint", end.checkpoint).
		orNull("error", string(end.err)).orNull("detail", end.detail).facts(end.facts).done()
}

// closeCalls gives each open call of a turn its result, planned ones cancelled
// and executing ones unknown, in order. The call that a turn is parked on is
// cancelled, too, but not one that a server was given: it may have acted.
func (e *Engine) closeCalls(tx *store.Tx, bot *store.Bot, turn int64) (int, error) {
	var open []store.ToolCall
	if err := store.OpenCalls(tx.Conn(), turn, func(c store.ToolCall) { open = append(open, c) }); err != nil {
		return 0, err
	}
	raw, err := store.ParkRecord(tx.Conn(), turn)
	if err != nil {
		return 0, err
	}
	var park parkRecord
	if raw != nil {
		_ = json.Unmarshal(raw, &park) // unreadable: the call reads as unknown
	}
	codec := e.cfg.Codecs[model.Family(bot.Family)]
	for _, call := range open {
		code, detail, mark := protocol.Cancelled, "", "cancelled"
		if call.Status == "executing" && (call.CallID != park.CallID || handedOver(&call)) {
			code, detail, mark = protocol.ToolOutcomeUnknown, outcomeUnknownDetail, "outcome_unknown"
		}
		row, err := approvalOf(&call)
		if err != nil {
			row = nil // the call does not run, whatever was said of it
		}
		if call.Status == "planned" && row != nil && row.standing() == deniedByOne {
			code, detail, mark = deniedCode(row)
		}
		item := codec.Result(model.Result{CallID: call.CallID, Output: tool.FailureText(string(code), detail), Failed: true})
		node, err := tx.AppendNode(bot.Head, store.NewNode{Item: item})
		if err != nil {
			return 0, err
		}
		if err := tx.SetHead(bot.ID, turn, node); err != nil {
			return 0, err
		}
		bot.Head = node
		if err := tx.AnswerCall(turn, call.CallID); err != nil {
			return 0, err
		}
		data := newObject().str("call_id", call.CallID).int("node", node).strs("artifacts", nil).null("note")
		if mark == "" {
			judgedData(data, row)
		} else {
			data.bool(mark, true)
		}
		if _, err := tx.AddEvent(bot.ID, bot.Name, turn, protocol.KindToolCompleted, data.done()); err != nil {
			return 0, err
		}
	}
	if len(open) > 0 {
		if bot.Head, err = e.showApart(tx, codec, bot.ID, turn, bot.Head, nil); err != nil {
			return 0, err
		}
	}
	return len(open), nil
}

// promote makes the head of an idle bot's line ready. A strict steer whose
// turn is over ends there (runtime.md 6).
func (e *Engine) promote(tx *store.Tx, bot *store.Bot) error {
	c := tx.Conn()
	for {
		id, err := store.QueuedHead(c, bot.Name)
		if err != nil || id == 0 {
			return err
		}
		t, _, err := store.TurnByID(c, id)
		if err != nil {
			return err
		}
		if t.ExpectedTurn == 0 {
			if err := tx.PromoteTurn(id); err != nil {
				return err
			}
			tx.AfterCommit(func() { e.addReady(1); e.dispatch() })
			return nil
		}
		end := failed(protocol.Fail(protocol.StaleTurn, fmt.Sprintf("turn %d is over", t.ExpectedTurn)))
		if err := e.endWaiting(tx, bot, &t, end); err != nil {
			return err
		}
	}
}

// endWaiting ends a queued or ready turn that never ran.
func (e *Engine) endWaiting(tx *store.Tx, bot *store.Bot, t *store.Turn, end ending) error {
	if err := tx.DropTurn(t.ID, end.status, e.nowMS()); err != nil {
		return err
	}
	if err := tx.DropTurnPictures(t.ID); err != nil {
		return err
	}
	if _, err := tx.AddEvent(bot.ID, bot.Name, t.ID, protocol.KindTurnFinished, end.data()); err != nil {
		return err
	}
	if err := e.announce(tx, bot, t.ID); err != nil {
		return err
	}
	e.left(tx, t)
	return e.retain(tx, bot, t.ID)
}

// left counts a turn out of what waits.
func (e *Engine) left(tx *store.Tx, t *store.Turn) {
	size := int64(len(t.Prompt))
	wasReady := t.Status == protocol.StatusReady
	tx.AfterCommit(func() {
		var d delta
		e.pending.add(&d, -1, -size)
		if wasReady {
			e.addReady(-1)
		}
	})
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
