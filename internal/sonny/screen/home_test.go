package screen_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agent/internal/sonny/sonnytest"
)

func TestHomeOnScreen(t *testing.T) {
	t.Parallel()
	t.Run("SO-130 the home bot passes work on in its own name, and writes nothing of the home folder by itself", func(t *testing.T) {
		h, dir := demo(t)
		s := open(h, dir)
		s.WaitFor("1 AGENTS.md")
		send(s, "say: first")
		s.WaitFor("✔ done")
		s.Keys("C-d")
		s.Exit()

		s = h.In(dir).Screen(size, "sonny", "home", "--no-motion", "--theme", "none")
		wants(t, s, "makes one: home", "auto · read-only · net on")
		send(s, `sh: "$AGENT_BIN" run --detach --bot demo.lead -- "say: x"`)
		h.Until("the lead's second turn", func() bool {
			return strings.Contains(h.Agent("turns", "--bot", "demo.lead").Stdout, `"from":{"bot":"home"`)
		})
		if n := strings.Count(h.Agent("turns", "--bot", "demo.lead").Stdout, `"request_id":`); n != 2 {
			t.Errorf("%d turns", n)
		}
		s.WaitFor("✔ done")
		send(s, "write: note.txt | x")
		s.WaitFor("allowed by judge")
	})
}

// headed waits until the bot on screen is the one of that name.
func headed(s screen, bot string) {
	s.Until("the screen of "+bot, func(screen string) bool { return strings.HasPrefix(screen, " "+bot+"  ") })
}

func TestABotIsNotTakenForThePersonsByItsName(t *testing.T) {
	t.Parallel()
	h, dir := demo(t)
	s := open(h, dir)
	s.WaitFor("1 AGENTS.md")
	send(s, `sh: "$AGENT_BIN" run --detach --new --bot home -- "say: x"; "$AGENT_BIN" run --detach --new --bot demo.lead-2 -- "say: y"`)
	s.WaitFor("✔ done")
	h.Until("both bots", func() bool { return names(bots(t, h)) == "demo.lead demo.lead-2 home" })

	t.Run("a bot that a lead made is not the folder's lead, also where it was opened last", func(t *testing.T) {
		send(s, "/open demo.lead-2")
		headed(s, "demo.lead-2")
		h.Until("it is noted that it was opened", func() bool {
			book, _ := os.ReadFile(filepath.Join(h.Path(".agent", "sonny"), "sessions.json"))
			return strings.Contains(string(book), `"bot": "demo.lead-2"`)
		})
		s.Keys("C-d")
		s.Exit()
		s = open(h, dir)
		headed(s, "demo.lead")
		s.Keys("C-d")
		s.Exit()
	})

	t.Run("a bot that a lead called home is not the person's own agent", func(t *testing.T) {
		s := h.In(dir).Screen(size, "sonny", "home", "--no-motion", "--theme", "none")
		wants(t, s, "bot_exists", "demo.lead made it", "agent rm --bot home")
		s.Type("say: unheard")
		s.Keys("Enter")
		holds(s, "say: unheard")
		s.Keys("C-u", "C-d")
		s.Exit()
		if ran := h.Agent("turns", "--bot", "home"); strings.Contains(ran.Stdout, "unheard") {
			t.Errorf("it was told: %s", ran.Stdout)
		}
		if ran := h.Agent("rm", "--bot", "home"); ran.Exit != 0 {
			t.Fatalf("agent rm: %s", ran.Stderr)
		}
		s = h.In(dir).Screen(size, "sonny", "home", "--no-motion", "--theme", "none")
		wants(t, s, "makes one: home")
		s.Keys("C-d")
		s.Exit()
	})
}

func TestThePersonsOwnFilesAreNotAskedAbout(t *testing.T) {
	t.Parallel()
	h, dir := demo(t, sonnytest.Config("model = \"scripted/sonny\"\ntrust_folders = \"ask\"\n"))
	h.Write(".agents/AGENTS.md", "Answer in English.\n")
	h.Write(".agents/commands/mine.md", "Mine.\n")
	h.Write("demo/.agents/commands/theirs.md", "Theirs.\n")

	t.Run("the home bot has ~/.agents, and nobody asks", func(t *testing.T) {
		s := h.In(dir).Screen(size, "sonny", "home", "--no-motion", "--theme", "none")
		wants(t, s, "makes one: home", "1 AGENTS.md")
		s.Keys("C-d")
		s.Exit()
	})

	t.Run("without a folder's files the person's own are there, and its commands are not", func(t *testing.T) {
		s := open(h, dir)
		wants(t, s, "open without them", ".agents/commands", "Esc leave")
		s.Keys("2")
		wants(t, s, "makes one: demo.lead", "1 AGENTS.md")
		s.Type("/mine")
		s.WaitFor("Mine.")
		s.Keys("C-u")
		s.Type("/theirs")
		holds(s, "/theirs")
		if strings.Contains(s.Capture(), "Theirs.") {
			t.Error("the folder's command is offered")
		}
		s.Keys("C-u", "C-d")
		s.Exit()
	})
}
