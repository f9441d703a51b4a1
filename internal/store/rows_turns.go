package store

import (
	"encoding/json"

	"zombiezen.com/go/sqlite"
)

// Turn is a row of turns. Zero stands for null.
type Turn struct {
	ID           int64
	Bot          string
	RequestID    string
	Prompt       string // "" when shared with its node
	PromptNode   int64
	FromBot      string
	FromBotID    int64
	FromTurn     int64
	Origin       string
	Status       string
	Workspace    string
	Model        string // PROVIDER/MODEL, when the submission named one
	Delivery     string
	ExpectedTurn int64
	Rounds       int64
	Input        int64
	Output       int64
	Cached       int64
	Retries      int64
	PacedMS      int64
	StartedMS    int64
	FinishedMS   int64
	External     json.RawMessage
	IntoNode     int64 // of a steer that was taken in: its item
}

const turnColumns = `id, bot, request_id, prompt, prompt_node, from_bot, from_bot_id, from_turn,
	origin, status, workspace, model, delivery, expected_turn, model_rounds, input_tokens,
	output_tokens, cached_input_tokens, retries, paced_ms, started_ms, finished_ms, external, into_node`

var (
	qTurnByID      = stmt(`SELECT ` + turnColumns + ` FROM turns WHERE id = ?1`)
	qTurnByRequest = stmt(`SELECT ` + turnColumns + ` FROM turns WHERE bot = ?1 AND request_id = ?2`)
	qTurnPage      = stmt(`SELECT ` + turnColumns + ` FROM turns WHERE bot = ?1 AND id > ?2 ORDER BY id LIMIT ?3`)
	qTurnHead      = stmt(`SELECT substr(prompt, 1, ?2), prompt_node FROM turns WHERE id = ?1`)
	qTurnSequence  = stmt(`SELECT last_id FROM turn_sequence`)
	qTurnStep      = stmt(`UPDATE turn_sequence SET last_id = last_id + 1`)
	qTurnRetained  = stmt(`INSERT INTO retained_turns (turn, bot) VALUES (?1, ?2)`)
	qTurnsInto     = stmt(`SELECT ` + turnColumns + ` FROM turns WHERE into_turn = ?1 ORDER BY into_node`)
	qTurnNode      = stmt(`SELECT id FROM nodes WHERE turn = ?1`)
	qTurnShare     = stmt(`UPDATE turns SET prompt = '', prompt_node = ?2 WHERE id = ?1`)
	qTurnRound     = stmt(`UPDATE turns SET model_rounds = model_rounds + 1, input_tokens = input_tokens + ?2,
		output_tokens = output_tokens + ?3, cached_input_tokens = cached_input_tokens + ?4,
		retries = ?5, paced_ms = ?6 WHERE id = ?1`)
	qTurnCharge = stmt(`UPDATE turns SET input_tokens = input_tokens + ?2,
		output_tokens = output_tokens + ?3, cached_input_tokens = cached_input_tokens + ?4 WHERE id = ?1`)
	qTurnExternal = stmt(`UPDATE turns SET external = ?2 WHERE id = ?1`)

	qTurnsRunning  = stmt(`SELECT id, bot FROM turns WHERE status = 'running' ORDER BY id`)
	qTurnReadyLow  = stmt(`SELECT ` + turnColumns + ` FROM turns WHERE status = 'ready' ORDER BY id LIMIT 1`)
	qTurnReady     = stmt(`SELECT id FROM turns WHERE bot = ?1 AND status = 'ready' LIMIT 1`)
	qTurnQueued    = stmt(`SELECT id FROM turns WHERE bot = ?1 AND status = 'queued' ORDER BY id LIMIT 1`)
	qTurnQueuedAny = stmt(`SELECT DISTINCT bot FROM turns WHERE status = 'queued'`)
	// The status is written out so that its partial index serves.
	qCountReady  = stmt(`SELECT count(*), ifnull(sum(length(CAST(prompt AS BLOB))), 0) FROM turns WHERE status = 'ready'`)
	qCountQueued = stmt(`SELECT count(*), ifnull(sum(length(CAST(prompt AS BLOB))), 0) FROM turns WHERE status = 'queued'`)
	qTurnSteers  = stmt(`SELECT ` + turnColumns + ` FROM turns
		WHERE bot = ?1 AND status = 'queued' AND delivery = 'steer' AND id > ?2 AND id <= ?3 ORDER BY id LIMIT ?4`)
	qTurnSteerMax = stmt(`SELECT ifnull(max(id), 0) FROM turns WHERE bot = ?1 AND status = 'queued' AND delivery = 'steer'`)
)

func scanTurn(s *sqlite.Stmt) Turn {
	return Turn{
		ID: s.ColumnInt64(0), Bot: s.ColumnText(1), RequestID: s.ColumnText(2), Prompt: s.ColumnText(3),
		PromptNode: s.ColumnInt64(4), FromBot: s.ColumnText(5), FromBotID: s.ColumnInt64(6),
		FromTurn: s.ColumnInt64(7), Origin: s.ColumnText(8), Status: s.ColumnText(9),
		Workspace: s.ColumnText(10), Model: s.ColumnText(11), Delivery: s.ColumnText(12),
		ExpectedTurn: s.ColumnInt64(13), Rounds: s.ColumnInt64(14), Input: s.ColumnInt64(15),
		Output: s.ColumnInt64(16), Cached: s.ColumnInt64(17), Retries: s.ColumnInt64(18),
		PacedMS: s.ColumnInt64(19), StartedMS: s.ColumnInt64(20), FinishedMS: s.ColumnInt64(21),
		External: colJSON(s, 22), IntoNode: s.ColumnInt64(23),
	}
}

func oneTurn(c *sqlite.Conn, q *query, args ...any) (t Turn, ok bool, err error) {
	ok, err = q.row(c, func(s *sqlite.Stmt) { t = scanTurn(s) }, args...)
	return t, ok, err
}

// TurnByID reads a turn of any bot.
func TurnByID(c *sqlite.Conn, id int64) (Turn, bool, error) { return oneTurn(c, qTurnByID, id) }

// TurnByRequest reads the turn of an idempotency key.
func TurnByRequest(c *sqlite.Conn, bot string, request string) (Turn, bool, error) {
	return oneTurn(c, qTurnByRequest, bot, request)
}

// PromptHead is the beginning of a turn's prompt, in characters, and the node
// that alone keeps it, if one does.
func PromptHead(c *sqlite.Conn, id int64, characters int) (head string, node int64, ok bool, err error) {
	ok, err = qTurnHead.row(c, func(s *sqlite.Stmt) { head, node = s.ColumnText(0), s.ColumnInt64(1) }, id, characters)
	return head, node, ok, err
}

// Turns calls f for a bot's turns after one, oldest first, at most limit.
func Turns(c *sqlite.Conn, bot string, after int64, limit int, f func(*Turn) bool) error {
	return qTurnPage.rows(c, func(s *sqlite.Stmt) error {
		t := scanTurn(s)
		if !f(&t) {
			return errStop
		}
		return nil
	}, bot, after, limit)
}

// SteersInto are the steers that a turn took in, in order.
func SteersInto(c *sqlite.Conn, turn int64) (list []Turn, err error) {
	err = qTurnsInto.rows(c, func(s *sqlite.Stmt) error { list = append(list, scanTurn(s)); return nil }, turn)
	return list, err
}

// TurnNode is the node of a turn's prompt, 0 while it has not started.
func TurnNode(c *sqlite.Conn, turn int64) (int64, error) { return integer(c, qTurnNode, turn) }

// SharePrompt keeps a large prompt only in its node (runtime.md 24).
func (tx *Tx) SharePrompt(id, node int64) error { return tx.mustChange(qTurnShare, id, node) }

// CountRound adds a model call to a turn.
func (tx *Tx) CountRound(id int64, u Spend, retries, pacedMS int64) error {
	return tx.mustChange(qTurnRound, id, u.Input, u.Output, u.Cached, retries, pacedMS)
}

// ChargeTurn adds to a turn what a call used that is no round.
func (tx *Tx) ChargeTurn(id int64, u Spend) error {
	return tx.mustChange(qTurnCharge, id, u.Input, u.Output, u.Cached)
}

// SetExternal records the names of the tools that brought outside content in.
func (tx *Tx) SetExternal(id int64, names json.RawMessage) error {
	return tx.mustChange(qTurnExternal, id, nullRaw(names))
}

// RunningTurns calls f for the turns found running.
func RunningTurns(c *sqlite.Conn, f func(turn int64, bot string)) error {
	return qTurnsRunning.rows(c, func(s *sqlite.Stmt) error { f(s.ColumnInt64(0), s.ColumnText(1)); return nil })
}

// LowestReady is the ready turn that has waited longest.
func LowestReady(c *sqlite.Conn) (Turn, bool, error) { return oneTurn(c, qTurnReadyLow) }

// ReadyHead is a bot's ready turn, 0 when it has none.
func ReadyHead(c *sqlite.Conn, bot string) (id int64, err error) {
	_, err = qTurnReady.row(c, func(s *sqlite.Stmt) { id = s.ColumnInt64(0) }, bot)
	return id, err
}

// QueuedHead is the first queued turn of a bot's line, 0 when it has none.
func QueuedHead(c *sqlite.Conn, bot string) (id int64, err error) {
	_, err = qTurnQueued.row(c, func(s *sqlite.Stmt) { id = s.ColumnInt64(0) }, bot)
	return id, err
}

// BotsWithQueue calls f for the bots that have queued turns.
func BotsWithQueue(c *sqlite.Conn, f func(bot string)) error {
	return qTurnQueuedAny.rows(c, func(s *sqlite.Stmt) error { f(s.ColumnText(0)); return nil })
}

// CountReady counts the ready turns and the bytes of their prompts.
func CountReady(c *sqlite.Conn) (n, bytes int64, err error) { return countWaiting(c, qCountReady) }

// CountQueued counts the queued turns and the bytes of their prompts.
func CountQueued(c *sqlite.Conn) (n, bytes int64, err error) { return countWaiting(c, qCountQueued) }

func countWaiting(c *sqlite.Conn, q *query) (n, bytes int64, err error) {
	_, err = q.row(c, func(s *sqlite.Stmt) { n, bytes = s.ColumnInt64(0), s.ColumnInt64(1) })
	return n, bytes, err
}

// Steers reads a bot's queued steers after one and up to another, in order.
func Steers(c *sqlite.Conn, bot string, after, through int64, limit int, f func(*Turn) bool) error {
	return qTurnSteers.rows(c, func(s *sqlite.Stmt) error {
		t := scanTurn(s)
		if !f(&t) {
			return errStop
		}
		return nil
	}, bot, after, through, limit)
}

// NewestSteer is the highest id of a bot's queued steers, 0 when there is none.
func NewestSteer(c *sqlite.Conn, bot string) (id int64, err error) {
	_, err = qTurnSteerMax.row(c, func(s *sqlite.Stmt) { id = s.ColumnInt64(0) }, bot)
	return id, err
}
