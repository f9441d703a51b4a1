package store

import (
	"errors"
	"fmt"

	"zombiezen.com/go/sqlite"

	"agent/internal/place"
	"agent/protocol"
)

// storageError turns an error of SQLite's into storage_error, which carries its
// codes and never SQL, paths or data (runtime.md 26). Any other error, nil
// included, is returned as it is.
func storageError(err error) error {
	code := sqlite.ErrCode(err)
	if err == nil || protocol.CodeOf(err) != "" || code == sqlite.ResultError && !isSQLite(err) {
		return err
	}
	return &protocol.Error{
		Code:   protocol.StorageError,
		Detail: fmt.Sprintf("sqlite_primary=%d sqlite_extended=%d", code.ToPrimary(), code),
		Cause:  err,
	}
}

// sqlError marks an error that came from running a statement, for those whose
// code alone does not tell (SQLITE_ERROR).
type sqlError struct{ err error }

func (e *sqlError) Error() string { return e.err.Error() }
func (e *sqlError) Unwrap() error { return e.err }

func isSQLite(err error) bool {
	var e *sqlError
	return errors.As(err, &e)
}

// failed is storageError for what is known to come from SQLite.
func failed(err error) error {
	if err == nil {
		return nil
	}
	return storageError(&sqlError{err})
}

// isDamage reports whether SQLite called the file corrupt or not a database.
func isDamage(err error) bool {
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultCorrupt, sqlite.ResultNotADB:
		return true
	}
	return false
}

// openError is an error at open: damage is store_corrupt, what place refuses
// keeps its code.
func openError(err error) error {
	var refused *place.Error
	switch {
	case err == nil || protocol.CodeOf(err) != "" && !isDamage(err):
		return err
	case isDamage(err):
		e := corrupt("SQLite calls the file damaged")
		e.Cause = err
		return e
	case errors.As(err, &refused):
		return protocol.Fail(protocol.Code(refused.Code), refused.Detail)
	}
	return storageError(err)
}
