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
		s.Keys("Down", "Enter")
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
		s.WaitFor("use them")
		s.Keys("Enter")
		s.WaitFor("other.lead")
		send(s, "say: x")
		s.WaitFor("✔ done")
		if shown := h.Agent("show", "--bot", "other.lead"); !strings.Contains(shown.Stdout, "ahoy") {
			t.Errorf("the instructions: %s", shown.Stdout)
		}
	})

	t.Run("leaving leaves nothing", func(t *testing.T) {
		t.Parallel()
		h := sonnytest.Fresh(t, asks)
		dir := h.Repo("demo", files)
		s := open(h, dir)
		s.WaitFor("use them")
		s.Keys("Escape")
		if status := s.Exit(); status != 0 {
			t.Errorf("status %d", status)
		}
		if _, err := os.Lstat(h.Path(".agent", "state.sqlite")); err == nil {
			t.Error("a daemon was started")
		}
	})
}
