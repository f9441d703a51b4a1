package store

import (
	"encoding/json"

	"zombiezen.com/go/sqlite"
)

var (
	qTurnParked = stmt(`SELECT waiting FROM turns WHERE id = ?1`)
	qBotStatus  = stmt(`UPDATE bots SET status = ?3 WHERE id = ?1 AND running_turn = ?2`)
	// One for each partial index.
	qTurnsWaiting = stmt(`SELECT id, bot, waiting FROM turns WHERE status = 'waiting' ORDER BY id`)
	qTurnsPaced   = stmt(`SELECT id, bot, waiting FROM turns WHERE status = 'paced' ORDER BY id`)

	qProcessAdd = stmt(`INSERT INTO processes (bot_id, turn, call_id, status) VALUES (?1, ?2, ?3, 'running')`)
	qProcess    = stmt(`SELECT bot_id, turn, call_id, status, result FROM processes WHERE id = ?1`)
	qProcessEnd = stmt(`UPDATE processes SET status = ?2, result = ?3 WHERE id = ?1 AND status = 'running'`)
	qProcessGot = stmt(`UPDATE processes SET delivered = ?2 WHERE id = ?1 AND delivered IS NULL`)
)

// ParkRecord is a turn's park record, nil when it has none.
func ParkRecord(c *sqlite.Conn, turn int64) (record json.RawMessage, err error) {
	_, err = qTurnParked.row(c, func(s *sqlite.Stmt) { record = colJSON(s, 0) }, turn)
	return record, err
}

// SetBotStatus gives a bot with a current turn another status.
func (tx *Tx) SetBotStatus(bot, turn int64, status string) error {
	return tx.mustChange(qBotStatus, bot, turn, status)
}

// ParkedTurns calls f for every parked turn, the waiting ones first.
func ParkedTurns(c *sqlite.Conn, f func(turn int64, bot string, record json.RawMessage)) error {
	one := func(s *sqlite.Stmt) error { f(s.ColumnInt64(0), s.ColumnText(1), colJSON(s, 2)); return nil }
	if err := qTurnsWaiting.rows(c, one); err != nil {
		return err
	}
	return qTurnsPaced.rows(c, one)
}

// Process is a row of processes.
type Process struct {
	BotID  int64
	Turn   int64
	CallID string
	Status string // running, done, lost, stopped
	Result json.RawMessage
}

// AddProcess records a background command and gives its id.
func (tx *Tx) AddProcess(bot, turn int64, callID string) (int64, error) {
	if err := qProcessAdd.exec(tx.Conn(), bot, turn, callID); err != nil {
		return 0, err
	}
	return tx.Conn().LastInsertRowID(), nil
}

// ProcessByID reads a background command.
func ProcessByID(c *sqlite.Conn, id int64) (p Process, ok bool, err error) {
	ok, err = qProcess.row(c, func(s *sqlite.Stmt) {
		p = Process{BotID: s.ColumnInt64(0), Turn: s.ColumnInt64(1), CallID: s.ColumnText(2), Status: s.ColumnText(3), Result: colJSON(s, 4)}
	}, id)
	return p, ok, err
}

// EndProcess stores what a command came to.
func (tx *Tx) EndProcess(id int64, status string, result json.RawMessage) error {
	return tx.mustChange(qProcessEnd, id, status, result)
}

// Delivered notes the node of the wait result that first carried a command's.
func (tx *Tx) Delivered(id, node int64) error { return qProcessGot.exec(tx.Conn(), id, node) }
