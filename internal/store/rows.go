package store

import (
	"encoding/json"
	"errors"
	"fmt"

	"zombiezen.com/go/sqlite"

	"agent/protocol"
)

// Row operations read and write what the engine thinks in: bots, nodes, turns,
// calls, events. Reading functions take a connection and serve jobs and
// readers alike; writing ones are methods of Tx.

// errStop ends a rows call early without an error.
var errStop = errors.New("stop")

func (q *query) exec(c *sqlite.Conn, args ...any) error { return exec(c, q, args...) }

// row reports whether there was a row, and scans it.
func (q *query) row(c *sqlite.Conn, scan func(*sqlite.Stmt), args ...any) (bool, error) {
	return one(c, q, func(s *sqlite.Stmt) error { scan(s); return nil }, args...)
}

// rows is each, ended without an error by errStop.
func (q *query) rows(c *sqlite.Conn, row func(*sqlite.Stmt) error, args ...any) error {
	err := each(c, q, row, args...)
	if err == errStop {
		return nil
	}
	return err
}

// mustChange runs a statement that must find its one row: a job that decided
// by a row which is not there any more must not commit.
func (tx *Tx) mustChange(q *query, args ...any) error {
	if err := exec(tx.Conn(), q, args...); err != nil {
		return err
	}
	if n := tx.Conn().Changes(); n != 1 {
		return protocol.Fail(protocol.StoreRowInvalid, fmt.Sprintf("%d rows changed where one was meant", n))
	}
	return nil
}

func rowInvalid(table string, id int64, column string) error {
	return protocol.Fail(protocol.StoreRowInvalid, fmt.Sprintf("%s %d: %s cannot be read", table, id, column))
}

func null(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func nullInt(n int64) any {
	if n == 0 {
		return nil
	}
	return n
}

func nullRaw(r json.RawMessage) any {
	if r == nil {
		return nil
	}
	return r
}

// Conn is a connection as row operations take it. Only this package knows of
// which library it is.
type Conn = sqlite.Conn
