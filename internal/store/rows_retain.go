package store

import (
	"zombiezen.com/go/sqlite"
)

// A piece of retention removes the operational records of a few turns: events,
// calls, finished commands and kept output. Turn rows, nodes and totals stay
// (runtime.md 16).

const finishedTurns = `status IN ('completed', 'failed', 'interrupted', 'steered')`

var (
	// The oldest turn of a bot that is not over; the partial indexes serve.
	qUnfinished = stmt(`SELECT min(ifnull((SELECT min(id) FROM turns WHERE bot = ?1 AND status = 'queued'), 9007199254740991),
		ifnull((SELECT min(id) FROM turns WHERE bot = ?1 AND status = 'ready'), 9007199254740991),
		ifnull((SELECT running_turn FROM bots WHERE name = ?1), 9007199254740991))`)
	qKeptFrom = stmt(`SELECT id FROM turns WHERE bot = ?1 AND id < ?2 AND ` + finishedTurns + ` ORDER BY id DESC LIMIT 1 OFFSET ?3`)
	qPrunable = stmt(`SELECT turn FROM retained_turns r WHERE bot = ?1 AND turn < ?2 AND turn <> ?3
		AND NOT EXISTS (SELECT 1 FROM processes WHERE turn = r.turn AND status = 'running') ORDER BY turn LIMIT ?4`)
	qDropEvent = stmt(`DELETE FROM events WHERE turn = ?1 AND id IN (SELECT id FROM events WHERE turn = ?1 LIMIT ?2)`)
	qEventsEnd = stmt(`SELECT ifnull(max(id), 0) FROM events WHERE turn = ?1`)
	qDropTools = stmt(`DELETE FROM tools WHERE turn = ?1 AND call_id IN (SELECT call_id FROM tools WHERE turn = ?1 LIMIT ?2)`)
	qKept      = stmt(`SELECT rowid, ifnull(length(data), 0), file FROM artifacts WHERE turn = ?1 LIMIT ?2`)
	qDropKept  = stmt(`DELETE FROM artifacts WHERE rowid = ?1`)
	qDropProcs = stmt(`DELETE FROM processes WHERE id IN (SELECT id FROM processes WHERE turn = ?1 LIMIT ?2)`)
	qDropMark  = stmt(`DELETE FROM retained_turns WHERE turn = ?1`)
	qBotPruned = stmt(`UPDATE bots SET pruned_cursor = max(pruned_cursor, ?2) WHERE name = ?1`)
	qAllPruned = stmt(`UPDATE event_retention SET pruned_cursor = max(pruned_cursor, ?1)`)
)

// The bounds of one piece.
const (
	pieceTurns = 4
	pieceRows  = 1000
	pieceBytes = 16 << 20
)

// room is what one piece may still remove.
type room struct{ rows, bytes int64 }

func newRoom() *room { return &room{pieceRows, pieceBytes} }

func (r *room) full() bool { return r.rows <= 0 || r.bytes <= 0 }

// drop runs a statement that deletes, of what belongs to key, at most as many
// rows as its second parameter says.
func (r *room) drop(c *sqlite.Conn, q *query, key any) (n int64, err error) {
	if r.full() {
		return 0, nil
	}
	if err := q.exec(c, key, r.rows); err != nil {
		return 0, err
	}
	n = int64(c.Changes())
	r.rows -= n
	return n, nil
}

// Pruned is what a piece removed. Files are spilled output, to be unlinked once
// the commit stands. More says that another piece has something to do.
type Pruned struct {
	Events int64
	Cursor int64 // the bot's mark before which events may be gone
	Files  []string
	More   bool
}

// PruneTurns removes the records of a bot's oldest turns, four at a time and at
// most 1,000 rows or 16 MiB of kept output, but of no turn that is unfinished,
// among the keep finished ones before those, or spare. A turn whose command
// still runs keeps its own until a later pass.
func (tx *Tx) PruneTurns(bot string, keep int64, spare int64) (p Pruned, err error) {
	return tx.pruneTurns(bot, keep, spare, newRoom())
}

func (tx *Tx) pruneTurns(bot string, keep int64, spare int64, room *room) (p Pruned, err error) {
	c := tx.Conn()
	from, err := keptFrom(c, bot, keep)
	if err != nil || from == 0 {
		return p, err
	}
	var turns []int64
	err = qPrunable.rows(c, func(s *sqlite.Stmt) error {
		turns = append(turns, s.ColumnInt64(0))
		return nil
	}, bot, from, spare, pieceTurns+1)
	if err != nil {
		return p, err
	}
	for i, turn := range turns {
		if i == pieceTurns || room.full() {
			p.More = true
			break
		}
		if err := tx.pruneTurn(turn, room, &p); err != nil {
			return p, err
		}
	}
	if p.Cursor > 0 {
		if err := qBotPruned.exec(c, bot, p.Cursor); err != nil {
			return p, err
		}
		err = qAllPruned.exec(c, p.Cursor)
	}
	return p, err
}

// keptFrom is the oldest turn whose records are kept, 0 when all are.
func keptFrom(c *sqlite.Conn, bot string, keep int64) (from int64, err error) {
	var unfinished int64
	if _, err = qUnfinished.row(c, func(s *sqlite.Stmt) { unfinished = s.ColumnInt64(0) }, bot); err != nil {
		return 0, err
	}
	if keep == 0 {
		return unfinished, nil
	}
	_, err = qKeptFrom.row(c, func(s *sqlite.Stmt) { from = s.ColumnInt64(0) }, bot, unfinished, keep-1)
	return from, err
}

// pruneTurn removes what a turn has, or as much of it as there is room for; the
// rest goes with the next piece.
func (tx *Tx) pruneTurn(turn int64, room *room, p *Pruned) error {
	c := tx.Conn()
	var last int64
	if _, err := qEventsEnd.row(c, func(s *sqlite.Stmt) { last = s.ColumnInt64(0) }, turn); err != nil {
		return err
	}
	gone, err := room.drop(c, qDropEvent, turn)
	if err != nil {
		return err
	}
	p.Events += gone
	p.Cursor = max(p.Cursor, last)
	if _, err := room.drop(c, qDropTools, turn); err != nil {
		return err
	}
	if err := tx.dropKept(turn, room, p); err != nil {
		return err
	}
	if _, err := room.drop(c, qDropProcs, turn); err != nil {
		return err
	}
	if room.full() {
		p.More = true
		return nil
	}
	return qDropMark.exec(c, turn)
}

// dropKept removes kept output.
func (tx *Tx) dropKept(turn int64, room *room, p *Pruned) error {
	if room.full() {
		return nil
	}
	var rows []int64
	err := qKept.rows(tx.Conn(), func(s *sqlite.Stmt) error {
		if room.full() {
			return errStop
		}
		rows = append(rows, s.ColumnInt64(0))
		room.rows--
		room.bytes -= s.ColumnInt64(1)
		if file := s.ColumnText(2); file != "" {
			p.Files = append(p.Files, file)
		}
		return nil
	}, turn, room.rows)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if err := qDropKept.exec(tx.Conn(), row); err != nil {
			return err
		}
	}
	return nil
}

// PrunedOf is a bot's mark before which events may be gone.
func PrunedOf(c *sqlite.Conn, bot string) (cursor int64, err error) {
	b, _, err := BotByName(c, bot)
	return b.PrunedCursor, err
}
