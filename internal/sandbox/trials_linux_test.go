package sandbox

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// The plan of the trial ground refuses every trial but the first, whichever
// launcher carries it out.
func TestTrialsConfined(t *testing.T) {
	launch := launcher(t)
	g := ground(t)
	l := newLab(t)
	p, err := g.plan()
	if err != nil {
		t.Fatal(err)
	}
	placed, changed, err := l.placeholders().Place(p)
	if err != nil || changed {
		t.Fatal(changed, err)
	}
	defer placed.Remove()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c, err := launch.Prepare(t.Context(), placed.Plan, []string{self, trialsVerb}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	cmd := exec.CommandContext(t.Context(), c.Argv[0], c.Argv[1:]...)
	cmd.Env, cmd.Dir, cmd.ExtraFiles = c.Env, c.Dir, c.Files
	got := tried(t, cmd)
	want := trials{
		WroteSibling: int(syscall.EROFS), MadeGit: int(syscall.EEXIST), MovedPinned: int(syscall.EBUSY),
		ListedWall: int(syscall.EACCES), ReadWall: int(syscall.EACCES), Connected: int(syscall.EACCES),
	}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
