package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"agent/internal/sonny/sonnytest"
)

func TestInAFolderThatIsGone(t *testing.T) {
	t.Parallel()
	h := demo(t)
	ok(t, h, "exec", "--quiet", "say: hi")
	sonny := filepath.Join(sonnytest.Programs(t), "sonny")
	in := func(args string) sonnytest.Ran {
		return h.Run("sh", "-c", `mkdir -p tree && cd tree && rmdir ../tree && exec "$0" `+args, sonny)
	}
	for _, args := range []string{"status", "pause for now", "unpause", "sessions", "sessions --json", "usage", "config list", "config get model", "doctor"} {
		r := in(args)
		if said := r.Stdout + r.Stderr; strings.Contains(said, "getwd") || r.Exit != 0 && args != "doctor" {
			t.Errorf("%s: exit %d: %s", args, r.Exit, said)
		}
	}
	if r := in("sessions"); !strings.Contains(r.Stdout, "FOLDER") || !strings.Contains(r.Stdout, h.Path("demo")) {
		t.Errorf("sessions lists no other folder's:\n%s", r.Stdout)
	}
	if r := in("doctor"); !strings.Contains(r.Stdout, "store") {
		t.Errorf("doctor checked nothing: %s%s", r.Stdout, r.Stderr)
	}
	if r := in("exec 'say: x'"); r.Exit == 0 {
		t.Errorf("a bot was made in no folder: %s", r.Stdout)
	}
}
