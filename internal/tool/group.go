package tool

import (
	"os"
	"syscall"
)

// Group is a program with a process group of its own that is no call of a bot's:
// a companion of the daemon. It is safe for concurrent use; Finish is called
// once.
type Group struct{ process *process }

// StartGroup starts argv in dir with its standard input and its output, which
// the caller may close then. Nothing else that is open here is open there.
func StartGroup(argv, env []string, dir string, in, out *os.File) (*Group, error) {
	p, err := startProcess(argv, env, dir, []*os.File{in, out, out}, false, nil)
	if err != nil {
		return nil, err
	}
	return &Group{p}, nil
}

// PID is the number of the program and of its group. It is nobody else's until
// Finish.
func (g *Group) PID() int { return g.process.pid }

// Ended is closed once the program has ended; the rest of its group may live.
func (g *Group) Ended() <-chan struct{} { return g.process.ended }

// Signal sends sig to all of the group until Finish.
func (g *Group) Signal(sig syscall.Signal) { g.process.signalGroup(sig) }

// Finish kills what is left of the group, waits for the program's end and says
// how it ended.
func (g *Group) Finish() syscall.WaitStatus { return g.process.finish() }
