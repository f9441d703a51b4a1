package screen_test

import (
	"strings"
	"testing"

	"agent/internal/sonny/sonnytest"
	"agent/protocol"
)

// onRow is the first row of the screen that holds a text, and the column at which it
// stands; -1 for none.
func onRow(screen, text string) (x, y int) {
	for y, line := range strings.Split(screen, "\n") {
		if i := strings.Index(line, text); i >= 0 {
			return len([]rune(line[:i])), y
		}
	}
	return -1, -1
}

// made makes a bot in a folder and has it work on a message.
func made(t *testing.T, h *sonnytest.Home, bot, dir, message string) {
	t.Helper()
	c := h.Client()
	if _, err := c.Create(t.Context(), &protocol.Create{Bot: bot, Model: "scripted/sonny", Instructions: "Be brief.", Workspace: dir, Tools: []string{"shell"}, Sandbox: protocol.SandboxFull}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Submit(t.Context(), &protocol.Submit{Bot: bot, Prompt: message, RequestID: "first"}); err != nil {
		t.Fatal(err)
	}
}

// headless is a screen without its header, which tells of tokens.
func headless(screen string) string {
	_, rest, _ := strings.Cut(screen, "\n")
	return rest
}

func TestRail(t *testing.T) {
	t.Parallel()
	h, dir := demo(t, settings("row = \"full\"\ntask_updates = false\n"))
	s := openAt(h, dir, 160, 48)
	s.WaitFor("1 AGENTS.md")
	send(s, "say: the words of the lead")
	s.WaitFor("✔ done")
	made(t, h, "demo.build", dir, "say: built")
	settled(h, "demo.build")
	s.WaitFor("tasks 1")
	send(s, "/rename login fix")
	s.WaitFor("login fix")

	t.Run("it lists this folder's sessions with their tasks, at the left of a transcript of 100 cells", func(t *testing.T) {
		if x, _ := onRow(s.Capture(), "› say: the words"); x != (160-100)/2 {
			t.Errorf("without the rail the text stands at %d", x)
		}
		s.Keys("C-b")
		wants(t, s, "Esc back to the message", "└ ✔ build", "1 turn")
		s.Keys("Escape")
		s.WaitGone("Esc back to the message")
		screen := s.Capture()
		if x, _ := onRow(screen, "› say: the words"); x != 29+(131-100)/2 {
			t.Errorf("beside the rail the text stands at %d", x)
		}
		if x, y := onRow(screen, "┬"); x != 28 || y != 1 {
			t.Errorf("the rail's line meets the rule at %d, %d", x, y)
		}
		sonnytest.Golden(t, "rail-160x48", headless(screen))
	})

	t.Run("a drag beside it selects the cells under the pointer", func(t *testing.T) {
		x, y := onRow(s.Capture(), "the words of the lead")
		s.Drag(x+4, y, x+8, y)
		s.Type("y")
		h.Until("the copy", func() bool { return len(clipboard(t, s)) == 1 })
		if got := clipboard(t, s); got[0] != "words" {
			t.Errorf("copied %q", got[0])
		}
	})

	t.Run("a click on a row opens its bot, and Enter goes back", func(t *testing.T) {
		x, y := onRow(s.Capture(), "└ ✔ build")
		s.Click(x+4, y)
		s.WaitFor(" demo.build  ")
		s.WaitFor("built")
		s.Keys("C-b")
		s.WaitFor("Esc back to the message")
		s.Keys("Home", "Enter")
		s.WaitFor("the words of the lead")
		s.WaitGone("Esc back to the message")
		s.Type("typed")
		s.WaitFor("› typed")
		s.Keys("C-u")
		s.WaitGone("› typed")
	})

	t.Run("p looks at a row beside, and the rail keeps the keyboard", func(t *testing.T) {
		s.Keys("C-b")
		s.WaitFor("Esc back to the message")
		s.Keys("Down")
		s.Type("p")
		s.WaitFor("(Alt+→ moves here)")
		s.WaitFor("Esc back to the message")
		if x, _ := onRow(s.Capture(), "(Alt+→ moves here)"); x < 160-57 {
			t.Errorf("the pane's composer stands at %d", x)
		}
		s.Keys("Escape")
		s.WaitGone("Esc back to the message")
		s.Keys("C-x", "x")
		s.WaitGone("(Alt+→ moves here)")
	})

	t.Run("another folder's session is listed while something of it runs", func(t *testing.T) {
		made(t, h, "api.lead", h.Repo("api", map[string]string{"x": "y\n"}), "sh: until [ -e release ]; do sleep 0.1; done")
		s.Until("it, by its first message", func(screen string) bool {
			return strings.Contains(screen, "other folders") && strings.Contains(screen, "● sh: until [") && strings.Contains(screen, "  api.lead")
		})
		h.Write("api/release", "")
		s.WaitGone("other folders")
	})

	t.Run("it is there again when the session is opened next", func(t *testing.T) {
		s.Keys("C-d")
		s.Exit()
		s = openAt(h, dir, 160, 48)
		s.WaitFor("the words of the lead")
		wants(t, s, "└ ○ build", "│")
	})

	t.Run("below 100 cells it covers the body, and Esc closes it", func(t *testing.T) {
		s.Resize(80, 24)
		s.WaitGone("└ ○ build")
		s.Keys("C-b")
		wants(t, s, "── sessions", "└ ○ build", "Esc close")
		sonnytest.Golden(t, "rail-80x24", headless(s.Capture()))
		s.Type("/buil")
		s.WaitFor("/ buil")
		s.Keys("Enter")
		s.WaitFor(" demo.build  ")
		s.WaitGone("── sessions")
		s.Keys("C-x")
		s.Type("l")
		s.WaitFor("── sessions")
		s.Keys("Escape")
		s.WaitGone("── sessions")
	})

	t.Run("its chord hides the column, for the next opening of the session too", func(t *testing.T) {
		send(s, "/open lead")
		s.WaitFor("the words of the lead")
		s.Resize(120, 30)
		s.WaitFor("└ ○ build")
		if x, _ := onRow(s.Capture(), "┬"); x != 26 {
			t.Errorf("the rail is %d wide", x)
		}
		s.Keys("C-b")
		s.WaitFor("Esc back to the message")
		s.Keys("C-b")
		s.WaitGone("└ ○ build")
		s.Keys("C-d")
		s.Exit()
		s = openAt(h, dir, 120, 30)
		s.Until("the lead without the rail", func(screen string) bool {
			return strings.Contains(screen, "the words of the lead") && !strings.Contains(screen, "┬")
		})
	})
}
