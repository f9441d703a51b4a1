package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestNoSandboxProgram plays a machine without bubblewrap: a build that fixes
// its path takes no other.
func TestNoSandboxProgram(t *testing.T) {
	t.Parallel()
	agent := filepath.Join(t.TempDir(), "agent")
	build := exec.Command("go", "build", "-buildvcs=false", "-ldflags", "-X agent/internal/sandbox.bwrapPath=/nonexistent/bwrap", "-o", agent, "../../cmd/agent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	g := newGround(t)
	run := func(args ...string) ran {
		cmd := g.command(args...)
		cmd.Path = agent
		return finish(t, cmd)
	}
	t.Run("CL-40 PO-32 PR-65 SB-65 no bot is made that cannot be confined", func(t *testing.T) {
		for _, mode := range []string{"read-only", "workspace-write"} {
			r := run("run", "--new", "--bot", "Ada", "--model", "t/echo", "--sandbox", mode, "hi")
			if r.status != 1 || r.code() != "sandbox_unavailable" || !strings.Contains(r.stderr, "install the package bubblewrap") || r.stdout != "" {
				t.Errorf("%s: exit %d: %s%s", mode, r.status, r.stdout, r.stderr)
			}
		}
		if r := run("ls"); r.stdout != "[]\n" {
			t.Errorf("a bot was made: %s", r.stdout)
		}
	})
	t.Run("one that is not to be confined is made, and cannot become so", func(t *testing.T) {
		if r := run("run", "--new", "--bot", "Ada", "--model", "t/echo", "hi"); r.status != 0 {
			t.Errorf("exit %d: %s", r.status, r.stderr)
		}
		if r := run("configure", "--bot", "Ada", "--sandbox", "read-only"); r.code() != "sandbox_unavailable" {
			t.Errorf("configure: exit %d: %s", r.status, r.stderr)
		}
		if r := run("show", "--bot", "Ada"); !strings.Contains(r.stdout, `"sandbox":"danger-full-access"`) {
			t.Errorf("its record: %s", r.stdout)
		}
	})
	if r := run("start"); !strings.Contains(r.stdout, `"sandbox":{"available":false,"kind":"bubblewrap","detail":"`) || !strings.Contains(r.stdout, "install the package bubblewrap") {
		t.Errorf("the ready line does not say so: %s", r.stdout)
	}
}
