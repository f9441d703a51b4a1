package store

import (
	"encoding/json"

	"zombiezen.com/go/sqlite"
)

var (
	qConfinement = stmt(`SELECT sandbox, rules, created_by_id, creator_limits FROM bots WHERE id = ?1`)
	qRulesPut    = stmt(`INSERT INTO rules (digest, files) VALUES (?1, ?2) ON CONFLICT (digest) DO NOTHING`)
	qRules       = stmt(`SELECT files FROM rules WHERE digest = ?1`)
	qRulesDrop   = stmt(`DELETE FROM rules WHERE digest = ?1 AND NOT EXISTS (SELECT 1 FROM bots WHERE rules = ?1)`)
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
