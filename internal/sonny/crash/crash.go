// Package crash sees to it that a crash of Sonny gives the terminal back before anything
// is printed, and leaves a report that holds nothing that was said (sonny.md 7.3).
package crash

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"agent/internal/place"
)

// restoreMost is how long giving the terminal back may take.
const restoreMost = 3 * time.Second

// Guard is what is done about a crash. Its methods may be called by any goroutine; the
// first crash is reported, and ends the process.
type Guard struct {
	Dir     string    // where reports go, a private folder
	Version string    // of the program
	Out     io.Writer // where the report's path is printed, once the terminal is given back
	Restore func()    // gives the terminal back
	Exit    func(int) // ends the process; nil: os.Exit

	once sync.Once
}

// Catch is to be deferred first in each goroutine of the screen: it reports a panic of
// that goroutine.
func (g *Guard) Catch() {
	if v := recover(); v != nil {
		g.crashed(kind(v), debug.Stack())
	}
}

// kind names a panic without what it says, which may be of a message: but what the
// runtime itself found, since that holds numbers and types alone.
func kind(v any) string {
	if fault, ok := v.(runtime.Error); ok {
		return "panic: " + fault.Error()
	}
	return fmt.Sprintf("panic with a %T", v)
}

// faults are the signals of a program that is broken, where somebody sends them. Those
// that the program's own code causes are panics.
var faults = []os.Signal{syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGILL, syscall.SIGABRT}

// Watch reports a signal of a fault until stop is called, which waits for its goroutine.
func (g *Guard) Watch() (stop func()) {
	signals, quit, done := make(chan os.Signal, 1), make(chan struct{}), make(chan struct{})
	signal.Notify(signals, faults...)
	go func() {
		defer close(done)
		select {
		case s := <-signals:
			g.crashed("signal: "+s.String(), everyStack())
		case <-quit:
		}
	}()
	return func() {
		signal.Stop(signals)
		close(quit)
		<-done
	}
}

// maxStacks bounds the stacks in a report, in bytes.
const maxStacks = 1 << 20

func everyStack() []byte {
	buf := make([]byte, maxStacks)
	return buf[:runtime.Stack(buf, true)]
}

// crashed gives the terminal back, writes the report, says where it is, and ends.
func (g *Guard) crashed(what string, stack []byte) {
	g.once.Do(func() {
		g.restore()
		path, err := g.report(what, stack)
		if err != nil {
			fmt.Fprintf(g.Out, "sonny crashed (%s), and no report could be written: %v\n", what, err)
		} else {
			fmt.Fprintf(g.Out, "sonny crashed; bots go on without it. The report is %s; it holds nothing that was said.\n", path)
		}
		exit := g.Exit
		if exit == nil {
			exit = os.Exit
		}
		exit(1)
	})
}

// restore waits for the terminal to be given back, but not for ever: what crashed may be
// what gives it back.
func (g *Guard) restore() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }() // there is nothing more to be done for it
		g.Restore()
	}()
	select {
	case <-done:
	case <-time.After(restoreMost):
	}
}

// report writes what is known: the kind of the crash, and where the program was. A stack
// has the addresses of texts and never the texts.
func (g *Guard) report(what string, stack []byte) (path string, err error) {
	if err := place.MakePrivateDir(g.Dir); err != nil {
		return "", err
	}
	now := time.Now().UTC()
	var b bytes.Buffer
	fmt.Fprintf(&b, "sonny %s on %s/%s, %s\n%s\n\n%s", g.Version, runtime.GOOS, runtime.GOARCH, now.Format(time.RFC3339), what, stack)
	path = filepath.Join(g.Dir, fmt.Sprintf("crash-%s-%d.txt", now.Format("20060102-150405"), os.Getpid()))
	return path, place.WritePrivate(path, b.Bytes())
}
