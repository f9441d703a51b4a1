package screen_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"agent/internal/sonny/sonnytest"
	"agent/protocol"
)

// killable is a Sonny that ends as by kill -9 at the instant that killAt names.
func killable(h *sonnytest.Home, dir string, args ...string) *sonnytest.Screen {
	return open(h.With("SONNY_KILL_AT="+h.Path("kill-at")), dir, args...)
}

func killAt(h *sonnytest.Home, instant string) { h.Write("kill-at", instant) }

// reopened waits for a Sonny to have been killed, and opens it again. The lead, where there
// is one, is loaded.
func reopened(h *sonnytest.Home, dir string, killed *sonnytest.Screen) *sonnytest.Screen {
	killed.Exit()
	killAt(h, "never")
	return killable(h, dir)
}

// inLine are the turns that wait, run or ran: not those that were taken out of line.
func inLine(t *testing.T, h *sonnytest.Home, prompt string) (n int) {
	t.Helper()
	for _, turn := range turns(t, h, "demo.lead") {
		if turn.Prompt == prompt && (turn.Status != protocol.StatusInterrupted && turn.Status != protocol.StatusFailed) {
			n++
		}
	}
	return n
}

// drafted counts how often the files of drafts hold a text.
func drafted(h *sonnytest.Home, text string) (n int) {
	quoted, _ := json.Marshal(text)
	escaped := strings.Trim(string(quoted), `"`)
	files, _ := filepath.Glob(h.Path(".agent", "sonny", "drafts", "*.json"))
	for _, f := range files {
		if data, err := os.ReadFile(f); err == nil {
			n += strings.Count(string(data), escaped)
		}
	}
	return n
}

// backOnce waits until a message that did not go out is in the composer alone, and stays
// the person's to send.
func backOnce(t *testing.T, h *sonnytest.Home, s *sonnytest.Screen, text string) {
	t.Helper()
	s.WaitFor("had not gone out when Sonny ended")
	holds(s, text)
	if screen := s.Capture(); strings.Contains(screen, "held  ") || strings.Contains(screen, "queued 1") {
		t.Errorf("it is elsewhere, too:\n%s", screen)
	}
	if own(t, h) != nil && inLine(t, h, text) != 0 {
		t.Errorf("it was sent: %+v", turns(t, h, "demo.lead"))
	}
	h.Until("one draft of it", func() bool { return drafted(h, text) == 1 })
}

// withDaemonOnce waits until a message that the daemon has is nowhere else.
func withDaemonOnce(t *testing.T, h *sonnytest.Home, s *sonnytest.Screen, text string) {
	t.Helper()
	s.WaitFor(text)
	h.Until("no draft of it", func() bool { return drafted(h, text) == 0 })
	holds(s, "")
	if n := inLine(t, h, text); n != 1 {
		t.Errorf("it has %d turns: %+v", n, turns(t, h, "demo.lead"))
	}
	if strings.Contains(s.Capture(), "held  ") {
		t.Errorf("it is held, too:\n%s", s.Capture())
	}
}

// daemonStops has the daemon stand still until it is killed, or the test is over.
func daemonStops(t *testing.T, h *sonnytest.Home) *os.Process {
	t.Helper()
	daemon, err := os.FindProcess(h.DaemonPID())
	if err == nil {
		err = daemon.Signal(syscall.SIGSTOP)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = daemon.Signal(syscall.SIGCONT) })
	return daemon
}

const words = "say: the words"

func TestKilledWhileTheFirstMessageGoesOut(t *testing.T) {
	t.Parallel()
	for _, at := range []struct {
		instant, name string
		leads         int
		taken         bool
	}{
		{"making", "before the lead is made", 0, false},
		{"made", "between create and submit", 1, false},
		{"taking over", "when the lead has the words, and the start screen has them still", 1, false},
		{"handing", "before submit", 1, false},
		{"handed", "after submit is answered", 1, true},
	} {
		t.Run(at.name, func(t *testing.T) {
			t.Parallel()
			h, dir := demo(t)
			s := killable(h, dir)
			s.WaitFor("1 AGENTS.md")
			killAt(h, at.instant)
			send(s, words)
			s = reopened(h, dir, s)
			if at.taken {
				withDaemonOnce(t, h, s, words)
			} else {
				backOnce(t, h, s, words)
			}
			if n := len(own(t, h)); n != at.leads {
				t.Errorf("%d leads", n)
			}
			if !at.taken {
				s.Keys("Enter")
				s.WaitFor("✔ done")
				withDaemonOnce(t, h, s, words)
			}
		})
	}

	t.Run("for a lead beside another it is that lead which is opened", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t)
		s := killable(h, dir)
		s.WaitFor("1 AGENTS.md")
		send(s, "say: to the first")
		s.WaitFor("✔ done")
		s.Keys("C-x", "n")
		wants(t, s, "demo.lead works in ~/demo. Your first message makes another lead beside", "it: demo.lead-2")
		killAt(h, "made")
		send(s, words)
		s = reopened(h, dir, s)
		s.WaitFor("demo.lead-2")
		backOnce(t, h, s, words)
	})

	t.Run("a draft for a lead beside another waits for its start screen, and says so", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t)
		s := killable(h, dir)
		s.WaitFor("1 AGENTS.md")
		send(s, "say: to the first")
		s.WaitFor("✔ done")
		s.Keys("C-x", "n")
		s.WaitFor("demo.lead-2")
		killAt(h, "making")
		send(s, words)
		s = reopened(h, dir, s)
		s.WaitFor("what you wrote for a new lead is kept")
		holds(s, "")
		s.Keys("C-x", "n")
		backOnce(t, h, s, words)
	})

	t.Run("a message whose model was refused is back when its lead is gone", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t)
		s := killable(h, dir, "--model", "scripted/none-such")
		s.WaitFor("1 AGENTS.md")
		killAt(h, "unmade")
		send(s, words)
		s = reopened(h, dir, s)
		backOnce(t, h, s, words)
	})
}

func TestKilledWhileAMessageGoesOut(t *testing.T) {
	t.Parallel()
	rested := func(t *testing.T) (*sonnytest.Home, string, *sonnytest.Screen) {
		h, dir := demo(t)
		s := killable(h, dir)
		s.WaitFor("1 AGENTS.md")
		send(s, "say: hello")
		s.WaitFor("✔ done")
		return h, dir, s
	}
	working := func(t *testing.T) (*sonnytest.Home, string, *sonnytest.Screen) {
		h, dir := demo(t)
		s := killable(h, dir)
		s.WaitFor("1 AGENTS.md")
		send(s, "sh: until [ -e release ]; do sleep 0.1; done")
		s.WaitFor("▸ shell  until")
		return h, dir, s
	}
	for _, how := range []struct {
		name  string
		begin func(*testing.T) (*sonnytest.Home, string, *sonnytest.Screen)
		typed string
		key   string
		back  string
	}{
		{"a turn of its own", rested, words, "Enter", words},
		{"a message in line", working, words, "Tab", words},
		{"a steer", working, words, "Enter", words},
		{"a command with text", working, "/queue " + words, "Enter", words},
	} {
		for _, instant := range []string{"handing", "handed"} {
			t.Run(how.name+", "+map[string]string{"handing": "before submit", "handed": "after submit is answered"}[instant], func(t *testing.T) {
				t.Parallel()
				h, dir, s := how.begin(t)
				s.Type(how.typed)
				draftSaved(h, words)
				killAt(h, instant)
				s.Keys(how.key)
				s = reopened(h, dir, s)
				if instant == "handing" {
					backOnce(t, h, s, how.back)
					return
				}
				s.WaitFor(words)
				h.Write("demo/release", "")
				h.Until("its turn", func() bool { return inLine(t, h, words) == 1 && len(ended(t, h, 2)) == 2 })
				withDaemonOnce(t, h, s, words)
			})
		}
	}

	t.Run("a steer that came too late while nobody looked is in the composer", func(t *testing.T) {
		t.Parallel()
		h, dir, s := working(t)
		s.Type(words)
		killAt(h, "handed")
		s.Keys("Enter")
		s.Exit()
		if ran := h.Agent("interrupt", "--bot", "demo.lead"); ran.Exit != 0 {
			t.Fatal(ran.Stderr)
		}
		ended(t, h, 2)
		s = reopened(h, dir, s)
		backOnce(t, h, s, words)
	})

	t.Run("what two messages say comes back as two", func(t *testing.T) {
		t.Parallel()
		h, dir, s := working(t)
		daemon := daemonStops(t, h)
		queue(s, "say: the one")
		s.WaitFor("sending…  say: the one")
		queue(s, "say: the other")
		s.WaitFor("sending…  say: the other")
		h.Until("both on disk", func() bool { return drafted(h, "say: the one") == 1 && drafted(h, "say: the other") == 1 })
		s.Kill()
		if err := daemon.Kill(); err != nil {
			t.Fatal(err)
		}
		s = killable(h, dir)
		wants(t, s, "held  say: the one", "held  say: the other")
		holds(s, "")
		if n := inLine(t, h, "say: the one") + inLine(t, h, "say: the other"); n != 0 {
			t.Errorf("they were sent, too: %+v", turns(t, h, "demo.lead"))
		}
	})

	t.Run("with a picture and a paste, before submit", func(t *testing.T) {
		t.Parallel()
		h, dir, s := rested(t)
		s.Type("look ")
		s.Paste(strings.Repeat("a line\n", 20))
		s.WaitFor("[pasted 20 lines]")
		s.Paste(drawn(t, h.Path("trace.png"), 412, 96))
		s.WaitFor("[picture 1: trace.png 412×96")
		killAt(h, "handing")
		s.Keys("Enter")
		s = reopened(h, dir, s)
		s.WaitFor("look [pasted 20 lines][picture 1: trace.png 412×96")
		turnOf(s, func() { s.Keys("Enter") })
		if list := turns(t, h, "demo.lead"); len(list) != 2 {
			t.Errorf("%+v", list)
		}
	})

	t.Run("a question beside, between the fork and the question", func(t *testing.T) {
		t.Parallel()
		h, dir, s := rested(t)
		killAt(h, "forked")
		send(s, "/side "+words)
		s = reopened(h, dir, s)
		backOnce(t, h, s, "/side "+words)
	})

	t.Run("the brief of a task, before and after it is started", func(t *testing.T) {
		t.Parallel()
		h, dir, s := rested(t)
		killAt(h, "planning")
		send(s, "&"+words)
		s = reopened(h, dir, s)
		backOnce(t, h, s, "&"+words)
		s.Keys("C-u")
		holds(s, "")
		killAt(h, "started")
		send(s, "&"+words)
		s = reopened(h, dir, s)
		s.WaitFor("say: hello")
		h.Until("no draft of it", func() bool { return drafted(h, words) == 0 })
		holds(s, "")
		if n := len(own(t, h)); n != 2 {
			t.Errorf("%d bots", n)
		}
	})

	t.Run("a command of the person's, before it begins and after", func(t *testing.T) {
		t.Parallel()
		h, dir, s := rested(t)
		typed := "!echo x >> ran; until [ -e release ]; do sleep 0.1; done"
		s.Type(typed)
		draftSaved(h, "echo x")
		killAt(h, "running")
		s.Keys("Enter")
		s = reopened(h, dir, s)
		backOnce(t, h, s, typed)
		ran := func() string { data, _ := os.ReadFile(filepath.Join(dir, "ran")); return string(data) }
		if ran() != "" {
			t.Fatalf("it ran: %q", ran())
		}
		s.Keys("C-u")
		holds(s, "")
		s.Type(typed)
		draftSaved(h, "echo x")
		s.Keys("Enter")
		h.Until("it to run", func() bool { return ran() == "x\n" })
		s.Kill()
		s = killable(h, dir)
		s.WaitFor("say: hello")
		h.Until("no draft of it", func() bool { return drafted(h, "echo x") == 0 })
		holds(s, "")
		h.Write("demo/release", "")
		if ran() != "x\n" {
			t.Errorf("it ran again: %q", ran())
		}
	})
}

func TestKilledWhileTheLineIsChanged(t *testing.T) {
	t.Parallel()
	lined := func(t *testing.T, list ...string) (*sonnytest.Home, string, *sonnytest.Screen) {
		h, dir := demo(t)
		s := killable(h, dir)
		s.WaitFor("1 AGENTS.md")
		send(s, "sh: until [ -e release ]; do sleep 0.1; done")
		s.WaitFor("▸ shell  until")
		for _, m := range list {
			queue(s, m)
			s.WaitFor("  " + m)
		}
		return h, dir, s
	}
	// held waits for the messages that are held, in their order, and for no other place.
	held := func(t *testing.T, h *sonnytest.Home, s *sonnytest.Screen, list ...string) {
		t.Helper()
		rows := func(screen string) (got []string) {
			for line := range strings.SplitSeq(screen, "\n") {
				if rest, is := strings.CutPrefix(strings.TrimSpace(line), "held  "); is {
					got = append(got, strings.TrimSpace(strings.TrimSuffix(rest, "Enter sends")))
				}
			}
			return got
		}
		s.Until("held "+strings.Join(list, ", "), func(screen string) bool { return slices.Equal(rows(screen), list) })
		for _, m := range list {
			if inLine(t, h, m) != 0 {
				t.Errorf("%s is in line, too: %+v", m, turns(t, h, "demo.lead"))
			}
		}
		holds(s, "")
	}

	t.Run("one is taken back, before it is out of line", func(t *testing.T) {
		t.Parallel()
		h, dir, s := lined(t, "say: one")
		killAt(h, "withdrawing")
		s.Keys("M-Up")
		s = reopened(h, dir, s)
		s.WaitFor("queued 1  say: one")
		withDaemonOnce(t, h, s, "say: one")
	})

	t.Run("one is taken back, between its withdrawal and its draft", func(t *testing.T) {
		t.Parallel()
		h, dir, s := lined(t, "say: one", "say: two", "say: three")
		killAt(h, "withdrawn")
		s.Keys("M-2")
		s = reopened(h, dir, s)
		held(t, h, s, "say: two", "say: three")
		s.WaitFor("queued 1  say: one")
	})

	t.Run("two change places", func(t *testing.T) {
		t.Parallel()
		h, dir, s := lined(t, "say: one", "say: two")
		s.Keys("C-x", "q")
		s.WaitFor("in line")
		s.Keys("End")
		killAt(h, "withdrawn")
		s.Type("K")
		s = reopened(h, dir, s)
		held(t, h, s, "say: one", "say: two")
	})

	t.Run("an interrupt holds what is in line", func(t *testing.T) {
		t.Parallel()
		h, dir, s := lined(t, "say: one", "say: two")
		killAt(h, "withdrawn")
		s.Keys("Escape")
		s = reopened(h, dir, s)
		held(t, h, s, "say: one", "say: two")
	})

	t.Run("one that is made a steer", func(t *testing.T) {
		t.Parallel()
		h, dir, s := lined(t, "say: one")
		s.Keys("C-x", "q")
		s.WaitFor("in line")
		killAt(h, "withdrawn")
		s.Keys("Enter")
		s = reopened(h, dir, s)
		held(t, h, s, "say: one")
	})

	t.Run("one that is edited is edited on, with what was written before it", func(t *testing.T) {
		t.Parallel()
		h, dir, s := lined(t, "say: one", "say: two")
		s.Type("a draft of mine")
		s.Keys("M-1")
		s.WaitFor("editing 1  say: one")
		s.Type(" changed")
		draftSaved(h, "say: one changed")
		s.Kill()
		s = killable(h, dir)
		wants(t, s, "editing 1  say: one", "withheld  say: two")
		holds(s, "say: one changed")
		if strings.Contains(s.Capture(), "held  say: one") {
			t.Errorf("it is held, too:\n%s", s.Capture())
		}
		s.Keys("Enter")
		wants(t, s, "queued 1  say: one changed", "queued 2  say: two")
		holds(s, "a draft of mine")
	})

	for _, at := range []string{"handing", "handed"} {
		t.Run("one that was edited is put back, "+at, func(t *testing.T) {
			t.Parallel()
			h, dir, s := lined(t, "say: one")
			s.Keys("M-Up")
			s.WaitFor("editing 1  say: one")
			s.Type(" changed")
			killAt(h, at)
			s.Keys("Enter")
			s = reopened(h, dir, s)
			if at == "handing" {
				held(t, h, s, "say: one changed")
				return
			}
			s.WaitFor("queued 1  say: one changed")
			withDaemonOnce(t, h, s, "say: one changed")
		})
	}

	t.Run("what is held goes out", func(t *testing.T) {
		t.Parallel()
		h, dir, s := lined(t, "say: one", "say: two")
		s.Keys("Escape")
		held(t, h, s, "say: one", "say: two")
		killAt(h, "handed") // of the first
		s.Keys("Enter")
		s = reopened(h, dir, s)
		held(t, h, s, "say: two")
		h.Until("the first", func() bool { return inLine(t, h, "say: one") == 1 })
	})
}
