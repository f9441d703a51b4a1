package host_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agent/internal/sonny/lead"
	"agent/internal/sonny/sonnytest"
)

func TestTheScreenShowsAStart(t *testing.T) {
	t.Parallel()
	t.Run("SO-65 the panel shows the script, and nothing is made before it is allowed", func(t *testing.T) {
		h := sonnytest.Fresh(t, sonnytest.Config("model = \"scripted/sonny\"\nrow = \"manual\"\ntrust_folders = \"always\"\n"))
		dir := h.Repo("demo", map[string]string{".agents/setup": setup})
		tree := h.Path(".agent", "worktrees", "demo", "build")
		s := h.In(dir).Screen(sonnytest.Terminal{Width: 100, Height: 40}, "sonny", "--no-motion", "--theme", "none")
		s.WaitFor("demo.lead")
		s.Type("task: build | say: done")
		s.Keys("Enter")
		s.WaitFor("AGENT_SOURCE")
		if there(tree) || h.Git(dir, "branch", "--list", "agent/*") != "" {
			t.Error("something is made before the verdict")
		}
		var asked time.Time // a key that comes while the panel is just being drawn is the composer's
		s.Until("the panel has the keyboard", func(screen string) bool {
			if strings.Contains(screen, "1–4 decide") {
				return true
			}
			if time.Since(asked) > 3*time.Second {
				asked = time.Now()
				s.Keys("M-a")
			}
			return false
		})
		taken := time.Now()
		h.Until("the panel to take keys", func() bool { return time.Since(taken) > 400*time.Millisecond })
		s.Keys("1")
		h.Until("the worktree", func() bool { return there(tree) })
		h.Until("the task runs", func() bool {
			return strings.Contains(h.Agent("turns", "--bot", "demo.build").Stdout, `"completed"`)
		})
		if from, err := os.ReadFile(filepath.Join(tree, "from")); err != nil || string(from) != dir {
			t.Errorf("%q, %v", from, err)
		}
		if branches := h.Git(dir, "branch", "--list", "agent/*"); !strings.Contains(branches, "agent/demo.build") {
			t.Error(branches)
		}
	})
}

func TestAPaneBesideAScreen(t *testing.T) {
	t.Parallel()
	d := newDesk(t, scripted(t,
		calls("read it", "run_in_pane", `{"read": {"pane": "%1", "lines": 20}}`),
	))
	dir := d.Repo("demo", nil)
	d.lead(dir, lead.Full)
	attached := func() int {
		entries, _ := os.ReadDir(filepath.Join(d.sonny(), "attached"))
		return len(entries)
	}
	t.Run("SO-97 what a lead on screen inside tmux opens stands beside it, and Sonny keeps the focus", func(t *testing.T) {
		d := d.in(t)
		m := d.In(dir).Tmux(120, 30, "sonny", "--no-motion", "--theme", "none")
		m.WaitFor("demo.lead")
		d.Until("the screen's record", func() bool { return attached() == 1 })
		m.Type("pane: echo pane-ok; sleep 30")
		m.Keys("Enter")
		d.Until("what it prints", func() bool {
			return strings.Count(m.Run("list-panes", "-F", "#{pane_id}"), "%") == 2 && strings.Contains(m.Run("capture-pane", "-p", "-t", "%1"), "pane-ok")
		})
		if now := m.Format("#{pane_id}"); now != "%0" {
			t.Errorf("the focus went to %s", now)
		}
		m.WaitFor("✔ done")
		if text := d.say("demo.lead", "read it").says(); !strings.Contains(text, "pane-ok") {
			t.Error(text)
		}
		m.Keys("C-d")
		d.Until("the record is taken away", func() bool { return attached() == 0 })
	})
	t.Run("SO-97 once the screen is left there is no pane host", func(t *testing.T) {
		if code, _ := d.in(t).say("demo.lead", "pane: true").failure(); code != "no_pane_host" {
			t.Error(code)
		}
	})
}
