package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWorktreeInASandbox confines a bot to its worktree, whose git folders lie in
// the repository of its source.
func TestWorktreeInASandbox(t *testing.T) {
	t.Parallel()
	g := newGround(t, "AGENT_MODEL=t/do")
	src := g.checkout()
	common := filepath.Join(src, ".git")
	other := filepath.Join(g.dir, "other")
	g.git(src, "worktree", "add", "--quiet", other)
	in := filepath.Join(g.home, ".agent", "worktrees", "w")
	// The tests' ground lies in /tmp, which would be writable.
	g.must("run", "--new", "--worktree", "--bot", "w", "--workspace", filepath.Join(src, "sub"), "--sandbox", "workspace-write",
		"--slash-tmp", "off", "--tmpdir", "off", "--network", "on", "hi")
	do := func(command string) string {
		t.Helper()
		g.must("run", "--bot", "w", "run "+command)
		return g.must("history", "--bot", "w", "--limit", "1")
	}
	t.Run("CL-94 PO-35 SO-107 it can commit, in all of its worktree", func(t *testing.T) {
		said := do("echo new > ../file && git add -A .. && git commit --quiet -m mine && git status --porcelain")
		if !strings.Contains(said, `\"exit_code\":0`) && !strings.Contains(said, `"exit_code":0`) || g.git(src, "log", "-1", "--format=%s", "agent/w") != "mine" {
			t.Errorf("it said %s", said)
		}
	})
	for _, path := range []string{
		filepath.Join(common, "config"), filepath.Join(common, "worktrees", "other", "HEAD"), filepath.Join(common, "worktrees", "w", "commondir"),
		filepath.Join(common, "hooks", "post-commit"), filepath.Join(in, ".git"), filepath.Join(src, "file"), filepath.Join(other, "file"),
	} {
		t.Run("CL-94 PO-35 it cannot write "+strings.TrimPrefix(path, g.dir), func(t *testing.T) {
			before, _ := os.ReadFile(path)
			said := do("echo forged > '" + path + "'; rm -f '" + path + "'; mv '" + path + "' '" + path + ".old'")
			after, err := os.ReadFile(path)
			if string(before) != string(after) || before != nil && err != nil {
				t.Errorf("it has %q, %v; the bot said %s", after, err, said)
			}
			if !strings.Contains(said, "ead-only file system") && !strings.Contains(said, "esource busy") {
				t.Errorf("it said %s", said)
			}
		})
	}
	t.Run("a confined shell makes no worktree, and is told how to", func(t *testing.T) {
		said := do(`"$AGENT_BIN" run --detach --new --worktree --bot kid -- hi`)
		if !strings.Contains(said, "worktree_failed") || !strings.Contains(said, "sandbox_permissions require_escalated") {
			t.Errorf("it said %s", said)
		}
		if left := g.left(src, "kid"); len(left) > 0 {
			t.Errorf("of it is left %q", left)
		}
	})
}
