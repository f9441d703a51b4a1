package memory

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agent/internal/place"
	"agent/protocol"

	"golang.org/x/sys/unix"
)

var day = time.Date(2026, 11, 30, 4, 0, 0, 0, time.Local)

// ground is a memory in a home of its own, on a day that the test sets.
type ground struct {
	*Memory
	t   *testing.T
	day time.Time
}

func newGround(t *testing.T) *ground {
	t.Helper()
	g := &ground{t: t, day: day}
	g.Memory = Open(t.TempDir(), func() time.Time { return g.day })
	return g
}

var demo = Scope{"demo"}

func draft(name, text string) Draft {
	return Draft{Name: name, Type: "project", Description: "About " + name, Source: "main.go:1", Text: text}
}

func (g *ground) save(s Scope, d Draft) *Saved {
	g.t.Helper()
	saved, err := g.Save(s, d)
	if err != nil {
		g.t.Fatal(err)
	}
	return saved
}

func (g *ground) index(s Scope) string {
	g.t.Helper()
	text, err := os.ReadFile(filepath.Join(g.Folder(s), indexFile))
	if err != nil {
		g.t.Fatal(err)
	}
	return string(text)
}

// put writes a file into a scope's folder.
func (g *ground) put(s Scope, name, text string) string {
	g.t.Helper()
	if err := g.makeFolder(s); err != nil {
		g.t.Fatal(err)
	}
	path := filepath.Join(g.Folder(s), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		g.t.Fatal(err)
	}
	return path
}

// tree is every file below a folder with its content.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || d.Name() == lockFile {
			return err
		}
		text, err := os.ReadFile(path)
		files[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func refused(t *testing.T, err error, code protocol.Code, says string) {
	t.Helper()
	if protocol.CodeOf(err) != code || !strings.Contains(err.Error(), says) {
		t.Errorf("got %v, want %s with %q", err, code, says)
	}
}

func TestSave(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	first := g.save(demo, draft("ci", "\nCI is slow.\r\n\n"))
	t.Run("a fact is a file and a line of the index", func(t *testing.T) {
		want := "---\nname: ci\ndescription: About ci\ntype: project\nsource: main.go:1\nverified: 2026-11-30\n---\n\nCI is slow.\n"
		if text, err := os.ReadFile(first.Path); err != nil || string(text) != want {
			t.Errorf("%q, %v", text, err)
		}
		if got := g.index(demo); got != "- ci (project, verified 2026-11-30): About ci\n" {
			t.Errorf("the index is %q", got)
		}
	})
	t.Run("the answer has its JSON shape", func(t *testing.T) {
		text, err := json.Marshal(first)
		want := fmt.Sprintf(`{"name":"ci","scope":"project demo","path":%q,"verified":"2026-11-30","replaced":false,"duplicate":false,"bytes":105,"index_bytes":46}`, first.Path)
		if err != nil || string(text) != want {
			t.Errorf("%s, want %s, %v", text, want, err)
		}
	})
	t.Run("files are 0600 in folders 0700", func(t *testing.T) {
		for path, mode := range map[string]os.FileMode{
			first.Path: 0o600, filepath.Join(g.Folder(demo), indexFile): 0o600, g.Folder(demo): 0o700,
			g.Folder(Scope{}): 0o700, filepath.Join(g.home, ".agents"): 0o700,
		} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
				t.Errorf("%s: %v, %v", path, info, err)
			}
		}
	})
	t.Run("the same text again refreshes the date", func(t *testing.T) {
		g.day = day.AddDate(0, 0, 1)
		again := g.save(demo, draft("ci", "CI is slow."))
		if !again.Duplicate || again.Replaced || again.Verified != "2026-12-01" || !strings.Contains(g.index(demo), "verified 2026-12-01") {
			t.Errorf("%+v, %s", again, g.index(demo))
		}
	})
	t.Run("another text replaces it", func(t *testing.T) {
		if r := g.save(demo, draft("ci", "CI is quick.")); !r.Replaced || r.Duplicate {
			t.Errorf("%+v", r)
		}
	})
	t.Run("PO-112 a mark stays when a turn without one saves the fact again", func(t *testing.T) {
		d := draft("page", "Says so.")
		d.By, d.External = "turn:ada/7", []string{"web_fetch", "mcp:hub", "web_fetch"}
		g.save(demo, d)
		d.By, d.External, d.Text = "turn:ada/8", nil, "Says more."
		if r := g.save(demo, d); !slices.Equal(r.External, []string{"mcp:hub", "web_fetch"}) {
			t.Errorf("%+v", r)
		}
		text, err := os.ReadFile(filepath.Join(g.Folder(demo), "page.md"))
		if err != nil || !strings.Contains(string(text), "\nby: turn:ada/8\nexternal: mcp:hub, web_fetch\n---\n") {
			t.Errorf("%s, %v", text, err)
		}
	})
	t.Run("the person's facts are apart", func(t *testing.T) {
		g.save(Scope{}, Draft{Name: "tabs", Type: "user", Description: "Tabs", Source: "the person, 2026-11-30", Text: "Tabs."})
		if got := g.index(Scope{}); strings.Contains(got, "ci") || !strings.HasPrefix(got, "- tabs (user, ") {
			t.Error(got)
		}
		if scopes, err := g.Scopes(); err != nil || !slices.Equal(scopes, []Scope{{}, demo}) {
			t.Errorf("%v, %v", scopes, err)
		}
	})
}

func TestExternalFacts(t *testing.T) {
	t.Parallel()
	t.Run("SO-90 a save of a turn that fetched is marked in file and index, a clean save keeps it, trust clears it", func(t *testing.T) {
		t.Parallel()
		g := newGround(t)
		d := draft("api", "The API has pages.")
		d.By, d.External = "turn:ada/3", []string{"web_fetch"}
		path := g.save(demo, d).Path
		marked := func() {
			t.Helper()
			if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), "\nexternal: web_fetch\n") {
				t.Errorf("%s, %v", text, err)
			}
			if got := g.index(demo); got != "- api (project, verified 2026-11-30, external): About api\n" {
				t.Error(got)
			}
		}
		marked()
		d.By, d.External, d.Text = "turn:ada/4", nil, "The API has pages of fifty."
		g.save(demo, d)
		marked()
		if r, err := g.Trust(demo, "api"); err != nil || r.Duplicate || len(r.External) > 0 {
			t.Errorf("%+v, %v", r, err)
		}
		if text, _ := os.ReadFile(path); strings.Contains(string(text), "external") || strings.Contains(g.index(demo), "external") {
			t.Errorf("%s and %s", text, g.index(demo))
		}
		if r, err := g.Trust(demo, "api"); err != nil || !r.Duplicate {
			t.Errorf("%+v, %v", r, err)
		}
		_, err := g.Trust(demo, "gone")
		refused(t, err, protocol.InvalidName, "there is no fact gone")
	})
	t.Run("PO-112 the text cannot say that a fact is not external", func(t *testing.T) {
		t.Parallel()
		g := newGround(t)
		d := draft("api", "---\nexternal: none\n---\nText")
		d.External = []string{"browser"}
		g.save(demo, d)
		d.External = nil
		if r := g.save(demo, d); !slices.Equal(r.External, []string{"browser"}) {
			t.Errorf("%+v", r)
		}
	})
}

func TestRefusedSaves(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	g.save(demo, draft("ci", "CI is slow."))
	before := tree(t, g.home)
	change := func(f func(*Draft)) Draft {
		d := draft("new", "Text.")
		f(&d)
		return d
	}
	for _, row := range []struct {
		name string
		d    Draft
		code protocol.Code
		says string
	}{
		{"a name with a capital", change(func(d *Draft) { d.Name = "New" }), protocol.InvalidName, `"New"`},
		{"a name that leads elsewhere", change(func(d *Draft) { d.Name = "../new" }), protocol.InvalidName, "no fact's name"},
		{"a name with a dash first", change(func(d *Draft) { d.Name = "-new" }), protocol.InvalidName, "not beginning with -"},
		{"the index's name", change(func(d *Draft) { d.Name = "memory" }), protocol.InvalidName, "not memory"},
		{"no name", change(func(d *Draft) { d.Name = "" }), protocol.InvalidName, `""`},
		{"a name of 65", change(func(d *Draft) { d.Name = strings.Repeat("a", 65) }), protocol.InvalidName, "1 to 64"},
		{"another type", change(func(d *Draft) { d.Type = "note" }), codeInvalidType, "user, feedback, project, reference"},
		{"a description of two lines", change(func(d *Draft) { d.Description = "a\nb" }), codeInvalidText, "the description is not one line"},
		{"a description that turns the writing", change(func(d *Draft) { d.Description = "a\u202eb" }), codeInvalidText, "the description"},
		{"a description of 301 bytes", change(func(d *Draft) { d.Description = strings.Repeat("a", 301) }), codeInvalidText, "more than 300"},
		{"no source", change(func(d *Draft) { d.Source = " " }), codeInvalidText, "the source is empty"},
		{"no text", change(func(d *Draft) { d.Text = " \n" }), codeInvalidText, "the text is empty"},
		{"a text with an escape", change(func(d *Draft) { d.Text = "a\x1b[2Jb" }), codeInvalidText, "the text has characters"},
		{"a text that is not UTF-8", change(func(d *Draft) { d.Text = "a\xff" }), codeInvalidText, "not UTF-8"},
		{"a mark that is none", change(func(d *Draft) { d.External = []string{"shell"} }), codeInvalidText, `"shell"`},
		{"a fact over 4 KiB", change(func(d *Draft) { d.Text = strings.Repeat("a", MaxFact) }), codeFactTooLarge, "more than 4096"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := g.Save(demo, row.d)
			refused(t, err, row.code, row.says)
			if now := tree(t, g.home); !equal(now, before) {
				t.Errorf("files changed: %v", now)
			}
		})
	}
	t.Run("a fact of 4 KiB fits", func(t *testing.T) {
		d := draft("full", "x")
		f := Fact{Name: d.Name, Type: d.Type, Description: d.Description, Source: d.Source, Verified: "2026-11-30", Text: "x"}
		d.Text = strings.Repeat("x", MaxFact-len(f.encode())+1)
		if r := g.save(demo, d); r.Bytes != MaxFact {
			t.Errorf("%+v", r)
		}
	})
}

func equal(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if w, ok := b[k]; !ok || v != w {
			return false
		}
	}
	return true
}

func TestAFullIndex(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	n := 0
	next := func() (*Saved, error) {
		n++
		d := draft(fmt.Sprintf("fact-%02d", n), "Text.")
		d.Description = strings.Repeat("d", 250)
		return g.Save(demo, d)
	}
	last := 0
	var err error
	for err == nil {
		before := tree(t, g.home)
		var saved *Saved
		if saved, err = next(); err == nil {
			last = saved.IndexBytes
			continue
		}
		t.Run("SO-91 a save that the index has no room for is memory_full and changes nothing", func(t *testing.T) {
			refused(t, err, codeFull, "more than 4096")
			if !equal(tree(t, g.home), before) || last < MaxIndex-300 || last > MaxIndex {
				t.Errorf("files changed, or %d bytes were not near the limit", last)
			}
		})
	}
	t.Run("after a removal there is room", func(t *testing.T) {
		if _, err := g.Remove(demo, "fact-01"); err != nil {
			t.Fatal(err)
		}
		if _, err := next(); err != nil {
			t.Error(err)
		}
	})
}

func TestRemove(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	t.Run("what was never there is a duplicate, and no folder is made", func(t *testing.T) {
		r, err := g.Remove(demo, "ci")
		if err != nil || !r.Duplicate {
			t.Errorf("%+v, %v", r, err)
		}
		if _, err := os.Stat(filepath.Join(g.home, ".agents")); !os.IsNotExist(err) {
			t.Errorf("got %v", err)
		}
	})
	g.save(demo, draft("ci", "Slow."))
	g.save(demo, draft("db", "SQLite."))
	t.Run("the file and its line go", func(t *testing.T) {
		r, err := g.Remove(demo, "ci")
		if err != nil || r.Duplicate || r.IndexBytes != len(g.index(demo)) || strings.Contains(g.index(demo), "ci") {
			t.Errorf("%+v, %v", r, err)
		}
		again, err := g.Remove(demo, "ci")
		if err != nil || !again.Duplicate {
			t.Errorf("%+v, %v", again, err)
		}
	})
	t.Run("a file that is no fact can be removed, and another one is named", func(t *testing.T) {
		g.put(demo, "bad.md", "no")
		worse := g.put(demo, "worse.md", "no")
		r, err := g.Remove(demo, "bad")
		if err != nil || len(r.Problems) != 1 || r.Problems[0].File != worse {
			t.Errorf("%+v, %v", r, err)
		}
		if r, err = g.Remove(demo, "worse"); err != nil || len(r.Problems) != 0 {
			t.Errorf("%+v, %v", r, err)
		}
	})
	t.Run("a link is not removed", func(t *testing.T) {
		path := filepath.Join(g.Folder(demo), "link.md")
		if err := os.Symlink("db.md", path); err != nil {
			t.Fatal(err)
		}
		_, err := g.Remove(demo, "link")
		refused(t, err, codeInvalid, "link.md is a link")
		if _, err := os.Lstat(path); err != nil {
			t.Error(err)
		}
	})
}

func TestWhatIsNoFact(t *testing.T) {
	t.Parallel()
	good := (&Fact{Name: "odd", Type: "user", Description: "d", Source: "s", Verified: "2026-11-30", Text: "t"}).encode()
	for _, row := range []struct {
		name string
		make func(path string) error
		says string
	}{
		{"no front matter", file("Just text.\n"), "no front matter"},
		{"an open front matter", file("---\nname: odd\n"), "a line --- is missing"},
		{"another name", file(strings.Replace(good, "odd", "even", 1)), `its name is "even"`},
		{"another type", file(strings.Replace(good, "user", "diary", 1)), `"diary" is no type`},
		{"no date", file(strings.Replace(good, "2026-11-30", "yesterday", 1)), "not YYYY-MM-DD"},
		{"no text", file(strings.TrimSuffix(good, "t\n")), "the text is empty"},
		{"an unknown mark", file(strings.Replace(good, "---\n\n", "external: shell\n---\n\n", 1)), "no mark of outside content"},
		{"what is not UTF-8", file(good + "\xff"), "not UTF-8"},
		{"a file over 4 KiB", file(good + strings.Repeat("x", MaxFact)), "longer than 4096"},
		{"a link", func(path string) error { return os.Symlink("MEMORY.md", path) }, "is a link"},
		{"a link to nothing", func(path string) error { return os.Symlink("nowhere", path) }, "is a link"},
		{"a FIFO", func(path string) error { return unix.Mkfifo(path, 0o600) }, "not a regular file"},
		{"a folder", func(path string) error { return os.Mkdir(path, 0o700) }, "not a regular file"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			g := newGround(t)
			g.save(demo, draft("ci", "Slow."))
			path := filepath.Join(g.Folder(demo), "odd.md")
			if err := row.make(path); err != nil {
				t.Fatal(err)
			}
			before := tree(t, g.Folder(demo))
			_, err := g.Save(demo, draft("db", "SQLite."))
			refused(t, err, codeInvalid, "odd.md: ")
			refused(t, err, codeInvalid, row.says)
			_, err = g.Index(demo)
			refused(t, err, codeInvalid, row.says)
			k, err := g.Check(demo)
			if err != nil || len(k.Problems) == 0 || k.Problems[0].File != path || !strings.Contains(k.Problems[0].Detail, row.says) {
				t.Errorf("%+v, %v", k, err)
			}
			if shown, err := g.Show("demo"); err != nil || shown.Project.Facts != 1 || len(shown.Project.Problems) == 0 {
				t.Errorf("%+v, %v", shown, err)
			}
			if !equal(tree(t, g.Folder(demo)), before) {
				t.Error("files changed")
			}
		})
	}
}

func file(text string) func(path string) error {
	return func(path string) error { return os.WriteFile(path, []byte(text), 0o600) }
}

func TestFoldersThatAreNone(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		make func(g *ground) error
		says string
	}{
		{"memory is a link", func(g *ground) error {
			os.Mkdir(filepath.Join(g.home, ".agents"), 0o700)
			return os.Symlink(g.t.TempDir(), g.Folder(Scope{}))
		}, "not a folder of your own"},
		{"the project's is a file", func(g *ground) error {
			os.MkdirAll(filepath.Dir(g.Folder(demo)), 0o700)
			return os.WriteFile(g.Folder(demo), nil, 0o600)
		}, "not a folder of your own"},
		{"the index is a FIFO", func(g *ground) error {
			g.makeFolder(demo)
			return unix.Mkfifo(filepath.Join(g.Folder(demo), indexFile), 0o600)
		}, "not a regular file"},
		{"the index is a link", func(g *ground) error {
			g.makeFolder(demo)
			return os.Symlink("/etc/passwd", filepath.Join(g.Folder(demo), indexFile))
		}, "not a regular file"},
		{"the lock is a link", func(g *ground) error {
			g.makeFolder(demo)
			return os.Symlink("elsewhere", filepath.Join(g.Folder(demo), lockFile))
		}, lockFile},
		{"1,025 entries", func(g *ground) error {
			g.makeFolder(demo)
			for i := range MaxEntries + 1 {
				g.put(demo, fmt.Sprintf("note-%d.txt", i), "")
			}
			return nil
		}, "more than 1024 entries"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			g := newGround(t)
			if err := row.make(g); err != nil {
				t.Fatal(err)
			}
			_, err := g.Save(demo, draft("ci", "Slow."))
			refused(t, err, codeInvalid, row.says)
		})
	}
	t.Run("~/.agents may be a link to a folder", func(t *testing.T) {
		t.Parallel()
		g := newGround(t)
		dots := t.TempDir()
		if err := os.Symlink(dots, filepath.Join(g.home, ".agents")); err != nil {
			t.Fatal(err)
		}
		g.save(demo, draft("ci", "Slow."))
		if _, err := os.Stat(filepath.Join(dots, "memory/projects/demo/ci.md")); err != nil {
			t.Error(err)
		}
	})
}

func TestScopes(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		text, project, want string
		code                protocol.Code
	}{
		{"user", "demo", "user", ""},
		{"", "demo", "project demo", ""},
		{"project other", "demo", "project other", ""},
		{"", "", "", codeProjectUnknown},
		{"demo", "demo", "", codeProjectUnknown},
		{"project ../x", "", "", codeProjectUnknown},
		{"project ", "", "", codeProjectUnknown},
		{"project x.", "", "", codeProjectUnknown},
	} {
		got, err := ParseScope(row.text, row.project)
		if protocol.CodeOf(err) != row.code || err == nil && got.String() != row.want {
			t.Errorf("%q in %q: %v, %v", row.text, row.project, got, err)
		}
	}
}

func TestShow(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	d := draft("ci", "Slow.")
	d.External = []string{"browser"}
	g.save(demo, d)
	shown, err := g.Show("demo")
	if err != nil || shown.User.Index != "" || shown.Project.Index != g.index(demo) || !slices.Equal(shown.Marks(), []string{"browser"}) {
		t.Errorf("%+v, %v", shown, err)
	}
	outside, err := g.Show("")
	text, _ := json.Marshal(outside)
	if err != nil || !strings.HasSuffix(string(text), `"index":""},"project":null}`) {
		t.Errorf("%s, %v", text, err)
	}
}

func TestRecall(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	g.save(demo, draft("parser", "It was rewritten."))
	g.save(demo, Draft{Name: "ci", Type: "project", Description: "The parser in CI", Source: "s", Text: "Slow."})
	g.save(demo, Draft{Name: "old", Type: "project", Description: "Old", Source: "s", Text: "A Parser, once."})
	g.day = day.AddDate(0, 0, 1)
	g.save(demo, Draft{Name: "new", Type: "project", Description: "New", Source: "s", Text: "A parser, again."})
	g.save(demo, Draft{Name: "web", Type: "reference", Description: "The parser's page", Source: "s", Text: "Fast.", External: []string{"web_fetch"}})
	names := func(list []Fact) (names []string) {
		for _, f := range list {
			names = append(names, f.Name)
		}
		return names
	}
	t.Run("the best first, the newer of equals, external ones apart after a line", func(t *testing.T) {
		r, err := g.Recall(demo, "PARSER?")
		if err != nil || !slices.Equal(names(r.Facts), []string{"parser", "ci", "new", "old"}) || !slices.Equal(names(r.External), []string{"web"}) {
			t.Fatalf("%+v, %v", r, err)
		}
		text, err := json.Marshal(r)
		line, external := strings.Index(string(text), "outside content"), strings.Index(string(text), `"name":"web"`)
		if err != nil || line < 0 || external < line || strings.Index(string(text), `"name":"old"`) > line || !slices.Equal(r.Marks(), []string{"web_fetch"}) {
			t.Errorf("%s, %v", text, err)
		}
	})
	t.Run("nothing fits", func(t *testing.T) {
		if r, err := g.Recall(demo, "zebra"); err != nil || len(r.Facts) != 0 || r.Facts == nil || r.Outside != "" {
			t.Errorf("%+v, %v", r, err)
		}
	})
	t.Run("a query without a word", func(t *testing.T) {
		_, err := g.Recall(demo, " ?! ")
		refused(t, err, codeInvalidText, "words to look for")
	})
	t.Run("at most eight", func(t *testing.T) {
		for i := range 12 {
			g.save(Scope{}, draft(fmt.Sprintf("many-%d", i), "Text."))
		}
		if r, err := g.Recall(Scope{}, "many"); err != nil || len(r.Facts) != 8 || r.LeftOut != 4 {
			t.Errorf("%+v, %v", r, err)
		}
	})
	t.Run("at most 16 KiB", func(t *testing.T) {
		big := Scope{"big"}
		for i := range 6 {
			g.save(big, draft(fmt.Sprintf("big-%d", i), strings.Repeat("\"x\" ", 900)))
		}
		r, err := g.Recall(big, "big")
		text, _ := json.Marshal(r)
		if err != nil || len(text) > maxRecallBytes || len(r.Facts) < 2 || len(r.Facts)+r.LeftOut != 6 {
			t.Errorf("%d facts, %d left out, %d bytes, %v", len(r.Facts), r.LeftOut, len(text), err)
		}
	})
}

func TestCrashes(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, action string
		repair       func(g *ground) error
	}{
		{"a save that was cut short is in the index after the next save", "save", func(g *ground) error { _, err := g.Save(demo, draft("db", "SQLite.")); return err }},
		{"a save that was cut short is in the index after index", "save", func(g *ground) error { _, err := g.Index(demo); return err }},
		{"a removal that was cut short is out of the index after index", "rm", func(g *ground) error { _, err := g.Index(demo); return err }},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			g := newGround(t)
			g.save(demo, draft("ci", "Slow."))
			stale := g.index(demo)
			leftover := g.put(demo, ".ci.md.ABC.tmp", "half")
			out, err := helper(t, g.home, row.action, "die").CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.Success() || exit.ExitCode() != -1 {
				t.Fatalf("it was not killed: %v: %s", err, out)
			}
			if g.index(demo) != stale {
				t.Fatal("the index was written")
			}
			k, err := g.Check(demo)
			if err != nil || len(k.Problems) != 1 || !strings.Contains(k.Problems[0].Detail, "not what the facts say") {
				t.Errorf("%+v, %v", k, err)
			}
			if err := row.repair(g); err != nil {
				t.Fatal(err)
			}
			k, err = g.Check(demo)
			if err != nil || len(k.Problems) != 0 || g.index(demo) == stale {
				t.Errorf("%+v, %v, %s", k, err, g.index(demo))
			}
			if _, err := os.Lstat(leftover); !os.IsNotExist(err) {
				t.Errorf("what a write left is still there: %v", err)
			}
		})
	}
}

func TestSavesAtOnce(t *testing.T) {
	t.Parallel()
	t.Run("SO-92 two saves at once leave both facts and one index with both", func(t *testing.T) {
		t.Parallel()
		g := newGround(t)
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				if _, err := g.Save(demo, draft(fmt.Sprintf("fact-%d", i), "Text.")); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		wholeIndex(g, 8)
	})
	t.Run("SO-92 of several programs too", func(t *testing.T) {
		t.Parallel()
		g := newGround(t)
		var all []*exec.Cmd
		for i := range 4 {
			cmd := helper(t, g.home, "many", fmt.Sprint(i))
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			all = append(all, cmd)
		}
		for _, cmd := range all {
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		}
		wholeIndex(g, 4*5)
	})
	t.Run("a lock that is never given up is waited for and named", func(t *testing.T) {
		t.Parallel()
		g := newGround(t)
		g.save(demo, draft("ci", "Slow."))
		lock, err := place.Lock(filepath.Join(g.Folder(demo), lockFile), "x")
		if err != nil {
			t.Fatal(err)
		}
		defer lock.Close()
		g.patience = time.Millisecond
		_, err = g.Save(demo, draft("db", "SQLite."))
		refused(t, err, codeBusy, "has been held by another program")
	})
}

func wholeIndex(g *ground, n int) {
	g.t.Helper()
	k, err := g.Check(demo)
	if err != nil || k.Facts != n || len(k.Problems) != 0 || strings.Count(g.index(demo), "\n") != n {
		g.t.Errorf("%+v, %v: %s", k, err, g.index(demo))
	}
}

// helper is this test program as another process: TestHelper.
func helper(t *testing.T, home string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestHelper$", "-test.count=1")
	cmd.Env = append(os.Environ(), "MEMORY_HELPER="+home+"\n"+strings.Join(args, "\n"))
	return cmd
}

// TestHelper does nothing but where another test has started it.
func TestHelper(t *testing.T) {
	words := strings.Split(os.Getenv("MEMORY_HELPER"), "\n")
	if len(words) < 3 {
		return
	}
	m := Open(words[0], func() time.Time { return day })
	if words[2] == "die" {
		between = func() { unix.Kill(os.Getpid(), unix.SIGKILL) }
	}
	var err error
	switch words[1] {
	case "save":
		_, err = m.Save(demo, draft("half", "Half."))
	case "rm":
		_, err = m.Remove(demo, "ci")
	case "many":
		for i := range 5 {
			if _, e := m.Save(demo, draft("fact-"+words[2]+fmt.Sprint(i), "Text.")); e != nil {
				err = e
			}
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

func FuzzFact(f *testing.F) {
	f.Add([]byte("---\nname: x\ndescription: d\ntype: user\nsource: s\nverified: 2026-01-02\nexternal: [browser, mcp:a]\n---\n\nText\n"))
	f.Add([]byte("---\nname: x\ndescription: \"a: \\\"b\\\" # c\"\ntype: user\nsource: '| s'\nverified: 2026-01-02\nby: turn:a/1\n---\n\n---\n"))
	f.Add([]byte("---\n"))
	f.Add([]byte("\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		fact, err := parseFact("x", data)
		if err != nil {
			return
		}
		if strings.Count(fact.Line(), "\n") != 1 {
			t.Errorf("its line is %q", fact.Line())
		}
		again, err := parseFact("x", []byte(fact.encode()))
		if err != nil && len(fact.encode()) <= MaxFact {
			t.Fatalf("what was read and written is refused: %v: %q", err, fact.encode())
		}
		if err == nil && fmt.Sprintf("%+v", again) != fmt.Sprintf("%+v", fact) {
			t.Errorf("%+v became %+v", fact, again)
		}
		ordersIn(fact)
	})
}
