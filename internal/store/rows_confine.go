package store

import (
	"encoding/json"
	"math"

	"zombiezen.com/go/sqlite"
)

var (
	qConfinement = stmt(`SELECT sandbox, rules, created_by_id, creator_limits FROM bots WHERE id = ?1`)
	qRulesPut    = stmt(`INSERT INTO rules (digest, files) VALUES (?1, ?2) ON CONFLICT (digest) DO NOTHING`)
	qRules       = stmt(`SELECT files FROM rules WHERE digest = ?1`)
	qRulesDrop   = stmt(`DELETE FROM rules WHERE digest = ?1 AND NOT EXISTS (SELECT 1 FROM bots WHERE rules = ?1)`)
	qSandboxed   = stmt(`SELECT id, name FROM bots WHERE id <= ?1 AND sandbox IS NOT NULL AND status <> 'deleting' ORDER BY id DESC LIMIT ?2`)
	qNewestKinds = stmt(`SELECT bot, kind FROM events WHERE id <= ?1 ORDER BY id DESC LIMIT ?2`)
	qTurnNewest  = stmt(`SELECT ifnull(max(id), 0) FROM turns WHERE bot = ?1`)
	qLimitsWrite = stmt(`UPDATE bots SET creator_limits = ?2, rules = ?3 WHERE created_by_id = ?1`)
)

// Confinement is what of a bot's row says how it is held.
type Confinement struct {
	Sandbox       json.RawMessage // nil: none
	Rules         string          // a digest, or a mark; "" for none
	CreatedByID   int64
	CreatorLimits json.RawMessage // nil: none
}

// ConfinementOf is a bot's; ok is false where there is no such bot.
func ConfinementOf(c *sqlite.Conn, bot int64) (v Confinement, ok bool, err error) {
	ok, err = qConfinement.row(c, func(s *sqlite.Stmt) {
		v = Confinement{Sandbox: colJSON(s, 0), Rules: s.ColumnText(1), CreatedByID: s.ColumnInt64(2), CreatorLimits: colJSON(s, 3)}
	}, bot)
	return v, ok, err
}

// PutRules keeps the files of a rule set under its digest.
func (tx *Tx) PutRules(digest string, files []byte) error {
	return qRulesPut.exec(tx.Conn(), digest, string(files))
}

// RulesOf are the files of a rule set.
func RulesOf(c *sqlite.Conn, digest string) (files []byte, ok bool, err error) {
	ok, err = qRules.row(c, func(s *sqlite.Stmt) { files = colBytes(s, 0, nil) }, digest)
	return files, ok, err
}

// DropRules removes a rule set that no bot goes by any more.
func (tx *Tx) DropRules(digest string) error { return qRulesDrop.exec(tx.Conn(), digest) }

// LimitChildren writes into every bot that a bot made what goes on binding it
// when that bot is gone, the rules among it.
func (tx *Tx) LimitChildren(bot int64, limits json.RawMessage, rules string) error {
	return qLimitsWrite.exec(tx.Conn(), bot, string(limits), null(rules))
}

// BotRef is a bot's identity and its name.
type BotRef struct {
	ID   int64
	Name string
}

// recentEvents bounds how far back RecentSandboxed looks for turns; bots whose
// last one is older come after those, newest first.
const recentEvents = 16384

// RecentSandboxed are the bots with a sandbox of their own that began a turn or
// were made last, at most limit, the most recent first. One being deleted is not
// among them.
func RecentSandboxed(c *sqlite.Conn, limit int) ([]BotRef, error) {
	var list []BotRef
	seen, listed := map[string]bool{}, map[int64]bool{}
	err := qNewestKinds.rows(c, func(s *sqlite.Stmt) error {
		name, kind := s.ColumnText(0), s.ColumnText(1)
		if seen[name] || kind != "created" && kind != "forked" && kind != "accepted" {
			return nil
		}
		seen[name] = true
		b, ok, err := BotByName(c, name)
		if err != nil {
			return err
		}
		if ok && len(b.Sandbox) > 0 && b.Status != "deleting" {
			list = append(list, BotRef{b.ID, b.Name})
			listed[b.ID] = true
		}
		if len(list) == limit {
			return errStop
		}
		return nil
	}, int64(math.MaxInt64), recentEvents)
	if err != nil || len(list) == limit {
		return list, err
	}
	err = qSandboxed.rows(c, func(s *sqlite.Stmt) error {
		if len(list) == limit {
			return errStop
		}
		if r := (BotRef{s.ColumnInt64(0), s.ColumnText(1)}); !listed[r.ID] {
			list = append(list, r)
		}
		return nil
	}, int64(math.MaxInt64), 2*limit)
	return list, err
}

// NewestTurn is a bot's newest turn, 0 where it has had none.
func NewestTurn(c *sqlite.Conn, bot string) (int64, error) { return integer(c, qTurnNewest, bot) }
