package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"agent/protocol"
)

// names are what stands in the workspace.
func (l *lab) names() string {
	l.t.Helper()
	list, err := os.ReadDir(l.ws)
	if err != nil {
		l.t.Fatal(err)
	}
	var names []string
	for _, d := range list {
		names = append(names, d.Name())
	}
	return strings.Join(names, " ")
}

func (l *lab) placed(ph *Placeholders) *Placed {
	l.t.Helper()
	p, err := l.plan(func(s *Setting, _ *Call) { s.NoSlashTmp = true })
	if err != nil {
		l.t.Fatal(err)
	}
	d, changed, err := ph.Place(p)
	if err != nil || changed {
		l.t.Fatal(changed, err)
	}
	return d
}

func TestPlaceholders(t *testing.T) {
	t.Parallel()
	t.Run("SB-91 they stand while a command runs, and nothing is left", func(t *testing.T) {
		l := newLab(t)
		d := l.placed(l.placeholders())
		if got := l.names(); got != ".agents .codex .git" {
			t.Errorf("during the call: %s", got)
		}
		d.Remove()
		if got := l.names(); got != "" {
			t.Errorf("after it: %s", got)
		}
		if b, err := os.ReadFile(l.path("home/.agent/state.sqlite.placeholders")); err != nil || len(b) != 0 {
			t.Errorf("the journal holds %q, %v", b, err)
		}
	})
	t.Run("the last of two calls takes them away", func(t *testing.T) {
		l := newLab(t)
		a := l.placed(l.placeholders())
		b := l.placed(l.placeholders())
		a.Remove()
		if got := l.names(); got != ".agents .codex .git" {
			t.Errorf("while the second runs: %s", got)
		}
		b.Remove()
		if got := l.names(); got != "" {
			t.Errorf("after both: %s", got)
		}
	})
	t.Run("SB-102 another daemon leaves what a command stands on", func(t *testing.T) {
		l := newLab(t)
		first := l.placed(l.placeholders())
		other, err := OpenPlaceholders(l.path("other"))
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		second := l.placed(other)
		second.Remove()
		if got := l.names(); got != ".agents .codex .git" {
			t.Errorf("the other daemon's call took away what this one stands on: %s", got)
		}
		again, err := OpenPlaceholders(l.path("home/.agent/state.sqlite.placeholders"))
		if err != nil {
			t.Fatal(err)
		}
		defer again.Close()
		if got := l.names(); got != ".agents .codex .git" {
			t.Errorf("a start took away what a command stands on: %s", got)
		}
		first.Remove()
		if got := l.names(); got != "" {
			t.Errorf("at the end: %s", got)
		}
	})
	t.Run("a daemon that was killed leaves nothing once one starts", func(t *testing.T) {
		l := newLab(t)
		d := l.placed(l.placeholders())
		for _, fd := range d.held { // what a kill does
			unix.Close(fd)
		}
		d.held = nil
		if got := l.names(); got != ".agents .codex .git" {
			t.Fatalf("before the start: %s", got)
		}
		again, err := OpenPlaceholders(l.path("home/.agent/state.sqlite.placeholders"))
		if err != nil {
			t.Fatal(err)
		}
		defer again.Close()
		if got := l.names(); got != "" {
			t.Errorf("after it: %s", got)
		}
	})
	t.Run("SB-92 what a person makes of one stays", func(t *testing.T) {
		l := newLab(t)
		d := l.placed(l.placeholders())
		if out, err := exec.Command("git", "init", "-q", l.ws).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		d.Remove()
		if got := l.names(); got != ".git" {
			t.Errorf("left: %s", got)
		}
		if out, err := exec.Command("git", "-C", l.ws, "status", "-s").CombinedOutput(); err != nil {
			t.Errorf("git: %v: %s", err, out)
		}
	})
	t.Run("SB-115 a parent that was swapped for a link leads nowhere", func(t *testing.T) {
		l := newLab(t)
		d := l.placed(l.placeholders())
		l.mkdir("home/victim/.git")
		if err := os.Rename(l.ws, l.path("home/moved")); err != nil {
			t.Fatal(err)
		}
		l.link(l.path("home/victim"), "home/ws")
		d.Remove()
		if !isDir(l.path("home/victim/.git")) {
			t.Error("an empty folder that a link led to is gone")
		}
		if got := l.tree("home/moved"); got != "" {
			t.Errorf("left in the folder that was moved: %s", got)
		}
	})
	t.Run("an empty folder of the person's stays", func(t *testing.T) {
		l := newLab(t)
		l.mkdir("home/ws/.agents")
		l.placed(l.placeholders()).Remove()
		if got := l.names(); got != ".agents" {
			t.Errorf("left: %s", got)
		}
	})
	t.Run("what appears meanwhile asks for another plan", func(t *testing.T) {
		l := newLab(t)
		p, err := l.plan(func(s *Setting, _ *Call) { s.NoSlashTmp = true })
		if err != nil {
			t.Fatal(err)
		}
		l.write("home/ws/.git/HEAD", "x")
		if _, changed, err := l.placeholders().Place(p); !changed || err != nil {
			t.Errorf("got %v, %v", changed, err)
		}
		if got := l.names(); got != ".git" {
			t.Errorf("left: %s", got)
		}
		if p, err = l.plan(func(s *Setting, _ *Call) { s.NoSlashTmp = true }); err != nil {
			t.Fatal(err)
		}
		os.RemoveAll(l.ws + "/.git")
		if _, changed, err := l.placeholders().Place(p); !changed || err != nil {
			t.Errorf("what has gone: got %v, %v", changed, err)
		}
	})
	t.Run("SB-107 an entry that was replaced is named", func(t *testing.T) {
		l := newLab(t)
		git := l.gitFolder("home/ws/.git")
		p, err := l.plan(func(s *Setting, _ *Call) { s.NoSlashTmp, s.Roots = true, []string{git} })
		if err != nil {
			t.Fatal(err)
		}
		d, _, err := l.placeholders().Place(p)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Remove()
		if got := d.Changed(); len(got) != 0 {
			t.Errorf("before: %v", got)
		}
		l.write("new", "[x]\n")
		if err := os.Rename(l.path("new"), git+"/config"); err != nil {
			t.Fatal(err)
		}
		if got := d.Changed(); len(got) != 1 || got[0] != filepath.Join(git, "config") {
			t.Errorf("after: %v", got)
		}
	})
	t.Run("SB-93 a folder of the person's own that is read-only", func(t *testing.T) {
		if os.Geteuid() == 0 {
			t.Log("uid 0 writes any folder; the suite's run as an ordinary user tests it")
			return
		}
		l := newLab(t)
		os.Chmod(l.ws, 0o555)
		defer os.Chmod(l.ws, 0o755)
		p, err := l.plan(nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = l.placeholders().Place(p)
		e, ok := err.(*protocol.Error)
		if !ok || e.Code != protocol.SandboxDenied || !strings.Contains(e.Detail, "chmod u+w "+l.ws) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("one in the making that a killed daemon left", func(t *testing.T) {
		l := newLab(t)
		folder, file := l.mkdir("home/ws/"+temporaryPrefix+"A"), l.write("home/ws/"+temporaryPrefix+"B", ".\n")
		full, theirs := l.write("home/ws/"+temporaryPrefix+"C/x", ""), l.mkdir("home/ws/.agents")
		var journal string
		for _, path := range []string{folder, file, filepath.Dir(full), theirs} {
			journal += note(fileKey{}, path)
		}
		l.write("home/.agent/state.sqlite.placeholders", journal)
		l.placeholders()
		if got := l.names(); got != ".agent-tmp-C .agents" {
			t.Errorf("left: %s", got)
		}
	})
	t.Run("many calls at once leave nothing", func(t *testing.T) {
		l := newLab(t)
		ph := l.placeholders()
		var calls sync.WaitGroup
		for range 8 {
			calls.Go(func() {
				for range 50 {
					p, err := l.plan(nil)
					if err != nil {
						t.Error(err)
						return
					}
					d, changed, err := ph.Place(p)
					if err != nil {
						t.Error(err)
						return
					}
					if !changed { // another call has taken one away since the plan
						d.Remove()
					}
				}
			})
		}
		calls.Wait()
		if got := l.tree("home/ws") + l.tree("tmp"); got != "" {
			t.Errorf("left: %s", got)
		}
		if info, err := os.Stat(l.path("home/.agent/state.sqlite.placeholders")); err != nil || info.Size() != 0 {
			t.Errorf("the journal: %v, %v", info, err)
		}
	})
	t.Run("a journal that makes no sense is begun anew", func(t *testing.T) {
		l := newLab(t)
		l.mkdir("home/.agents-not-ours")
		l.write("home/.agent/state.sqlite.placeholders", "x\n1 2\n1 2 relative\n1 2 \"/etc\"\n"+strings.Repeat("y", 4000)+"\n")
		l.placeholders()
		if b, err := os.ReadFile(l.path("home/.agent/state.sqlite.placeholders")); err != nil || len(b) != 0 {
			t.Errorf("the journal holds %q, %v", b, err)
		}
	})
}
