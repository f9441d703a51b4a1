package sonnytest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Tmux is a private tmux server with one pane, in which a program runs. Its keys and
// its screen are tmux's. It is ended with its server at the test's end.
type Tmux struct {
	t      testing.TB
	h      *Home
	socket string
}

// Tmux starts a program of the home in a pane of so many cells. The pane stays when the
// program has ended (Exit).
func (h *Home) Tmux(width, height int, name string, args ...string) *Tmux {
	h.t.Helper()
	dir, err := os.MkdirTemp(h.root, "t")
	if err != nil {
		h.t.Fatal(err)
	}
	m := &Tmux{t: h.t, h: h, socket: filepath.Join(dir, "s")}
	h.t.Cleanup(m.end)
	line := []string{
		"start-server", ";", "set-option", "-g", "default-terminal", "tmux-256color", ";",
		// Words about the end would scroll the first row away.
		"set-option", "-g", "remain-on-exit", "on", ";", "set-option", "-g", "-q", "remain-on-exit-format", "", ";", "set-option", "-g", "history-limit", "20000", ";",
		"set-option", "-g", "escape-time", "0", ";", "set-option", "-s", "set-clipboard", "on", ";",
		"new-session", "-d", "-x", strconv.Itoa(width), "-y", strconv.Itoa(height), "-c", h.cwd, "--", name,
	}
	for _, arg := range args {
		line = append(line, quoted(arg))
	}
	m.Run(line...)
	return m
}

// quoted keeps tmux from taking the end of an argument for the end of its command.
func quoted(arg string) string {
	if plain, cut := strings.CutSuffix(arg, ";"); cut {
		return plain + `\;`
	}
	return arg
}

// Run runs a tmux command on the server and returns what it printed.
func (m *Tmux) Run(args ...string) string {
	m.t.Helper()
	return m.feed("", args...)
}

func (m *Tmux) feed(stdin string, args ...string) string {
	m.t.Helper()
	r := m.h.Feed(stdin, "tmux", append([]string{"-S", m.socket, "-f", "/dev/null"}, args...)...)
	if r.Exit != 0 {
		m.t.Fatalf("tmux %s: exit %d: %s", strings.Join(args, " "), r.Exit, r.Stderr)
	}
	return r.Stdout
}

// Format is what tmux puts in the place of a format, like #{pane_title}.
func (m *Tmux) Format(format string) string {
	m.t.Helper()
	return strings.TrimSuffix(m.Run("display-message", "-p", format), "\n")
}

// Type types a text, a key for each character.
func (m *Tmux) Type(text string) {
	m.t.Helper()
	m.Run("send-keys", "-l", "--", quoted(text))
}

// Keys presses keys by tmux's names: Enter, Escape, Tab, BTab, Up, C-c, M-a, S-Left.
func (m *Tmux) Keys(names ...string) {
	m.t.Helper()
	for i, name := range names {
		names[i] = quoted(name)
	}
	m.Run(append([]string{"send-keys", "--"}, names...)...)
}

// Paste pastes a text, in brackets where the program has asked for them. Its line
// breaks come as carriage returns, as from most terminals.
func (m *Tmux) Paste(text string) {
	m.t.Helper()
	m.feed(text, "load-buffer", "-b", "paste", "-")
	m.Run("paste-buffer", "-p", "-d", "-b", "paste")
}

// Capture is the text on the screen, a line for each row without the spaces at its end.
func (m *Tmux) Capture() string { m.t.Helper(); return m.capture() }

// CaptureEsc is Capture with the escape sequences that give it its colours.
func (m *Tmux) CaptureEsc() string { m.t.Helper(); return m.capture("-e") }

// History is what has scrolled off the top, and the screen.
func (m *Tmux) History() string { m.t.Helper(); return m.capture("-S", "-") }

func (m *Tmux) capture(args ...string) string {
	m.t.Helper()
	return strings.TrimSuffix(m.Run(append([]string{"capture-pane", "-p"}, args...)...), "\n")
}

// Cursor is the column and row of the cursor, from 0, and whether it is shown.
func (m *Tmux) Cursor() (x, y int, shown bool) {
	m.t.Helper()
	flag := 0
	if _, err := fmt.Sscan(m.Format("#{cursor_x} #{cursor_y} #{cursor_flag}"), &x, &y, &flag); err != nil {
		m.t.Fatal(err)
	}
	return x, y, flag == 1
}

// Title is the title that the program has set.
func (m *Tmux) Title() string { m.t.Helper(); return m.Format("#{pane_title}") }

// Resize gives the pane another size, which the program hears of.
func (m *Tmux) Resize(width, height int) {
	m.t.Helper()
	m.Run("resize-window", "-x", strconv.Itoa(width), "-y", strconv.Itoa(height))
}

// WaitFor waits until the screen contains a text.
func (m *Tmux) WaitFor(text string) {
	m.t.Helper()
	m.until(fmt.Sprintf("%q on the screen", text), func() bool { return strings.Contains(m.Capture(), text) })
}

// WaitGone waits until the screen does not contain a text.
func (m *Tmux) WaitGone(text string) {
	m.t.Helper()
	m.until(fmt.Sprintf("a screen without %q", text), func() bool { return !strings.Contains(m.Capture(), text) })
}

// Until waits for a condition on the screen.
func (m *Tmux) Until(what string, holds func(screen string) bool) {
	m.t.Helper()
	m.until(what, func() bool { return holds(m.Capture()) })
}

func (m *Tmux) until(what string, holds func() bool) {
	m.t.Helper()
	if !poll(patience, holds) {
		m.t.Fatalf("%s did not come within %s:\n%s", what, patience, m.Capture())
	}
}

// Stty is what stty -a says of the pane's terminal: compared before and after, whether a
// program has put everything back.
func (m *Tmux) Stty() string {
	m.t.Helper()
	tty, err := os.OpenFile(m.Format("#{pane_tty}"), os.O_RDONLY|syscall.O_NOCTTY, 0)
	if err != nil {
		m.t.Fatal(err)
	}
	defer tty.Close()
	cmd := exec.Command("stty", "-a")
	cmd.Stdin = tty
	out, err := cmd.Output()
	if err != nil {
		m.t.Fatalf("stty: %v", err)
	}
	return string(out)
}

// PID is the process of the program in the pane.
func (m *Tmux) PID() int {
	m.t.Helper()
	pid, err := strconv.Atoi(m.Format("#{pane_pid}"))
	if err != nil {
		m.t.Fatal(err)
	}
	return pid
}

// Exit waits for the program's end and returns its status, -1 when a signal ended it.
// tmux knows that a pane is dead a moment before it knows how the program ended. Some
// versions miss the signal of that end now and then, so that it is sent once more.
func (m *Tmux) Exit() int {
	m.t.Helper()
	status, signal := "", ""
	m.until("the program's end", func() bool {
		status, signal, _ = strings.Cut(m.Format("#{pane_dead_status}|#{pane_dead_signal}"), "|")
		if m.Format("#{pane_dead}") != "1" {
			return false
		}
		if status+signal == "" {
			syscall.Kill(m.server(), syscall.SIGCHLD)
		}
		return status+signal != ""
	})
	if signal != "" {
		return -1
	}
	n, err := strconv.Atoi(status)
	if err != nil {
		m.t.Fatalf("tmux gives the status %q", status)
	}
	return n
}

// server is the process of the tmux server.
func (m *Tmux) server() int {
	m.t.Helper()
	pid, err := strconv.Atoi(m.Format("#{pid}"))
	if err != nil {
		m.t.Fatal(err)
	}
	return pid
}

// KillPane closes the pane as a person does, so that the program's terminal goes away.
// With its last pane the server goes too; nothing can be asked of it afterwards.
func (m *Tmux) KillPane() { m.t.Helper(); m.Run("kill-pane") }

// end ends the server; one that has no pane left has ended by itself.
func (m *Tmux) end() {
	m.h.Run("tmux", "-S", m.socket, "kill-server")
}
