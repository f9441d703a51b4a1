package store

import (
	"zombiezen.com/go/sqlite"
)

// A bot is deleted in pieces: the records of its turns, what else it has, then
// the nodes no other bot reaches, from its head back, and its row last
// (runtime.md 16). Each piece goes by what it finds, so it does not matter which
// daemon did the one before.

var (
	qDeleteBegin = stmt(`UPDATE bots SET status = 'deleting', closed = NULL, context_start = NULL, note = NULL,
		compaction = NULL, elision = NULL, pruned_cursor = max(pruned_cursor,
			ifnull((SELECT max(id) FROM events WHERE events.bot = bots.name), 0)) WHERE id = ?1`)
	qDeleting     = stmt(`SELECT id FROM bots WHERE status = 'deleting' AND name > '' ORDER BY name`)
	qBotProcesses = stmt(`SELECT 1 FROM processes WHERE status = 'running' AND bot_id = ?1 LIMIT 1`)

	qDropBotEvents   = stmt(`DELETE FROM events WHERE id IN (SELECT id FROM events WHERE bot = ?1 LIMIT ?2)`)
	qDropTurns       = stmt(`DELETE FROM turns WHERE id IN (SELECT id FROM turns WHERE bot = ?1 ORDER BY id LIMIT min(?2, 64))`)
	qDropCheckpoints = stmt(`DELETE FROM checkpoints WHERE bot = ?1 AND head IN (SELECT head FROM checkpoints WHERE bot = ?1 LIMIT ?2)`)
	qDropSeen        = stmt(`DELETE FROM seen_files WHERE bot = ?1 AND path IN (SELECT path FROM seen_files WHERE bot = ?1 LIMIT ?2)`)
	qDropInherited   = stmt(`DELETE FROM inherited WHERE bot_id = ?1 AND through IN (SELECT through FROM inherited WHERE bot_id = ?1 LIMIT ?2)`)
	qDropBot         = stmt(`DELETE FROM bots WHERE id = ?1`)

	qHeadBack  = stmt(`UPDATE bots SET head = ?2 WHERE id = ?1`)
	qNodeFloor = stmt(`UPDATE node_sequence SET last_id = max(last_id, ifnull((SELECT max(id) FROM nodes), 0))`)
	qNodeNeed  = stmt(`SELECT 1 FROM (SELECT 1 FROM nodes WHERE parent = ?1
		UNION ALL SELECT 1 FROM bots WHERE head = ?1
		UNION ALL SELECT 1 FROM bots WHERE closed = ?1
		UNION ALL SELECT 1 FROM bots WHERE context_start = ?1
		UNION ALL SELECT 1 FROM checkpoints WHERE head = ?1) LIMIT 1`)
	// What hangs on a node, then the node.
	qDropOfNode = []*query{
		stmt(`DELETE FROM node_pictures WHERE node = ?1`), stmt(`DELETE FROM stubs WHERE node = ?1`),
		stmt(`DELETE FROM call_ids WHERE node = ?1`), stmt(`DELETE FROM notes WHERE node = ?1`),
		stmt(`DELETE FROM compactions WHERE node = ?1`), stmt(`DELETE FROM elisions WHERE node = ?1`),
		stmt(`DELETE FROM nodes WHERE id = ?1`),
	}
)

// DeletedPiece is what a piece removed. Files are spilled output, to be
// unlinked once the commit stands. Gone says that the bot's row went.
type DeletedPiece struct {
	Turns, Events, Nodes int64
	Files                []string
	Gone                 bool
}

// RunsProcess reports whether a background command of a bot runs.
func RunsProcess(c *sqlite.Conn, bot int64) (bool, error) { return one(c, qBotProcesses, nil, bot) }

// Deleting calls f for the bots whose deletion has begun.
func Deleting(c *sqlite.Conn, f func(id int64)) error {
	return qDeleting.rows(c, func(s *sqlite.Stmt) error { f(s.ColumnInt64(0)); return nil })
}

// BeginDelete closes a bot that has nothing to do to all work and marks its
// events as possibly gone.
func (tx *Tx) BeginDelete(bot int64) error {
	if err := tx.mustChange(qDeleteBegin, bot); err != nil {
		return err
	}
	b, _, err := BotByID(tx.Conn(), bot)
	if err != nil {
		return err
	}
	return qAllPruned.exec(tx.Conn(), b.PrunedCursor)
}

// DeletePiece removes a part of a bot whose deletion has begun: of the first
// kind that is left, and of the next ones while there is room.
func (tx *Tx) DeletePiece(b *Bot) (d DeletedPiece, err error) {
	room := newRoom()
	p, err := tx.pruneTurns(b.Name, 0, 0, room)
	d.Events, d.Files = p.Events, p.Files
	if err != nil || p.More {
		return d, err
	}
	var kept int64
	for _, part := range []struct {
		q     *query
		key   any
		count *int64
	}{
		{qDropBotEvents, b.Name, &d.Events},
		{qDropTurns, b.Name, &d.Turns},
		{qDropCheckpoints, b.Name, &kept},
		{qDropSeen, b.Name, &kept},
		{qDropInherited, b.ID, &kept},
	} {
		n, err := room.drop(tx.Conn(), part.q, part.key)
		*part.count += n
		if err != nil || room.full() || part.q == qDropTurns && n > 0 {
			return d, err
		}
	}
	if d.Nodes, err = tx.dropNodes(b, room); err != nil || room.full() {
		return d, err
	}
	d.Gone = true
	if err := tx.mustChange(qDropBot, b.ID); err != nil {
		return d, err
	}
	return d, tx.DropRules(b.Rules)
}

// dropNodes takes a bot's head back over the nodes that nothing else needs.
func (tx *Tx) dropNodes(b *Bot, room *room) (n int64, err error) {
	c := tx.Conn()
	if b.Head == 0 {
		return 0, nil
	}
	if err := qNodeFloor.exec(c); err != nil {
		return 0, err
	}
	if err := tx.mustChange(qHeadBack, b.ID, nil); err != nil {
		return 0, err
	}
	head := b.Head
	for ; head != 0 && !room.full(); n++ {
		needed, err := one(c, qNodeNeed, nil, head)
		if err != nil {
			return n, err
		}
		if needed {
			break
		}
		node, ok, err := NodeByID(c, head)
		if err != nil {
			return n, err
		}
		if !ok {
			return n, rowInvalid("nodes", head, "id")
		}
		freed, err := tx.dropNode(&node)
		if err != nil {
			return n, err
		}
		room.rows--
		room.bytes -= freed
		head = node.Parent
	}
	return n, tx.mustChange(qHeadBack, b.ID, nullInt(head))
}

// dropNode removes a node with all that hangs on it, and gives the bytes that
// it and its pictures took.
func (tx *Tx) dropNode(n *Node) (freed int64, err error) {
	c := tx.Conn()
	var hashes [][]byte
	if n.Pictures > 0 {
		if hashes, err = hashesOf(c, qNodePicsOf, n.ID); err != nil {
			return 0, err
		}
	}
	for _, q := range qDropOfNode {
		if err := q.exec(c, n.ID); err != nil {
			return 0, err
		}
	}
	freed, err = tx.dropPictures(hashes)
	return n.ItemBytes + freed, err
}
