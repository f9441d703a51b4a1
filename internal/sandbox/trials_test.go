package sandbox

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestTrialsFault(t *testing.T) {
	t.Parallel()
	refused := int(syscall.EPERM)
	good := trials{0, refused, refused, refused, int(syscall.EACCES), refused, refused}
	if f := good.fault(); f != "" {
		t.Errorf("a good one: %s", f)
	}
	for want, spoil := range map[string]func(*trials){
		"keeps commands from writing in a writable folder":                         func(t *trials) { t.WroteRoot = refused },
		"lets commands write outside":                                              func(t *trials) { t.WroteSibling = 0 },
		"lets commands make a .git":                                                func(t *trials) { t.MadeGit = 0 },
		"lets commands rename a folder":                                            func(t *trials) { t.MovedPinned = 0 },
		"lets commands list a hidden folder":                                       func(t *trials) { t.ListedWall = 0 },
		"lets commands read in a hidden folder":                                    func(t *trials) { t.ReadWall = 0 },
		"lets commands connect to a socket":                                        func(t *trials) { t.Connected = 0 },
		"connect to a socket in a hidden folder could not be found out (error -1)": func(t *trials) { t.Connected = -1 },
		"make a .git could not be found out":                                       func(t *trials) { t.MadeGit = int(syscall.ENOENT) },
	} {
		bad := good
		spoil(&bad)
		if got := bad.fault(); !strings.Contains(got, want) {
			t.Errorf("%s: got %q", want, got)
		}
	}
}

// tried runs the trials in a process of their own, whose folder is the ground's
// workspace.
func tried(t *testing.T, cmd *exec.Cmd) (got trials) {
	t.Helper()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return got
}

// Outside of a sandbox every trial goes through: what is refused inside is refused
// by the sandbox.
func TestTrialsOutside(t *testing.T) {
	t.Parallel()
	g := ground(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, trialsVerb)
	cmd.Dir = filepath.Join(g.dir, "outer/mid/ws")
	if got := tried(t, cmd); got != (trials{}) {
		t.Errorf("got %+v", got)
	}
}

func ground(t *testing.T) *trialGround {
	t.Helper()
	g, err := newTrialGround()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.close)
	return g
}
