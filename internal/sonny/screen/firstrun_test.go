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

	t.Run("the sandbox is tried beside the screen, and what is set is changed from its rows", func(t *testing.T) {
		t.Parallel()
		h, dir := bare(t)
		s := open(h, dir)
		wants(t, s, "first run", "✔ commands are confined, and the network where it is off")
		s.Type("6")
		wants(t, s, "── sandbox ", "ok    sandbox.program", "ok    sandbox.run", "ok    sandbox.network")
		s.Keys("Escape")
		s.WaitFor("Paste a key")
		s.Keys("Down", "Down", "Down", "Down", "Down", "Enter")
		s.WaitFor("── who is asked")
		s.Keys("Down", "Enter")
		wants(t, s, "Paste a key", "asks      manual: you decide")
		s.Type("7")
		s.WaitFor("── extras")
		s.Keys("Enter")
		s.WaitFor("memory         off")
		rung := strings.Count(string(s.Raw()), "\a")
		s.Type("3")
		s.WaitFor("sent by bell")
		h.Until("the bell", func() bool { return strings.Count(string(s.Raw()), "\a") > rung })
		s.Keys("Escape")
		s.WaitFor("memory off · notifications on")
		config, err := os.ReadFile(h.Path(".agent", "config.toml"))
		if err != nil || !strings.Contains(string(config), `row = "manual"`) || !strings.Contains(string(config), "enabled = false") {
			t.Errorf("%v in\n%s", err, config)
		}
		s.Type("4") // and a lead is made by what was set
		wants(t, s, "manual: you decide", "scripted/tour")
	})

	t.Run("in lines each row has its number, and a model is named", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t, sonnytest.Config("trust_folders = \"always\"\n"))
		h.Write(".agent/models", "scripted/sonny\nscripted/judge-allow\n")
		s := h.In(dir).Screen(sonnytest.Terminal{Width: 100, Height: 60}, "sonny", "setup", "--screen", "plain")
		wants(t, s, "notice: 5 model, scripted/sonny, suggested", "notice: 6 asks, auto", "notice: 7 sandbox, ✔ commands are confined")
		send(s, "6")
		s.WaitFor("notice: who is asked: type a number to take it.")
		send(s, "please 4")
		s.WaitFor("notice: that line is no answer here.")
		send(s, "4")
		wants(t, s, "notice: Row full: nothing is confined", "notice: type full, then Enter. an empty line means no.")
		send(s, "")
		send(s, "wrongkey1")
		s.WaitFor("notice: whose key is it?")
		send(s, "second_KEY")
		s.Until("the question again", func(screen string) bool { return strings.Count(screen, "notice: whose key is it?") == 2 })
		send(s, "")
		send(s, "5")
		wants(t, s, "notice: model, 2 models", "notice: effort default (Tab), [x] use for new folders")
		send(s, "judge")
		s.WaitFor("notice: 5 model, scripted/judge-allow")
		send(s, "8")
		wants(t, s, "notice: 1, memory, on")
		send(s, "1")
		s.WaitFor("notice: 1, memory, off")
		send(s, "esc")
		s.WaitFor("notice: 8 extras, memory off")
		send(s, "esc") // with what is done: a provider is there
		if status := s.Exit(); status != 0 {
			t.Errorf("status %d", status)
		}
		if raw := string(s.Raw()); strings.Contains(raw, "wrongkey") || strings.Contains(raw, "second_KEY") {
			t.Errorf("a key is shown:\n%s", raw)
		}
		if config, err := os.ReadFile(h.Path(".agent", "config.toml")); err != nil || strings.Contains(string(config), "row =") || !strings.Contains(string(config), `model = "scripted/judge-allow"`) {
			t.Errorf("%v in\n%s", err, config)
		}
		onlyLines(t, s)
		labelled(t, s)
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
