package host_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
