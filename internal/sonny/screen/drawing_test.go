package screen_test

import (
	"strings"
	"testing"

	"agent/internal/sonny/sonnytest"
)

func TestDrawnMarkdown(t *testing.T) {
	t.Parallel()

	t.Run("SO-47 what was streamed stays where it is when the durable message lands", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t)
		tall := sonnytest.Terminal{Width: 80, Height: 60}
		s := h.In(dir).Screen(tall, "sonny", "--no-motion", "--theme", "none")
		s.WaitFor("1 AGENTS.md")
		send(s, "md: everything")
		streamed := ""
		s.Until("the end", func(screen string) bool {
			if strings.Contains(screen, "✔ done") {
				return true
			}
			streamed = screen
			return false
		})
		after := s.Capture()
		for _, part := range []string{"with a nested item", "alpha", "count", "func main() {", "go\n"} {
			if !strings.Contains(after, part) {
				t.Errorf("%q is not on screen:\n%s", part, after)
			}
		}
		before, now := transcriptRows(streamed), transcriptRows(after)
		if len(before) < 20 {
			t.Fatalf("only %d rows were seen streaming", len(before))
		}
		for i, row := range before[:len(before)-6] { // the open block may change
			if i < len(now) && row != now[i] && len(now) == len(before) {
				t.Errorf("row %d was %q and is %q", i, row, now[i])
			}
		}
	})

	t.Run("SO-48 a table that is too wide is shown as records", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t)
		s := open(h, dir)
		s.WaitFor("1 AGENTS.md")
		send(s, "md: wide")
		wants(t, s, "column-12: cell-3.12-of-many-words", "done")
	})

	t.Run("SO-49 what a terminal would act on is shown, and acts on nothing", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t)
		s := open(h, dir)
		s.WaitFor("1 AGENTS.md")
		from := len(s.Raw())
		send(s, "emit: controls")
		wants(t, s, `\u{1b}[2J`, `\u{7}`, `\u{9b}`, `\u{202e}`, "done")
		raw := string(s.Raw()[from:])
		for _, bad := range []string{"\x07", "\x1b[2J", "\u009b", "\u202e"} {
			if n := strings.Count(raw, bad); n > strings.Count(raw, "\x1b]") && bad == "\x07" || n > 0 && bad != "\x07" {
				t.Errorf("%q was sent to the terminal", bad)
			}
		}
		if title := s.Title(); !strings.HasPrefix(title, "sonny: demo.lead") {
			t.Errorf("the title is %q", title)
		}
	})
}

// transcriptRows are the rows between the header's rule and the composer's.
func transcriptRows(screen string) (rows []string) {
	rules := 0
	for row := range strings.SplitSeq(screen, "\n") {
		if strings.HasPrefix(row, "────") {
			rules++
			continue
		}
		if rules == 1 {
			rows = append(rows, row)
		}
	}
	for len(rows) > 0 && rows[len(rows)-1] == "" {
		rows = rows[:len(rows)-1]
	}
	return rows
}

func TestThePromptOfTheLine(t *testing.T) {
	t.Parallel()
	t.Run("SO-121 a mistyped command is no prompt, and one that holds a space is sent once", func(t *testing.T) {
		h, dir := demo(t)
		if ran := h.In(dir).Sonny("sesions"); ran.Exit != 2 || !strings.Contains(ran.Stderr, "sonny sessions") {
			t.Errorf("status %d: %s", ran.Exit, ran.Stderr)
		}
		s := open(h, dir, "say: hi there")
		s.Until("the reply", func(screen string) bool { return strings.Count(headless(screen), "hi there") == 2 })
		if n := strings.Count(h.Agent("turns", "--bot", "demo.lead").Stdout, `"request_id":`); n != 1 {
			t.Errorf("%d turns", n)
		}
	})
}

func TestANameLikeAJudges(t *testing.T) {
	t.Parallel()
	t.Run("SO-136 a bot of a bot's is listed, whatever it is called", func(t *testing.T) {
		h, dir := demo(t)
		s := open(h, dir)
		s.WaitFor("1 AGENTS.md")
		send(s, `sh: "$AGENT_BIN" run --detach --new --bot approver.auto.x -- "say: x"`)
		s.WaitFor("✔ done")
		s.WaitFor("tasks 1")
		s.Keys("C-t")
		s.WaitFor("approver.auto.x")
		s.Keys("Escape")
		s.WaitGone("tasks of")
		s.Keys("C-k")
		s.WaitFor("approver.auto.x")
	})
}
