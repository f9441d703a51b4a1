package store

import (
	"fmt"
	"strings"
	"time"

	"zombiezen.com/go/sqlite"

	"agent/protocol"
)

// busyTimeout is how long a connection waits for a lock. The driver's own
// default is to wait without end.
const busyTimeout = 5 * time.Second

// setting is a pragma with the value that is set and the one read back.
type setting struct{ name, value, want string }

// cacheSize is a connection's page cache as SQLite counts it, in KiB. The engine's
// allocator rounds a page with its header up to 8 KiB beyond the first twenty,
// so 160 counted take the 256 KiB of memory that runtime.md 23 allows.
const cacheSize = "-160"

// unlinkedSettings come before the schema is made or migrated, linkedSettings
// after: a step may take tables apart and put them together again, and a
// transaction cannot change whether foreign keys are checked.
var unlinkedSettings = []setting{
	{"journal_mode", "WAL", "wal"},
	{"synchronous", "FULL", "2"},
	{"fullfsync", "ON", "1"},
	{"checkpoint_fullfsync", "ON", "1"},
	{"foreign_keys", "OFF", "0"},
	{"temp_store", "MEMORY", "2"},
	{"cache_size", cacheSize, cacheSize},
	{"journal_size_limit", "8388608", "8388608"},
}

var linkedSettings = []setting{{"foreign_keys", "ON", "1"}}

var readerSettings = []setting{
	{"checkpoint_fullfsync", "ON", "1"},
	{"cache_size", cacheSize, cacheSize},
	{"query_only", "ON", "1"},
}

// connect opens a connection to an existing file.
func connect(path string) (*sqlite.Conn, error) {
	if err := keepPlans(); err != nil {
		return nil, err
	}
	c, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		return nil, err
	}
	c.SetBusyTimeout(busyTimeout)
	if err := expect(c, "busy_timeout", "5000"); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// configure makes settings, each in a statement of its own outside a
// transaction, and reads each back: SQLite ignores a pragma it cannot follow.
func configure(c *sqlite.Conn, settings []setting) error {
	for _, s := range settings {
		if err := script(c, "PRAGMA "+s.name+" = "+s.value); err != nil {
			return err
		}
		if err := expect(c, s.name, s.want); err != nil {
			return err
		}
	}
	return nil
}

func expect(c *sqlite.Conn, name, want string) error {
	got, err := pragma(c, name)
	if err != nil {
		return err
	}
	if got != want {
		return protocol.Fail(protocol.StorageError, fmt.Sprintf("%s is %s instead of %s", name, got, want))
	}
	return nil
}

// pragma reads a setting.
func pragma(c *sqlite.Conn, name string) (string, error) {
	s, _, err := c.PrepareTransient("PRAGMA " + name)
	if err != nil {
		return "", failed(err)
	}
	defer s.Finalize()
	if _, err := s.Step(); err != nil {
		return "", failed(err)
	}
	return s.ColumnText(0), nil
}

// script runs statements that are used once; rows are dropped. It must not end
// in a comment.
func script(c *sqlite.Conn, sql string) error {
	for sql = strings.TrimSpace(sql); sql != ""; sql = strings.TrimSpace(sql) {
		s, trailing, err := c.PrepareTransient(sql)
		if err != nil {
			return failed(err)
		}
		sql = sql[len(sql)-trailing:]
		more := true
		for more && err == nil {
			more, err = s.Step()
		}
		s.Finalize()
		if err != nil {
			return failed(err)
		}
	}
	return nil
}
