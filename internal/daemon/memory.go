package daemon

import (
	"runtime/debug"
	"time"
)

// quietAfter is how long nothing runs before memory is given back: long enough
// that a person who goes on talking never pays for it.
const quietAfter = 5 * time.Second

// armQuiet has memory given back after the last turn that ran has ended.
func (d *Daemon) armQuiet() {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closing:
	case d.quiet == nil:
		d.quiet = time.AfterFunc(quietAfter, d.quietOver)
	default:
		d.quiet.Reset(quietAfter)
	}
}

func (d *Daemon) quietOver() {
	if d.engine.LiveTurns() > 0 {
		return // its end arms the timer again
	}
	debug.FreeOSMemory()
	releaseProgram()
}
