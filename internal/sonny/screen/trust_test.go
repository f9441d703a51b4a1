package screen_test

import (
	"os"
	"strings"
	"testing"

	"agent/internal/sonny/sonnytest"
)

func TestFolderTrust(t *testing.T) {
	t.Parallel()
	asks := sonnytest.Config("model = \"scripted/sonny\"\njudge_model = \"scripted/judge-allow\"\n")
	files := map[string]string{"AGENTS.md": "Say ahoy.\n", ".agents/setup": "#!/bin/sh\n", ".agents/project.toml": "name = \"other\"\n"}

	t.Run("SO-8 opened without them a folder's files are in nothing, and the question does not come again", func(t *testing.T) {
		t.Parallel()
		h := sonnytest.Fresh(t, asks)
		dir := h.Repo("demo", files)
		s := open(h, dir)
		wants(t, s, "use them", "open without them", "leave", "AGENTS.md", ".agents/setup")
		if screen := s.Capture(); strings.Contains(screen, "other") || strings.Contains(screen, "ahoy") {
			t.Errorf("something of the folder is shown:\n%s", screen)
		}
		s.WaitFor("Esc leave")
		s.Keys("Down", "Down", "Enter")
		s.WaitFor("demo.lead")
		send(s, "say: x")
		s.WaitFor("✔ done")
		if shown := h.Agent("show", "--bot", "demo.lead"); shown.Exit != 0 || strings.Contains(shown.Stdout, "ahoy") {
			t.Errorf("%d: the instructions: %s", shown.Exit, shown.Stdout)
		}
		s.Keys("C-d")
		s.Exit()
		s = open(h, dir)
		s.Until("the lead", func(screen string) bool {
			return strings.Count(screen, "demo.lead") > 0 && !strings.Contains(screen, "use them")
		})
	})

	t.Run("used, they hold", func(t *testing.T) {
		t.Parallel()
		h := sonnytest.Fresh(t, asks)
		dir := h.Repo("demo", files)
		s := open(h, dir)
		s.Type("1. fix it") // typed ahead: it answers nothing
		wants(t, s, "use them", "Esc leave")
		s.Keys("Enter") // nothing is highlighted
		if _, err := os.Lstat(h.Path(".agent", "sonny", "trust.json")); err == nil {
			t.Fatal("keys typed ahead answered")
		}
		s.Keys("1")
		s.WaitFor("other.lead")
		send(s, "say: x")
		s.WaitFor("✔ done")
		if shown := h.Agent("show", "--bot", "other.lead"); !strings.Contains(shown.Stdout, "ahoy") {
			t.Errorf("the instructions: %s", shown.Stdout)
		}
	})

	t.Run("files that came while the screen was open are in no lead that is made then", func(t *testing.T) {
		t.Parallel()
		h := sonnytest.Fresh(t, asks)
		dir := h.Repo("demo", map[string]string{"a.txt": "x"})
		s := open(h, dir)
		s.WaitFor("makes one: demo.lead")
		h.Write("demo/AGENTS.md", "Say ahoy.\n")
		send(s, "say: x")
		wants(t, s, "AGENTS.md", "leave Sonny and open it again", "› say: x")
		if n := len(bots(t, h)); n != 0 {
			t.Errorf("%d bots", n)
		}
	})

	t.Run("leaving leaves nothing", func(t *testing.T) {
		t.Parallel()
		h := sonnytest.Fresh(t, asks)
		dir := h.Repo("demo", files)
		s := open(h, dir)
		s.WaitFor("Esc leave")
		s.Keys("Escape")
		if status := s.Exit(); status != 0 {
			t.Errorf("status %d", status)
		}
		if _, err := os.Lstat(h.Path(".agent", "state.sqlite")); err == nil {
			t.Error("a daemon was started")
		}
	})
}

func TestAnInvalidProjectFile(t *testing.T) {
	t.Parallel()
	h, dir := demo(t)
	h.Write("demo/.agents/project.toml", "name = \"other\"\nrow = \"full\"\n")

	t.Run("it is named with its line and key, and leaving leaves nothing", func(t *testing.T) {
		s := open(h, dir)
		wants(t, s, "project_invalid", "project.toml:2", "row", "open without it", "leave")
		s.WaitFor("Esc leave")
		s.Keys("2")
		if status := s.Exit(); status != 0 {
			t.Errorf("status %d", status)
		}
		if _, err := os.Lstat(h.Path(".agent", "state.sqlite")); err == nil {
			t.Error("a daemon was started")
		}
	})

	t.Run("opened without it the lead is the folder's, and nothing of it holds", func(t *testing.T) {
		s := open(h, dir)
		s.WaitFor("Esc leave")
		s.Keys("1")
		wants(t, s, "demo.lead", "auto")
		send(s, "say: x")
		s.WaitFor("✔ done")
		if list := own(t, h); len(list) != 1 || list[0].Name != "demo.lead" || len(list[0].Gates) != 1 {
			t.Errorf("%+v", list)
		}
		s.Keys("C-d")
		s.Exit()
	})

	t.Run("in plain mode and by resume it is asked as well", func(t *testing.T) {
		s := h.In(dir).Screen(size, "sonny", "--no-motion", "--screen", "plain", "resume", "demo.lead")
		wants(t, s, "project_invalid", "1, open without it", "Esc leave")
		send(s, "1")
		s.WaitFor("you: say: x")
		s.Keys("C-d")
		s.Exit()
	})

	t.Run("a command fails, and mended it opens by its name", func(t *testing.T) {
		ran := h.In(dir).Sonny("exec", "say: y")
		if ran.Exit != 1 || !strings.Contains(ran.Stderr, "project_invalid") {
			t.Errorf("%d: %s", ran.Exit, ran.Stderr)
		}
		h.Write("demo/.agents/project.toml", "name = \"other\"\n")
		s := open(h, dir, "--new")
		s.WaitFor("other.lead")
	})
}

func TestTheFilesOfAFoldersFoldersAreNamed(t *testing.T) {
	t.Parallel()
	h := sonnytest.Fresh(t, sonnytest.Config("model = \"scripted/sonny\"\n"))
	all := map[string]string{".agents/skills/plan/SKILL.md": "x", ".agents/setup": "#!/bin/sh\n"}
	for _, name := range strings.Fields("a b c d e f g h i j k") {
		all[".agents/skills/plan/"+name] = name
	}
	dir := h.Repo("demo", all)
	for _, size := range []sonnytest.Terminal{{Width: 80, Height: 24}, {Width: 40, Height: 12}, {Width: 20, Height: 6}} {
		s := h.In(dir).Screen(size, "sonny", "--no-motion", "--theme", "none")
		s.WaitFor("· PgDn")
		s.Keys("1") // not before the end was in view
		var seen strings.Builder
		for before := ""; ; {
			screen := s.Capture()
			seen.WriteString(strings.Join(strings.Fields(screen), ""))
			if !strings.Contains(screen, "· PgDn") {
				break
			}
			before = screen
			s.Keys("PageDown")
			s.Until("the next page", func(screen string) bool { return screen != before })
		}
		for _, want := range []string{".agents/setup", ".agents/skills/plan/SKILL.md", ".agents/skills/plan/k", "1usethem", "3leave"} {
			if !strings.Contains(seen.String(), want) {
				t.Errorf("%dx%d: %s was not shown", size.Width, size.Height, want)
			}
		}
		s.Keys("Escape")
		s.Exit()
	}
	s := open(h, dir)
	wants(t, s, "1  use them", "3  leave", "· PgDn: read")
	s.Keys("PageDown")
	wants(t, s, ".agents/setup runs as you", "1–3 or")
	s.Keys("1")
	s.WaitFor("demo.lead")
}

// What the person said was lost: it is said, and asked anew.
func TestADamagedTrustFileIsToldAndAsksAnew(t *testing.T) {
	t.Parallel()
	h := sonnytest.Fresh(t, sonnytest.Config("model = \"scripted/sonny\"\njudge_model = \"scripted/judge-allow\"\n"))
	dir := h.Repo("demo", map[string]string{"AGENTS.md": "Say ahoy.\n"})
	h.Write(".agent/sonny/trust.json", "\x00\x91nothing")
	h.Write(".agent/sonny/state.json", "\x00\x91nothing")
	s := h.In(dir).Screen(sonnytest.Terminal{Width: 200, Height: 24}, "sonny", "--no-motion", "--theme", "none")
	wants(t, s, "use them", "Esc leave")
	s.Keys("2")
	s.WaitFor("makes one: demo.lead")
	send(s, "/notices")
	wants(t, s, "trust.json is damaged and is begun anew", "state.json is damaged and is begun anew")
	s.Keys("Escape")
	s.WaitGone("is begun anew")
	send(s, "say: x")
	s.WaitFor("✔ done")
	if shown := h.Agent("show", "--bot", "demo.lead"); shown.Exit != 0 || strings.Contains(shown.Stdout, "ahoy") {
		t.Errorf("%d: the instructions: %s", shown.Exit, shown.Stdout)
	}
}

// Where the home folder itself is opened the person's own agent is offered first.
func TestTheHomeFolder(t *testing.T) {
	t.Parallel()
	t.Run("their own agent", func(t *testing.T) {
		t.Parallel()
		h := sonnytest.Fresh(t)
		s := open(h, h.Dir)
		wants(t, s, "your home folder", "1  open sonny home", "could write all of your home folder", "Esc leave")
		s.Keys("1")
		s.WaitFor("makes one: home")
		s.WaitFor("read-only")
	})
	t.Run("a lead, which is not asked about again once it is there", func(t *testing.T) {
		t.Parallel()
		h := sonnytest.Fresh(t)
		s := open(h, h.Dir)
		s.WaitFor("Esc leave")
		s.Keys("2")
		s.WaitFor(".lead")
		send(s, "say: hi")
		s.WaitFor("✔ done")
		s.Keys("C-d")
		s.Exit()
		s = open(h, h.Dir)
		s.WaitFor("› say: hi")
		never(t, s, "your home folder")
	})
	t.Run("/ is read only", func(t *testing.T) {
		t.Parallel()
		h := sonnytest.Fresh(t)
		s := open(h, "/")
		s.WaitFor("makes one")
		s.WaitFor("read-only")
		send(s, "say: hi")
		s.WaitFor("✔ done")
	})
}
