package store

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"zombiezen.com/go/sqlite"

	"agent/protocol"
)

// move is a line of the table of runtime.md 4: a way for a turn to come from
// one of some states into another. Each has one method of Tx, and its
// statement finds the turn only in a state that the line starts from: a job
// that decided by another one does not commit.
type move struct {
	from []string // none: the turn is made
	to   []string
}

var (
	moveSubmit  = move{to: []string{protocol.StatusRunning, protocol.StatusReady, protocol.StatusQueued}}
	movePromote = move{from: []string{protocol.StatusQueued}, to: []string{protocol.StatusReady}}
	moveStart   = move{from: []string{protocol.StatusReady, protocol.StatusQueued}, to: []string{protocol.StatusRunning}}
	// A check failed at the start, or the turn was interrupted by its id.
	moveDrop   = move{from: []string{protocol.StatusReady, protocol.StatusQueued}, to: []string{protocol.StatusFailed, protocol.StatusInterrupted}}
	moveAbsorb = move{from: []string{protocol.StatusQueued}, to: []string{protocol.StatusSteered}}
	movePark   = move{from: []string{protocol.StatusRunning}, to: []string{protocol.StatusWaiting, protocol.StatusPaced}}
	moveResume = move{from: []string{protocol.StatusWaiting, protocol.StatusPaced}, to: []string{protocol.StatusRunning}}
	moveEnd    = move{
		from: []string{protocol.StatusRunning, protocol.StatusWaiting, protocol.StatusPaced},
		to:   []string{protocol.StatusCompleted, protocol.StatusFailed, protocol.StatusInterrupted},
	}

	// The same of a tool call: a refused or cancelled one never executes.
	moveExecute = move{from: []string{callPlanned}, to: []string{callExecuting}}
	moveAnswer  = move{from: []string{callPlanned, callExecuting}, to: []string{callCompleted}}
)

const (
	callPlanned   = "planned"
	callExecuting = "executing"
	callCompleted = "completed"
)

// where is the condition that a row is in a state the move starts from.
func (m move) where() string { return "status IN ('" + strings.Join(m.from, "', '") + "')" }

// check refuses a state the move does not lead to.
func (m move) check(status string) error {
	if slices.Contains(m.to, status) {
		return nil
	}
	return protocol.Fail(protocol.StoreRowInvalid, fmt.Sprintf("no turn becomes %q this way", status))
}

var (
	qTurnInsert = stmt(`INSERT INTO turns (id, bot, request_id, prompt, from_bot, from_bot_id, from_turn,
		origin, status, workspace, model, delivery, expected_turn, started_ms, model_rounds, input_tokens,
		output_tokens, cached_input_tokens, retries, paced_ms)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, 0, 0, 0, 0, 0, 0)`)
	qTurnPromote = stmt(`UPDATE turns SET status = 'ready' WHERE id = ?1 AND ` + movePromote.where())
	qTurnStart   = stmt(`UPDATE turns SET status = 'running', started_ms = ?2 WHERE id = ?1 AND ` + moveStart.where())
	qTurnDrop    = stmt(`UPDATE turns SET status = ?2, finished_ms = ?3 WHERE id = ?1 AND ` + moveDrop.where())
	qTurnAbsorb  = stmt(`UPDATE turns SET status = 'steered', finished_ms = ?2, into_turn = ?3, into_node = ?4
		WHERE id = ?1 AND ` + moveAbsorb.where())
	qTurnPark = stmt(`UPDATE turns SET status = ?2, waiting = ?3, retries = ?4, paced_ms = ?5
		WHERE id = ?1 AND ` + movePark.where())
	qTurnResume = stmt(`UPDATE turns SET status = 'running', waiting = NULL, paced_ms = ?2
		WHERE id = ?1 AND ` + moveResume.where())
	qTurnEnd = stmt(`UPDATE turns SET status = ?2, waiting = NULL, finished_ms = ?3, retries = ?4, paced_ms = ?5
		WHERE id = ?1 AND ` + moveEnd.where())

	qCallExecute = stmt(`UPDATE tools SET status = 'executing' WHERE turn = ?1 AND call_id = ?2 AND ` + moveExecute.where())
	qCallAnswer  = stmt(`UPDATE tools SET status = 'completed' WHERE turn = ?1 AND call_id = ?2 AND ` + moveAnswer.where())
)

// InsertTurn gives t the next id and writes its row, with the mark that it has
// records retention may drop. A turn that is made running started at
// t.StartedMS.
func (tx *Tx) InsertTurn(t *Turn) error {
	if err := moveSubmit.check(t.Status); err != nil {
		return err
	}
	c := tx.Conn()
	if err := qTurnStep.exec(c); err != nil {
		return err
	}
	if _, err := qTurnSequence.row(c, func(s *sqlite.Stmt) { t.ID = s.ColumnInt64(0) }); err != nil {
		return err
	}
	err := qTurnInsert.exec(c, t.ID, t.Bot, t.RequestID, t.Prompt, null(t.FromBot), nullInt(t.FromBotID),
		nullInt(t.FromTurn), null(t.Origin), t.Status, null(t.Workspace), null(t.Model), t.Delivery,
		nullInt(t.ExpectedTurn), nullInt(t.StartedMS))
	if err != nil {
		return err
	}
	return qTurnRetained.exec(c, t.ID, t.Bot)
}

// PromoteTurn makes a queued turn the ready head of its bot's line.
func (tx *Tx) PromoteTurn(id int64) error { return tx.mustChange(qTurnPromote, id) }

// StartTurn makes a turn that waited run since now, Unix milliseconds.
func (tx *Tx) StartTurn(id, now int64) error { return tx.mustChange(qTurnStart, id, now) }

// DropTurn ends a turn that never ran; status is failed or interrupted.
func (tx *Tx) DropTurn(id int64, status string, now int64) error {
	if err := moveDrop.check(status); err != nil {
		return err
	}
	return tx.mustChange(qTurnDrop, id, status, now)
}

// AbsorbTurn ends a queued steer as a part of the turn into; node is its item
// there.
func (tx *Tx) AbsorbTurn(id, now, into, node int64) error {
	return tx.mustChange(qTurnAbsorb, id, now, into, node)
}

// ParkTurn records that a running turn waits without a task; status is waiting
// or paced, record the park record.
func (tx *Tx) ParkTurn(id int64, status string, record json.RawMessage, retries, pacedMS int64) error {
	if err := movePark.check(status); err != nil {
		return err
	}
	return tx.mustChange(qTurnPark, id, status, record, retries, pacedMS)
}

// ResumeTurn makes a parked turn run again.
func (tx *Tx) ResumeTurn(id, pacedMS int64) error { return tx.mustChange(qTurnResume, id, pacedMS) }

// EndTurn ends a current turn, running or parked; status is completed, failed
// or interrupted.
func (tx *Tx) EndTurn(id int64, status string, now, retries, pacedMS int64) error {
	if err := moveEnd.check(status); err != nil {
		return err
	}
	return tx.mustChange(qTurnEnd, id, status, now, retries, pacedMS)
}

// ExecuteCall records that a planned call is about to run.
func (tx *Tx) ExecuteCall(turn int64, callID string) error {
	return tx.mustChange(qCallExecute, turn, callID)
}

// AnswerCall records that a call has its result. None gets a second one.
func (tx *Tx) AnswerCall(turn int64, callID string) error {
	return tx.mustChange(qCallAnswer, turn, callID)
}
