package skill

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agent/client/instructions"
	"agent/protocol"

	"golang.org/x/sys/unix"
)

func TestWhatIsShipped(t *testing.T) {
	t.Parallel()
	all := shipped()
	want := []string{"automation", "browser", "commons", "memory", "memory-cleanup", "plan", "sonny"}
	if got := slices.Sorted(maps.Keys(all)); !slices.Equal(got, want) {
		t.Fatalf("%q", got)
	}
	for name, files := range all {
		text := files["SKILL.md"]
		m, body, closed := instructions.ParseFrontMatter(text)
		description := m.Text("description")
		if !closed || m.Text("name") != name || description == "" || len(body) < 1000 || !PlainName(name) {
			t.Errorf("%s: its head is not right", name)
		}
		if n := len([]rune(description)); n > 160 {
			t.Errorf("%s: its description has %d characters and the index shows 160", name, n)
		}
		for file, text := range files {
			if len(text) > MaxFile {
				t.Errorf("%s/%s has %d bytes", name, file, len(text))
			}
		}
	}
	for name, text := range BuiltInRoles() {
		m, body, closed := instructions.ParseFrontMatter(text)
		if !closed || m.Text("description") == "" || len(body) < 500 {
			t.Errorf("the role %s: its head is not right", name)
		}
	}
}

// ground is a home with the skills of one version of Sonny.
type ground struct {
	*Skills
	t *testing.T
}

func text(s string) files { return files{"SKILL.md": s} }

func newGround(t *testing.T, ship set) *ground {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &ground{&Skills{home, ship}, t}
}

// update is a start of this version; it gives the one skill's outcome.
func (g *ground) update(name string) Outcome {
	g.t.Helper()
	all, err := g.Update(true)
	if err != nil {
		g.t.Fatal(err)
	}
	for _, o := range all {
		if o.Name == name {
			return o
		}
	}
	return Outcome{}
}

func (g *ground) expect(name string, state State) {
	g.t.Helper()
	if o := g.update(name); o.State != state {
		g.t.Errorf("%s is %q, want %q: %v", name, o.State, state, o.Paths)
	}
}

func (g *ground) path(names ...string) string {
	return filepath.Join(append([]string{g.home, ".agents", "skills"}, names...)...)
}

func (g *ground) holds(want string, names ...string) {
	g.t.Helper()
	if got, err := os.ReadFile(g.path(names...)); err != nil || string(got) != want {
		g.t.Errorf("%v holds %q, want %q, %v", names, got, want, err)
	}
}

func (g *ground) write(text string, names ...string) {
	g.t.Helper()
	path := g.path(names...)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		g.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		g.t.Fatal(err)
	}
}

func (g *ground) gone(names ...string) {
	g.t.Helper()
	if _, err := os.Lstat(g.path(names...)); !os.IsNotExist(err) {
		g.t.Errorf("%v is there: %v", names, err)
	}
}

func TestANewerSonny(t *testing.T) {
	t.Parallel()
	v1, v2 := set{"plan": text("one"), "memory": text("m")}, set{"plan": text("two"), "memory": text("m")}
	t.Run("SO-89 a skill that was not edited is replaced", func(t *testing.T) {
		t.Parallel()
		g := newGround(t, v1)
		g.expect("plan", Installed)
		g.expect("plan", Current)
		g.shipped = v2
		g.expect("plan", Updated)
		g.holds("two", "plan", "SKILL.md")
		g.expect("memory", Current)
		for path, mode := range map[string]os.FileMode{g.path("plan", "SKILL.md"): 0o600, g.path("plan"): 0o700, g.path(): 0o700, g.records(): 0o700} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
				t.Errorf("%s: %v, %v", path, info, err)
			}
		}
	})
	t.Run("SO-89 PO-113 one that was edited is kept, for good", func(t *testing.T) {
		t.Parallel()
		g := newGround(t, v1)
		g.update("plan")
		g.write("mine", "plan", "SKILL.md")
		g.shipped = v2
		g.expect("plan", Yours)
		g.holds("mine", "plan", "SKILL.md")
		g.write("one", "plan", "SKILL.md") // as it was written once
		g.expect("plan", Yours)
		g.holds("one", "plan", "SKILL.md")
	})
	t.Run("SO-89 PO-113 one that was deleted is still gone", func(t *testing.T) {
		t.Parallel()
		g := newGround(t, v1)
		g.update("plan")
		if err := os.RemoveAll(g.path("plan")); err != nil {
			t.Fatal(err)
		}
		g.shipped = v2
		g.expect("plan", Yours)
		g.expect("plan", Yours)
		g.gone("plan")
	})
	for name, make := range map[string]func(path string) error{
		"SO-89 a pipe":      func(path string) error { return unix.Mkfifo(path, 0o600) },
		"a link":            func(path string) error { return os.Symlink("/etc/hostname", path) },
		"a folder":          func(path string) error { return os.Mkdir(path, 0o700) },
		"a file of 257 KiB": func(path string) error { return os.WriteFile(path, make([]byte, MaxFile+1), 0o600) },
	} {
		t.Run(name+" in a file's place is left and reported", func(t *testing.T) {
			t.Parallel()
			g := newGround(t, v1)
			g.update("plan")
			path := g.path("plan", "SKILL.md")
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if err := make(path); err != nil {
				t.Fatal(err)
			}
			before, err := os.Lstat(path)
			if err != nil {
				t.Fatal(err)
			}
			g.shipped = v2
			for range 2 {
				o := g.update("plan")
				if o.State != Left || len(o.Paths) != 1 || !strings.HasPrefix(o.Paths[0], path+" ") {
					t.Errorf("%+v", o)
				}
			}
			if after, err := os.Lstat(path); err != nil || !os.SameFile(before, after) {
				t.Errorf("it is another: %v", err)
			}
			_, err = g.Restore("plan")
			if protocol.CodeOf(err) != codeLeft || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("a skill's folder that is a link is left and reported", func(t *testing.T) {
		t.Parallel()
		g := newGround(t, v1)
		elsewhere := t.TempDir()
		g.update("memory")
		if err := os.RemoveAll(g.path("plan")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(elsewhere, g.path("plan")); err != nil {
			t.Fatal(err)
		}
		g.shipped = v2
		if o := g.update("plan"); o.State != Left || !strings.HasPrefix(o.Paths[0], g.path("plan")+" ") {
			t.Errorf("%+v", o)
		}
		if list, err := os.ReadDir(elsewhere); err != nil || len(list) != 0 {
			t.Errorf("%v, %v", list, err)
		}
	})
	t.Run("PO-113 a skill of the person's own that has a shipped name stays theirs", func(t *testing.T) {
		t.Parallel()
		for _, file := range []string{"SKILL.md", "notes.md"} {
			g := newGround(t, v1)
			g.write("mine", "plan", file)
			g.expect("plan", Yours)
			g.holds("mine", "plan", file)
		}
	})
	t.Run("files beside the shipped ones are not looked at", func(t *testing.T) {
		t.Parallel()
		g := newGround(t, v1)
		g.update("plan")
		g.write("mine", "plan", "notes.md")
		g.shipped = v2
		g.expect("plan", Updated)
		g.holds("mine", "plan", "notes.md")
	})
}

func TestSkillsOfSeveralFiles(t *testing.T) {
	t.Parallel()
	v1 := set{"plan": {"SKILL.md": "one", "more/a.md": "a", "more/b.md": "b"}, "old": text("old")}
	v2 := set{"plan": {"SKILL.md": "two", "more/c.md": "c"}}
	t.Run("what is shipped no longer goes, and a folder that is then empty", func(t *testing.T) {
		t.Parallel()
		g := newGround(t, v1)
		g.update("plan")
		g.write("mine", "plan", "more", "mine.md")
		g.shipped = v2
		all, err := g.Update(true)
		if err != nil || !slices.EqualFunc(all, []State{Removed, Updated}, func(o Outcome, s State) bool { return o.State == s }) {
			t.Fatalf("%+v, %v", all, err)
		}
		g.gone("old")
		g.gone("plan", "more", "a.md")
		g.holds("c", "plan", "more", "c.md")
		g.holds("mine", "plan", "more", "mine.md")
		if all, err = g.Update(true); err != nil || len(all) != 1 || all[0].State != Current {
			t.Errorf("%+v, %v", all, err)
		}
	})
	t.Run("one edited file keeps the whole skill", func(t *testing.T) {
		t.Parallel()
		g := newGround(t, v1)
		g.update("plan")
		g.write("mine", "plan", "more", "b.md")
		g.write("mine", "old", "SKILL.md")
		g.shipped = v2
		g.expect("plan", Yours)
		g.holds("one", "plan", "SKILL.md")
		g.holds("a", "plan", "more", "a.md")
		g.holds("mine", "old", "SKILL.md")
	})
	t.Run("a file of the person's where a new one is to come keeps the whole skill", func(t *testing.T) {
		t.Parallel()
		g := newGround(t, v1)
		g.update("plan")
		g.write("mine", "plan", "more", "c.md")
		g.shipped = v2
		g.expect("plan", Yours)
		g.holds("mine", "plan", "more", "c.md")
	})
	t.Run("skills that are not wanted go, and come back", func(t *testing.T) {
		t.Parallel()
		g := newGround(t, v1)
		g.update("plan")
		g.write("mine", "old", "SKILL.md")
		if all, err := g.Update(false); err != nil || len(all) != 2 || all[0].State != Yours || all[1].State != Removed {
			t.Fatalf("%+v, %v", all, err)
		}
		g.gone("plan")
		g.holds("mine", "old", "SKILL.md")
		g.expect("plan", Installed)
	})
}

func TestAnUpdateThatWasCutShort(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		half func(g *ground)
	}{
		{"between skill and record, the first time", func(g *ground) {}},
		{"between skill and record of a newer one", func(g *ground) {
			g.shipped = set{"plan": {"SKILL.md": "one", "a.md": "a", "old.md": "old"}}
			g.update("plan")
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			g := newGround(t, set{"plan": {"SKILL.md": "two", "a.md": "b"}})
			ship := g.shipped
			row.half(g)
			cmd := exec.Command(os.Args[0], "-test.run=^TestHelper$", "-test.count=1")
			cmd.Env = append(os.Environ(), "SKILL_HELPER="+g.home)
			if out, err := cmd.CombinedOutput(); err == nil || cmd.ProcessState.ExitCode() != -1 {
				t.Fatalf("it was not killed: %v: %s", err, out)
			}
			g.holds("two", "plan", "SKILL.md")
			g.gone("plan", "old.md")
			g.shipped = ship
			g.expect("plan", Current)
			g.shipped = set{"plan": text("three")}
			g.expect("plan", Updated)
			g.gone("plan", "a.md")
		})
	}
	t.Run("among the files of a skill", func(t *testing.T) {
		t.Parallel()
		v1, v2 := set{"plan": {"SKILL.md": "one", "a.md": "a", "b.md": "b"}}, set{"plan": {"SKILL.md": "two", "a.md": "aa", "c.md": "c"}}
		g := newGround(t, v1)
		g.update("plan")
		g.write("aa", "plan", "a.md")
		g.write("half", "plan", ".SKILL.md.X.tmp")
		g.shipped = v2
		g.expect("plan", Updated)
		g.holds("two", "plan", "SKILL.md")
		g.gone("plan", "b.md")
	})
	t.Run("among the files of a first installation", func(t *testing.T) {
		t.Parallel()
		g := newGround(t, set{"plan": {"SKILL.md": "one", "a.md": "a"}})
		g.write("a", "plan", "a.md")
		g.write("half", "plan", ".SKILL.md.X.tmp")
		g.expect("plan", Updated)
		g.holds("one", "plan", "SKILL.md")
	})
}

// TestHelper updates and dies, where another test has started it.
func TestHelper(t *testing.T) {
	home := os.Getenv("SKILL_HELPER")
	if home == "" {
		return
	}
	between = func() { unix.Kill(os.Getpid(), unix.SIGKILL) }
	k := &Skills{home, set{"plan": {"SKILL.md": "two", "a.md": "b"}}}
	_, err := k.Update(true)
	t.Fatalf("it went on: %v", err)
}

func TestRestoreAndDiff(t *testing.T) {
	t.Parallel()
	g := newGround(t, set{"plan": text("one\ntwo\n")})
	g.update("plan")
	if diff, err := g.Diff("plan"); err != nil || diff != "" {
		t.Errorf("%q, %v", diff, err)
	}
	g.write("one\nmine\n", "plan", "SKILL.md")
	diff, err := g.Diff("plan")
	if err != nil || !strings.Contains(diff, "--- shipped/plan/SKILL.md\n+++ "+g.path("plan", "SKILL.md")+"\n") || !strings.Contains(diff, "\n-two\n+mine\n") {
		t.Errorf("%s, %v", diff, err)
	}
	g.expect("plan", Yours)
	o, err := g.Restore("plan")
	if err != nil || o.State != Updated || len(o.Paths) != 1 {
		t.Fatalf("%+v, %v", o, err)
	}
	g.holds("one\ntwo\n", "plan", "SKILL.md")
	if kept, err := os.ReadFile(o.Paths[0]); err != nil || string(kept) != "one\nmine\n" {
		t.Errorf("%q, %v", kept, err)
	}
	t.Run("it is Sonny's again", func(t *testing.T) {
		g.expect("plan", Current)
		g.shipped = set{"plan": text("newer")}
		g.expect("plan", Updated)
		g.holds("newer", "plan", "SKILL.md")
	})
	t.Run("one that was deleted comes back", func(t *testing.T) {
		if err := os.RemoveAll(g.path("plan")); err != nil {
			t.Fatal(err)
		}
		g.expect("plan", Yours)
		if o, err := g.Restore("plan"); err != nil || o.State != Installed {
			t.Errorf("%+v, %v", o, err)
		}
		g.holds("newer", "plan", "SKILL.md")
		g.expect("plan", Current)
	})
	t.Run("a skill that is not shipped is refused", func(t *testing.T) {
		for _, f := range []func(string) error{
			func(name string) error { _, err := g.Restore(name); return err },
			func(name string) error { _, err := g.Diff(name); return err },
		} {
			if err := f("mine"); protocol.CodeOf(err) != protocol.InvalidName || !strings.Contains(err.Error(), "plan") {
				t.Errorf("got %v", err)
			}
		}
	})
	t.Run("a pipe is said in the diff", func(t *testing.T) {
		path := g.path("plan", "SKILL.md")
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		if diff, err := g.Diff("plan"); err != nil || diff != path+" is not a regular file\n" {
			t.Errorf("%q, %v", diff, err)
		}
	})
}

func TestFoldersInTheWay(t *testing.T) {
	t.Parallel()
	g := newGround(t, set{"plan": text("one")})
	elsewhere := t.TempDir()
	if err := os.Mkdir(filepath.Join(g.home, ".agents"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, g.path()); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Update(true); protocol.CodeOf(err) != codeLeft || !strings.Contains(err.Error(), g.path()) {
		t.Errorf("got %v", err)
	}
	if list, err := os.ReadDir(elsewhere); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	g := newGround(t, set{"plan": text("---\ndescription: Plans\n---\nx"), "memory": text("m"), "gone": text("g"), "mine": text("m")})
	work := filepath.Join(g.home, "work")
	for path, text := range map[string]string{
		"work/.agents/skills/near/SKILL.md": "Near.", "work/.agents/skills/memory/SKILL.md": "Of the folder.",
		".agents/skills/bad/SKILL.md": "\xff", ".agents/skills/quiet/SKILL.md": "---\ndisable-model-invocation: true\n---\nQuiet.",
	} {
		at := filepath.Join(g.home, path)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	g.update("plan")
	g.write("edited", "mine", "SKILL.md")
	if err := os.RemoveAll(g.path("gone")); err != nil {
		t.Fatal(err)
	}
	rows, err := g.List(work, []string{"plan"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range rows {
		line := r.Name + " " + r.From + " " + string(r.State)
		if r.InIndex {
			line += " indexed"
		}
		if r.Error != "" {
			line += " unreadable"
		}
		got = append(got, line)
	}
	want := []string{
		"bad person  unreadable", "gone sonny yours", "memory folder  indexed", "mine person yours indexed",
		"near folder  indexed", "plan sonny current", "quiet person ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}
