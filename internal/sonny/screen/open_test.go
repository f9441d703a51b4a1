package screen_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agent/internal/sonny/lead"
	"agent/internal/sonny/sonnytest"
	"agent/protocol"
)

func TestMain(m *testing.M) { sonnytest.Main(m) }

// screen is either driver.
type screen interface {
	Type(text string)
	Keys(names ...string)
	WaitFor(text string)
	WaitGone(text string)
	Until(what string, holds func(screen string) bool)
	Capture() string
	Exit() int
}

// size is the screen of most scenarios.
var size = sonnytest.Terminal{Width: 80, Height: 24}

// open opens Sonny in a folder, in the emulator.
func open(h *sonnytest.Home, dir string, args ...string) *sonnytest.Screen {
	return h.In(dir).Screen(size, "sonny", append([]string{"--no-motion", "--theme", "none"}, args...)...)
}

// demo is a fresh home with a git folder demo that has an AGENTS.md.
func demo(t *testing.T, options ...sonnytest.Option) (*sonnytest.Home, string) {
	t.Helper()
	h := sonnytest.Fresh(t, options...)
	return h, h.Repo("demo", map[string]string{"AGENTS.md": "Be brief.\n"})
}

// send types a message and sends it.
func send(s screen, message string) {
	s.Type(message)
	s.Keys("Enter")
}

// bots are the daemon's records, but for those that the approver judges by, which come
// when it does.
func bots(t *testing.T, h *sonnytest.Home) (list []protocol.Bot) {
	t.Helper()
	ran := h.Agent("ls")
	if ran.Exit != 0 {
		t.Fatalf("agent ls: %d\n%s", ran.Exit, ran.Stderr)
	}
	if err := json.Unmarshal([]byte(ran.Stdout), &list); err != nil {
		t.Fatalf("%v in %s", err, ran.Stdout)
	}
	return slices.DeleteFunc(list, func(b protocol.Bot) bool { return lead.Judge(&b) })
}

// names are those of bots, in their order.
func names(list []protocol.Bot) string {
	var out []string
	for _, b := range list {
		out = append(out, b.Name)
	}
	return strings.Join(out, " ")
}

// wants fails unless the screen holds all texts.
func wants(t *testing.T, s screen, texts ...string) {
	t.Helper()
	for _, text := range texts {
		s.WaitFor(text)
	}
}

func TestOpeningAFolder(t *testing.T) {
	t.Parallel()
	h, dir := demo(t)
	var first protocol.Bot

	t.Run("SO-1 a folder without a lead shows what would be made, and makes nothing", func(t *testing.T) {
		s := open(h, dir)
		wants(t, s, "new lead", "demo.lead", "auto", "workspace-write", "network on", "1 AGENTS.md")
		// An approver that starts finds out whether its judge can be made, and takes it away.
		h.Until("no bot", func() bool { return len(bots(t, h)) == 0 })
		s.Keys("C-d")
		if status := s.Exit(); status != 0 {
			t.Errorf("status %d", status)
		}
	})

	t.Run("SO-2 the first message makes the lead", func(t *testing.T) {
		s := open(h, dir)
		s.WaitFor("1 AGENTS.md")
		send(s, "say: hello there")
		s.Until("the reply", func(screen string) bool { return strings.Count(headless(screen), "hello there") == 2 })
		list := bots(t, h)
		if len(list) != 1 || list[0].Name != "demo.lead" || *list[0].Workspace != dir {
			t.Fatalf("bots: %s", names(list))
		}
		first = list[0]
		if len(first.Gates) != 1 || first.Gates[0].Tag != "auto" || first.Sandbox != "workspace-write" || !first.Network {
			t.Errorf("gates %+v, sandbox %s, network %v", first.Gates, first.Sandbox, first.Network)
		}
		s.Keys("C-d")
		s.Exit()
	})

	t.Run("SO-3 opened again it shows what was said", func(t *testing.T) {
		s := open(h, dir)
		s.Until("both messages", func(screen string) bool { return strings.Count(headless(screen), "hello there") == 2 })
		if list := bots(t, h); len(list) != 1 || list[0].ID != first.ID {
			t.Errorf("bots: %s", names(list))
		}
	})
}

func TestDetachingStopsNothing(t *testing.T) {
	t.Parallel()
	t.Run("SO-4 a turn goes on while nobody looks", func(t *testing.T) {
		h, dir := demo(t)
		s := open(h, dir)
		s.WaitFor("1 AGENTS.md")
		send(s, "slow: 3")
		s.WaitFor("working")
		s.Keys("C-d")
		s.Exit()
		h.Until("the turn to end", func() bool { return bots(t, h)[0].Status == protocol.StatusCompleted })
		s = open(h, dir)
		s.WaitFor("idle")
		out := h.Agent("history", "--bot", "demo.lead")
		for _, word := range strings.Fields(lastReply(t, out.Stdout)) {
			s.WaitFor(word)
		}
	})
}

// lastReply is the newest text of the model in a bot's history, which lists the newest
// item first.
func lastReply(t *testing.T, history string) string {
	t.Helper()
	var page struct {
		Items []struct {
			Item struct{ Role, Text string } `json:"item"`
		} `json:"items"`
	}
	if err := json.Unmarshal([]byte(history), &page); err != nil {
		t.Fatalf("%v in %s", err, history)
	}
	for _, it := range page.Items {
		if it.Item.Role == "assistant" {
			return it.Item.Text
		}
	}
	t.Fatalf("no reply in %s", history)
	return ""
}

func TestANameThatIsTaken(t *testing.T) {
	t.Parallel()
	t.Run("SO-5 another folder's lead is never opened", func(t *testing.T) {
		h := sonnytest.Fresh(t)
		a, b := filepath.Join(h.Dir, "a", "demo"), filepath.Join(h.Dir, "b", "demo")
		for _, dir := range []string{a, b} {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		s := open(h, a)
		s.WaitFor("demo.lead")
		send(s, "say: first")
		s.Until("the reply", func(screen string) bool {
			return strings.Count(headless(screen), "first") == 2 && strings.Contains(screen, "done")
		})
		s.Keys("C-d")
		s.Exit()
		s = open(h, b)
		wants(t, s, "another folder", "demo-2.lead")
		send(s, "say: x")
		s.WaitFor("✔ done")
		for _, bot := range bots(t, h) {
			turns := h.Agent("turns", "--bot", bot.Name)
			if n := strings.Count(turns.Stdout, `"turn":`); n != 1 {
				t.Errorf("%s has %d turns: %s", bot.Name, n, turns.Stdout)
			}
		}
		if list := bots(t, h); len(list) != 2 || list[0].Name != "demo-2.lead" {
			t.Errorf("bots: %s", names(list))
		}
	})
}

func TestTheDaemonGoesAway(t *testing.T) {
	t.Parallel()
	t.Run("SO-120 an ended daemon is started by Enter and by nothing else", func(t *testing.T) {
		h, dir := demo(t)
		s := open(h, dir)
		s.WaitFor("1 AGENTS.md")
		send(s, "say: first")
		s.WaitFor("✔ done")
		if ran := h.Agent("shutdown"); ran.Exit != 0 {
			t.Fatalf("shutdown: %s", ran.Stderr)
		}
		s.WaitFor("daemon stopped")
		if _, err := os.Lstat(h.Path(".agent", "state.sqlite.sock")); err == nil {
			t.Error("a daemon runs")
		}
		s.Keys("Enter")
		s.WaitGone("daemon stopped")
		send(s, "say: second")
		s.Until("the reply", func(screen string) bool { return strings.Count(headless(screen), "second") == 2 })
	})

	t.Run("SO-98 a daemon that died comes back by itself", func(t *testing.T) {
		h, dir := demo(t)
		s := open(h, dir)
		s.WaitFor("1 AGENTS.md")
		send(s, "slow: 20")
		s.WaitFor("word3")
		s.Type("a draft")
		h.KillDaemon()
		s.WaitFor("disconnected")
		s.WaitGone("disconnected")
		wants(t, s, "interrupted", "a draft")
		if n := strings.Count(h.Agent("turns", "--bot", "demo.lead").Stdout, `"turn":`); n != 1 {
			t.Errorf("%d turns", n)
		}
		s.Keys("C-c", "Enter")
		s.WaitFor("Continue.")
	})
}
