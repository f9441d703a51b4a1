package tool

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// Group is a program with a process group of its own that is no call of a bot's:
// a companion of the daemon. It is safe for concurrent use; Finish is called
// once.
type Group struct{ process *process }

// A group is held back until its starter lets it go: its process is the daemon's
// own program first, which waits on a pipe and then becomes the program. A daemon
// that is killed meanwhile closes the pipe, and what it held ends. So no program
// runs that its starter could not write down.
const (
	heldGo     = 3 // where a held process reads that it may go on
	heldFailed = 4 // where it writes why it did not become the program
)

// heldTime bounds how long a held process takes to become the program.
const heldTime = 20 * time.Second

// StartGroup starts argv in dir with its standard input and its output, which
// the caller may close then. Nothing else that is open here is open there. self is
// this program, whose main function knows HelperMain. before is called with the
// number of the process while it is held: a starter that is killed before it
// returned leaves nothing behind that runs.
func StartGroup(self string, argv, env []string, dir string, in, out *os.File, before func(pid int)) (*Group, error) {
	waits, lets, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer lets.Close()
	said, says, err := os.Pipe()
	if err != nil {
		waits.Close()
		return nil, err
	}
	defer said.Close()
	held := append([]string{self, verbHeld}, argv...)
	p, err := startProcess(held, append(slices.Clone(env), helperMark), dir, []*os.File{in, out, out, waits, says}, false, nil)
	waits.Close()
	says.Close()
	if err != nil {
		return nil, err
	}
	before(p.pid)
	if err := letGo(lets, said); err != nil {
		p.finish()
		return nil, err
	}
	return &Group{p}, nil
}

// letGo has a held process become its program, and says why it did not.
func letGo(lets io.Writer, said *os.File) error {
	if err := said.SetReadDeadline(time.Now().Add(heldTime)); err != nil {
		return err
	}
	if _, err := lets.Write([]byte{1}); err != nil {
		return fmt.Errorf("it ended before it could be let go: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(said, 16)) // ends where the program begins
	if err != nil {
		return err
	}
	if len(text) == 0 {
		return nil
	}
	number, err := strconv.Atoi(string(text))
	if err != nil {
		return fmt.Errorf("it said %q", text)
	}
	return syscall.Errno(number)
}

// heldMain is a held process: it becomes the program of args once it may.
func heldMain(args []string) int {
	syscall.CloseOnExec(heldGo)
	syscall.CloseOnExec(heldFailed)
	lets := os.NewFile(heldGo, "go")
	if n, _ := lets.Read(make([]byte, 1)); n != 1 {
		return exitFailed // who held it is gone
	}
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return v == helperMark })
	err := syscall.Exec(args[0], args, env)
	var number syscall.Errno
	if errors.As(err, &number) {
		fmt.Fprint(os.NewFile(heldFailed, "failed"), int(number))
	}
	return exitFailed
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
