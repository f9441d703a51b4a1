package screen_test

import (
	"os"
	"strings"
	"testing"
)

func TestCommandsOfTheSession(t *testing.T) {
	t.Parallel()
	h, dir := demo(t)
	s := openAt(h, dir, 100, 30)
	s.WaitFor("1 AGENTS.md")

	t.Run("without a session they say so", func(t *testing.T) {
		for _, command := range []string{"/archive", "/delete", "/export", "/plan"} {
			send(s, command)
			s.WaitFor("the first message makes one")
			s.Keys("C-u")
			holds(s, "")
			s.WaitGone("the first message makes one")
		}
	})

	t.Run("/init makes the lead and asks it for an AGENTS.md", func(t *testing.T) {
		send(s, "/init")
		s.WaitFor("✔ done")
		if list := bots(t, h); len(list) != 1 {
			t.Errorf("bots: %s", names(list))
		}
		if turns := h.Agent("turns", "--bot", "demo.lead").Stdout; !strings.Contains(turns, "Draft an AGENTS.md") || strings.Contains(turns, "/init") {
			t.Errorf("it was asked for %s", turns)
		}
	})

	t.Run("/plan shows the steps and how many are done", func(t *testing.T) {
		send(s, "/plan")
		s.WaitFor("it has no plan")
		s.Keys("Escape")
		s.WaitGone("── plan of demo.lead")
		turnOf(s, func() { send(s, "plan: read it;write it;test it") })
		send(s, "/plan")
		wants(t, s, "── plan of demo.lead", "/3 ─", "] read it", "] write it", "] test it")
		s.Keys("Escape")
		s.WaitGone("── plan of demo.lead")
	})

	t.Run("/export writes a new file, and replaces none", func(t *testing.T) {
		send(s, "/export")
		s.WaitFor("written to ~/demo/demo.lead.md")
		at := h.Path("demo", "demo.lead.md")
		info, err := os.Stat(at)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Fatal(info, err)
		}
		text, _ := os.ReadFile(at)
		if !strings.HasPrefix(string(text), "## You\n\nDraft an AGENTS.md") || !strings.Contains(string(text), "## Reply") {
			t.Errorf("it holds\n%s", text)
		}
		send(s, "/export")
		s.WaitFor("is there already")
		if again, _ := os.ReadFile(at); string(again) != string(text) {
			t.Error("it was written over")
		}
		s.WaitFor("› /export") // refused, it stays
		s.Keys("C-u")
		s.WaitGone("› /export")
		send(s, "/export said --json")
		s.WaitFor("written to ~/demo/said")
		if lines, _ := os.ReadFile(h.Path("demo", "said")); !strings.HasPrefix(string(lines), `{"turn":`) {
			t.Errorf("it holds\n%s", lines)
		}
	})

	t.Run("/archive hides it from lists", func(t *testing.T) {
		send(s, "/archive")
		s.WaitFor("archived: it goes on")
		h.Until("the book to have it", func() bool {
			book, _ := os.ReadFile(h.Path(".agent", "sonny", "sessions.json"))
			return strings.Contains(string(book), `"archived":true`) || strings.Contains(string(book), `"archived": true`)
		})
		send(s, "/sessions")
		s.WaitFor("no sessions here yet")
		s.Type("X")
		s.WaitFor("▎ Draft an AGENTS.md for t… demo.lead ")
		s.Keys("Escape")
		s.WaitGone("── sessions")
	})

	t.Run("/delete waits for the turn's end, and then for a word", func(t *testing.T) {
		send(s, "sh: until [ -e release ]; do sleep 0.1; done")
		s.WaitFor("● working")
		send(s, "/delete")
		s.WaitFor("a turn runs; Esc interrupts it")
		s.Keys("C-u")
		holds(s, "")
		h.Write("demo/release", "")
		s.WaitFor("✔ done")
		send(s, "/delete")
		s.WaitFor("(demo.lead) with all that was said?")
		s.Keys("Escape")
		s.WaitGone("are you sure?")
		if list := bots(t, h); len(list) != 1 {
			t.Errorf("bots: %s", names(list))
		}
		send(s, "/delete")
		s.WaitFor("(demo.lead) with all that was said?")
		s.Type("y")
		s.WaitFor("new lead")
		h.Until("the bot to be gone", func() bool { return len(bots(t, h)) == 0 })
	})
}
