package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
)

// The size of the terminal that Sonny is measured at, in cells.
const (
	terminalWidth  = 160
	terminalHeight = 48
)

// answersOfTerminal are a terminal's to what Sonny asks it at its start: frames can be
// held together, clusters are measured, a paste is in brackets, the background is dark.
const answersOfTerminal = "\x1b[?2026;2$y\x1b[?2027;2$y\x1b[?2004;2$y\x1b[?1004;2$y\x1b]11;rgb:1010/1010/1010\x07\x1b[?62;22c"

// lastQuestion ends the questions.
const lastQuestion = "\x1b[c"

// terminal is a program on a pseudo terminal. What it shows is not emulated: whoever waits
// for a text waits for its bytes, which costs next to nothing beside what is measured.
type terminal struct {
	cmd   *exec.Cmd
	file  *os.File
	began time.Time // just before the program was started

	mu      sync.Mutex // guards what follows
	out     []byte     // what was written since the last mark
	reads   []arrival  // of out
	quiet   time.Time  // when something came last
	changed chan struct{}
	ended   bool
	read    sync.WaitGroup
}

// arrival is when the bytes up to one had come.
type arrival struct {
	to int
	at time.Time
}

// openTerminal starts a program on a terminal that answers what it is asked.
func openTerminal(cmd *exec.Cmd) (*terminal, error) {
	t := &terminal{cmd: cmd, changed: make(chan struct{}), began: time.Now()}
	var err error
	t.file, err = pty.StartWithSize(cmd, &pty.Winsize{Rows: terminalHeight, Cols: terminalWidth})
	if err != nil {
		return nil, err
	}
	t.read.Go(t.take)
	return t, nil
}

// take reads until the program's end.
func (t *terminal) take() {
	buf := make([]byte, 64<<10)
	for asked := false; ; {
		n, err := t.file.Read(buf)
		now := time.Now()
		t.mu.Lock()
		t.out = append(t.out, buf[:n]...)
		t.reads = append(t.reads, arrival{len(t.out), now})
		answer := !asked && bytes.Contains(t.out, []byte(lastQuestion))
		t.quiet, t.ended = now, err != nil
		close(t.changed)
		t.changed = make(chan struct{})
		t.mu.Unlock()
		if answer {
			asked = true
			t.write(answersOfTerminal)
		}
		if err != nil {
			return
		}
	}
}

// write types, or pastes. An error is the program's end, which whoever waits finds.
func (t *terminal) write(s string) { _, _ = t.file.WriteString(s) }

// mark forgets what was written so far.
func (t *terminal) mark() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.out, t.reads = t.out[:0], t.reads[:0]
}

// written is how many bytes came since the mark.
func (t *terminal) written() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.out)
}

// when tells when a text had come whole, first after the mark; zero for not yet.
func (t *terminal) when(text string) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.seen(text)
}

func (t *terminal) seen(text string) time.Time {
	i := bytes.Index(t.out, []byte(text))
	if i < 0 {
		return time.Time{}
	}
	for _, r := range t.reads {
		if r.to >= i+len(text) {
			return r.at
		}
	}
	return time.Time{}
}

// patience bounds each wait for what is sure to come.
const patience = time.Minute

// await waits until a text has come since the mark, and tells when it had.
func (t *terminal) await(ctx context.Context, text string) (at time.Time, err error) {
	at, err = t.awaitFor(ctx, text, patience)
	if err == nil && at.IsZero() {
		t.mu.Lock()
		defer t.mu.Unlock()
		err = fmt.Errorf("%q did not come within %s; at last came %q", text, patience, t.out[max(0, len(t.out)-2000):])
	}
	return at, err
}

// awaitFor is await for so long; at is zero for a text that did not come.
func (t *terminal) awaitFor(ctx context.Context, text string, limit time.Duration) (at time.Time, err error) {
	late := time.NewTimer(limit)
	defer late.Stop()
	for {
		t.mu.Lock()
		at, next, ended := t.seen(text), t.changed, t.ended
		t.mu.Unlock()
		if !at.IsZero() {
			return at, nil
		}
		if ended {
			return at, fmt.Errorf("the program ended before it wrote %q", text)
		}
		select {
		case <-next:
		case <-late.C:
			return at, nil
		case <-ctx.Done():
			return at, ctx.Err()
		}
	}
}

// rest waits until nothing has come for a while.
func (t *terminal) rest(ctx context.Context, while time.Duration) error {
	for {
		t.mu.Lock()
		left, ended := while-time.Since(t.quiet), t.ended
		t.mu.Unlock()
		if ended {
			return errors.New("the program has ended")
		}
		if left <= 0 {
			return nil
		}
		if pause(ctx, left); ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// close ends the program as a closed window does, and waits for it.
func (t *terminal) close() error {
	t.cmd.Process.Signal(syscall.SIGHUP)
	killed := time.AfterFunc(10*time.Second, func() { t.cmd.Process.Kill() })
	err := t.cmd.Wait()
	if !killed.Stop() {
		return errors.New("the program did not end when its terminal went away")
	}
	t.file.Close()
	t.read.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil // its status is of the terminal that went away
	}
	return err
}
