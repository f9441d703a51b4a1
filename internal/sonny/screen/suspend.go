package screen

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// stopWait is how long a stop may take to happen. A program that nobody could continue
// is not stopped at all, and goes on after it.
const stopWait = 500 * time.Millisecond

// suspend gives the terminal back and stops the program until it is continued.
func (a *App) suspend() {
	a.o.Term.Suspend()
	stopJob()
	if err := a.o.Term.Resume(); err != nil {
		a.quit = true
	}
}

// stopJob stops the whole job, as the terminal would, and returns when it is continued. The
// signal alone is not waited for: the program still runs a moment after it was sent.
func stopJob() {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	_ = syscall.Kill(0, syscall.SIGTSTP)
	select {
	case <-continued:
	case <-time.After(stopWait):
	}
}
