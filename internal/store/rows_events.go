package store

import (
	"encoding/json"

	"zombiezen.com/go/sqlite"

	"agent/protocol"
)

var (
	qEventAdd  = stmt(`INSERT INTO events (bot, turn, kind, data) VALUES (?1, ?2, ?3, ?4)`)
	qEventsBot = stmt(`SELECT id, turn, kind, data FROM events WHERE bot = ?1 AND id > ?2 ORDER BY id LIMIT ?3`)
	qEventsAll = stmt(`SELECT id, turn, kind, data, bot FROM events WHERE id > ?1 ORDER BY id LIMIT ?2`)
	qEventLast = stmt(`SELECT ifnull(max(id), 0) FROM events`)
	qEventEnd  = stmt(`SELECT data FROM events WHERE turn = ?1 AND kind = 'turn_finished' ORDER BY id DESC LIMIT 1`)
	qEventMsgs = stmt(`SELECT data FROM events WHERE turn = ?1 AND kind = 'message' ORDER BY id DESC`)
	qPruned    = stmt(`SELECT pruned_cursor FROM event_retention`)
)

// AddEvent records a durable event and hands it to the publisher with the
// commit. data is one JSON object without line breaks.
func (tx *Tx) AddEvent(bot int64, name string, turn int64, kind string, data json.RawMessage) (cursor int64, err error) {
	c := tx.Conn()
	if err := qEventAdd.exec(c, name, nullInt(turn), kind, string(data)); err != nil {
		return 0, err
	}
	cursor = c.LastInsertRowID()
	tx.Emit(Event{
		Cursor: cursor, BotID: bot, Bot: name, Turn: turn, Kind: kind, Data: data,
		Line: protocol.AppendEvent(nil, cursor, name, turn, kind, data),
	})
	return cursor, nil
}

// EventRow is a stored event. Data is valid during the call only.
type EventRow struct {
	Cursor int64
	Bot    string
	Turn   int64
	Kind   string
	Data   []byte
}

// Events calls f for the events after a cursor, of one bot, or of all for "*",
// in order, at most limit, until f returns false.
func Events(c *sqlite.Conn, bot string, after int64, limit int, f func(EventRow) bool) error {
	var buf []byte
	one := func(s *sqlite.Stmt) error {
		buf = colBytes(s, 3, buf[:0])
		e := EventRow{Cursor: s.ColumnInt64(0), Bot: bot, Turn: s.ColumnInt64(1), Kind: s.ColumnText(2), Data: buf}
		if bot == "*" {
			e.Bot = s.ColumnText(4)
		}
		if !f(e) {
			return errStop
		}
		return nil
	}
	if bot == "*" {
		return qEventsAll.rows(c, one, after, limit)
	}
	return qEventsBot.rows(c, one, bot, after, limit)
}

// LastCursor is the newest cursor, 0 in an empty store.
func LastCursor(c *sqlite.Conn) (n int64, err error) {
	_, err = qEventLast.row(c, func(s *sqlite.Stmt) { n = s.ColumnInt64(0) })
	return n, err
}

// PrunedCursor is the store-wide mark before which events may be gone.
func PrunedCursor(c *sqlite.Conn) (n int64, err error) {
	_, err = qPruned.row(c, func(s *sqlite.Stmt) { n = s.ColumnInt64(0) })
	return n, err
}

// EndOf is the data of a turn's turn_finished event, nil when it is gone.
func EndOf(c *sqlite.Conn, turn int64) (data json.RawMessage, err error) {
	_, err = qEventEnd.row(c, func(s *sqlite.Stmt) { data = colJSON(s, 0) }, turn)
	return data, err
}

// MessagesOf calls f for the data of a turn's message events, newest first,
// until f returns false.
func MessagesOf(c *sqlite.Conn, turn int64, f func(data []byte) bool) error {
	return qEventMsgs.rows(c, func(s *sqlite.Stmt) error {
		if !f(colJSON(s, 0)) {
			return errStop
		}
		return nil
	}, turn)
}
