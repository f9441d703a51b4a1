package screen_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"agent/internal/sonny/sonnytest"
)

func TestTheFirstModel(t *testing.T) {
	t.Parallel()
	t.Run("SO-9 without a model the list opens on a suggestion, once", func(t *testing.T) {
		h, dir := demo(t, sonnytest.NoModels, sonnytest.Config("judge_model = \"scripted/judge-allow\"\ntrust_folders = \"always\"\n"))
		s := open(h, dir)
		s.WaitFor("1 AGENTS.md")
		send(s, "say: x")
		s.Until("the suggestion at hand", func(screen string) bool {
			for line := range strings.SplitSeq(screen, "\n") {
				if strings.Contains(line, "▎") && strings.Contains(line, "suggested") {
					return true
				}
			}
			return false
		})
		if n := len(bots(t, h)); n != 0 {
			t.Errorf("%d bots before a model was taken", n)
		}
		s.Keys("Enter")
		s.WaitFor("demo.lead")
		h.Until("the message", func() bool { return len(bots(t, h)) == 1 })
		h.Until("one turn", func() bool {
			return strings.Count(h.Agent("turns", "--bot", "demo.lead").Stdout, `"turn":`) == 1
		})
		s.Keys("C-d")
		s.Exit()
		s = open(h, dir, "--new")
		s.WaitFor("demo.lead-2")
		send(s, "say: y")
		h.Until("the second lead", func() bool { return len(bots(t, h)) == 2 })
	})

	t.Run("SO-10 a model that is refused leaves no bot, and the message", func(t *testing.T) {
		h, dir := demo(t)
		s := open(h, dir, "--model", "scripted/none-such")
		s.WaitFor("1 AGENTS.md")
		send(s, "say: x")
		s.WaitFor("no model none-such")
		s.WaitFor("› say: x")
		h.Until("no bot", func() bool { return len(bots(t, h)) == 0 })
	})
}

// A change of config.toml holds for bots that are made after it (sonny.md 20).
func TestSettingsThatChangeWhileTheScreenIsOpen(t *testing.T) {
	t.Parallel()
	h, dir := demo(t)
	extra := h.Path("extra")
	h.Write("extra/f", "")
	set := func(words ...string) {
		t.Helper()
		if r := h.Sonny(append([]string{"config"}, words...)...); r.Exit != 0 {
			t.Fatal(r.Stderr)
		}
	}
	set("set", "sandbox_workspace_write.writable_roots", `["`+extra+`"]`)
	s := open(h, dir)
	wants(t, s, "1 AGENTS.md", "auto: a judge", "~/extra", "network on")
	s.Keys("BTab")
	s.WaitFor("manual: you decide")
	set("unset", "sandbox_workspace_write.writable_roots")
	set("set", "sandbox_workspace_write.network_access", "false")
	send(s, "say: x")
	wants(t, s, "config.toml has changed; Enter makes the lead as it is shown now", "network off", "manual: you decide", "› say: x")
	s.WaitGone("~/extra")
	if n := len(bots(t, h)); n != 0 {
		t.Fatalf("%d bots", n)
	}
	s.Keys("Enter")
	s.WaitFor("✔ done")
	b := daemonOf(t, h).bot("demo.lead")
	if b.Network || slices.Contains(b.WritableRoots, extra) || len(b.Gates) != 1 || b.Gates[0].Tag != "manual" {
		t.Errorf("it is made with network %v, roots %q, gates %+v", b.Network, b.WritableRoots, b.Gates)
	}

	t.Run("a lead that follows is made by what holds then, and by none while that is invalid", func(t *testing.T) {
		set("set", "row", "look")
		s.Keys("C-x", "n")
		wants(t, s, "demo.lead works in ~/demo", "it: demo.lead-2", "look: nothing asks")
		h.Write(".agent/config.toml", "row = \"bogus\"\n")
		send(s, "say: y")
		wants(t, s, "config_invalid", "› say: y")
		if n := len(bots(t, h)); n != 1 {
			t.Errorf("%d bots", n)
		}
	})

	t.Run("a start screen that was opened while they were invalid makes its lead when they are mended", func(t *testing.T) {
		s.Keys("C-u", "C-x", "n")
		s.WaitFor("config_invalid")
		send(s, "say: mended")
		h.Write(".agent/config.toml", "row = \"other\"\n")
		s.Keys("Enter")
		wants(t, s, "\"other\"", "› say: mended")
		h.Write(".agent/config.toml", "model = \"scripted/sonny\"\njudge_model = \"scripted/judge-allow\"\ntrust_folders = \"always\"\n")
		turnOf(s, func() { s.Keys("Enter") })
		if list := turns(t, h, "demo.lead-2"); len(list) != 1 || list[0].Prompt != "say: mended" {
			t.Errorf("turns: %+v", list)
		}
	})
}

func TestSonnyOpensNoStore(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	t.Run("PO-4 the screen reaches the daemon by its socket, and opens no file of the store", func(t *testing.T) {
		h, dir := demo(t)
		s := open(h, dir)
		s.WaitFor("1 AGENTS.md")
		send(s, "say: x")
		s.WaitFor("✔ done")
		files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", s.PID()))
		if err != nil || len(files) < 3 {
			t.Fatalf("%d open files, %v", len(files), err)
		}
		for _, f := range files {
			if to, err := os.Readlink(f); err == nil && strings.Contains(to, "state.sqlite") {
				t.Errorf("it holds %s", to)
			}
		}
	})
}

func TestNoSandboxOnScreen(t *testing.T) {
	t.Parallel()
	t.Run("SO-11 a machine without a sandbox says what is missing and leaves the choice", func(t *testing.T) {
		h, dir := demo(t)
		agent := filepath.Join(t.TempDir(), "agent")
		build := exec.Command("go", "build", "-buildvcs=false", "-ldflags", "-X agent/internal/sandbox.bwrapPath=/nonexistent/bwrap", "-o", agent, "../../../cmd/agent")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if ran := h.Run(agent, "start"); ran.Exit != 0 {
			t.Fatal(ran.Stderr)
		}
		s := open(h, dir)
		s.WaitFor("1 AGENTS.md")
		send(s, "say: x")
		wants(t, s, "sandbox_unavailable", "package bubblewrap", "check again", "ask me for every call")
		if n := len(bots(t, h)); n != 0 {
			t.Errorf("%d bots", n)
		}
		s.WaitFor("› say: x")
		s.Keys("Down", "Enter")
		s.WaitFor("Type full")
		send(s, "full")
		s.WaitFor("asks everything")
		h.Until("the lead", func() bool { return len(bots(t, h)) == 1 })
	})
}

func TestTheStartScreenFollows(t *testing.T) {
	t.Parallel()
	t.Run("a lead that another Sonny makes is opened, with what was written here", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t)
		one, other := open(h, dir), open(h, dir)
		one.WaitFor("1 AGENTS.md")
		other.WaitFor("1 AGENTS.md")
		other.Type("say: my own words")
		draftSaved(h, "say: my own words")
		send(one, "say: first")
		wants(t, other, "demo.lead was made elsewhere meanwhile", "first")
		holds(other, "say: my own words")
		other.WaitFor("✔ done")
		other.Keys("Enter")
		h.Until("both turns", func() bool { return len(turns(t, h, "demo.lead")) == 2 })
		if n := len(own(t, h)); n != 1 {
			t.Errorf("%d leads", n)
		}
	})

	t.Run("while a lead beside others is written for, only its name changes", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t)
		resting(t, h, dir)
		one, other := open(h, dir, "--new"), open(h, dir, "--new")
		for _, s := range []*sonnytest.Screen{one, other} {
			wants(t, s, "demo.lead works in ~/demo. Your first message makes another lead beside", "it: demo.lead-2")
		}
		other.Type("say: mine")
		send(one, "say: second")
		wants(t, other, "demo.lead and 1 more work in ~/demo", "demo.lead-3")
		holds(other, "say: mine")
		other.Keys("Enter")
		h.Until("three leads", func() bool { return len(own(t, h)) == 3 })
	})

	t.Run("the leads of a folder are told when they are gone", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t)
		resting(t, h, dir)
		s := open(h, dir, "--new")
		s.WaitFor("demo.lead works in ~/demo")
		if _, err := h.Client().Delete(t.Context(), "demo.lead"); err != nil {
			t.Fatal(err)
		}
		s.WaitFor("No agent works in ~/demo yet. Your first message makes one: demo.lead")
	})
}
