package screen_test

import (
	"os"
	"strings"
	"testing"

	"agent/internal/sonny/sonnytest"
)

// bare is a home in which nothing is set up.
func bare(t *testing.T) (*sonnytest.Home, string) {
	t.Helper()
	h := sonnytest.Fresh(t, sonnytest.NoEnv, sonnytest.NoModels, sonnytest.Config("trust_folders = \"always\"\n"))
	return h, h.Repo("demo", map[string]string{"README": "x\n"})
}

func TestFirstRun(t *testing.T) {
	t.Parallel()

	t.Run("SO-111 without a key the tour runs with real tools", func(t *testing.T) {
		t.Parallel()
		h, dir := bare(t)
		s := open(h, dir)
		wants(t, s, "first run", "Paste a key", "no model, no network")
		s.Type("4")
		wants(t, s, "scripted/tour", "demo.lead")
		send(s, "anything")
		h.Until("the tour's file", func() bool { _, err := os.Stat(dir + "/agent-tour.txt"); return err == nil })
		text, err := os.ReadFile(h.Path(".agent", "env"))
		if err != nil || !strings.Contains(string(text), `AGENT_PROVIDER="scripted"`) {
			t.Errorf("env: %q, %v", text, err)
		}
	})

	t.Run("putting it off is no failure of the screen", func(t *testing.T) {
		t.Parallel()
		h, dir := bare(t)
		s := open(h, dir)
		s.WaitFor("first run")
		s.Keys("Escape")
		if status := s.Exit(); status != 6 {
			t.Errorf("status %d", status)
		}
	})
}
