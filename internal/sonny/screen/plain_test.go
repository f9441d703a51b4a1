package screen_test

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"agent/internal/sonny/sonnytest"
	"agent/protocol"
)

// openPlain opens Sonny in plain lines.
func openPlain(h *sonnytest.Home, dir string, args ...string) *sonnytest.Screen {
	return h.In(dir).Screen(sonnytest.Terminal{Width: 100, Height: 40}, "sonny", append([]string{"--screen", "plain"}, args...)...)
}

// onlyLines fails where anything was written but text, line ends, and the blanks that
// rub out.
func onlyLines(t *testing.T, s *sonnytest.Screen) {
	t.Helper()
	for _, b := range s.Raw() {
		if b == 0x1b || b < ' ' && !bytes.ContainsRune([]byte("\r\n\b"), rune(b)) {
			t.Fatalf("byte %#x is written in %q", b, s.Raw())
		}
	}
}

// labels are what lines may begin with.
var labels = regexp.MustCompile(`^(plain mode, because |session: |you: |demo\.[a-z0-9.-]+: |thought: |tool: |result: |task: |needs you: |notice: |error: |list: |panel: |type |an empty line closes\.|no time limit|expires in |  )`)

// labelled fails where a line has no label.
func labelled(t *testing.T, s *sonnytest.Screen) {
	t.Helper()
	for line := range strings.SplitSeq(string(s.Raw()), "\n") {
		if line = overwritten(strings.Trim(line, "\r")); strings.TrimSpace(line) != "" && !labels.MatchString(line) {
			t.Errorf("a line without a label: %q", line)
		}
	}
}

// overwritten is a line after the backspaces in it.
func overwritten(line string) string {
	var out []rune
	at := 0
	for _, r := range line {
		switch {
		case r == '\b':
			at = max(0, at-1)
			continue
		case at < len(out):
			out[at] = r
		default:
			out = append(out, r)
		}
		at++
	}
	return string(out)
}

func TestPlainMode(t *testing.T) {
	t.Parallel()
	t.Run("SO-61 a tool and an approval in labelled lines, answered by a number and Enter", func(t *testing.T) {
		h, dir := demo(t, sonnytest.Config("model = \"scripted/sonny\"\ntrust_folders = \"always\"\nrow = \"manual\"\n"))
		s := openPlain(h, dir)
		wants(t, s, "plain mode, because --screen plain", "demo.lead")
		send(s, "sh: printf 'one\\ntwo\\nthree\\n'")
		wants(t, s, "tool: shell printf", `3 lines. type "show" for output.`)
		s.WaitFor("demo.lead: {") // the reply, which is the result
		send(s, "show")
		s.Until("the output", func(screen string) bool {
			return strings.Contains(screen, "result: one\n  two\n  three")
		})

		send(s, "esc: touch "+h.Path("outside"))
		wants(t, s, "needs you: demo.lead wants to run outside the sandbox in ~/demo:", "  touch ", "reason it gave: The person asked",
			"  1 allow once", "  3 deny", "  4 REASON deny with a reason", "no time limit. answer")
		send(s, "3")
		s.WaitFor("denied by you")
		if _, err := os.Lstat(h.Path("outside")); err == nil {
			t.Error("the command ran")
		}

		h.Until("the turn's end", func() bool { return bots(t, h)[0].Status != protocol.StatusRunning })
		send(s, "hold: touch "+h.Path("outside"))
		h.Until("the command that waits", func() bool { return bots(t, h)[0].Status == protocol.StatusRunning })
		s.Type("3")
		h.Write("demo/release", "")
		h.Until("the question", func() bool { return strings.Contains(h.Agent("approvals").Stdout, "touch") })
		if strings.Count(s.Capture(), "needs you:") != 1 {
			t.Errorf("the question was printed while a line was begun:\n%s", s.Capture())
		}
		s.Keys("Enter")
		s.Until("the second question", func(screen string) bool { return strings.Count(screen, "needs you:") == 2 })
		if out := h.Agent("approvals").Stdout; !strings.Contains(out, "touch") {
			t.Errorf("the line answered: %s", out)
		}
		send(s, "4 not now")
		s.WaitFor("denied by you: not now")
		h.Until("the message", func() bool { return strings.Contains(h.Agent("history", "--bot", "demo.lead").Stdout, `"text":"3"`) })
		onlyLines(t, s)
		labelled(t, s)
		s.Keys("C-d")
		if status := s.Exit(); status != 0 {
			t.Errorf("status %d", status)
		}
	})

	t.Run("the line is echoed as it is typed, rubbed out, and goes on after a backslash", func(t *testing.T) {
		h, dir := demo(t)
		s := openPlain(h, dir)
		s.WaitFor("demo.lead")
		s.Type("say: wrong")
		s.WaitFor("you: say: wrong")
		s.Keys("C-u")
		s.WaitGone("you:")
		s.Type("say: righx")
		s.Keys("BSpace")
		s.Type("t\\")
		s.Keys("Enter")
		s.Type("and a second line")
		s.Keys("Enter")
		s.WaitFor("demo.lead: right\n  and a second line")
		if out := h.Agent("history", "--bot", "demo.lead").Stdout; !strings.Contains(out, `say: right\nand a second line`) {
			t.Errorf("sent: %s", out)
		}
		onlyLines(t, s)
		labelled(t, s)
	})

	t.Run("SO-118 what a failed attempt printed is said to be void", func(t *testing.T) {
		h, dir := demo(t)
		s := openPlain(h, dir)
		s.WaitFor("demo.lead")
		send(s, "drop: 1")
		s.WaitFor("third paragraph")
		out := s.Capture()
		first, notice := strings.Index(out, "demo.lead: The first paragraph of three."), strings.Index(out, "notice: that attempt failed; trying again")
		again := strings.LastIndex(out, "demo.lead: The first paragraph of three.")
		if first < 0 || notice < first || again < notice || strings.Count(out, "notice: that attempt") != 1 || strings.Count(out, "third paragraph") != 1 {
			t.Errorf("in lines:\n%s", out)
		}
		onlyLines(t, s)
		labelled(t, s)
	})

	t.Run("a terminal that can do nothing gets plain lines, and is told why", func(t *testing.T) {
		h, dir := demo(t)
		s := h.In(dir).Screen(sonnytest.Terminal{Width: 80, Height: 24, Name: "dumb"}, "sonny")
		s.WaitFor("plain mode, because TERM=dumb")
		onlyLines(t, s)
	})

	t.Run("Ctrl+C interrupts, and twice at rest detaches", func(t *testing.T) {
		h, dir := demo(t)
		s := openPlain(h, dir)
		s.WaitFor("demo.lead")
		send(s, "slow: 20")
		h.Until("the turn", func() bool { l := bots(t, h); return len(l) == 1 && l[0].Status == protocol.StatusRunning })
		s.Keys("C-c")
		s.WaitFor("notice: interrupted")
		h.Until("rest", func() bool { return bots(t, h)[0].Status == protocol.StatusInterrupted })
		s.Keys("C-c")
		s.WaitFor("Ctrl+C again detaches")
		s.Keys("C-c")
		if status := s.Exit(); status != 0 {
			t.Errorf("status %d", status)
		}
		s.WaitFor("open it again: sonny resume demo.lead")
	})

	t.Run("a message is queued by a command, a steer joins, and a list is answered by a number", func(t *testing.T) {
		h, dir := demo(t)
		s := openPlain(h, dir)
		s.WaitFor("demo.lead")
		send(s, "slow: 3")
		h.Until("the turn", func() bool { l := bots(t, h); return len(l) == 1 && l[0].Status == protocol.StatusRunning })
		send(s, "/queue say: later")
		send(s, "keep it short")
		wants(t, s, "notice: steered in", "demo.lead: slow done", "demo.lead: later")
		send(s, "/sessions")
		s.Until("what was sent, once", func(screen string) bool { return strings.Count(screen, "you: slow: 3") == 1 })
		wants(t, s, "list: sessions of this folder", "  1 demo.lead, demo.lead,", "r NUMBER: rename")
		send(s, "r 1")
		s.WaitFor("needs you: rename")
		send(s, "parser work")
		s.WaitFor("  1 parser work, demo.lead,")
		send(s, "d 1")
		s.WaitFor("needs you: Delete parser work (demo.lead)")
		s.Keys("Enter")
		s.Until("the list again", func(screen string) bool { return strings.Count(screen, "list: sessions") == 3 })
		s.Keys("Enter")
		if len(bots(t, h)) != 1 {
			t.Error("the bot is deleted")
		}
		onlyLines(t, s)
		labelled(t, s)
	})

	t.Run("what can be typed is told, and a line that is nothing is answered", func(t *testing.T) {
		h, dir := demo(t)
		s := openPlain(h, dir)
		s.WaitFor("demo.lead")
		send(s, "say: ready")
		s.WaitFor("demo.lead: ready")
		for _, asks := range []string{"?", "/help"} {
			send(s, asks)
			s.WaitFor("  /writable PATH: one more folder that it may write")
			if out := s.Capture(); strings.Contains(out, `"`) {
				t.Errorf("quotes:\n%s", out)
			}
			send(s, "say: after "+strings.Trim(asks, "/"))
			s.WaitFor("demo.lead: after " + strings.Trim(asks, "/"))
		}
		if n := len(turns(t, h, "demo.lead")); n != 3 {
			t.Errorf("%d turns: help was sent as a message", n)
		}
		send(s, "/keys")
		s.WaitFor("type a number: binds it anew, Backspace NUMBER: the default, / TEXT: filter. an empty line closes.")
		send(s, "/ newline")
		s.WaitFor("or Ctrl+J, a new line, newline, composer")
		send(s, "/ interrupt")
		wants(t, s, "list: keys, those with interrupt", "clear the text, interrupt, or detach, clear_or_interrupt_or_detach, global")
		for typed, said := range map[string]string{
			"nonsense": "nonsense is no number of the list and no key of it",
			"99":       "99 is no number of the list",
			"Tab 1":    "Tab 1 is no number of the list and no key of it",
			"enter":    "enter is done with a row: enter NUMBER",
		} {
			send(s, typed)
			s.WaitFor("notice: " + said)
		}
		s.Keys("Enter")

		send(s, "/approval full")
		s.WaitFor("type full, then Enter")
		send(s, "ful")
		s.WaitFor("notice: ful is not full; nothing was done.")
		s.Keys("Enter")
		send(s, "/delete")
		s.WaitFor("needs you: Delete demo.lead")
		send(s, "perhaps")
		s.WaitFor("notice: perhaps is no answer; nothing was done.")
		send(s, "no")
		send(s, "say: still here")
		s.WaitFor("demo.lead: still here")
		onlyLines(t, s)
		labelled(t, s)
	})

	t.Run("a first character that is typed means what it means everywhere", func(t *testing.T) {
		h, dir := demo(t)
		s := openPlain(h, dir)
		s.WaitFor("demo.lead")
		send(s, "say: ready")
		s.WaitFor("demo.lead: ready")
		send(s, "!echo $((40+2)) is it")
		wants(t, s, "needs you: Run echo $((40+2)) is it as you, outside any bot?", "type y for yes")
		send(s, "y")
		s.WaitFor("  42 is it")
		send(s, "!touch not-wanted")
		s.WaitFor("needs you: Run touch")
		s.Keys("Enter")
		send(s, "#a fact to keep")
		wants(t, s, "panel: save a fact", "keys: Enter yes, Esc no.")
		send(s, "perhaps")
		s.WaitFor("notice: perhaps is no key that does something here")
		send(s, "Enter")
		s.WaitFor("saved the fact a-fact-to-keep")
		send(s, "/memory")
		s.WaitFor("type a number: what is known of it")
		send(s, "1")
		s.WaitFor("  project demo · project · the person")
		s.Keys("Enter")
		send(s, "&say: a task")
		s.WaitFor("started demo.say-a-task")
		h.Until("the task's turn", func() bool {
			list := turns(t, h, "demo.say-a-task")
			return len(list) == 1 && list[0].Status == "completed"
		})
		if _, err := os.Lstat(dir + "/not-wanted"); err == nil {
			t.Error("a command ran that was not agreed to")
		}
		onlyLines(t, s)
		labelled(t, s)
	})

	t.Run("what is refused comes back into the line", func(t *testing.T) {
		h, dir := demo(t)
		s := openPlain(h, dir, "--model", "scripted/none-such")
		s.WaitFor("1 AGENTS.md")
		send(s, "say: x")
		wants(t, s, "no model none-such", "demo.lead is deleted")
		s.Until("the message, ready to be sent", func(screen string) bool { return strings.Count(screen, "you: say: x") == 2 })
		s.Keys("C-u")
		s.Until("an empty line", func(screen string) bool { return strings.Count(screen, "you: say: x") == 1 })
		send(s, "/model scripted/sonny")
		send(s, "say: y")
		s.Until("the reply", func(screen string) bool { // the first one's name may not be free yet
			return strings.Contains(screen, "demo.lead: y") || strings.Contains(screen, "demo.lead-2: y")
		})
		send(s, "/nonsense")
		s.WaitFor("no command /nonsense")
		s.Until("the command, to be mended", func(screen string) bool { return strings.Count(screen, "you: /nonsense") == 2 })
		onlyLines(t, s)
		labelled(t, s)
	})

	t.Run("a history is printed from its end, and earlier entries when they are asked for", func(t *testing.T) {
		h, dir := demo(t)
		s := openPlain(h, dir)
		s.WaitFor("demo.lead")
		for _, word := range strings.Fields("alpha beta gamma delta epsilon zeta eta theta") {
			send(s, "say: "+word)
			s.WaitFor("demo.lead: " + word)
			h.Until("rest", func() bool {
				return strings.Contains(h.Agent("show", "--bot", "demo.lead").Stdout, `"running_turn":null`)
			})
		}
		s.Keys("C-d")
		s.Exit()
		s = openPlain(h, dir)
		wants(t, s, "session: say: alpha (demo.lead), idle. 8 turns. row auto, sandbox workspace-write, network on.", "notice: 4 entries before these", "you: say: theta", "demo.lead: theta")
		if strings.Contains(s.Capture(), "demo.lead: alpha") {
			t.Error("all of it is printed")
		}
		send(s, "show earlier")
		wants(t, s, "you: say: alpha")
		labelled(t, s)
	})
}

func TestPlainModeBeforeThereIsADaemon(t *testing.T) {
	t.Parallel()
	t.Run("the first run is read out, and a key that is typed is never shown", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t, sonnytest.NoEnv, sonnytest.NoModels, sonnytest.Config("trust_folders = \"always\"\n"))
		s := openPlain(h, dir)
		wants(t, s, "plain mode, because --screen plain", "notice: Paste a key from Anthropic, OpenAI or OpenRouter, or take a number.", "notice: 4, no key, a tour")
		s.Type("xyz-secret-012345678")
		s.WaitFor("you: ********************")
		s.Keys("Enter")
		s.WaitFor("notice: Whose key is it?")
		if strings.Contains(string(s.Raw()), "secret") {
			t.Errorf("the key is shown: %q", s.Raw())
		}
		send(s, "9")
		s.WaitFor("notice: that line is no answer here.")
		send(s, "esc")
		send(s, "no key at all")
		s.WaitFor("notice: usage: a key is one line")
		send(s, "4")
		wants(t, s, "demo.lead")
		if n := strings.Count(s.Capture(), "plain mode, because"); n != 1 {
			t.Errorf("the first line is printed %d times", n)
		}
		send(s, "hello")
		s.Until("the tour", func(screen string) bool { return strings.Contains(screen, "demo.lead: ") })
		onlyLines(t, s)
		labelled(t, s)
	})

	t.Run("a folder's files are asked about in lines", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t, sonnytest.Config("model = \"scripted/sonny\"\ntrust_folders = \"ask\"\n"))
		s := openPlain(h, dir)
		wants(t, s, "notice: ~/demo brings files that agents read as instructions:", "notice: AGENTS.md", "notice: 2, open without them", "Esc leave")
		send(s, "perhaps")
		s.WaitFor("notice: that line is no answer here.")
		send(s, "2")
		s.WaitFor("Your first message makes one: demo.lead")
		kept, err := os.ReadFile(h.Path(".agent", "sonny", "trust.json"))
		if err != nil || !strings.Contains(string(kept), dir) {
			t.Errorf("the answer is not kept: %s, %v", kept, err)
		}
		onlyLines(t, s)
		labelled(t, s)
	})
}
