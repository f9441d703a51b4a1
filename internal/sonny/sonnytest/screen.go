package sonnytest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// Terminal is what an emulated terminal is like. It answers the usual queries (device
// attributes, cursor position, colours, modes).
type Terminal struct {
	Width, Height int
	Name          string // what TERM says; "" is xterm-256color
	Background    string // #rrggbb, what OSC 11 is answered; "" answers nothing
	Synchronized  bool   // knows mode 2026: a frame shows when it is whole
	Graphemes     bool   // knows mode 2027
}

// Screen is a program at an emulated terminal inside the test. What the program writes
// is on the screen as soon as it is read; each wait is woken by it.
type Screen struct {
	t    testing.TB
	like Terminal
	cmd  *exec.Cmd
	pty  interface{ Close() error }
	in   *outbox

	mu      sync.Mutex // guards what follows, the emulator's state with it
	emu     *vt.Emulator
	raw     []byte
	title   string
	changed chan struct{} // closed and made anew when something has changed
	ended   bool
	resize  func(width, height int) error

	owned sync.WaitGroup // the goroutines, which end with the program
}

// Screen starts a program of the home at an emulated terminal. It is killed at the
// test's end.
func (h *Home) Screen(like Terminal, name string, args ...string) *Screen {
	h.t.Helper()
	s := &Screen{t: h.t, like: like, emu: vt.NewEmulator(like.Width, like.Height), changed: make(chan struct{})}
	s.prepare()
	s.cmd = h.With("TERM="+cmp.Or(like.Name, "xterm-256color"), "COLORTERM=truecolor").command(context.Background(), name, args...)
	blocking, err := pty.StartWithSize(s.cmd, &pty.Winsize{Rows: uint16(like.Height), Cols: uint16(like.Width)})
	if err != nil {
		h.t.Fatal(err)
	}
	f, err := closable(blocking)
	if err != nil {
		h.t.Fatal(err)
	}
	s.pty, s.in = f, newOutbox(f)
	s.resize = func(width, height int) error {
		return pty.Setsize(f, &pty.Winsize{Rows: uint16(height), Cols: uint16(width)})
	}
	s.owned.Go(func() { s.read(f) })
	s.owned.Go(func() { io.Copy(s.in, s.emu) }) // the answers to queries
	s.owned.Go(s.in.drain)
	h.t.Cleanup(s.end)
	return s
}

// closable is the same file in a form whose Close ends a Read that is under way, which
// a terminal's own does not. It takes the place of f, which is closed.
func closable(f *os.File) (*os.File, error) {
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// prepare makes the emulator the terminal that is wanted.
func (s *Screen) prepare() {
	s.emu.SetCallbacks(vt.Callbacks{Title: func(title string) { s.title = title }})
	if s.like.Background == "" {
		s.emu.RegisterOscHandler(11, func(data []byte) bool { return bytes.HasSuffix(data, []byte(";?")) })
	} else {
		s.emu.SetDefaultBackgroundColor(ansi.XParseColor(s.like.Background))
	}
	known := map[int]bool{2026: s.like.Synchronized, 2027: s.like.Graphemes}
	for mode, is := range known {
		if is {
			fmt.Fprintf(s.emu, "\x1b[?%dl", mode) // a mode that was once reset is reported as known
		}
	}
	s.emu.RegisterCsiHandler(ansi.Command('?', '$', 'p'), func(params ansi.Params) bool {
		mode, _, _ := params.Param(0, 0)
		is, ours := known[mode]
		if !ours || is {
			return false
		}
		io.WriteString(s.emu.InputPipe(), ansi.ReportMode(ansi.DECMode(mode), ansi.ModeNotRecognized))
		return true
	})
}

// maxFrame bounds what is kept back of a frame that does not end, in bytes.
const maxFrame = 4 << 20

// read puts what the program writes on the screen, until its terminal is closed.
func (s *Screen) read(f *os.File) {
	buf := make([]byte, 256<<10)
	var frame []byte
	for {
		n, err := gather(f, buf)
		frame = append(frame, buf[:n]...)
		if err == nil && s.unfinished(frame) {
			continue
		}
		s.mu.Lock()
		s.raw = append(s.raw, frame...)
		s.emu.Write(frame)
		s.ended = err != nil
		s.tell()
		s.mu.Unlock()
		frame = frame[:0]
		if err != nil {
			s.emu.InputPipe().(io.Closer).Close() // no answer is wanted any more
			s.in.Close()
			return
		}
	}
}

// gather reads what is there once something is. A terminal gives at most 4 KiB at a
// time, and a character of several parts must not be drawn in two: after a byte that
// may be in the middle of one it waits for more a while.
func gather(f *os.File, buf []byte) (n int, err error) {
	f.SetReadDeadline(time.Time{})
	n, err = f.Read(buf)
	for range 64 {
		if err != nil || n == len(buf) {
			break
		}
		pause := time.Millisecond
		if n > 0 && buf[n-1] >= utf8.RuneSelf {
			pause = 200 * time.Millisecond
		}
		var more int
		f.SetReadDeadline(time.Now().Add(pause))
		more, err = f.Read(buf[n:])
		n += more
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return n, nil
		}
	}
	return n, err
}

// unfinished reports whether a synchronized frame has begun and not ended: a terminal
// that knows mode 2026 shows nothing of it yet.
func (s *Screen) unfinished(frame []byte) bool {
	begun := bytes.LastIndex(frame, []byte("\x1b[?2026h"))
	return s.like.Synchronized && begun > bytes.LastIndex(frame, []byte("\x1b[?2026l")) && len(frame) < maxFrame
}

// tell wakes who waits; s.mu is held.
func (s *Screen) tell() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// locked calls f with the emulator to itself.
func (s *Screen) locked(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// Type types a text, a key for each character.
func (s *Screen) Type(text string) { s.write(text) }

// write takes the way of what the emulator sends by itself, so that nothing is overtaken.
func (s *Screen) write(bytes string) { io.WriteString(s.emu.InputPipe(), bytes) }

// Keys presses keys by tmux's names, as Tmux.Keys does.
func (s *Screen) Keys(names ...string) {
	s.t.Helper()
	for _, name := range names {
		seq, err := keySequence(name)
		if err != nil {
			s.t.Fatal(err)
		}
		s.write(seq)
	}
}

// Paste pastes a text, in brackets where the program has asked for them. Its line
// breaks come as carriage returns, as from most terminals.
func (s *Screen) Paste(text string) {
	s.locked(func() { s.emu.Paste(strings.ReplaceAll(text, "\n", "\r")) })
}

// Focus gives the terminal the focus or takes it away, which a program hears of that
// has asked for it.
func (s *Screen) Focus(on bool) {
	s.locked(func() {
		if on {
			s.emu.Focus()
		} else {
			s.emu.Blur()
		}
	})
}

// Click presses and lets go the left button on a cell, counted from 0, for a program
// that has asked for the mouse.
func (s *Screen) Click(x, y int) { s.Drag(x, y, x, y) }

// Drag presses the left button on one cell and lets it go on another.
func (s *Screen) Drag(x, y, toX, toY int) {
	at := uv.Mouse{X: x, Y: y, Button: uv.MouseLeft}
	to := uv.Mouse{X: toX, Y: toY, Button: uv.MouseLeft}
	s.locked(func() {
		s.emu.SendMouse(uv.MouseClickEvent(at))
		if at != to {
			s.emu.SendMouse(uv.MouseMotionEvent(to))
		}
		s.emu.SendMouse(uv.MouseReleaseEvent(to))
	})
}

// Wheel turns the wheel over a cell by so many steps, up when negative.
func (s *Screen) Wheel(x, y, steps int) {
	m := uv.Mouse{X: x, Y: y, Button: uv.MouseWheelDown}
	if steps < 0 {
		m.Button, steps = uv.MouseWheelUp, -steps
	}
	s.locked(func() {
		for range steps {
			s.emu.SendMouse(uv.MouseWheelEvent(m))
		}
	})
}

// Resize gives the terminal another size, which the program hears of.
func (s *Screen) Resize(width, height int) {
	s.t.Helper()
	s.locked(func() {
		s.emu.Resize(width, height)
		if err := s.resize(width, height); err != nil {
			s.t.Fatal(err)
		}
	})
}

// Capture is the text on the screen, a line for each row without the spaces at its end.
func (s *Screen) Capture() (text string) {
	s.locked(func() { text = s.text() })
	return text
}

func (s *Screen) text() string {
	rows := make([]string, s.emu.Height())
	for y := range rows {
		var row strings.Builder
		for x := 0; x < s.emu.Width(); {
			cell := s.emu.CellAt(x, y)
			if cell == nil || cell.Width < 1 {
				row.WriteByte(' ')
				x++
				continue
			}
			row.WriteString(cell.Content)
			x += cell.Width
		}
		rows[y] = strings.TrimRight(row.String(), " ")
	}
	return strings.Join(rows, "\n")
}

// CaptureEsc is Capture with the escape sequences that give it its colours.
func (s *Screen) CaptureEsc() (text string) {
	s.locked(func() { text = s.emu.Render() })
	rows := strings.Split(text, "\n")
	for y := range rows {
		rows[y] = strings.TrimRight(rows[y], " ")
	}
	return strings.Join(rows, "\n")
}

// Cell is one cell of the screen with its style, counted from 0; it is a copy.
func (s *Screen) Cell(x, y int) (cell uv.Cell) {
	s.locked(func() {
		if c := s.emu.CellAt(x, y); c != nil {
			cell = *c
		}
	})
	return cell
}

// History is what has scrolled off the top of the normal screen, and the screen.
func (s *Screen) History() (text string) {
	s.locked(func() {
		var lines []string
		for _, line := range s.emu.Scrollback().Lines() {
			lines = append(lines, strings.TrimRight(line.String(), " "))
		}
		text = strings.Join(append(lines, s.text()), "\n")
	})
	return text
}

// Cursor is the column and row of the cursor, from 0, and whether it is shown.
func (s *Screen) Cursor() (x, y int, shown bool) {
	s.locked(func() {
		at := s.emu.CursorPosition()
		x, y, shown = at.X, at.Y, !s.emu.CursorHidden()
	})
	return x, y, shown
}

// Title is the title that the program has set.
func (s *Screen) Title() (title string) {
	s.locked(func() { title = s.title })
	return title
}

// Alternate reports whether the program draws on the alternate screen.
func (s *Screen) Alternate() (on bool) {
	s.locked(func() { on = s.emu.IsAltScreen() })
	return on
}

// Raw is every byte that the program has written so far; it is a copy.
func (s *Screen) Raw() (raw []byte) {
	s.locked(func() { raw = bytes.Clone(s.raw) })
	return raw
}

// WaitFor waits until the screen contains a text.
func (s *Screen) WaitFor(text string) {
	s.t.Helper()
	s.Until(fmt.Sprintf("%q on the screen", text), func(screen string) bool { return strings.Contains(screen, text) })
}

// WaitGone waits until the screen does not contain a text.
func (s *Screen) WaitGone(text string) {
	s.t.Helper()
	s.Until(fmt.Sprintf("a screen without %q", text), func(screen string) bool { return !strings.Contains(screen, text) })
}

// WaitRaw waits until the program has written certain bytes, after the first from of
// them, and returns how many it had written by then.
func (s *Screen) WaitRaw(from int, what string) (written int) {
	s.t.Helper()
	s.wait(fmt.Sprintf("%q in what is written", what), func() bool {
		written = len(s.raw)
		return strings.Contains(string(s.raw[from:]), what)
	})
	return written
}

// Until waits for a condition on the screen's text. It must not use the Screen itself.
func (s *Screen) Until(what string, holds func(screen string) bool) {
	s.t.Helper()
	s.wait(what, func() bool { return holds(s.text()) })
}

func (s *Screen) wait(what string, holds func() bool) {
	s.t.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		s.mu.Lock()
		good, ended, next := holds(), s.ended, s.changed
		s.mu.Unlock()
		if good {
			return
		}
		if ended {
			s.t.Fatalf("%s did not come, and the program has ended:\n%s", what, s.Capture())
		}
		select {
		case <-next:
		case <-late.C:
			s.t.Fatalf("%s did not come within %s:\n%s", what, patience, s.Capture())
		}
	}
}

// PID is the process of the program.
func (s *Screen) PID() int { return s.cmd.Process.Pid }

// Exit waits for the program's end and returns its status, -1 when a signal ended it.
func (s *Screen) Exit() int {
	s.t.Helper()
	s.wait("the program's end", func() bool { return s.ended })
	s.reap()
	return s.cmd.ProcessState.ExitCode()
}

// Kill ends the program as a crash would, and waits for its end.
func (s *Screen) Kill() {
	s.cmd.Process.Kill()
	s.reap()
}

// Hangup takes the terminal away, as a closed window does, and waits for the program's
// end.
func (s *Screen) Hangup() {
	s.pty.Close()
	s.reap()
}

// reap waits for the process; only the first call has to.
func (s *Screen) reap() {
	var exit *exec.ExitError
	if s.cmd.ProcessState != nil {
		return
	}
	if err := s.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		s.t.Error(err)
	}
}

func (s *Screen) end() {
	if s.cmd.ProcessState == nil {
		s.cmd.Process.Signal(syscall.SIGKILL)
		s.reap()
	}
	s.pty.Close()
	s.in.Close()
	s.owned.Wait()
}
