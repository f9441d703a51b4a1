package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestProject(t *testing.T) {
	t.Parallel()
	p, err := ParseProject("p", []byte("name = 'web'\ncoordinator = 'web.lead'\nmodel = 'a/b'\nreasoning = 'high'\nthreads_model = 'c/d'\nthreads_reasoning = 'low'\nthreads_in = 'project'\ncommons_invites = false\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := Project{"p", "web", "web.lead", "a/b", "high", "c/d", "low", "project", true}
	if *p != want {
		t.Errorf("%+v", p)
	}
	again, err := ParseProject("p", []byte(p.Text()))
	if err != nil || *again != want {
		t.Errorf("%+v, %v of\n%s", again, err, p.Text())
	}
	for _, row := range []struct{ name, text, words string }{
		{"a key that would widen a bot", "name = 'a'\nrow = \"full\"\n", "p:2: row is no key of project.toml, which holds name, coordinator"},
		{"a sandbox", "name = 'a'\n[sandbox_workspace_write]\nnetwork_access = true\n", "p:3: sandbox_workspace_write is no key"},
		{"no name", "model = 'a/b'\n", "p: name is missing"},
		{"a name that no bot could have", "name = '.a'\n", "p:1: name must be 1 to 64 letters"},
		{"a name that ends with a dot", "name = 'a.'\n", "p:1: name must be"},
		{"another project's coordinator", "name = 'a'\ncoordinator = 'b.lead'\n", `coordinator must be "a.lead"`},
		{"a wrong model", "name = 'a'\nmodel = 'b'\n", "p:2: model must be a model"},
		{"a wrong effort", "name = 'a'\nthreads_reasoning = 'much'\n", "threads_reasoning must be"},
		{"a wrong place", "name = 'a'\nthreads_in = 'tmp'\n", `threads_in must be "worktree" or "project"`},
		{"an invite that is no switch", "name = 'a'\ncommons_invites = 'no'\n", "commons_invites must be true or false"},
		{"no TOML", "name = \n", "p: line 1"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			_, err := ParseProject("p", []byte(row.text))
			wants(t, err, ProjectInvalid, row.words)
		})
	}
	for name, good := range map[string]bool{"a": true, "a.b-c_D9": true, "9": true, "_a": true, "": false, "-a": false, ".a": false, "a.": false, "a b": false, strings.Repeat("a", 64): true, strings.Repeat("a", 65): false} {
		if ProjectName(name) != good {
			t.Errorf("%q: %v", name, !good)
		}
	}
}

func TestTheNearestProject(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	inner := filepath.Join(top, "a", "b")
	if err := os.MkdirAll(inner, 0o700); err != nil {
		t.Fatal(err)
	}
	if p, err := FindProject(inner); p != nil || err != nil {
		t.Fatal(p, err)
	}
	for _, folder := range []string{top, filepath.Join(top, "a")} {
		if err := WriteProject(folder, &Project{Name: filepath.Base(folder)}); err != nil {
			t.Fatal(err)
		}
	}
	p, err := FindProject(inner)
	if err != nil || p.Name != "a" || p.Path != filepath.Join(top, "a", ".agents", "project.toml") {
		t.Error(p, err)
	}
}

// A bot that writes a folder above names no project there.
func TestAProjectThatOthersMayWrite(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	inner := filepath.Join(top, "a", "b")
	if err := os.MkdirAll(inner, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := WriteProject(filepath.Join(top, "a"), &Project{Name: "theirs"}); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(top, "a"), 0o777); err != nil {
		t.Fatal(err)
	}
	if p, err := FindProject(inner); p != nil || err != nil {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err := FindProject(filepath.Join(top, "a")); err != nil || p == nil || p.Name != "theirs" {
		t.Errorf("the folder's own: %+v, %v", p, err)
	}
}

func TestWriteProject(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := WriteProject(folder, &Project{Name: "first", Model: "a/b"}); err != nil {
		t.Fatal(err)
	}
	if err := WriteProject(folder, &Project{Name: "second"}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("another is in its place: %v", err)
	}
	if got := text(t, ProjectFile(folder)); got != "name = \"first\"\nmodel = \"a/b\"\n" {
		t.Error(got)
	}
	if left, _ := os.ReadDir(filepath.Join(folder, ".agents")); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
	other := t.TempDir()
	wants(t, WriteProject(other, &Project{Name: "a", Coordinator: "b.lead"}), ProjectInvalid, "coordinator")
	if left, _ := os.ReadDir(other); len(left) > 0 {
		t.Errorf("a bad project left %v", left)
	}
	if err := os.Symlink(folder, filepath.Join(other, ".agents")); err != nil {
		t.Fatal(err)
	}
	wants(t, WriteProject(other, &Project{Name: "a"}), ProjectInvalid, "is no folder")
}

func TestAProjectFileThatIsRefused(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := ProjectFile(folder)
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".real", []byte("name = 'a'\n"+strings.Repeat("#", MaxProject)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path+".real", path); err != nil {
		t.Fatal(err)
	}
	_, err := ReadProject(path)
	wants(t, err, ProjectInvalid, path+" is a link")
	_, err = ReadProject(path + ".real")
	wants(t, err, ProjectInvalid, "longer than 65536 bytes")
}

// What a project.toml says, whatever it holds, sets no key that confines, and is
// written back as it was read.
func FuzzProject(f *testing.F) {
	for _, text := range []string{"", "name = 'a'\n", "name = 'a'\nmodel = 'a/b'\ncommons_invites = false\n", "name = 'a'\nrow = 'full'\n", "name = \"a\\u0062\"\nmodel = \"p/\\\"\"\n", "name = 1\n", "[name]\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := ParseProject("p", text)
		if err != nil {
			if !strings.HasPrefix(err.Error(), string(ProjectInvalid)+": p") {
				t.Fatal(err)
			}
			return
		}
		for _, s := range p.settings() {
			k := find(ParseKey(s.Key))
			if k.Confining() {
				t.Fatalf("it sets %s", s.Key)
			}
			if _, ok := k.typed(s.Value); !ok {
				t.Fatalf("%q is no value of %s", s.Value, s.Key)
			}
		}
		again, err := ParseProject("p", []byte(p.Text()))
		if err != nil || *again != *p {
			t.Fatalf("%+v became %+v, %v", p, again, err)
		}
	})
}
