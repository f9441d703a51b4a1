package term

import (
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"agent/internal/sonny/screen/text"

	"github.com/creack/pty"
	xterm "golang.org/x/term"
)

// modesAfter plays what was written and says which modes are on at its end.
func modesAfter(out string) map[string]bool {
	on := map[string]bool{}
	for part := range strings.SplitSeq(out, "\x1b[?") {
		i := strings.IndexAny(part, "hl")
		if i > 0 && strings.Trim(part[:i], "0123456789") == "" {
			on[part[:i]] = part[i] == 'h'
		}
	}
	return on
}

func TestEverythingIsRestored(t *testing.T) {
	for _, row := range []struct {
		name string
		end  func(g *glass)
	}{
		{"by Close", func(g *glass) { g.Close() }},
		{"by Close twice", func(g *glass) { g.Close(); g.Close() }},
		{"by Suspend", func(g *glass) { g.Suspend() }},
		{"by Close in the middle of drawing", func(g *glass) {
			for range 50 {
				g.Draw(screenOf(20, 3, "漢字", "b"))
			}
			g.Close()
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			g := open(t, 20, 3, func(o *Options) { o.Mouse = MouseUse{Wheel: true, Click: true, Select: true} })
			g.Terminal.mu.Lock()
			g.feats = Features{Answered: true, Sync: true, Unicode: true, Keyboard: true}
			g.grant()
			g.Terminal.mu.Unlock()
			g.Draw(screenOf(20, 3, "x"))
			g.Flush()
			if !g.em.IsAltScreen() {
				t.Fatal("the alternate screen is not on")
			}
			row.end(g)
			out := g.written()
			for mode, on := range modesAfter(out) {
				if on != (mode == "7" || mode == "25") {
					t.Errorf("mode %s is left %v", mode, on)
				}
			}
			if g.em.IsAltScreen() {
				t.Error("the alternate screen is left on")
			}
			pop, leave := strings.LastIndex(out, "\x1b[<u"), strings.LastIndex(out, "\x1b[?1049l")
			if pop < 0 || pop > leave || !strings.HasSuffix(out, "\x1b[23;0t") || strings.Count(out, "\x1b[>5u") != strings.Count(out, "\x1b[<u") {
				t.Errorf("the keyboard protocol or the title is not given back: %q", out)
			}
		})
	}
}

func TestResumeDrawsWhole(t *testing.T) {
	g := open(t, 20, 2)
	g.Draw(screenOf(20, 2, "before"))
	g.Suspend()
	g.Draw(screenOf(20, 2, "meanwhile"))
	g.written()
	if g.em.IsAltScreen() {
		t.Fatal("a frame was drawn while suspended")
	}
	if err := g.Resume(); err != nil {
		t.Fatal(err)
	}
	if got := g.rows()[0]; got != "meanwhile" || !g.em.IsAltScreen() {
		t.Fatalf("after resuming the screen shows %q", got)
	}
}

// onPty opens a terminal on one end of a pty and gives the other.
func onPty(t *testing.T) (*Terminal, *os.File, *os.File) {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		_, _ = io.Copy(io.Discard, master)
	}()
	t.Cleanup(func() {
		_ = slave.Close()
		_ = master.Close()
		<-drained
	})
	if err := pty.Setsize(master, &pty.Winsize{Rows: 24, Cols: 80}); err != nil {
		t.Fatal(err)
	}
	tm, err := Open(Options{In: slave, Out: slave, Resized: make(chan struct{}), Env: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tm.Close)
	return tm, master, slave
}

func stateOf(t *testing.T, f *os.File) xterm.State {
	t.Helper()
	s, err := xterm.GetState(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	return *s
}

func TestRawModeOfAPty(t *testing.T) {
	_, probe, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	cooked := stateOf(t, probe)
	_ = probe.Close()
	tm, master, slave := onPty(t)
	if stateOf(t, slave) == cooked {
		t.Fatal("the terminal is not raw")
	}
	if w, h, err := tm.Size(); w != 80 || h != 24 || err != nil {
		t.Fatalf("the size is %d×%d, %v", w, h, err)
	}
	if _, err := master.Write([]byte("\x03")); err != nil {
		t.Fatal(err)
	}
	if e := <-tm.Events(); e != key("ctrl+c") {
		t.Fatalf("the event is %#v", e)
	}
	tm.Suspend()
	if stateOf(t, slave) != cooked {
		t.Fatal("suspended, the terminal is still raw")
	}
	if err := tm.Resume(); err != nil {
		t.Fatal(err)
	}
	if _, err := master.Write([]byte("k")); err != nil {
		t.Fatal(err)
	}
	if e := <-tm.Events(); e != char("k") {
		t.Fatalf("resumed, the event is %#v", e)
	}
	tm.Close()
	if stateOf(t, slave) != cooked {
		t.Fatal("closed, the terminal is still raw")
	}
}

func TestTerminalThatGoesAwayIsClosed(t *testing.T) {
	r, w := io.Pipe()
	tm, err := Open(Options{In: r, Out: io.Discard, Resized: make(chan struct{}), Env: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	defer tm.Close()
	_, _ = w.Write([]byte("a"))
	_ = w.CloseWithError(io.ErrUnexpectedEOF)
	if e := <-tm.Events(); e != char("a") {
		t.Fatalf("the event is %#v", e)
	}
	if e := <-tm.Events(); e != (Closed{Err: io.ErrUnexpectedEOF}) {
		t.Fatalf("the last event is %#v", e)
	}
}

func TestOutputThatFailsIsClosed(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	tm, err := Open(Options{In: r, Out: broken{}, Resized: make(chan struct{}), Env: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	defer tm.Close()
	if e := <-tm.Events(); e != (Closed{Err: io.ErrClosedPipe}) {
		t.Fatalf("the event is %#v", e)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// history is the emulator's scrollback with the screen below it.
func (g *glass) history() []string {
	rows := g.rows()
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []string
	for _, l := range g.em.Scrollback().Lines() {
		all = append(all, strings.TrimRight(l.String(), " "))
	}
	return append(all, rows...)
}

func inlineMode(o *Options) { o.Inline = true; o.Mouse = MouseUse{Wheel: true} }

func TestInlineLinesStandOnceAboveTheRegion(t *testing.T) {
	g := open(t, 20, 6, inlineMode)
	var want []string
	for i := range 20 {
		s := strings.Repeat("x", i+1)
		want = append(want, s)
		g.Print([]text.Line{text.Of(text.Plain, s)})
		g.Draw(screenOf(20, 1+i%3, slices.Repeat([]string{"live"}, 1+i%3)...))
		g.Flush()
	}
	want = append(want, "live", "live")
	got := slices.DeleteFunc(g.history(), func(s string) bool { return s == "" })
	if !slices.Equal(got, want) {
		t.Fatalf("the terminal holds %q, not %q", got, want)
	}
	if x, _ := g.cursor(); x != 4 {
		t.Fatalf("the cursor stands in column %d", x)
	}
	out := g.written()
	if strings.Contains(out, "1049") || strings.Contains(out, "?1000h") || strings.Contains(out, "?1002h") || strings.Contains(out, "\x1b[2J") {
		t.Fatalf("the inline mode wrote %q", out)
	}
	g.Close()
	if got := slices.DeleteFunc(g.history(), func(s string) bool { return s == "" }); !slices.Equal(got, want[:20]) {
		t.Fatalf("after Close the terminal holds %q", got)
	}
}

func TestInlineRegionIsDiffed(t *testing.T) {
	g := open(t, 30, 6, inlineMode)
	g.Print([]text.Line{text.Of(text.Plain, "done")})
	g.Draw(screenOf(30, 3, "top", "middle", "bottom"))
	g.written()
	g.Draw(screenOf(30, 3, "top", "muddle", "bottom"))
	if out := g.written(); strings.Contains(out, "top") || strings.Contains(out, "bottom") || len(out) > 40 {
		t.Fatalf("one changed letter wrote %q", out)
	}
	if got := g.rows(); !slices.Equal(got, []string{"done", "top", "muddle", "bottom", "", ""}) {
		t.Fatalf("the screen shows %q", got)
	}
}

func TestInlineResizeKeepsEveryFinishedLine(t *testing.T) {
	g := open(t, 40, 12, inlineMode)
	var want []string
	for i := range 30 {
		s := "line " + strings.Repeat("i", i%7) + string(rune('A'+i))
		want = append(want, s)
		w := []int{40, 30, 50, 24, 40}[i/6]
		if i%6 == 0 {
			g.resize(w, 12)
			g.event()
		}
		g.Print([]text.Line{text.Of(text.Plain, s)})
		g.Draw(screenOf(w, 2, "live", "composer"))
		g.Flush()
	}
	got := slices.DeleteFunc(g.history(), func(s string) bool { return !strings.HasPrefix(s, "line") })
	if !slices.Equal(got, want) {
		t.Fatalf("the terminal holds %q, not %q", got, want)
	}
}

func TestCopyRoutes(t *testing.T) {
	for _, row := range []struct {
		name  string
		env   map[string]string
		tmux  Tmux
		route string
		seq   string
	}{
		{"a terminal", map[string]string{"TERM": "xterm"}, Tmux{}, "osc52", "\x1b]52;c;aGk=\x07"},
		{"tmux that keeps the clipboard", map[string]string{"TERM": "tmux-256color", "TMUX": "x"}, Tmux{Clipboard: true}, "tmux", "\x1b]52;c;aGk=\x07"},
		{"tmux that passes on", map[string]string{"TERM": "screen", "TMUX": "x"}, Tmux{Passthrough: true}, "tmux passthrough", "\x1bPtmux;\x1b\x1b]52;c;aGk=\x07\x1b\\"},
		{"tmux with its defaults", map[string]string{"TERM": "screen", "TMUX": "x"}, Tmux{}, "", ""},
		{"GNU screen", map[string]string{"TERM": "screen"}, Tmux{}, "", ""},
		{"the console", map[string]string{"TERM": "linux"}, Tmux{}, "", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			g := open(t, 20, 2, func(o *Options) { o.Env = func(n string) string { return row.env[n] }; o.Tmux = row.tmux })
			g.written()
			if ok := g.Copy("hi"); ok != (row.route != "") || g.CopyRoute() != row.route {
				t.Errorf("copied %v by %q", ok, g.CopyRoute())
			}
			if out := g.written(); out != row.seq {
				t.Errorf("the copy wrote %q, not %q", out, row.seq)
			}
			if g.Copy(strings.Repeat("x", MaxCopy+1)) || g.written() != "" {
				t.Error("a copy past the bound was written")
			}
		})
	}
}

func TestTitleBellAndSend(t *testing.T) {
	g := open(t, 20, 2)
	g.written()
	g.Title("sonny: a\x1b]52;c;x\x07b\u009b")
	g.Bell()
	g.Send("\x1b]9;4;1\x07")
	if out := g.written(); out != "\x1b]2;sonny: a]52;c;xb\x07\x07\x1b]9;4;1\x07" {
		t.Fatalf("what was written is %q", out)
	}
}

func TestSettleJoinsSizes(t *testing.T) {
	var s Settle
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if _, ok := s.Due(now); ok {
		t.Fatal("something is due at rest")
	}
	s.Note(Resize{W: 80, H: 24}, now)
	due := s.Note(Resize{W: 48, H: 20}, now.Add(40*time.Millisecond))
	if _, ok := s.Due(now.Add(60 * time.Millisecond)); ok {
		t.Fatal("a change within 50 ms did not put the relayout off")
	}
	if r, ok := s.Due(due); !ok || r != (Resize{W: 48, H: 20}) {
		t.Fatalf("due is %+v, %v", r, ok)
	}
	if _, ok := s.Due(due.Add(time.Second)); ok {
		t.Fatal("it is due twice")
	}
}

// stuck takes nothing once a frame comes, until it is let go.
type stuck struct{ entered, gate chan struct{} }

func (s stuck) Write(p []byte) (int, error) {
	if strings.Contains(string(p), "frame") {
		close(s.entered)
		<-s.gate
	}
	return len(p), nil
}

func TestCloseDoesNotWaitForAStuckTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		out := stuck{make(chan struct{}), make(chan struct{})}
		tm, err := Open(Options{In: r, Out: out, Resized: make(chan struct{}), Env: func(string) string { return "" }})
		if err != nil {
			t.Fatal(err)
		}
		tm.Draw(screenOf(20, 1, "frame"))
		<-out.entered
		began := time.Now()
		tm.Close()
		if took := time.Since(began); took != closeWait {
			t.Errorf("Close took %v", took)
		}
		close(out.gate)
		<-tm.p.done
		_ = w.Close()
	})
}

func TestSizeChangesOfTheProcessAreReported(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	tm, err := Open(Options{
		In: r, Out: io.Discard, Env: func(string) string { return "" },
		Size: func() (int, int, error) { return 48, 20, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer tm.Close()
	for {
		// The signal may come before it is listened for.
		if err := syscall.Kill(os.Getpid(), syscall.SIGWINCH); err != nil {
			t.Fatal(err)
		}
		select {
		case e := <-tm.Events():
			if e != (Resize{W: 48, H: 20}) {
				t.Fatalf("the event is %#v", e)
			}
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}
