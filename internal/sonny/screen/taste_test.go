package screen_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"agent/internal/sonny/sonnytest"
)

func has(words string) func(screen string) bool {
	return func(screen string) bool { return strings.Contains(screen, words) }
}

func hasNot(words string) func(screen string) bool {
	return func(screen string) bool { return !strings.Contains(screen, words) }
}

func TestTasteHoldsAtOnce(t *testing.T) {
	t.Parallel()
	h, dir := demo(t)
	s := h.In(dir).Screen(size, "sonny", "--no-motion", "--theme", "none")
	s.WaitFor("1 AGENTS.md")
	turnOf(s, func() { send(s, "sh: seq 11 15") })
	s.WaitFor("+3 lines")
	turnOf(s, func() { send(s, "write: f.txt | hello") })
	s.WaitFor("1 + hello")
	for _, row := range []struct {
		name, key, value string
		want             func(screen string) bool
	}{
		{"more of a result stands there", "tui.fold.output", "4", hasNot("+3 lines")},
		{"nothing of it does", "tui.fold.output", "0", has("+5 lines")},
		{"of a diff how much it changed", "tui.fold.diff", "line", hasNot("1 + hello")},
		{"all of it", "tui.fold.diff", "open", has("1 + hello")},
		{"what it costs is not shown", "usage.show_cost", "false", hasNot("cost ?")},
		{"and is again", "usage.show_cost", "true", has("cost ?")},
		{"what is of the terminal opens it anew, with the session", "tui.ascii", "true", hasNot("─")},
		{"and back", "tui.ascii", "false", has("─")},
	} {
		t.Run(row.name, func(t *testing.T) {
			send(s, "/config "+row.key+" "+row.value)
			s.Until(row.key+" = "+row.value, func(screen string) bool { return row.want(screen) && strings.Contains(screen, "demo.lead") })
		})
	}

	t.Run("the title goes and comes", func(t *testing.T) {
		send(s, "/config tui.title false")
		h.Until("no title", func() bool { return s.Title() == "" })
		send(s, "/config tui.title true")
		h.Until("a title", func() bool { return strings.HasPrefix(s.Title(), "sonny: demo.lead") })
	})

	t.Run("what another program changed counts from the next message", func(t *testing.T) {
		if ran := h.Sonny("config", "set", "usage.show_cost", "false"); ran.Exit != 0 {
			t.Fatal(ran.Stderr)
		}
		turnOf(s, func() { send(s, "say: hi") })
		s.Until("no cost", hasNot("cost ?"))
	})

	t.Run("what cannot be read is refused, stays in the composer, and is not written", func(t *testing.T) {
		before, err := os.ReadFile(h.Path(".agent", "config.toml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range []struct{ typed, says string }{
			{"/theme bogus", `"bogus" is no theme`},
			{"/config tui.theme bogus", `"bogus" is no theme`},
			{"/config tui.keys.dance [\"f7\"]", `"dance" is the name of no action`},
			{"/config tui.keys.send [\"foo+bar\"]", `"send" keeps its keys`},
		} {
			send(s, row.typed)
			s.WaitFor(row.says)
			s.WaitFor("› " + row.typed)
			s.Keys("C-u")
			s.WaitGone("› " + row.typed)
		}
		if now, err := os.ReadFile(h.Path(".agent", "config.toml")); err != nil || string(now) != string(before) {
			t.Errorf("%v: %s", err, now)
		}
	})

	t.Run("or when the person is back", func(t *testing.T) {
		if ran := h.Sonny("config", "set", "usage.show_cost", "true"); ran.Exit != 0 {
			t.Fatal(ran.Stderr)
		}
		s.Focus(false)
		s.Focus(true)
		s.WaitFor("cost ?")
		send(s, "/config usage.show_cost false")
		s.Until("no cost", hasNot("cost ?"))
	})

	t.Run("what is no setting is said, and what held before holds", func(t *testing.T) {
		path := h.Path(".agent", "config.toml")
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, append(before, "\n[usage]\nshow_cost = true\n"...), 0o600); err != nil {
			t.Fatal(err)
		}
		turnOf(s, func() { send(s, "say: again") })
		s.WaitFor("config_invalid")
		if screen := s.Capture(); strings.Contains(screen, "cost ?") {
			t.Error(screen)
		}
	})
}

func TestTasteOfKeysAndLeaving(t *testing.T) {
	t.Parallel()
	with := func(t *testing.T, text string) (*sonnytest.Home, *sonnytest.Screen) {
		t.Helper()
		h, dir := demo(t, sonnytest.Config("model = \"scripted/sonny\"\njudge_model = \"scripted/judge-allow\"\ntrust_folders = \"always\"\n[tui]\n"+text))
		s := open(h, dir)
		s.WaitFor("1 AGENTS.md")
		send(s, "say: words of it")
		s.WaitFor("✔ done")
		return h, s
	}

	t.Run("tui.double_esc = false: two Esc do nothing", func(t *testing.T) {
		t.Parallel()
		h, s := with(t, "double_esc = false\n")
		s.Type("\x1b\x1b")
		at := time.Now() // an Esc is one when no key has come for a moment
		h.Until("a while to go by", func() bool { return time.Since(at) > 200*time.Millisecond })
		s.Type("typed")
		s.WaitFor("› typed")
		never(t, s, "rewind to")
	})

	for _, row := range []struct {
		value      string
		want, less []string
	}{
		{"reply", []string{"words of it", "open it again: sonny resume demo.lead"}, nil},
		{"summary", []string{"open it again: sonny resume demo.lead"}, []string{"words of it"}},
		{"nothing", nil, []string{"words of it", "open it again"}},
	} {
		t.Run("tui.on_exit = "+row.value, func(t *testing.T) {
			t.Parallel()
			_, s := with(t, "on_exit = \""+row.value+"\"\n")
			s.Keys("C-d")
			s.Exit()
			for _, words := range row.want {
				s.WaitFor(words)
			}
			for _, words := range row.less {
				never(t, s, words)
			}
		})
	}
}
