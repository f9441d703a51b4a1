package screen_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"agent/internal/sonny/sonnytest"
	"agent/protocol"
)

func TestResizing(t *testing.T) {
	t.Parallel()
	t.Run("SO-53 at every size the state is said, and the content is back", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t)
		s := h.In(dir).Screen(sonnytest.Terminal{Width: 160, Height: 48}, "sonny", "--no-motion", "--theme", "none")
		s.WaitFor("1 AGENTS.md")
		send(s, "say: what was said before")
		s.WaitFor("✔ done")
		send(s, "slow: 20")
		s.WaitFor("word3")
		for _, to := range [][2]int{{80, 24}, {48, 20}, {20, 6}} {
			s.Resize(to[0], to[1])
			s.Until(fmt.Sprintf("the state at %d×%d", to[0], to[1]), func(screen string) bool {
				rows := strings.Split(screen, "\n")
				return len(rows) == to[1] && strings.Contains(screen, "working")
			})
		}
		s.Resize(19, 5)
		s.WaitFor("terminal too sma")
		s.Resize(160, 48)
		wants(t, s, "working", "what was said before", "slow: 20", "word3", "demo.lead")
	})
}

func TestTheTerminalIsGivenBack(t *testing.T) {
	t.Parallel()
	// flags are what tmux knows of the modes of a pane's terminal.
	flags := func(m *sonnytest.Tmux) string {
		return m.Stty() + m.Format("#{cursor_flag}#{mouse_any_flag}#{mouse_button_flag}#{mouse_sgr_flag}#{alternate_on}#{wrap_flag}#{keypad_cursor_flag}#{insert_flag}")
	}
	shell := func(t *testing.T) (*sonnytest.Tmux, string) {
		h, dir := demo(t)
		m := h.In(dir).With("PS1=ready> ").Tmux(80, 24, "sh")
		m.WaitFor("ready>")
		return m, flags(m)
	}
	line := func(m *sonnytest.Tmux, s string) {
		m.Type(s)
		m.Keys("Enter")
	}
	// asBefore waits until the shell has taken its terminal back, and compares.
	asBefore := func(t *testing.T, m *sonnytest.Tmux, before string) {
		t.Helper()
		m.Until("the shell", func(screen string) bool { return strings.HasSuffix(strings.TrimRight(screen, "\n "), "ready>") })
		if now := flags(m); now != before {
			t.Errorf("before:\n%s\nafter:\n%s", before, now)
		}
	}

	t.Run("SO-63 in tmux as it is, after a whole session", func(t *testing.T) {
		t.Parallel()
		m, before := shell(t)
		line(m, "sonny --no-motion")
		m.WaitFor("1 AGENTS.md")
		line(m, "md: everything")
		m.WaitFor("The end of everything.")
		m.Keys("C-k")
		m.WaitFor("go to")
		m.Keys("Escape")
		m.WaitFor("Esc close")
		m.Keys("Escape")
		m.WaitGone("go to")
		m.Resize(100, 30)
		m.Paste("pasted words")
		m.WaitFor("pasted words")
		stray(t, m.Capture())
		m.Resize(80, 24)
		m.Keys("C-c", "C-d")
		m.WaitFor("open it again: sonny resume demo.lead")
		stray(t, m.History())
		m.Until("its first size", func(string) bool { return strings.Contains(m.Stty(), "rows 24; columns 80") })
		asBefore(t, m, before)
	})

	t.Run("Ctrl+Z gives it back, and takes it again", func(t *testing.T) {
		t.Parallel()
		m, before := shell(t)
		line(m, "sonny --no-motion --theme none")
		m.WaitFor("1 AGENTS.md")
		m.Type("a draft")
		m.Keys("C-z")
		m.WaitFor("topped")
		asBefore(t, m, before)
		line(m, "fg")
		wants(t, m, "new lead", "a draft")
	})

	t.Run("SO-64 a crash gives it back and says where its report is", func(t *testing.T) {
		t.Parallel()
		m, before := shell(t)
		line(m, "sonny --no-motion --theme none")
		m.WaitFor("1 AGENTS.md")
		line(m, "say: hello")
		m.WaitFor("✔ done")
		line(m, "/crash panic")
		m.WaitFor("sonny crashed")
		asBefore(t, m, before)
	})
}

// stray fails where a screen shows a part of an escape sequence.
func stray(t *testing.T, screen string) {
	t.Helper()
	for _, part := range []string{"[?", "]11;", "]2;", "[<", "2026", "2004", "1049", "\x1b", "[c", "[0m", "[m"} {
		if strings.Contains(screen, part) {
			t.Errorf("%q stands on the screen:\n%s", part, screen)
		}
	}
}

func TestACrash(t *testing.T) {
	t.Parallel()
	const secret = "a-word-of-the-persons"
	for _, row := range []struct {
		name, says string
		crash      func(s *sonnytest.Screen)
	}{
		{"a panic in the loop", "panic with a string", func(s *sonnytest.Screen) { send(s, "/crash "+secret) }},
		{"a fault of memory in the loop", "panic: runtime error: invalid memory address", func(s *sonnytest.Screen) { send(s, "/crash fault") }},
		{"a panic beside the loop", "panic with a string", func(s *sonnytest.Screen) { send(s, "/crash beside") }},
		{"a SIGSEGV from outside", "signal: segmentation fault", func(s *sonnytest.Screen) { _ = syscall.Kill(s.PID(), syscall.SIGSEGV) }},
	} {
		t.Run("SO-64 "+row.name, func(t *testing.T) {
			t.Parallel()
			h, dir := demo(t)
			s := open(h, dir)
			s.WaitFor("1 AGENTS.md")
			send(s, "say: "+secret)
			s.WaitFor("✔ done")
			row.crash(s)
			if status := s.Exit(); status != 1 {
				t.Errorf("status %d", status)
			}
			files, err := filepath.Glob(h.Path(".agent", "sonny", "crash-*.txt"))
			if err != nil || len(files) != 1 {
				t.Fatalf("reports: %v, %v", files, err)
			}
			raw := s.Raw()
			left, said := bytes.LastIndex(raw, []byte("\x1b[?1049l")), bytes.Index(raw, []byte("sonny crashed"))
			if left < 0 || said < left || !bytes.Contains(raw[said:], []byte(files[0])) {
				t.Errorf("written at the end: %q", raw[max(0, len(raw)-600):])
			}
			if _, _, shown := s.Cursor(); !shown || s.Alternate() {
				t.Error("the terminal is not given back")
			}
			report, err := os.ReadFile(files[0])
			if err != nil || !strings.Contains(string(report), row.says) || !strings.Contains(string(report), "goroutine") {
				t.Errorf("the report, %v:\n%s", err, report)
			}
			if strings.Contains(string(report), secret) {
				t.Errorf("the report holds what was said:\n%s", report)
			}
			if info, _ := os.Stat(files[0]); info.Mode().Perm() != 0o600 {
				t.Errorf("its mode is %v", info.Mode())
			}
			if bots(t, h)[0].Status != protocol.StatusCompleted {
				t.Error("the bot is not as it was")
			}
		})
	}
}

func TestATerminalThatGoesAway(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"full", "inline", "plain"} {
		t.Run("is a detach within a second, drawn "+mode, func(t *testing.T) {
			t.Parallel()
			h, dir := demo(t)
			s := h.In(dir).Screen(size, "sonny", "--no-motion", "--screen", mode)
			s.WaitFor("1 AGENTS.md")
			send(s, "slow: 3")
			h.Until("the turn", func() bool { l := bots(t, h); return len(l) == 1 && l[0].Status == protocol.StatusRunning })
			began := time.Now()
			s.Hangup()
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("it took %s", took)
			}
			h.Until("the turn's end", func() bool { return bots(t, h)[0].Status == protocol.StatusCompleted })
		})
	}
}

func TestNoTerminal(t *testing.T) {
	t.Parallel()
	t.Run("SO-79 with its output redirected the screen refuses, and names sonny exec", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t)
		for _, mode := range []string{"full", "inline", "plain"} {
			ran := h.In(dir).Sonny("--screen", mode)
			if ran.Exit != 3 || !strings.Contains(ran.Stderr, "sonny exec") || ran.Stdout != "" {
				t.Errorf("%s: %+v", mode, ran)
			}
		}
		if ran := h.In(dir).Sonny("--screen", "wide"); ran.Exit != 2 && ran.Exit != 3 {
			t.Errorf("--screen wide: %+v", ran)
		}
	})
}

// frame is a line of the trace.
type frame struct {
	Cells, Bytes int
	EchoMS       float64 `json:"echo_ms"`
}

func frames(t *testing.T, path string) (list []frame) {
	t.Helper()
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(body)) {
		var f frame
		if !strings.HasSuffix(line, "\n") {
			break // it is being written
		}
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		list = append(list, f)
	}
	return list
}

func TestWhatAFrameCosts(t *testing.T) {
	t.Parallel()
	traced := func(t *testing.T) (*sonnytest.Screen, string) {
		h, dir := demo(t)
		path := h.Path("trace")
		s := h.In(dir).With("SONNY_TRACE="+path).Screen(size, "sonny", "--no-motion", "--theme", "none")
		s.WaitFor("1 AGENTS.md")
		return s, path
	}

	t.Run("SO-56 at rest nothing is written", func(t *testing.T) {
		t.Parallel()
		s, path := traced(t)
		send(s, "say: hello")
		s.WaitFor("✔ done")
		// A notice that stands goes after four seconds; from the last frame on nothing may come.
		quiet, last := time.Now(), len(frames(t, path))
		for tick := time.Tick(100 * time.Millisecond); time.Since(quiet) < 10*time.Second; <-tick {
			if n := len(frames(t, path)); n != last {
				if time.Since(quiet) > 6*time.Second {
					t.Fatalf("%d frames were written at rest", n-last)
				}
				last = n
			}
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the trace: %v, %v", info, err)
		}
	})

	t.Run("SO-55 a word and a key cost their own length, among rows of wide characters", func(t *testing.T) {
		t.Parallel()
		s, path := traced(t)
		send(s, "say: "+strings.Repeat("漢字かな交じり文 ", 12))
		s.WaitFor("✔ done")
		send(s, "slow: 3")
		s.WaitFor("word0")
		from, raw := len(frames(t, path)), len(s.Raw())
		s.WaitFor("word25")
		cells, all := 0, frames(t, path)[from:]
		for _, f := range all {
			cells += f.Cells
		}
		words, clock := len(strings.Repeat("word10 ", 26)), len("0:00")
		if most := 2*words + len(all)*clock; cells > most {
			t.Errorf("%d cells changed in %d frames, more than %d", cells, len(all), most)
		}
		if bytes.ContainsAny(s.Raw()[raw:], "漢字交文") {
			t.Error("rows that did not change were written")
		}
		s.WaitFor("✔ done")
		h := len(frames(t, path))
		s.Type("k")
		s.Until("the key", func(screen string) bool { return strings.Contains(screen, "› k") })
		for _, f := range frames(t, path)[h:] {
			if f.EchoMS > 0 && f.Bytes > 512 {
				t.Errorf("a key writes %d bytes", f.Bytes)
			}
		}
	})
}
