package screen

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/edit"
	"agent/internal/sonny/screen/human"
	"agent/internal/sonny/screen/outbox"
	"agent/protocol"
)

// keptOutput is how much of a command's output is kept, in bytes: its end.
const keptOutput = 64 << 10

// shell is a command of the person's, run outside any bot (sonny.md 10.1).
type shell struct {
	command string
	send    bool // its output goes out when it ends
	tr      *cells.Transcript
	cell    *cells.Cell
	stop    context.CancelFunc
	ended   bool

	mu      sync.Mutex // guards what follows, which the command's reader writes
	tail    []byte
	dropped int
	told    bool // the loop will look
}

// bang runs what was typed after the exclamation mark.
func (a *App) bang() {
	c := a.composing()
	typed := c.Text()
	words := c.after()
	switch {
	case !a.o.Bang:
		a.notes.say("tui.bang is off; a leading space sends this as a message")
		return
	case words == "":
		return
	case a.shell != nil && !a.shell.ended:
		a.notes.say("a command of yours still runs; Esc ends it")
		return
	}
	s, dir := a.at(), a.workspace(a.at())
	tr := a.transcript()
	ctx, stop := context.WithCancel(a.ctx)
	sh := &shell{command: words, send: strings.HasPrefix(typed, "!!"), tr: tr, cell: tr.Shell(words), stop: stop}
	a.shell = sh
	f, begin := a.out.Run(&c.Box)
	if s != nil {
		s.up = 0
	}
	do(a, func(context.Context) (string, error) {
		unbegun := begin()
		defer os.Remove(unbegun)
		outbox.Instant("running")
		return a.runShell(ctx, sh, dir, unbegun)
	}, func(how string, err error) {
		stop()
		a.out.Over(f)
		sh.ended = true
		sh.show()
		tr.ShellEnded(sh.cell, how)
		if err != nil {
			a.notes.fail(err)
			return
		}
		a.offerOutput(s, c, sh)
	})
}

// transcript is where a cell of the person's own goes.
func (a *App) transcript() *cells.Transcript {
	if s := a.at(); s != nil {
		return s.tr
	}
	if a.start.tr == nil {
		a.start.tr = cells.New(a.o.Markdown)
		a.start.tr.Now = a.o.Clock
	}
	return a.start.tr
}

// offerOutput offers a command's output to the next message, or sends it.
func (a *App) offerOutput(s *session, c *composer, sh *shell) {
	if s == nil && a.session != nil { // the lead was made meanwhile
		s, c = a.session, &a.session.compose
	}
	if !sh.send || s == nil {
		c.offer = sh
		return
	}
	a.out.Post(&c.Box, outbox.Of(edit.Draft{Parts: []edit.Part{{Text: sh.report()}}}), false)
}

// takeOffer puts a command's output into the message. It reports whether there was one.
func (a *App) takeOffer() bool {
	c := a.composing()
	if c.offer == nil {
		return false
	}
	n := len(strings.Split(strings.TrimRight(string(c.offer.tail), "\n"), "\n"))
	c.Editor().AddChip(edit.Chip{
		Kind: edit.PasteChip, Text: c.offer.report(),
		Label: fmt.Sprintf("[output of %s, %s]", c.offer.command, human.Count(n, "line", "lines")),
	})
	c.offer = nil
	return true
}

// report is the output as a message holds it.
func (sh *shell) report() string {
	out, dropped := sh.output()
	head := "I ran `" + sh.command + "`"
	if how := sh.cell.How; how != "" {
		head += " (" + how + ")"
	}
	if dropped > 0 {
		head += fmt.Sprintf("; the end of its output, %d bytes before it are left out", dropped)
	}
	return head + ":\n\n````\n" + strings.TrimRight(out, "\n") + "\n````\n"
}

func (sh *shell) output() (string, int) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return strings.ToValidUTF8(string(sh.tail), "\uFFFD"), sh.dropped
}

func (sh *shell) show() {
	sh.mu.Lock()
	sh.told = false
	sh.mu.Unlock()
	out, dropped := sh.output()
	sh.tr.ShellOutput(sh.cell, out, dropped)
}

// beginOnce is the script that runs a command where it can take the file away that says
// that it has not begun.
const beginOnce = `rm -- "$0" && exec "$1" -c "$2"`

// runShell runs the command in a process group of its own and says how it ended, "" for
// well. It ends with ctx: what it started is hung up. unbegun is the file that the command
// takes away when it begins; "" for none.
func (a *App) runShell(ctx context.Context, sh *shell, dir, unbegun string) (string, error) {
	if info, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return "", protocol.Fail(protocol.WorkspaceUnavailable, "the folder "+dir+" is gone: no command can run there; make it again, or open Sonny in another")
	}
	name := os.Getenv("SHELL")
	if name == "" {
		name = "/bin/sh"
	}
	cmd := exec.CommandContext(ctx, name, "-c", sh.command)
	if unbegun != "" {
		cmd = exec.CommandContext(ctx, "/bin/sh", "-c", beginOnce, unbegun, name, sh.command)
	}
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	w := io.Writer(&shellOutput{a: a, sh: sh})
	cmd.Stdout, cmd.Stderr = w, w
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return "ended by you", nil
	case errors.As(err, &exit):
		return exit.ProcessState.String(), nil
	case errors.Is(err, exec.ErrWaitDelay): // something it started keeps its output
		return "", nil
	}
	return "", err
}

// shellOutput takes a command's output and has the loop show it, once at a time.
type shellOutput struct {
	a  *App
	sh *shell
}

func (o *shellOutput) Write(b []byte) (int, error) {
	sh := o.sh
	sh.mu.Lock()
	sh.tail = append(sh.tail, b...)
	if over := len(sh.tail) - keptOutput; over > 0 {
		sh.tail, sh.dropped = append(sh.tail[:0], sh.tail[over:]...), sh.dropped+over
	}
	told := sh.told
	sh.told = true
	sh.mu.Unlock()
	if told {
		return len(b), nil
	}
	select {
	case o.a.calls <- sh.show:
	case <-o.a.ctx.Done():
	}
	return len(b), nil
}
