package screen_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"agent/internal/sonny/host/panes"
	"agent/internal/sonny/sonnytest"
)

// lookedAt looks at a screen and away again, each once its record says so.
func lookedAt(h *sonnytest.Home, s *sonnytest.Screen) {
	looked := func() (at time.Time) {
		h.Until("the screen's record", func() bool {
			var r panes.Record
			text, err := os.ReadFile(h.Path(".agent", "sonny", "attached", fmt.Sprintf("%d.json", s.PID())))
			if err != nil || json.Unmarshal(text, &r) != nil {
				return false
			}
			at = r.Looked
			return true
		})
		return at
	}
	for _, in := range []bool{true, false} {
		before := looked()
		s.Focus(in)
		h.Until("the record of the look", func() bool { return looked().After(before) })
	}
}

// settings are a fresh home's with some of one's own.
func settings(more string) sonnytest.Option {
	return sonnytest.Config("model = \"scripted/sonny\"\njudge_model = \"scripted/judge-allow\"\ntrust_folders = \"always\"\n" + more)
}

func TestNotifications(t *testing.T) {
	t.Parallel()

	t.Run("SO-96 the end of a turn is told of where nobody looks, once, and not where somebody does", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t, settings("[notifications]\nroute = \"osc9\"\nmin_turn = \"1s\"\n"))
		s := open(h, dir)
		s.WaitFor("1 AGENTS.md")
		s.Focus(true)
		send(s, "slow: 3")
		s.WaitFor("✔ done")
		if raw := string(s.Raw()); strings.Contains(raw, "\x1b]9;sonny") {
			t.Error("it notified although somebody looked")
		}
		from := len(s.Raw())
		send(s, "slow: 3")
		s.WaitFor("working")
		s.Focus(false)
		s.WaitRaw(from, "\x1b]9;sonny: demo.lead: demo.lead is done")
		if n := strings.Count(string(s.Raw()[from:]), "\x1b]9;sonny"); n != 1 {
			t.Errorf("%d notifications", n)
		}
	})

	t.Run("with notifications.content a call's command is told, without it the tool alone", func(t *testing.T) {
		t.Parallel()
		for content, want := range map[string]string{"true": "asks to use shell: touch x", "false": "asks to use shell\x1b"} {
			h, dir := demo(t, settings("row = \"manual\"\n[notifications]\nroute = \"osc9\"\ncontent = "+content+"\n"))
			s := open(h, dir)
			s.WaitFor("1 AGENTS.md")
			s.Focus(false)
			send(s, "esc: touch x")
			s.WaitRaw(0, "\x1b]9;sonny: demo.lead: demo.lead "+want)
		}
	})

	t.Run("a terminal that is known to show progress shows it while the bot works", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t)
		s := open(h.With("TERM_PROGRAM=ghostty"), dir)
		s.WaitFor("1 AGENTS.md")
		send(s, "sh: until [ -e release ]; do sleep 0.1; done")
		s.WaitRaw(0, "\x1b]9;4;3\x1b\\")
		h.Write("demo/release", "")
		s.WaitRaw(0, "\x1b]9;4;0\x1b\\")
		other := open(h, dir)
		other.WaitFor("since ")
		turnOf(other, func() { send(other, "say: hi") })
		if strings.Contains(string(other.Raw()), "\x1b]9;4;") {
			t.Error("another terminal was told too")
		}
	})

	t.Run("of two screens the one that last had focus tells, and with none the command does", func(t *testing.T) {
		t.Parallel()
		told := t.TempDir() + "/told"
		h, dir := demo(t, settings("row = \"manual\"\n[notifications]\nroute = \"osc9\"\nmin_turn = \"0s\"\ncommand = [\"sh\", \"-c\", 'echo \"$1 $2\" >> "+told+"', \"tell\"]\n"))
		one := resting(t, h, dir)
		two := open(h, dir)
		two.WaitFor("say: ready")
		tells := func(s *sonnytest.Screen) int {
			return strings.Count(string(s.Raw()), "\x1b]9;sonny: demo.lead: demo.lead is done")
		}
		turn := func(last, other *sonnytest.Screen) {
			lookedAt(h, other)
			lookedAt(h, last)
			from := len(last.Raw())
			if ran := h.Agent("run", "--delivery", "queue", "--bot", "demo.lead", "--", "say: again"); ran.Exit != 0 {
				t.Fatal(ran.Stderr)
			}
			last.WaitRaw(from, "\x1b]9;sonny: demo.lead: demo.lead is done")
		}
		turn(two, one)
		turn(one, two)
		if a, b := tells(one), tells(two); a != 1 || b != 1 {
			t.Errorf("one told %d times, two %d times", a, b)
		}
		for _, s := range []*sonnytest.Screen{one, two} {
			s.Keys("C-d")
			s.Exit()
		}
		if left, err := os.ReadDir(h.Path(".agent", "sonny", "attached")); err != nil || len(left) != 0 {
			t.Errorf("left: %v, %v", left, err)
		}
		says := func(words string, does ...string) {
			t.Helper()
			if ran := h.Agent(does...); ran.Exit != 0 {
				t.Fatalf("%v: %s", does, ran.Stderr)
			}
			h.Until("to be told that "+words, func() bool {
				text, _ := os.ReadFile(told)
				return strings.Contains(string(text), "sonny: demo.lead demo.lead "+words)
			})
		}
		says("is done", "run", "--bot", "demo.lead", "--", "say: alone")
		says("asks you something", "run", "--detach", "--delivery", "queue", "--bot", "demo.lead", "--", "ask: Which? | red | blue")
		h.Agent("interrupt", "--bot", "demo.lead")
		says("asks to use shell", "run", "--detach", "--delivery", "queue", "--bot", "demo.lead", "--", "esc: true")
		if text, err := os.ReadFile(told); err != nil || strings.Count(string(text), "\n") != 3 {
			t.Errorf("%q, %v", text, err)
		}
	})

	t.Run("SO-124 a terminal that tells no focus counts as left when no key came for ten seconds", func(t *testing.T) {
		t.Parallel()
		out := t.TempDir() + "/told"
		h, dir := demo(t, settings("[notifications]\nroute = \"command\"\ncommand = [\"sh\", \"-c\", 'echo \"$1\" >> "+out+"']\nmin_turn = \"1s\"\n"))
		m := h.In(dir).Tmux(80, 24, "sonny", "--no-motion", "--theme", "none")
		m.WaitFor("1 AGENTS.md")
		send(m, "slow: 20")
		m.WaitFor("✔ done")
		h.Until("the notification", func() bool { _, err := os.Stat(out); return err == nil })
		text, err := os.ReadFile(out)
		if err != nil || strings.Count(string(text), "\n") != 1 {
			t.Errorf("told: %q, %v", text, err)
		}
	})
}
