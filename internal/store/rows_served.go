package store

import (
	"encoding/json"

	"zombiezen.com/go/sqlite"
)

var (
	qCallGet    = stmt(`SELECT call_id, name, seq, status, served, approval FROM tools WHERE turn = ?1 AND call_id = ?2`)
	qCallServed = stmt(`UPDATE tools SET served = ?3 WHERE turn = ?1 AND call_id = ?2`)
	qCallSteps  = stmt(`SELECT steps FROM tools WHERE turn = ?1 AND call_id = ?2`)
	qTurnSteps  = stmt(`SELECT call_id, steps FROM tools WHERE turn = ?1 AND steps IS NOT NULL ORDER BY seq`)
	qSetSteps   = stmt(`UPDATE tools SET steps = ?3 WHERE turn = ?1 AND call_id = ?2`)
)

// CallByID reads a call of a turn.
func CallByID(c *sqlite.Conn, turn int64, callID string) (call ToolCall, ok bool, err error) {
	ok, err = qCallGet.row(c, func(s *sqlite.Stmt) { call = scanCall(s) }, turn, callID)
	return call, ok, err
}

func scanCall(s *sqlite.Stmt) ToolCall {
	return ToolCall{
		CallID: s.ColumnText(0), Name: s.ColumnText(1), Seq: s.ColumnInt(2), Status: s.ColumnText(3),
		Served: colJSON(s, 4), Approval: colJSON(s, 5),
	}
}

// SetServed records how a call of a client's tool stands with its server.
func (tx *Tx) SetServed(turn int64, callID string, served json.RawMessage) error {
	return tx.mustChange(qCallServed, turn, callID, served)
}

// CallSteps are the steps that a served call asked a verdict for; nil for none.
func CallSteps(c *sqlite.Conn, turn int64, callID string) (steps json.RawMessage, err error) {
	_, err = qCallSteps.row(c, func(s *sqlite.Stmt) { steps = colJSON(s, 0) }, turn, callID)
	return steps, err
}

// TurnSteps calls f for the calls of a turn that have steps, in order.
func TurnSteps(c *sqlite.Conn, turn int64, f func(callID string, steps json.RawMessage) error) error {
	return qTurnSteps.rows(c, func(s *sqlite.Stmt) error { return f(s.ColumnText(0), colJSON(s, 1)) }, turn)
}

// SetSteps records them.
func (tx *Tx) SetSteps(turn int64, callID string, steps json.RawMessage) error {
	return tx.mustChange(qSetSteps, turn, callID, steps)
}
