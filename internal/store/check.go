package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"zombiezen.com/go/sqlite"

	"agent/protocol"
)

// problemLimit bounds what Check lists of each kind.
const problemLimit = 100

// Report is what Check found.
type Report struct {
	OK       bool     `json:"ok"`
	Schema   int64    `json:"schema"`
	Bytes    int64    `json:"bytes"`
	Problems []string `json:"problems"`
}

// jsonColumns are the columns that hold JSON, by table, with what names a row.
var jsonColumns = []struct {
	table, row string
	columns    []string
}{
	{"companions", "name", []string{"command"}},
	{"rules", "digest", []string{"files"}},
	{"bots", "name", []string{"tools", "allowed", "client_tools", "settings", "denials", "overturns", "sandbox", "gates", "creator_limits"}},
	{"compactions", "node", []string{"prompts"}},
	{"turns", "id", []string{"waiting", "external"}},
	{"tools", "turn", []string{"approval", "served", "steps"}},
	{"processes", "id", []string{"result"}},
	{"events", "id", []string{"data"}},
}

// rowChecks are what must hold between rows. Each gives a line for every row
// that breaks it. They scan whole tables, so they are no statements of the
// daemon's.
var rowChecks = []string{
	"SELECT 'bot ' || name || ': its id is above the sequence' FROM bots WHERE id > (SELECT last_id FROM bot_sequence)",
	"SELECT 'turn ' || id || ': its id is above the sequence' FROM turns WHERE id > (SELECT last_id FROM turn_sequence)",
	"SELECT 'bot ' || name || ': its current turn is missing' FROM bots WHERE running_turn IS NOT NULL AND running_turn NOT IN (SELECT id FROM turns WHERE bot = bots.name)",
	"SELECT 'node ' || id || ': its parent is not older' FROM nodes WHERE parent >= id",
	"SELECT 'node ' || n.id || ': its depth does not follow its parent''s' FROM nodes n JOIN nodes p ON p.id = n.parent WHERE n.depth <> p.depth + 1",
	"SELECT 'node ' || n.id || ': what its lineage''s stubs save does not add up' FROM nodes n LEFT JOIN nodes p ON p.id = n.parent WHERE n.total_elided <> ifnull(p.total_elided, 0) + n.elided",
	"SELECT 'node ' || n.id || ': its stub is missing, or not as long as recorded' FROM nodes n LEFT JOIN stubs s ON s.node = n.id WHERE n.elided <> ifnull(length(n.item) - length(s.item), 0)",
	"SELECT 'node ' || id || ': its item is not JSON' FROM nodes WHERE NOT json_valid(CAST(item AS TEXT))",
	"SELECT 'turn ' || turn || ': call ' || call_id || ' belongs to no turn' FROM tools WHERE turn NOT IN (SELECT id FROM turns)",
}

// Check looks through a store that nobody owns, for as long as that takes: its
// file, its references and its rows. It repairs nothing and takes the owner
// lock meanwhile. An error is a refusal to look, as Open's; what is wrong with
// the store is in the report.
func Check(path string) (*Report, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, protocol.Fail(protocol.StoreNotFound, path+" does not exist")
	}
	if err != nil {
		return nil, fileError(err)
	}
	lock, err := ownLock(path)
	if err != nil {
		return nil, openError(fileError(err))
	}
	defer lock.Close()
	r := &Report{Bytes: info.Size(), Problems: []string{}}
	err = judge(path, current.version())
	if err == nil {
		err = r.look(path)
	}
	if err != nil && !isDamage(err) && protocol.CodeOf(err) != protocol.StoreCorrupt {
		return nil, openError(err)
	}
	if err != nil {
		r.Problems = append(r.Problems, openError(err).Error())
	}
	r.OK = len(r.Problems) == 0
	return r, nil
}

func (r *Report) look(path string) error {
	c, err := sqlite.OpenConn(path, sqlite.OpenReadOnly)
	if err != nil {
		return failed(err)
	}
	defer c.Close()
	c.SetBusyTimeout(busyTimeout)
	found, fresh, err := current.checkVersion(c)
	if err != nil {
		return err
	}
	r.Schema = found
	if err := r.note(c, "SELECT integrity_check FROM pragma_integrity_check WHERE integrity_check <> 'ok'"); err != nil {
		return err
	}
	if err := r.note(c, `SELECT 'row ' || rowid || ' of ' || "table" || ' names a missing row of ' || parent FROM pragma_foreign_key_check`); err != nil {
		return err
	}
	if fresh || found != int64(current.version()) {
		return nil // the rows of an older version are looked at once it is migrated
	}
	return r.lookAtRows(c)
}

func (r *Report) lookAtRows(c *sqlite.Conn) error {
	for _, j := range jsonColumns {
		for _, column := range j.columns {
			if err := r.note(c, fmt.Sprintf("SELECT '%s ' || %s || ': %s is not JSON' FROM %s WHERE NOT json_valid(%s)",
				j.table, j.row, column, j.table, column)); err != nil {
				return err
			}
		}
	}
	for _, sql := range rowChecks {
		if err := r.note(c, sql); err != nil {
			return err
		}
	}
	return nil
}

// note adds what a statement finds to the problems.
func (r *Report) note(c *sqlite.Conn, sql string) error {
	return each(c, &query{fmt.Sprintf("SELECT * FROM (%s) LIMIT %d", sql, problemLimit)}, func(s *sqlite.Stmt) error {
		r.Problems = append(r.Problems, s.ColumnText(0))
		return nil
	})
}
