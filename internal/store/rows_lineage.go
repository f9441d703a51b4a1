package store

import (
	"context"

	"zombiezen.com/go/sqlite"
)

// A lineage is made of stretches, each written by one bot: the oldest by the
// bot the history began with, the newest by the bot itself. A bot's own nodes
// have rising ids and lie on one path, so a stretch is known by its bot and its
// last node, and what a bot did up to a point is found without walking there.

var (
	qInherited    = stmt(`SELECT source, through FROM inherited WHERE bot_id = ?1 ORDER BY through`)
	qInherit      = stmt(`INSERT INTO inherited (bot_id, through, source) VALUES (?1, ?2, ?3)`)
	qCallIDOwn    = stmt(`SELECT node FROM call_ids WHERE bot_id = ?1 AND call_id = ?2`)
	qCallIDBefore = stmt(`SELECT c.node FROM inherited i CROSS JOIN call_ids c
		ON c.bot_id = i.source AND c.call_id = ?2 WHERE i.bot_id = ?1 AND c.node <= i.through LIMIT 1`)
	qChild      = stmt(`SELECT id FROM nodes WHERE parent = ?1 ORDER BY id LIMIT 1`)
	qIsProven   = stmt(`SELECT 1 FROM checkpoints WHERE head = ?1 LIMIT 1`)
	qCallsOpen  = stmt(`SELECT 1 FROM tools WHERE turn = ?1 AND status IN ('planned', 'executing') LIMIT 1`)
	qProcessOf  = stmt(`SELECT delivered FROM processes WHERE turn = ?1 AND call_id = ?2`)
	qNoteBefore = stmt(versionBefore("notes"))
	qCompBefore = stmt(versionBefore("compactions"))
	qElisBefore = stmt(versionBefore("elisions"))
	qTurnIDs    = stmt(`SELECT id FROM turns WHERE bot = ?1 AND id > ?2 ORDER BY id`)
	qCompCut    = stmt(`SELECT cut FROM compactions WHERE node = ?1`)
)

// versionBefore finds the newest version at or before node ?2 among a version,
// ?1, and those before it.
func versionBefore(table string) string {
	return `WITH RECURSIVE v(node, previous) AS (
		SELECT node, previous FROM ` + table + ` WHERE node = ?1
		UNION ALL
		SELECT t.node, t.previous FROM v JOIN ` + table + ` t ON t.node = v.previous WHERE v.node > ?2)
		SELECT node FROM v WHERE node <= ?2 LIMIT 1`
}

// CallIDTaken reports whether a bot's lineage has a call of this id.
func CallIDTaken(c *sqlite.Conn, bot int64, callID string) (bool, error) {
	node, _, err := CallNode(c, bot, callID)
	return node != 0, err
}

// CallNode is the last item of the response on a bot's lineage that planned a
// call, 0 when none did; inherited says that another bot's turn got it.
func CallNode(c *sqlite.Conn, bot int64, callID string) (node int64, inherited bool, err error) {
	if node, err = integer(c, qCallIDOwn, bot, callID); err != nil || node != 0 {
		return node, false, err
	}
	node, err = integer(c, qCallIDBefore, bot, callID)
	return node, true, err
}

// FirstChild is the oldest node behind another, 0 when there is none.
func FirstChild(c *sqlite.Conn, node int64) (int64, error) { return integer(c, qChild, node) }

// ProcessDelivered is the node of the result that carried what a call's command
// came to, 0 while none did; ok is false for a call that started none.
func ProcessDelivered(c *sqlite.Conn, turn int64, callID string) (node int64, ok bool, err error) {
	ok, err = qProcessOf.row(c, func(s *sqlite.Stmt) { node = s.ColumnInt64(0) }, turn, callID)
	return node, ok, err
}

// IsCheckpoint reports whether a node is known to have no unanswered call at or
// before it: a turn completed there, or a fork began.
func IsCheckpoint(c *sqlite.Conn, node int64) (bool, error) {
	return one(c, qIsProven, nil, node)
}

// HasOpenCalls reports whether a call of a turn has no result yet.
func HasOpenCalls(c *sqlite.Conn, turn int64) (bool, error) {
	return one(c, qCallsOpen, nil, turn)
}

// Versions are what a bot's view of its history is made with; 0 for none.
type Versions struct{ Note, Compaction, Elision, ContextStart int64 }

// VersionsAt are a bot's versions as they were at a node of its lineage
// (runtime.md 15). Where its window starts holds as long as the summary it
// started with.
func VersionsAt(c *sqlite.Conn, b *Bot, node int64) (v Versions, err error) {
	for _, f := range []struct {
		q   *query
		now int64
		to  *int64
	}{{qNoteBefore, b.Note, &v.Note}, {qCompBefore, b.Compaction, &v.Compaction}, {qElisBefore, b.Elision, &v.Elision}} {
		if f.now == 0 {
			continue
		}
		if *f.to, err = integer(c, f.q, f.now, node); err != nil {
			return v, err
		}
	}
	switch {
	case v.Compaction == b.Compaction && b.ContextStart <= node:
		v.ContextStart = b.ContextStart
	case v.Compaction != 0:
		v.ContextStart, err = integer(c, qCompCut, v.Compaction)
	}
	return v, err
}

// stretch is what one bot wrote of a lineage: its nodes up to through.
type stretch struct{ writer, through int64 }

// stretches are those of a bot's lineage, oldest first.
func stretches(c *sqlite.Conn, bot *Bot) (all []stretch, err error) {
	err = qInherited.rows(c, func(s *sqlite.Stmt) error {
		all = append(all, stretch{s.ColumnInt64(0), s.ColumnInt64(1)})
		return nil
	}, bot.ID)
	return append(all, stretch{bot.ID, bot.Head}), err
}

// writerOf is the bot that wrote a node, with the turn in which it did; 0 when
// they are deleted. It walks to the turn's first item.
func writerOf(c *sqlite.Conn, node int64) (bot, turn int64, err error) {
	err = Walk(c, node, func(n Node) bool {
		turn = n.Turn
		return turn == 0
	})
	if err != nil || turn == 0 {
		return 0, 0, err
	}
	t, ok, err := TurnByID(c, turn)
	if err != nil || !ok {
		return 0, 0, err
	}
	b, _, err := BotByName(c, t.Bot)
	return b.ID, turn, err
}

// OnLineage reports whether a node is on a bot's lineage, as InLineage does
// from its head, but without walking there where the node's writer still is.
func OnLineage(ctx context.Context, c *sqlite.Conn, bot *Bot, node int64) (bool, error) {
	if node > bot.Head {
		return false, nil
	}
	writer, _, err := writerOf(c, node)
	if err != nil {
		return false, err
	}
	if writer == 0 {
		return InLineage(ctx, c, bot.Head, node)
	}
	_, ok, err := stretchOf(c, bot, writer, node)
	return ok, err
}

// stretchOf finds, among those of a bot's lineage, the stretch of a writer that
// has a node; rest begins with it.
func stretchOf(c *sqlite.Conn, bot *Bot, writer, node int64) (rest []stretch, ok bool, err error) {
	all, err := stretches(c, bot)
	for i, s := range all {
		if s.writer == writer && node <= s.through {
			return all[i:], err == nil, err
		}
	}
	return nil, false, err
}

// Above gives a node of a bot's lineage with at least count nodes below it down
// to least, itself not counted; least 0 is the root. Where that is not known
// from the turns there, or nothing is so far up, it is the head.
func Above(c *sqlite.Conn, bot *Bot, least, count int64) (int64, error) {
	rest, depth, turn, err := placeOf(c, bot, least)
	if err != nil {
		return 0, err
	}
	found := int64(0)
	for _, s := range rest {
		writer, ok, err := BotByID(c, s.writer)
		if err != nil || !ok {
			return bot.Head, err
		}
		err = qTurnIDs.rows(c, func(row *sqlite.Stmt) error {
			node, err := TurnNode(c, row.ColumnInt64(0))
			if err != nil || node == 0 {
				return err
			}
			if node > s.through {
				return errStop
			}
			n, _, err := NodeByID(c, node)
			if err == nil && n.Depth-depth >= count {
				found = node
				err = errStop
			}
			return err
		}, writer.Name, turn)
		if err != nil || found != 0 {
			return found, err
		}
		turn = 0
	}
	return bot.Head, nil
}

// placeOf is where a node of a lineage lies: the stretches from its own on, its
// depth and its turn. Without stretches it is not known.
func placeOf(c *sqlite.Conn, bot *Bot, node int64) (rest []stretch, depth, turn int64, err error) {
	if node == 0 {
		rest, err = stretches(c, bot)
		return rest, 1, 0, err
	}
	n, ok, err := NodeByID(c, node)
	if err != nil || !ok {
		return nil, 0, 0, err
	}
	writer, turn, err := writerOf(c, node)
	if err != nil || writer == 0 {
		return nil, 0, 0, err
	}
	rest, _, err = stretchOf(c, bot, writer, node)
	return rest, n.Depth, turn, err
}

// Inherit records, for a fork of source at a node, whose stretches its lineage
// has.
func (tx *Tx) Inherit(fork, source, node int64) error {
	var all []stretch
	err := qInherited.rows(tx.Conn(), func(s *sqlite.Stmt) error {
		all = append(all, stretch{s.ColumnInt64(0), min(s.ColumnInt64(1), node)})
		if s.ColumnInt64(1) >= node {
			return errStop
		}
		return nil
	}, source)
	if err != nil {
		return err
	}
	if len(all) == 0 || all[len(all)-1].through < node {
		all = append(all, stretch{source, node})
	}
	for _, s := range all {
		if err := qInherit.exec(tx.Conn(), fork, s.through, s.writer); err != nil {
			return err
		}
	}
	return nil
}
