package store

import (
	"encoding/json"
	"unsafe"

	"zombiezen.com/go/sqlite"
)

// query is a statement of the product. Each is made once, by stmt, in a
// package variable; so a test can plan every one of them (RT-104). A connection
// prepares it when it first uses it and keeps it for life.
type query struct{ sql string }

// queries is every statement of the package.
var queries []*query

// stmt registers a statement. Parameters are ?1, ?2, … or plain ?.
func stmt(sql string) *query {
	q := &query{sql: sql}
	queries = append(queries, q)
	return q
}

// on is the statement ready to bind on a connection. The caller resets it.
func (q *query) on(c *sqlite.Conn) (*sqlite.Stmt, error) {
	s, err := c.Prepare(q.sql)
	return s, failed(err)
}

// exec runs a statement that returns no row. Arguments are int64, int, bool,
// string, []byte (a BLOB), json.RawMessage (TEXT, NULL when nil), *int64,
// *string (NULL when nil) or nil. It fails with storage_error; a job returns
// the first error it gets.
func exec(c *sqlite.Conn, q *query, args ...any) error {
	s, err := q.on(c)
	if err != nil {
		return err
	}
	bindAll(s, args)
	_, err = s.Step()
	return finish(s, err)
}

// one runs a statement for its first row, which scan reads; scan may be nil. It
// reports whether there was a row. What scan takes from the statement must be
// copied, as the Column methods but ColumnReader do.
func one(c *sqlite.Conn, q *query, scan func(*sqlite.Stmt) error, args ...any) (bool, error) {
	s, err := q.on(c)
	if err != nil {
		return false, err
	}
	bindAll(s, args)
	found, err := s.Step()
	if err != nil || !found {
		return false, finish(s, err)
	}
	if scan != nil {
		if err := scan(s); err != nil {
			reset(s)
			return true, err
		}
	}
	return true, finish(s, nil)
}

// each runs a statement and calls row for each of its rows until row fails. row
// must not run the same statement on the same connection.
func each(c *sqlite.Conn, q *query, row func(*sqlite.Stmt) error, args ...any) error {
	s, err := q.on(c)
	if err != nil {
		return err
	}
	bindAll(s, args)
	for {
		more, err := s.Step()
		if err != nil || !more {
			return finish(s, err)
		}
		if err := row(s); err != nil {
			reset(s)
			return err
		}
	}
}

// integer runs a statement for one integer, 0 when there is no row or it is
// NULL.
func integer(c *sqlite.Conn, q *query, args ...any) (n int64, err error) {
	s, err := q.on(c)
	if err != nil {
		return 0, err
	}
	bindAll(s, args)
	found, err := s.Step()
	if err == nil && found {
		n = s.ColumnInt64(0)
	}
	return n, finish(s, err)
}

// finish resets a statement that was stepped and gives the step's error. A
// statement left unreset would keep its read transaction open, and with it the
// write-ahead log from ever restarting.
func finish(s *sqlite.Stmt, err error) error {
	reset(s)
	return failed(err)
}

// reset ends a statement and lets go of what was bound to it. Reset repeats the
// error of the last step, which the caller has.
func reset(s *sqlite.Stmt) {
	s.Reset()
	s.ClearBindings()
}

func bindAll(s *sqlite.Stmt, args []any) {
	for i, arg := range args {
		bind(s, i+1, arg)
	}
}

func bind(s *sqlite.Stmt, i int, arg any) {
	switch v := arg.(type) {
	case nil:
		s.BindNull(i)
	case int64:
		s.BindInt64(i, v)
	case int:
		s.BindInt64(i, int64(v))
	case bool:
		s.BindBool(i, v)
	case string:
		s.BindText(i, v)
	case []byte:
		s.BindBytes(i, v)
	case json.RawMessage:
		if v == nil {
			s.BindNull(i)
			return
		}
		// BindText copies; the bytes need no second copy.
		s.BindText(i, unsafe.String(unsafe.SliceData(v), len(v)))
	case *int64:
		if v == nil {
			s.BindNull(i)
			return
		}
		s.BindInt64(i, *v)
	case *string:
		if v == nil {
			s.BindNull(i)
			return
		}
		s.BindText(i, *v)
	default:
		panic("store: an argument of a type that exec does not take")
	}
}

// colBytes appends a column's bytes to buf.
func colBytes(s *sqlite.Stmt, col int, buf []byte) []byte {
	n := s.ColumnLen(col)
	at := len(buf)
	if cap(buf)-at < n {
		grown := make([]byte, at, at+n)
		copy(grown, buf)
		buf = grown
	}
	buf = buf[:at+n]
	s.ColumnBytes(col, buf[at:])
	return buf
}

// colJSON is a copy of a JSON column, nil when it is NULL.
func colJSON(s *sqlite.Stmt, col int) json.RawMessage {
	if s.ColumnIsNull(col) {
		return nil
	}
	return colBytes(s, col, nil)
}

// colOptInt is an integer column, nil when it is NULL.
func colOptInt(s *sqlite.Stmt, col int) *int64 {
	if s.ColumnIsNull(col) {
		return nil
	}
	n := s.ColumnInt64(col)
	return &n
}

// colOptText is a text column, nil when it is NULL.
func colOptText(s *sqlite.Stmt, col int) *string {
	if s.ColumnIsNull(col) {
		return nil
	}
	t := s.ColumnText(col)
	return &t
}
