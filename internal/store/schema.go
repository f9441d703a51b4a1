package store

import (
	"crypto/rand"
	_ "embed"
	"encoding/binary"
	"fmt"
	"strconv"
	"time"

	"zombiezen.com/go/sqlite"

	"agent/protocol"
)

//go:embed schema.sql
var schemaSQL string

// schema is a version of the store and the way to it: the text that makes an
// empty file one of the newest version, and the steps that bring older ones
// forward. steps[i] takes version i+1 to i+2. Knowledge of earlier formats
// lives in steps and nowhere else (runtime.md 26).
type schema struct {
	sql   string
	steps []step
}

// step converts a store by one version inside the opening transaction, foreign
// keys unchecked until its end. It streams rows and guesses nothing: what it
// cannot convert is an error that names it.
type step func(*sqlite.Conn) error

// current is the product's schema.
var current = &schema{sql: schemaSQL}

func (s *schema) version() int { return 1 + len(s.steps) }

// SchemaVersion is the schema that this program writes.
func SchemaVersion() int { return current.version() }

// prepare makes the store's tables or brings them forward, in one transaction
// that leaves data and version as they were when it fails.
func (s *schema) prepare(c *sqlite.Conn, faults *Faults) error {
	found, fresh, err := s.checkVersion(c)
	if err != nil || found == int64(s.version()) {
		return err
	}
	if err := script(c, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	if fresh {
		err = s.make(c)
	} else {
		err = s.migrate(c, int(found))
	}
	if err == nil {
		err = failed(faults.Hit("migrate"))
	}
	if err == nil {
		err = script(c, "COMMIT")
	}
	if err != nil && !c.AutocommitEnabled() {
		script(c, "ROLLBACK")
	}
	return err
}

// checkVersion judges by SQLite's own values what judgeHeader judged by the
// file's bytes: what the write-ahead log holds counts here.
func (s *schema) checkVersion(c *sqlite.Conn) (found int64, fresh bool, err error) {
	app, err := pragmaInt(c, "application_id")
	if err != nil {
		return 0, false, err
	}
	if found, err = pragmaInt(c, "user_version"); err != nil {
		return 0, false, err
	}
	tables := false
	if app == 0 && found == 0 {
		if tables, err = one(c, qAnyTable, nil); err != nil {
			return 0, false, err
		}
	}
	if err := judgeVersion(app, found, tables, s.version()); err != nil {
		return 0, false, err
	}
	return found, app == 0, nil
}

var (
	qAnyTable   = stmt("SELECT 1 FROM sqlite_schema LIMIT 1")
	qMakeStore  = stmt("INSERT INTO store (one, identity, created_ms) VALUES (1, ?, ?)")
	qLineage    = stmt("SELECT identity FROM store")
	qForeignKey = stmt(`SELECT "table", rowid, parent FROM pragma_foreign_key_check LIMIT 1`)
)

// make fills an empty file.
func (s *schema) make(c *sqlite.Conn) error {
	if err := script(c, s.sql); err != nil {
		return err
	}
	var random [8]byte
	rand.Read(random[:])
	identity := int64(binary.BigEndian.Uint64(random[:]))
	if err := exec(c, qMakeStore, identity, time.Now().UnixMilli()); err != nil {
		return err
	}
	return s.stamp(c, s.version())
}

// migrate takes one version after the other.
func (s *schema) migrate(c *sqlite.Conn, from int) error {
	for v := from; v < s.version(); v++ {
		if err := s.steps[v-1](c); err != nil {
			return migrationFailed(v, err)
		}
	}
	broken := ""
	if _, err := one(c, qForeignKey, func(r *sqlite.Stmt) error {
		broken = fmt.Sprintf("row %d of %s names a missing row of %s", r.ColumnInt64(1), r.ColumnText(0), r.ColumnText(2))
		return nil
	}); err != nil {
		return err
	}
	if broken != "" {
		return protocol.Fail(protocol.StoreMigrationFailed, broken+"; nothing was changed")
	}
	return s.stamp(c, s.version())
}

// migrationFailed names what a step could not convert. Damage and a disk
// without room are no fault of the data's form and keep their own codes.
func migrationFailed(from int, err error) error {
	if protocol.CodeOf(err) != "" {
		return err
	}
	return &protocol.Error{
		Code:   protocol.StoreMigrationFailed,
		Detail: fmt.Sprintf("from version %d to %d: %v; nothing was changed", from, from+1, err),
		Cause:  err,
	}
}

func (s *schema) stamp(c *sqlite.Conn, version int) error {
	return script(c, fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d;", applicationID, version))
}

func pragmaInt(c *sqlite.Conn, name string) (int64, error) {
	text, err := pragma(c, name)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(text, 10, 64)
}
