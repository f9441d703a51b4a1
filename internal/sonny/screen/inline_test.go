package screen_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"agent/internal/sonny/sonnytest"
)

// longReply is a script with a conversation of 200 short lines, a block of code of 60
// among them, each line with a number of its own.
func longReply(t *testing.T) sonnytest.Option {
	t.Helper()
	var b strings.Builder
	line := func(n int) { fmt.Fprintf(&b, "line number %03d.\n", n) }
	for n := range 200 {
		switch {
		case n == 70:
			b.WriteString("\n```\n")
		case n == 130:
			b.WriteString("```\n\n")
		case n%10 == 0 && (n < 70 || n > 130):
			b.WriteString("\n")
		}
		line(n)
	}
	text, err := json.Marshal(b.String())
	if err != nil {
		t.Fatal(err)
	}
	step := fmt.Sprintf(`"scripts": [{"match": {"equals": "long"}, "repeat_last": true, "steps": [{"text": %s, "pace_ms": 2}]},`, text)
	return sonnytest.OwnScript(strings.Replace(sonnytest.Script, `"scripts": [`, step, 1))
}

// lineNumber finds the numbers of the lines in a text.
var lineNumber = regexp.MustCompile(`line number (\d{3})\.`)

// once fails unless a text holds each of the 200 lines once, in order.
func once(t *testing.T, history string) {
	t.Helper()
	found := lineNumber.FindAllStringSubmatch(history, -1)
	for i, m := range found {
		if want := fmt.Sprintf("%03d", i); m[1] != want {
			t.Fatalf("line %s stands where %s should:\n%s", m[1], want, history)
		}
	}
	if len(found) != 200 {
		t.Fatalf("%d of 200 lines:\n%s", len(found), history)
	}
}

// finished is a stretch of what an inline screen writes for good.
var finished = regexp.MustCompile(`(?s)\x1b\[\?7h.*?\x1b\[\?7l`)

// stands fails unless a scrollback holds each of the 200 finished lines, in order. A
// resize may leave an old copy of the live region above what is printed after it, so a
// line may stand there before it was finished; what comes last of a number is the
// finished line.
func stands(t *testing.T, history string) {
	t.Helper()
	last, found := map[string]int{}, lineNumber.FindAllStringSubmatch(history, -1)
	for i, m := range found {
		last[m[1]] = i
	}
	before := -1
	for n := range 200 {
		at, there := last[fmt.Sprintf("%03d", n)]
		if !there || at < before {
			t.Fatalf("line %03d does not stand where it should:\n%s", n, history)
		}
		before = at
	}
	if copies := len(found) - 200; copies > 5*40/3 {
		t.Errorf("%d lines stand there twice: more than five live regions have", copies)
	}
}

func TestInlineMode(t *testing.T) {
	t.Parallel()
	inline := func(h *sonnytest.Home, dir string, w, height int) *sonnytest.Tmux {
		return h.In(dir).Tmux(w, height, "sonny", "--no-motion", "--theme", "none", "--screen", "inline")
	}
	// The reply's last lines stay in the live region, which has no room for all ten of
	// the last piece, for a frame after the turn has ended.
	done := func(m *sonnytest.Tmux) {
		t.Helper()
		m.Until("the end of the reply", func(screen string) bool {
			return strings.Contains(screen, "line number 190.") && strings.Contains(screen, "line number 199.") &&
				(strings.Contains(screen, "idle") || strings.Contains(screen, "done"))
		})
	}

	t.Run("SO-60 every finished line is in the scrollback once, in order, and there is one live region", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t, longReply(t))
		m := inline(h, dir, 80, 24)
		m.WaitFor("1 AGENTS.md")
		send(m, "long")
		done(m)
		history := m.Run("capture-pane", "-p", "-J", "-S", "-")
		once(t, history)
		if n := strings.Count(history, "Enter send"); n != 1 {
			t.Errorf("%d live regions:\n%s", n, history)
		}
		if m.Format("#{alternate_on}") != "0" {
			t.Error("it is on the alternate screen")
		}
	})

	t.Run("SO-60 through five resizes while it streams", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t, longReply(t))
		m := inline(h, dir, 80, 24)
		m.WaitFor("1 AGENTS.md")
		written := h.Path("written")
		m.Run("pipe-pane", "-o", "cat > "+written)
		send(m, "long")
		for i, size := range [][2]int{{60, 20}, {100, 30}, {40, 12}, {120, 40}, {80, 24}} {
			mark := fmt.Sprintf("line number %03d.", 20+i*30)
			h.Until(mark, func() bool { return strings.Contains(m.History(), mark) })
			m.Resize(size[0], size[1])
		}
		done(m)
		var raw []byte
		h.Until("what tmux copies", func() bool { // cat is behind the screen
			raw, _ = os.ReadFile(written)
			return strings.Contains(strings.Join(finished.FindAllString(string(raw), -1), ""), "line number 199.")
		})
		// What is finished is what is written with the terminal's wrapping on.
		once(t, strings.Join(finished.FindAllString(string(raw), -1), ""))
		stands(t, m.Run("capture-pane", "-p", "-J", "-S", "-"))
	})

	t.Run("the live region takes at most a third of the height", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t, longReply(t))
		s := h.In(dir).Screen(size, "sonny", "--no-motion", "--theme", "none", "--screen", "inline")
		s.WaitFor("1 AGENTS.md")
		send(s, "say: first")
		s.WaitFor("✔ done")
		send(s, "/sessions")
		s.WaitFor("sessions of this folder")
		rows := strings.Split(s.Capture(), "\n")
		at := 0
		for i, row := range rows {
			if strings.Contains(row, "sessions of this folder") {
				at = i
			}
		}
		last := at
		for i, row := range rows {
			if row != "" {
				last = i
			}
		}
		if n := last - at + 1; n > size.Height/3 {
			t.Errorf("%d rows:\n%s", n, s.Capture())
		}
		if strings.Count(s.Capture(), "› say: first") != 1 {
			t.Errorf("the list took of what is finished:\n%s", s.Capture())
		}
		s.Keys("Escape")
		s.WaitGone("sessions of this folder")
	})

	t.Run("SO-118 what a failed attempt printed stays, and a notice follows it", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t)
		s := h.In(dir).Screen(size, "sonny", "--no-motion", "--theme", "none", "--screen", "inline")
		s.WaitFor("1 AGENTS.md")
		send(s, "drop: 1")
		s.Until("the end", func(screen string) bool {
			return strings.Contains(screen, "third paragraph") && strings.Contains(screen, "done")
		})
		out := s.History()
		first, last := strings.Index(out, "The first paragraph of three."), strings.LastIndex(out, "The first paragraph of three.")
		notice := strings.Index(out, "that attempt failed; trying again")
		if first < 0 || notice < first || last < notice || strings.Count(out, "third paragraph") != 1 {
			t.Errorf("in the scrollback:\n%s", out)
		}
	})

	t.Run("a call that waits is printed whole, and is answered below it", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t, sonnytest.Config("model = \"scripted/sonny\"\ntrust_folders = \"always\"\nrow = \"manual\"\n"))
		s := h.In(dir).Screen(size, "sonny", "--no-motion", "--theme", "none", "--screen", "inline")
		s.WaitFor("1 AGENTS.md")
		send(s, "esc: touch "+h.Path("outside"))
		wants(t, s, "asks to leave the sandbox", "touch "+h.Path("outside"), "1  allow once", "4  deny and say why")
		s.Keys("M-a")
		s.WaitFor("1–4 decide")
		taken := time.Now()
		h.Until("the panel to take keys", func() bool { return time.Since(taken) > 400*time.Millisecond })
		s.Keys("3")
		s.WaitFor("denied by you")
		if n := strings.Count(s.History(), "asks to leave the sandbox"); n != 1 {
			t.Errorf("the question is printed %d times:\n%s", n, s.History())
		}
	})

	t.Run("a session that is opened again is not printed again", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t)
		s := h.In(dir).Screen(size, "sonny", "--no-motion", "--theme", "none", "--screen", "inline")
		s.WaitFor("1 AGENTS.md")
		send(s, "say: alpha")
		s.WaitFor("✔ done")
		send(s, "/new")
		s.WaitFor("demo.lead-2")
		send(s, "say: beta")
		s.Until("the reply", func(screen string) bool {
			return strings.Count(screen, "beta") == 2 && strings.Contains(screen, "done")
		})
		send(s, "/open demo.lead")
		s.WaitFor("── demo.lead ─")
		send(s, "say: gamma")
		s.Until("the reply", func(screen string) bool {
			return strings.Count(screen, "gamma") == 2 && strings.Contains(screen, "done")
		})
		if out := s.History(); strings.Count(out, "alpha") != 2 {
			t.Errorf("in the scrollback:\n%s", out)
		}
	})
}
