package store

import (
	"sync"
	"testing"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// opened is the newest connection's handle.
var opened uintptr

func noteOpened(_ *libc.TLS, db, _, _ uintptr) int32 { opened = db; return lib.SQLITE_OK }

var watchOpened = sync.OnceFunc(func() {
	tls := libc.NewTLS()
	defer tls.Close()
	lib.Xsqlite3_auto_extension(tls, functionPointer(noteOpened))
})

// TestPlansAreKept: a statement is prepared once, whatever is bound to it.
func TestPlansAreKept(t *testing.T) {
	watchOpened()
	s := mustOpen(t, Options{Path: storePath(t)})
	newBots(t, s, "Ada", "Bob")
	c, err := connect(s.path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	db := opened
	for _, bot := range []string{"Ada", "Bob", "Ada"} {
		for i := range int64(4) {
			if _, err := NewestSteer(c, bot); err != nil {
				t.Fatal(err)
			}
			if err := Steers(c, bot, i, 10+i, int(2+i), func(*Turn) bool { return true }); err != nil {
				t.Fatal(err)
			}
			if err := Turns(c, bot, i, int(1+i), func(*Turn) bool { return true }); err != nil {
				t.Fatal(err)
			}
			if _, err := QueuedHead(c, bot); err != nil {
				t.Fatal(err)
			}
		}
	}
	tls := libc.NewTLS()
	defer tls.Close()
	statements := 0
	for p := lib.Xsqlite3_next_stmt(tls, db, 0); p != 0; p = lib.Xsqlite3_next_stmt(tls, db, p) {
		statements++
		if n := lib.Xsqlite3_stmt_status(tls, p, lib.SQLITE_STMTSTATUS_REPREPARE, 0); n != 0 {
			t.Errorf("a statement was prepared %d times more: %s", n, libc.GoString(lib.Xsqlite3_sql(tls, p)))
		}
	}
	if statements < 4 {
		t.Errorf("%d statements were looked at", statements)
	}
}
