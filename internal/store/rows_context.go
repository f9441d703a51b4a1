package store

import (
	"encoding/json"

	"zombiezen.com/go/sqlite"

	"agent/protocol"
)

// What a bot's context holds besides its items: stubs of old results, how far
// they are in use (elisions) and summaries (compactions). Elisions and
// compactions are versions, each keyed by the head at which it was made; a
// version another bot sees is never changed.

var (
	qStubAdd  = stmt(`INSERT INTO stubs (node, item) VALUES (?1, ?2)`)
	qStubItem = stmt(`SELECT item FROM stubs WHERE node = ?1`)

	qElisionGet    = stmt(`SELECT previous, through, saved FROM elisions WHERE node = ?1`)
	qElisionAdd    = stmt(`INSERT INTO elisions (node, previous, through, saved) VALUES (?1, ?2, ?3, ?4)`)
	qElisionExtend = stmt(`UPDATE elisions SET through = ?2, saved = saved + ?3 WHERE node = ?1`)
	qElisionShared = stmt(`SELECT EXISTS (SELECT 1 FROM bots WHERE elision = ?1 AND id <> ?2)
		OR EXISTS (SELECT 1 FROM elisions WHERE previous = ?1)`)
	qBotElision = stmt(`UPDATE bots SET elision = ?2 WHERE id = ?1`)

	qCompactionGet   = stmt(`SELECT previous, cut, pinned, covered_from, covered_to FROM compactions WHERE node = ?1`)
	qCompactionTexts = stmt(`SELECT summary, prompts FROM compactions WHERE node = ?1`)
	qCompactionAdd   = stmt(`INSERT INTO compactions (node, previous, cut, pinned, covered_from, covered_to, summary, prompts)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)`)
	qCompactionExtend = stmt(`UPDATE compactions SET cut = ?2, pinned = ?3, covered_to = ?4, summary = ?5, prompts = ?6
		WHERE node = ?1`)
	qCompactionShared = stmt(`SELECT EXISTS (SELECT 1 FROM bots WHERE compaction = ?1 AND id <> ?2)
		OR EXISTS (SELECT 1 FROM compactions WHERE previous = ?1)`)
	qBotCompaction = stmt(`UPDATE bots SET compaction = ?2, context_start = ?3 WHERE id = ?1`)
)

// StubOf appends a node's stub to dst.
func StubOf(c *sqlite.Conn, dst []byte, node int64) (item []byte, ok bool, err error) {
	ok, err = qStubItem.row(c, func(s *sqlite.Stmt) { dst = colBytes(s, 0, dst) }, node)
	return dst, ok, err
}

// Elision is a version of a bot's floor: every stubbed result up to the node
// Through is sent as its stub.
type Elision struct {
	Node     int64
	Previous int64
	Through  int64
	Saved    int64
}

// ElisionByNode reads a version; a zero one for node 0.
func ElisionByNode(c *sqlite.Conn, node int64) (e Elision, err error) {
	if node == 0 {
		return e, nil
	}
	ok, err := qElisionGet.row(c, func(s *sqlite.Stmt) {
		e = Elision{Node: node, Previous: s.ColumnInt64(0), Through: s.ColumnInt64(1), Saved: s.ColumnInt64(2)}
	}, node)
	if err == nil && !ok {
		err = rowInvalid("elisions", node, "node")
	}
	return e, err
}

// MoveFloor makes through the floor of a bot, as a version at head. current is
// the bot's version now, 0 for none. It gives the version before this one. A
// version that another bot sees is not extended: elision_version_shared.
func (tx *Tx) MoveFloor(bot, current, head, through, saved int64) (previous int64, err error) {
	c := tx.Conn()
	if current != head {
		if err := qElisionAdd.exec(c, head, nullInt(current), through, saved); err != nil {
			return 0, err
		}
		return current, tx.mustChange(qBotElision, bot, head)
	}
	if err := unshared(c, qElisionShared, head, bot, protocol.ElisionVersionShared); err != nil {
		return 0, err
	}
	e, err := ElisionByNode(c, head)
	if err != nil {
		return 0, err
	}
	return e.Previous, tx.mustChange(qElisionExtend, head, through, saved)
}

// Compaction is a version of a bot's summary. It covers everything before the
// node Cut; Pinned is the prompt of the turn that Cut lies inside, 0 when Cut
// is a turn's prompt itself.
type Compaction struct {
	Node        int64
	Previous    int64
	Cut         int64
	Pinned      int64
	CoveredFrom int64 // ordinals of turns
	CoveredTo   int64
	Summary     string
	Prompts     json.RawMessage
}

// Texts reads what k says, which may be long.
func (k *Compaction) Texts(c *sqlite.Conn) error {
	ok, err := qCompactionTexts.row(c, func(s *sqlite.Stmt) { k.Summary, k.Prompts = s.ColumnText(0), colJSON(s, 1) }, k.Node)
	if err == nil && !ok {
		err = rowInvalid("compactions", k.Node, "node")
	}
	return err
}

// CompactionByNode reads a version but for its texts; a zero one for node 0.
func CompactionByNode(c *sqlite.Conn, node int64) (k Compaction, err error) {
	if node == 0 {
		return k, nil
	}
	ok, err := qCompactionGet.row(c, func(s *sqlite.Stmt) {
		k = Compaction{
			Node: node, Previous: s.ColumnInt64(0), Cut: s.ColumnInt64(1), Pinned: s.ColumnInt64(2),
			CoveredFrom: s.ColumnInt64(3), CoveredTo: s.ColumnInt64(4),
		}
	}, node)
	if err == nil && !ok {
		err = rowInvalid("compactions", node, "node")
	}
	return k, err
}

// Compact makes k the summary of a bot, as a version at k.Node, with the window
// starting at start. current is the bot's version now, 0 for none. It gives the
// version before this one. A version that another bot sees is not extended:
// compaction_version_shared.
func (tx *Tx) Compact(bot, current, start int64, k *Compaction) (previous int64, err error) {
	c := tx.Conn()
	previous = current
	if current != k.Node {
		err = qCompactionAdd.exec(c, k.Node, nullInt(current), k.Cut, nullInt(k.Pinned), k.CoveredFrom, k.CoveredTo,
			k.Summary, k.Prompts)
	} else {
		if err := unshared(c, qCompactionShared, current, bot, protocol.CompactionVersionShared); err != nil {
			return 0, err
		}
		old, gerr := CompactionByNode(c, current)
		if gerr != nil {
			return 0, gerr
		}
		previous = old.Previous
		err = tx.mustChange(qCompactionExtend, k.Node, k.Cut, nullInt(k.Pinned), k.CoveredTo, k.Summary, k.Prompts)
	}
	if err != nil {
		return 0, err
	}
	return previous, tx.mustChange(qBotCompaction, bot, k.Node, start)
}

// unshared refuses to change a version that is not this bot's alone.
func unshared(c *sqlite.Conn, q *query, version, bot int64, code protocol.Code) error {
	shared := false
	if _, err := q.row(c, func(s *sqlite.Stmt) { shared = s.ColumnBool(0) }, version, bot); err != nil || !shared {
		return err
	}
	return protocol.Fail(code, "another bot sees the version made at this point of the conversation")
}
