package store

import (
	"errors"
	"sync"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// keepPlans has every connection that is opened from now on keep the plan of a
// statement for life. As it stands the engine looks at the values that are
// bound, and prepares most statements with a LIMIT or a max() anew each time
// one changes: a tenth of the daemon's work, for the plan they had. The driver
// has no word for the switch; an automatic extension is told of each connection.
var keepPlans = sync.OnceValue(func() error {
	tls := libc.NewTLS()
	defer tls.Close()
	if lib.Xsqlite3_auto_extension(tls, functionPointer(keepPlansOf)) != lib.SQLITE_OK {
		return errors.New("SQLite takes no extension")
	}
	return nil
})

// keepPlansOf is the extension: an sqlite3_loadext_entry of a connection.
func keepPlansOf(tls *libc.TLS, db, _, _ uintptr) int32 {
	onOff := libc.NewVaList(int32(1), uintptr(0))
	if onOff == 0 {
		return lib.SQLITE_NOMEM
	}
	defer libc.Xfree(tls, onOff)
	return lib.Xsqlite3_db_config(tls, db, lib.SQLITE_DBCONFIG_ENABLE_QPSG, onOff)
}

// functionPointer is a function as the engine calls it back. f is a declared
// one, which never moves.
func functionPointer[F any](f F) uintptr {
	return *(*uintptr)(unsafe.Pointer(&struct{ f F }{f}))
}
