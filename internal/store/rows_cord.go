package store

import (
	"encoding/json"
	"fmt"

	"zombiezen.com/go/sqlite"

	"agent/protocol"
)

// The two things a daemon keeps for itself: the pause that stands, and the
// companions it runs (runtime.md 24).

var (
	qPause     = stmt(`SELECT "by", by_id, turn, reason, since_ms FROM pause`)
	qPauseAdd  = stmt(`INSERT INTO pause (one, "by", by_id, turn, reason, since_ms) VALUES (1, ?1, ?2, ?3, ?4, ?5)`)
	qPauseDrop = stmt(`DELETE FROM pause`)

	qCompanions     = stmt(`SELECT name, command FROM companions ORDER BY position`)
	qCompanionAdd   = stmt(`INSERT INTO companions (name, position, command) VALUES (?1, ?2, ?3)`)
	qCompanionsDrop = stmt(`DELETE FROM companions`)
)

// StandingPause is the pause that stands, nil when none does.
func StandingPause(c *sqlite.Conn) (pause *protocol.PauseInfo, err error) {
	_, err = qPause.row(c, func(s *sqlite.Stmt) {
		pause = &protocol.PauseInfo{
			By: s.ColumnText(0), ByID: colOptInt(s, 1), Turn: colOptInt(s, 2), Reason: colOptText(s, 3), SinceMS: s.ColumnInt64(4),
		}
	})
	return pause, err
}

// Pause makes a pause stand where none does.
func (tx *Tx) Pause(p *protocol.PauseInfo) error {
	return qPauseAdd.exec(tx.Conn(), p.By, p.ByID, p.Turn, p.Reason, p.SinceMS)
}

// LiftPause ends the pause that stands, if one does.
func (tx *Tx) LiftPause() error { return qPauseDrop.exec(tx.Conn()) }

// Companions are the companions to run, in their order. With store_row_invalid
// come those that can be read.
func Companions(c *sqlite.Conn) (list []protocol.CompanionSpec, err error) {
	var bad error
	err = qCompanions.rows(c, func(s *sqlite.Stmt) error {
		spec := protocol.CompanionSpec{Name: s.ColumnText(0)}
		if json.Unmarshal([]byte(s.ColumnText(1)), &spec.Command) != nil || len(spec.Command) == 0 {
			bad = protocol.Fail(protocol.StoreRowInvalid, fmt.Sprintf("the command of the companion %s cannot be read", spec.Name))
			return nil
		}
		list = append(list, spec)
		return nil
	})
	if err == nil {
		err = bad
	}
	return list, err
}

// SetCompanions replaces the companions to run.
func (tx *Tx) SetCompanions(list []protocol.CompanionSpec) error {
	if err := qCompanionsDrop.exec(tx.Conn()); err != nil {
		return err
	}
	for i, spec := range list {
		command, err := json.Marshal(spec.Command)
		if err != nil {
			return err
		}
		if err := qCompanionAdd.exec(tx.Conn(), spec.Name, i, json.RawMessage(command)); err != nil {
			return err
		}
	}
	return nil
}
