package store

import (
	"encoding/json"

	"zombiezen.com/go/sqlite"
)

var (
	qCallApproval = stmt(`UPDATE tools SET approval = ?3 WHERE turn = ?1 AND call_id = ?2`)
	qBotGates     = stmt(`SELECT gates FROM bots WHERE id = ?1`)
	qBotDenials   = stmt(`UPDATE bots SET denials = ?2 WHERE id = ?1`)
	qBotOverturns = stmt(`SELECT overturns FROM bots WHERE id = ?1`)
	qBotOverturn  = stmt(`UPDATE bots SET overturns = ?2 WHERE id = ?1`)
)

// SetApproval records how a call stands with the gates that were asked.
func (tx *Tx) SetApproval(turn int64, callID string, approval json.RawMessage) error {
	return tx.mustChange(qCallApproval, turn, callID, approval)
}

// BotGates are a bot's gates as its row keeps them; nil for none.
func BotGates(c *sqlite.Conn, bot int64) (gates json.RawMessage, err error) {
	_, err = qBotGates.row(c, func(s *sqlite.Stmt) { gates = colJSON(s, 0) }, bot)
	return gates, err
}

// SetDenials records the counts of a bot's newest turn.
func (tx *Tx) SetDenials(bot int64, denials json.RawMessage) error {
	return tx.mustChange(qBotDenials, bot, denials)
}

// Overturns are a bot's newest gated calls and the allows that were given after
// a denial; nil for none.
func Overturns(c *sqlite.Conn, bot int64) (record json.RawMessage, err error) {
	_, err = qBotOverturns.row(c, func(s *sqlite.Stmt) { record = colJSON(s, 0) }, bot)
	return record, err
}

// SetOverturns records them.
func (tx *Tx) SetOverturns(bot int64, record json.RawMessage) error {
	return tx.mustChange(qBotOverturn, bot, nullRaw(record))
}
