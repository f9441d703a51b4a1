package store

import (
	"encoding/json"

	v2 "github.com/go-json-experiment/json"
	"zombiezen.com/go/sqlite"

	"agent/protocol"
)

// Bot is a row of bots. Zero stands for null in ids and counts, "" in texts.
type Bot struct {
	Name                   string
	ID                     int64
	Head                   int64
	Status                 string
	RunningTurn            int64
	Closed                 int64 // the running turn's newest proven fork point
	Provider               string
	Family                 string
	Model                  string
	Instructions           string
	Reasoning              string
	Tools                  []string
	Allowed                []string // meaningful when AllowedSet
	AllowedSet             bool
	ClientTools            json.RawMessage
	Settings               protocol.Settings
	Denials                json.RawMessage
	Workspace              string
	Budget                 int64
	TokensUsed             int64
	InputTokens            int64
	CachedTokens           int64
	ContextStart           int64
	Note                   int64
	Compaction             int64
	Elision                int64
	CompactionInstructions string
	CompactionModel        string
	CreatedBy              string
	CreatedByID            int64
	CacheBot               int64
	Fallbacks              bool
	ClosedToBots           bool
	BotMade                bool // by a bot, or a fork of one that was: its instructions may be a bot's words
	PrunedCursor           int64
	Gates                  json.RawMessage
	Sandbox                json.RawMessage
	Rules                  string          // a digest of rules, or the unreadable mark; "" for none
	CreatorLimits          json.RawMessage // what a deleted sandboxed creator left binding
}

const botColumns = `name, id, head, status, running_turn, closed, provider, family, model,
	instructions, reasoning, tools, allowed, client_tools, settings, denials, workspace,
	budget_tokens, tokens_used, input_tokens, cached_input_tokens, context_start, note,
	compaction, elision, compaction_instructions, compaction_model, created_by, created_by_id,
	cache_bot, fallbacks, closed_to_bots, pruned_cursor, gates, sandbox, rules, creator_limits, bot_made`

var (
	qBotByName = stmt(`SELECT ` + botColumns + ` FROM bots WHERE name = ?1`)
	qBotByID   = stmt(`SELECT ` + botColumns + ` FROM bots WHERE id = ?1`)
	qBotPage   = stmt(`SELECT ` + botColumns + ` FROM bots WHERE name > ?1 ORDER BY name LIMIT ?2`)

	qBotSequence     = stmt(`SELECT last_id FROM bot_sequence`)
	qBotSequenceStep = stmt(`UPDATE bot_sequence SET last_id = last_id + 1`)
	qBotInsert       = stmt(`INSERT INTO bots (name, id, head, status, provider, family, model, instructions,
		reasoning, tools, allowed, settings, workspace, budget_tokens, tokens_used, input_tokens,
		cached_input_tokens, context_start, note, compaction, elision, compaction_instructions, compaction_model,
		created_by, created_by_id, cache_bot, fallbacks, closed_to_bots, pruned_cursor, client_tools, sandbox, rules, gates, bot_made)
		VALUES (?1, ?2, ?3, 'idle', ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, 0, 0, 0, ?14, ?15, ?16, ?17, ?18, ?19,
		?20, ?21, ?22, ?23, ?24, 0, ?25, ?26, ?27, ?28, ?29)`)
	qBotThinkLike = stmt(`UPDATE bots SET (prefix, below, "from", "to", elided) =
		(SELECT prefix, below, "from", "to", elided FROM bots WHERE id = ?2) WHERE id = ?1`)

	qBotConfigure = stmt(`UPDATE bots SET settings = ?2, workspace = ?3, budget_tokens = ?4, reasoning = ?5,
		provider = ?6, model = ?7, client_tools = ?8, sandbox = ?9, rules = ?10, gates = ?11 WHERE id = ?1`)

	qBotRun = stmt(`UPDATE bots SET status = 'running', running_turn = ?2, head = ?3, closed = ?3
		WHERE id = ?1 AND running_turn IS NULL`)
	qBotEnd = stmt(`UPDATE bots SET status = ?3, running_turn = NULL, closed = NULL
		WHERE id = ?1 AND running_turn = ?2`)
	qBotHead = stmt(`UPDATE bots SET head = ?3 WHERE id = ?1 AND running_turn = ?2`)
	qBotGrow = stmt(`UPDATE bots SET head = ?3, closed = ?4,
		tokens_used = tokens_used + ?5, input_tokens = input_tokens + ?6,
		cached_input_tokens = cached_input_tokens + ?7
		WHERE id = ?1 AND running_turn = ?2`)
	qBotCharge = stmt(`UPDATE bots SET tokens_used = tokens_used + ?2,
		input_tokens = input_tokens + ?3, cached_input_tokens = cached_input_tokens + ?4 WHERE id = ?1`)
	qBotContextStart = stmt(`UPDATE bots SET context_start = ?2 WHERE id = ?1`)
	qBotNote         = stmt(`UPDATE bots SET note = ?2 WHERE id = ?1`)
	qBotThinking     = stmt(`UPDATE bots SET prefix = ?2, below = ?3, "from" = ?4, "to" = ?5, elided = ?6 WHERE id = ?1`)
	qBotThinkingGet  = stmt(`SELECT prefix, below, "from", "to", elided FROM bots WHERE id = ?1`)
)

func scanBot(s *sqlite.Stmt) (b Bot, err error) {
	b = Bot{
		Name: s.ColumnText(0), ID: s.ColumnInt64(1), Head: s.ColumnInt64(2), Status: s.ColumnText(3),
		RunningTurn: s.ColumnInt64(4), Closed: s.ColumnInt64(5), Provider: s.ColumnText(6),
		Family: s.ColumnText(7), Model: s.ColumnText(8), Instructions: s.ColumnText(9),
		Reasoning: s.ColumnText(10), Denials: colJSON(s, 15),
		ClientTools: colJSON(s, 13), Workspace: s.ColumnText(16), Budget: s.ColumnInt64(17),
		TokensUsed: s.ColumnInt64(18), InputTokens: s.ColumnInt64(19), CachedTokens: s.ColumnInt64(20),
		ContextStart: s.ColumnInt64(21), Note: s.ColumnInt64(22), Compaction: s.ColumnInt64(23),
		Elision: s.ColumnInt64(24), CompactionInstructions: s.ColumnText(25),
		CompactionModel: s.ColumnText(26), CreatedBy: s.ColumnText(27), CreatedByID: s.ColumnInt64(28),
		CacheBot: s.ColumnInt64(29), Fallbacks: s.ColumnBool(30), ClosedToBots: s.ColumnBool(31),
		PrunedCursor: s.ColumnInt64(32), Gates: colJSON(s, 33), Sandbox: colJSON(s, 34),
		Rules: s.ColumnText(35), CreatorLimits: colJSON(s, 36), BotMade: s.ColumnBool(37),
	}
	if err := json.Unmarshal([]byte(s.ColumnText(11)), &b.Tools); err != nil {
		return b, rowInvalid("bots", b.ID, "tools")
	}
	if !s.ColumnIsNull(12) {
		b.AllowedSet = true
		if err := json.Unmarshal([]byte(s.ColumnText(12)), &b.Allowed); err != nil {
			return b, rowInvalid("bots", b.ID, "allowed")
		}
	}
	if !s.ColumnIsNull(14) {
		if err := v2.Unmarshal(colBytes(s, 14, nil), &b.Settings); err != nil {
			return b, rowInvalid("bots", b.ID, "settings")
		}
	}
	return b, nil
}

// Effective is what the bot may call: Allowed where a fork narrowed that, else
// Tools.
func (b *Bot) Effective() []string {
	if b.AllowedSet {
		return b.Allowed
	}
	return b.Tools
}

// BotByName gives the bot a name belongs to now; ok is false when none does.
func BotByName(c *sqlite.Conn, name string) (b Bot, ok bool, err error) {
	return oneBot(c, qBotByName, name)
}

// BotByID gives the bot with an id.
func BotByID(c *sqlite.Conn, id int64) (b Bot, ok bool, err error) {
	return oneBot(c, qBotByID, id)
}

func oneBot(c *sqlite.Conn, q *query, key any) (b Bot, ok bool, err error) {
	var bad error
	ok, err = q.row(c, func(s *sqlite.Stmt) { b, bad = scanBot(s) }, key)
	if err == nil {
		err = bad
	}
	return b, ok, err
}

// Bots calls f for the bots after a name, by name, at most limit, until f
// returns false.
func Bots(c *sqlite.Conn, after string, limit int, f func(*Bot) bool) error {
	return qBotPage.rows(c, func(s *sqlite.Stmt) error {
		b, err := scanBot(s)
		if err != nil {
			return err
		}
		if !f(&b) {
			return errStop
		}
		return nil
	}, after, limit)
}

// InsertBot gives b the next id and writes its row.
func (tx *Tx) InsertBot(b *Bot) error {
	c := tx.Conn()
	if err := qBotSequenceStep.exec(c); err != nil {
		return err
	}
	if _, err := qBotSequence.row(c, func(s *sqlite.Stmt) { b.ID = s.ColumnInt64(0) }); err != nil {
		return err
	}
	tools, err := json.Marshal(b.Tools)
	if err != nil {
		return err
	}
	var allowed any
	if b.AllowedSet {
		list, err := json.Marshal(b.Allowed)
		if err != nil {
			return err
		}
		allowed = string(list)
	}
	settings, err := settingsText(b.Settings)
	if err != nil {
		return err
	}
	b.Status = "idle"
	return qBotInsert.exec(c, b.Name, b.ID, nullInt(b.Head), b.Provider, b.Family, b.Model, b.Instructions,
		null(b.Reasoning), string(tools), allowed, settings, null(b.Workspace), nullInt(b.Budget),
		nullInt(b.ContextStart), nullInt(b.Note), nullInt(b.Compaction), nullInt(b.Elision),
		null(b.CompactionInstructions), null(b.CompactionModel), null(b.CreatedBy), nullInt(b.CreatedByID),
		nullInt(b.CacheBot), b.Fallbacks, b.ClosedToBots, nullRaw(b.ClientTools),
		nullRaw(b.Sandbox), null(b.Rules), nullRaw(b.Gates), b.BotMade)
}

// ConfigureBot writes what may be replaced of a bot: settings, workspace,
// budget, reasoning, model, client tools, confinement and gates.
func (tx *Tx) ConfigureBot(b *Bot) error {
	settings, err := settingsText(b.Settings)
	if err != nil {
		return err
	}
	return tx.mustChange(qBotConfigure, b.ID, settings, null(b.Workspace), nullInt(b.Budget), null(b.Reasoning), b.Provider, b.Model, nullRaw(b.ClientTools),
		nullRaw(b.Sandbox), null(b.Rules), nullRaw(b.Gates))
}

// settingsText is a bot's settings as their column holds them.
func settingsText(s protocol.Settings) (any, error) {
	text, err := protocol.Append(nil, s)
	if err != nil || string(text) == "{}" {
		return nil, err
	}
	return string(text), nil
}

// ThinkLike gives a fork what its source knows of the thinking it may send.
func (tx *Tx) ThinkLike(fork, source int64) error {
	return tx.mustChange(qBotThinkLike, fork, source)
}

// RunBot makes turn the bot's current one with its prompt's node as head.
func (tx *Tx) RunBot(bot, turn, node int64) error {
	return tx.mustChange(qBotRun, bot, turn, node)
}

// EndBot takes a bot's current turn away and gives it the status of its end.
func (tx *Tx) EndBot(bot, turn int64, status string) error {
	return tx.mustChange(qBotEnd, bot, turn, status)
}

// SetHead moves a running bot's head.
func (tx *Tx) SetHead(bot, turn, head int64) error {
	return tx.mustChange(qBotHead, bot, turn, head)
}

// Spend is what one model call used.
type Spend struct{ Input, Output, Cached int64 }

// GrowBot moves a running bot's head past a model's response: closed is the
// node behind which every call has its result.
func (tx *Tx) GrowBot(bot, turn, head, closed int64, u Spend) error {
	return tx.mustChange(qBotGrow, bot, turn, head, closed, u.Input+u.Output, u.Input, u.Cached)
}

// ChargeBot adds to a bot's totals.
func (tx *Tx) ChargeBot(bot int64, u Spend) error {
	return tx.mustChange(qBotCharge, bot, u.Input+u.Output, u.Input, u.Cached)
}

// SetContextStart moves a bot's window.
func (tx *Tx) SetContextStart(bot, node int64) error {
	return tx.mustChange(qBotContextStart, bot, node)
}

// Thinking says which nodes of a bot still carry their thinking (runtime.md
// 19): those written since Prefix became the fingerprint of what goes ahead of
// them, and not between From and To, which are the first result stubbed after
// that and the head when it was.
type Thinking struct {
	Prefix   int64
	Below    int64 // nodes below it go without
	From, To int64
	Elided   int64 // the elision floor that From and To know of
}

// Without reports whether a node goes without its thinking.
func (t *Thinking) Without(node int64) bool {
	return node < t.Below || node >= t.From && node <= t.To
}

// BotThinking reads a bot's thinking binding.
func BotThinking(c *sqlite.Conn, bot int64) (t Thinking, err error) {
	_, err = qBotThinkingGet.row(c, func(s *sqlite.Stmt) {
		t = Thinking{Prefix: s.ColumnInt64(0), Below: s.ColumnInt64(1), From: s.ColumnInt64(2), To: s.ColumnInt64(3), Elided: s.ColumnInt64(4)}
	}, bot)
	return t, err
}

// SetThinking records it.
func (tx *Tx) SetThinking(bot int64, t Thinking) error {
	return tx.mustChange(qBotThinking, bot, t.Prefix, t.Below, t.From, t.To, t.Elided)
}
