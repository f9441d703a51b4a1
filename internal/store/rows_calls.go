package store

import (
	"encoding/json"

	"zombiezen.com/go/sqlite"
)

// ToolCall is a row of tools.
type ToolCall struct {
	CallID string
	Name   string
	Seq    int
	Status string          // planned, executing, completed (turn_states.go)
	Served json.RawMessage // of a client's tool, once it was requested
	// Approval is how the call stands with the gates that were asked; nil for one
	// that none was asked about.
	Approval json.RawMessage
}

// ArtifactRow is a retained stream: Data, as Pack gives it, of at most 1 MiB, or
// File.
type ArtifactRow struct {
	Stream string
	Data   []byte
	Bytes  int64  // of the stream itself
	File   string // BOT_ID/NAME, below the store's folder of spilled output
	// Truncated says that the disk filled while the stream was written.
	Truncated bool
}

// SeenRow is a file as a bot last read or wrote it.
type SeenRow struct {
	Path    string
	Size    int64
	MtimeNS int64
	Inode   int64
	Hash    []byte
}

// maxSeen bounds the paths remembered for a bot (runtime.md 11).
const maxSeen = 1024

var (
	qCallPlan = stmt(`INSERT INTO tools (turn, call_id, name, seq, status) VALUES (?1, ?2, ?3, ?4, 'planned')`)
	qCallOpen = stmt(`SELECT call_id, name, seq, status, served, approval FROM tools
		WHERE turn = ?1 AND status IN ('planned', 'executing') ORDER BY seq`)
	qCallLast  = stmt(`SELECT ifnull(max(seq), -1) FROM tools WHERE turn = ?1`)
	qCallExist = stmt(`SELECT 1 FROM tools WHERE turn = ?1 AND call_id = ?2`)

	qCallIDAdd = stmt(`INSERT OR IGNORE INTO call_ids (bot_id, call_id, node) VALUES (?1, ?2, ?3)`)

	qArtifactAdd = stmt(`INSERT INTO artifacts (turn, call_id, stream, data, raw_bytes, file, truncated) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)`)
	qArtifact    = stmt(`SELECT rowid, length(data), raw_bytes, file FROM artifacts WHERE turn = ?1 AND call_id = ?2 AND stream = ?3`)
	qArtifacts   = stmt(`SELECT stream, raw_bytes FROM artifacts WHERE turn = ?1 AND call_id = ?2 ORDER BY stream`)

	qSeen       = stmt(`SELECT size, mtime_ns, inode, hash FROM seen_files WHERE bot = ?1 AND path = ?2`)
	qSeenSet    = stmt(`INSERT OR REPLACE INTO seen_files (bot, path, size, mtime_ns, inode, used, hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)`)
	qSeenCount  = stmt(`SELECT count(*) FROM seen_files WHERE bot = ?1`)
	qSeenOldest = stmt(`DELETE FROM seen_files WHERE bot = ?1 AND path IN
		(SELECT path FROM seen_files WHERE bot = ?1 ORDER BY used LIMIT ?2)`)

	qProcessLost = stmt(`UPDATE processes SET status = 'lost' WHERE status = 'running'`)
	qCheckpoint  = stmt(`INSERT OR IGNORE INTO checkpoints (bot, head) VALUES (?1, ?2)`)
)

// PlanCall records a call of a bot that a response, which ends at node, planned.
func (tx *Tx) PlanCall(turn, bot, node int64, call ToolCall) error {
	if err := qCallPlan.exec(tx.Conn(), turn, call.CallID, call.Name, call.Seq); err != nil {
		return err
	}
	return qCallIDAdd.exec(tx.Conn(), bot, call.CallID, node)
}

// OpenCalls calls f for a turn's calls without a result, in order.
func OpenCalls(c *sqlite.Conn, turn int64, f func(ToolCall)) error {
	return qCallOpen.rows(c, func(s *sqlite.Stmt) error {
		f(scanCall(s))
		return nil
	}, turn)
}

// LastSeq is the highest place a turn's calls have, -1 without calls.
func LastSeq(c *sqlite.Conn, turn int64) (n int, err error) {
	_, err = qCallLast.row(c, func(s *sqlite.Stmt) { n = s.ColumnInt(0) }, turn)
	return n, err
}

// HasCall reports whether a turn has a call of this id.
func HasCall(c *sqlite.Conn, turn int64, callID string) (bool, error) {
	return qCallExist.row(c, func(*sqlite.Stmt) {}, turn, callID)
}

// AddArtifact keeps a stream of a call.
func (tx *Tx) AddArtifact(turn int64, callID string, a ArtifactRow) error {
	var data any
	if a.File == "" {
		data = a.Data
	}
	return qArtifactAdd.exec(tx.Conn(), turn, callID, a.Stream, data, a.Bytes, null(a.File), a.Truncated)
}

// ArtifactRef is where a retained stream lies.
type ArtifactRef struct {
	Row   int64
	Bytes int64 // of the stream itself
	Kept  int64 // in the row
	File  string
}

// Artifact finds a retained stream.
func Artifact(c *sqlite.Conn, turn int64, callID, stream string) (a ArtifactRef, ok bool, err error) {
	ok, err = qArtifact.row(c, func(s *sqlite.Stmt) {
		a = ArtifactRef{Row: s.ColumnInt64(0), Kept: s.ColumnInt64(1), Bytes: s.ColumnInt64(2), File: s.ColumnText(3)}
	}, turn, callID, stream)
	return a, ok, err
}

// ArtifactAt fills p with a part of a stream that is kept as a row. The part
// must lie in the stream. cache is of this stream alone.
func ArtifactAt(c *sqlite.Conn, a *ArtifactRef, cache *Block, at int64, p []byte) error {
	if a.Kept != a.Bytes {
		return packedAt(c, a, cache, at, p)
	}
	_, err := blobAt(c, "artifacts", "data", a.Row, at, p)
	return err
}

// ArtifactStreams lists a call's streams with their sizes.
func ArtifactStreams(c *sqlite.Conn, turn int64, callID string, f func(stream string, bytes int64)) error {
	return qArtifacts.rows(c, func(s *sqlite.Stmt) error { f(s.ColumnText(0), s.ColumnInt64(1)); return nil }, turn, callID)
}

// SeenFile is what a bot knows of a path.
func SeenFile(c *sqlite.Conn, bot string, path string) (r SeenRow, ok bool, err error) {
	ok, err = qSeen.row(c, func(s *sqlite.Stmt) {
		r = SeenRow{
			Path: path, Size: s.ColumnInt64(0), MtimeNS: s.ColumnInt64(1), Inode: s.ColumnInt64(2),
			Hash: colBytes(s, 3, nil),
		}
	}, bot, path)
	return r, ok, err
}

// SetSeen remembers a file, and forgets those used longest ago past 1,024.
func (tx *Tx) SetSeen(bot string, used int64, r SeenRow) error {
	c := tx.Conn()
	if err := qSeenSet.exec(c, bot, r.Path, r.Size, r.MtimeNS, r.Inode, used, r.Hash); err != nil {
		return err
	}
	var n int
	if _, err := qSeenCount.row(c, func(s *sqlite.Stmt) { n = s.ColumnInt(0) }, bot); err != nil {
		return err
	}
	if n <= maxSeen {
		return nil
	}
	return qSeenOldest.exec(c, bot, n-maxSeen)
}

// LoseProcesses marks the background commands that an earlier daemon ran.
func (tx *Tx) LoseProcesses() error { return qProcessLost.exec(tx.Conn()) }

// AddCheckpoint records a head at which a turn of the bot completed.
func (tx *Tx) AddCheckpoint(bot string, head int64) error {
	return qCheckpoint.exec(tx.Conn(), bot, head)
}
