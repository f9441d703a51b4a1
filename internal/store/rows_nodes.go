package store

import (
	"context"
	"io"

	"zombiezen.com/go/sqlite"
)

// Node is what a node says besides its item: sizes are cumulative along the
// lineage, so that a window is measured with two look-ups.
type Node struct {
	ID         int64
	Parent     int64
	Turn       int64 // on a turn's first item
	TurnSeq    int64 // its ordinal along the lineage, on the same
	Depth      int64 // 1 for a root
	TotalBytes int64
	// Elided is what this node's stub saves, TotalElided that of the lineage up
	// to it.
	Elided      int64
	TotalElided int64
	Thinking    int64 // bytes its thinking takes
	Pictures    int64
	ItemBytes   int64
}

const nodeColumns = `id, parent, turn, turn_seq, depth, total_bytes, thinking, pictures, elided, total_elided`

var (
	qNode     = stmt(`SELECT ` + nodeColumns + `, length(item) FROM nodes WHERE id = ?1`)
	qNodeItem = stmt(`SELECT item FROM nodes WHERE id = ?1`)
	qNodeSize = stmt(`SELECT length(item) FROM nodes WHERE id = ?1`)
	qNodeLast = stmt(`SELECT max((SELECT last_id FROM node_sequence), ifnull((SELECT max(id) FROM nodes), 0))`)
	qNodeAdd  = stmt(`INSERT INTO nodes (id, parent, turn, turn_seq, depth, total_bytes, elided,
		total_elided, thinking, pictures, item) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?10, ?11, ?7, ?8, ?9)`)
	// A walk from a node towards the root, newest first.
	qWalk = stmt(`WITH RECURSIVE w(` + nodeColumns + `) AS (
		SELECT ` + nodeColumns + ` FROM nodes WHERE id = ?1
		UNION ALL
		SELECT n.id, n.parent, n.turn, n.turn_seq, n.depth, n.total_bytes, n.thinking, n.pictures,
			n.elided, n.total_elided
		FROM w JOIN nodes n ON n.id = w.parent)
		SELECT ` + nodeColumns + ` FROM w`)
	qWalkTurns = stmt(`WITH RECURSIVE w(id, parent, turn, turn_seq, n) AS (
		SELECT id, parent, turn, turn_seq, 1 FROM nodes WHERE id = ?1
		UNION ALL
		SELECT n.id, n.parent, n.turn, n.turn_seq, w.n + 1 FROM w JOIN nodes n ON n.id = w.parent
		WHERE w.n < ?2)
		SELECT id, turn, turn_seq FROM w WHERE turn IS NOT NULL`)

	qNoteAdd  = stmt(`INSERT INTO notes (node, previous, text) VALUES (?1, ?2, ?3)`)
	qNoteText = stmt(`SELECT text FROM notes WHERE node = ?1`)
)

func scanNode(s *sqlite.Stmt) Node {
	return Node{
		ID: s.ColumnInt64(0), Parent: s.ColumnInt64(1), Turn: s.ColumnInt64(2), TurnSeq: s.ColumnInt64(3),
		Depth: s.ColumnInt64(4), TotalBytes: s.ColumnInt64(5), Thinking: s.ColumnInt64(6), Pictures: s.ColumnInt64(7),
		Elided: s.ColumnInt64(8), TotalElided: s.ColumnInt64(9),
	}
}

// NodeByID reads a node's facts, ItemBytes included.
func NodeByID(c *sqlite.Conn, id int64) (n Node, ok bool, err error) {
	ok, err = qNode.row(c, func(s *sqlite.Stmt) { n = scanNode(s); n.ItemBytes = s.ColumnInt64(10) }, id)
	return n, ok, err
}

// ItemOf appends a node's item to dst.
func ItemOf(c *sqlite.Conn, dst []byte, id int64) (item []byte, ok bool, err error) {
	ok, err = qNodeItem.row(c, func(s *sqlite.Stmt) { dst = colBytes(s, 0, dst) }, id)
	return dst, ok, err
}

// ItemSize is the length of a node's item.
func ItemSize(c *sqlite.Conn, id int64) (n int64, ok bool, err error) {
	ok, err = qNodeSize.row(c, func(s *sqlite.Stmt) { n = s.ColumnInt64(0) }, id)
	return n, ok, err
}

// ItemAt reads part of a node's item without taking the rest into memory.
func ItemAt(c *sqlite.Conn, id, at int64, p []byte) (int, error) {
	return blobAt(c, "nodes", "item", id, at, p)
}

func blobAt(c *sqlite.Conn, table, column string, row, at int64, p []byte) (int, error) {
	b, err := c.OpenBlob("main", table, column, row, false)
	if err != nil {
		return 0, err
	}
	defer b.Close()
	if _, err := b.Seek(at, io.SeekStart); err != nil {
		return 0, err
	}
	return io.ReadFull(b, p)
}

// Walk calls f for the nodes from one towards the root, newest first, until f
// returns false. It reads no item.
func Walk(c *sqlite.Conn, from int64, f func(Node) bool) error {
	return qWalk.rows(c, func(s *sqlite.Stmt) error {
		if !f(scanNode(s)) {
			return errStop
		}
		return nil
	}, from)
}

// WalkTurns is Walk over the first nodes of turns alone, among the nearest
// limit nodes.
func WalkTurns(c *sqlite.Conn, from int64, limit int, f func(node, turn, ordinal int64) bool) error {
	return qWalkTurns.rows(c, func(s *sqlite.Stmt) error {
		if !f(s.ColumnInt64(0), s.ColumnInt64(1), s.ColumnInt64(2)) {
			return errStop
		}
		return nil
	}, from, limit)
}

// NewNode is an item to append.
type NewNode struct {
	Item     []byte
	Turn     int64 // set on a turn's first item
	TurnSeq  int64
	Thinking int64
	Pictures []ShownPicture
	// Stub makes what stands for the item once it is old, of the id it gets;
	// nil for an item that has none. One that saves too little is not kept.
	Stub func(id int64) []byte
}

// minElided is the least a stub must save, in bytes (runtime.md 20).
const minElided = 1 << 10

// AppendNode adds an item behind parent, 0 for a root, and gives its node id.
func (tx *Tx) AppendNode(parent int64, n NewNode) (int64, error) {
	c := tx.Conn()
	var up Node
	if parent != 0 {
		var ok bool
		var err error
		if up, ok, err = nodeTotals(c, parent); err != nil {
			return 0, err
		} else if !ok {
			return 0, rowInvalid("nodes", parent, "id")
		}
	}
	var id int64
	if _, err := qNodeLast.row(c, func(s *sqlite.Stmt) { id = s.ColumnInt64(0) + 1 }); err != nil {
		return 0, err
	}
	var stub []byte
	elided := int64(0)
	if n.Stub != nil {
		stub = n.Stub(id)
		if elided = int64(len(n.Item) - len(stub)); elided < minElided {
			stub, elided = nil, 0
		}
	}
	err := qNodeAdd.exec(c, id, nullInt(parent), nullInt(n.Turn), nullInt(n.TurnSeq), up.Depth+1,
		up.TotalBytes+int64(len(n.Item)+len(n.Pictures)*PictureWeight), n.Thinking, len(n.Pictures), n.Item,
		elided, up.TotalElided+elided)
	if err != nil {
		return 0, err
	}
	if stub != nil {
		if err := qStubAdd.exec(c, id, stub); err != nil {
			return 0, err
		}
	}
	return id, tx.showPictures(id, n.Pictures)
}

var qNodeTotals = stmt(`SELECT depth, total_bytes, total_elided FROM nodes WHERE id = ?1`)

func nodeTotals(c *sqlite.Conn, id int64) (n Node, ok bool, err error) {
	ok, err = qNodeTotals.row(c, func(s *sqlite.Stmt) {
		n.Depth, n.TotalBytes, n.TotalElided = s.ColumnInt64(0), s.ColumnInt64(1), s.ColumnInt64(2)
	}, id)
	return n, ok, err
}

// InLineage reports whether node lies between head and the root.
func InLineage(ctx context.Context, c *sqlite.Conn, head, node int64) (bool, error) {
	found := false
	err := Walk(c, head, func(n Node) bool {
		found = n.ID == node
		return !found && n.ID > node && ctx.Err() == nil
	})
	if err == nil {
		err = context.Cause(ctx)
	}
	return found, err
}

// NoteText is the text of a note's version.
func NoteText(c *sqlite.Conn, node int64) (text string, err error) {
	_, err = qNoteText.row(c, func(s *sqlite.Stmt) { text = s.ColumnText(0) }, node)
	return text, err
}

// SetNote records a note at the result's node and makes it the bot's.
func (tx *Tx) SetNote(bot, node, previous int64, text string) error {
	if err := qNoteAdd.exec(tx.Conn(), node, nullInt(previous), text); err != nil {
		return err
	}
	return tx.mustChange(qBotNote, bot, node)
}
