package snapshot

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agent/internal/sonny/repo"
	"agent/protocol"

	"golang.org/x/sys/unix"
)

// checkout is a git folder with a commit, and a room for its states.
func checkout(t *testing.T, files map[string]string) (string, *Room) {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	runGit(t, dir, "init", "-q")
	for name, text := range files {
		put(t, filepath.Join(dir, name), text)
	}
	runGit(t, dir, "add", "-A")
	runGit(t, dir, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x")
	r, _, err := repo.Find(context.Background(), dir)
	if err != nil || !r.There() {
		t.Fatal(err, r)
	}
	m, err := (&Store{Dir: filepath.Join(t.TempDir(), "snapshots")}).In(r, dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir, m
}

func runGit(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func take(t *testing.T, m *Room, request string) {
	t.Helper()
	if err := m.Take(context.Background(), 1, request, time.Now(), nil); err != nil {
		t.Fatal(err)
	}
}

func back(t *testing.T, m *Room) *Step {
	t.Helper()
	s, err := m.Back(context.Background(), 1, "")
	if err != nil || s == nil {
		t.Fatal(s, err)
	}
	return s
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestFilesComeBackByteForByte(t *testing.T) {
	dir, m := checkout(t, map[string]string{
		".gitattributes": "* text=auto eol=lf\n*.x filter=f\n", "crlf.txt": "a\r\nb\r\n", "bare.txt": "no end", "gone.txt": "x\n", ".gitignore": "ignored\n", "d/deep.txt": "1\n\n\n",
	})
	runGit(t, dir, "config", "filter.f.clean", "echo filtered")
	put(t, filepath.Join(dir, "a.x"), "as it is\n")
	put(t, filepath.Join(dir, "ignored"), "one")
	before := runGit(t, dir, "count-objects", "-v") + runGit(t, dir, "for-each-ref")
	if err := os.Chmod(filepath.Join(dir, "bare.txt"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("crlf.txt", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	take(t, m, "r1")
	for name, text := range map[string]string{"crlf.txt": "two\n", "bare.txt": "two", "a.x": "two", "new/file": "two", "ignored": "two"} {
		put(t, filepath.Join(dir, name), text)
	}
	for _, name := range []string{"gone.txt", "link", "d/deep.txt"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	s := back(t, m)
	if len(s.Changes) != 7 {
		t.Errorf("changes %+v", s.Changes)
	}
	if err := m.Go(context.Background(), s); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"crlf.txt": "a\r\nb\r\n", "bare.txt": "no end", "gone.txt": "x\n", "d/deep.txt": "1\n\n\n", "a.x": "as it is\n", "ignored": "two", "link": "a\r\nb\r\n"} {
		if got := read(t, filepath.Join(dir, name)); got != text {
			t.Errorf("%s is %q", name, got)
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "new/file")); err == nil {
		t.Error("a file that came later is still there")
	}
	if to, err := os.Readlink(filepath.Join(dir, "link")); err != nil || to != "crlf.txt" {
		t.Error(to, err)
	}
	if info, _ := os.Stat(filepath.Join(dir, "bare.txt")); info.Mode().Perm() != 0o755 {
		t.Error(info.Mode())
	}
	if after := runGit(t, dir, "count-objects", "-v") + runGit(t, dir, "for-each-ref"); after != before {
		t.Errorf("the person's repository changed: %s, was %s", after, before)
	}
	s, err := m.Forth(context.Background(), 1)
	if err != nil || s == nil {
		t.Fatal(s, err)
	}
	if err := m.Go(context.Background(), s); err != nil {
		t.Fatal(err)
	}
	if got := read(t, filepath.Join(dir, "crlf.txt")); got != "two\n" {
		t.Errorf("after the redo: %q", got)
	}
	if s, err := m.Forth(context.Background(), 1); err != nil || s != nil {
		t.Error("there is something to redo still", s, err)
	}
}

func TestAStepThatIsNoLongerWhatWasShown(t *testing.T) {
	dir, m := checkout(t, map[string]string{"f": "one"})
	take(t, m, "r")
	put(t, filepath.Join(dir, "f"), "two")
	s := back(t, m)
	put(t, filepath.Join(dir, "f"), "three")
	if err := m.Go(context.Background(), s); protocol.CodeOf(err) != "target_changed" {
		t.Error(err)
	}
	if got := read(t, filepath.Join(dir, "f")); got != "three" {
		t.Error(got)
	}
}

func TestNothingIsWrittenThroughALink(t *testing.T) {
	dir, m := checkout(t, map[string]string{"d/f": "one"})
	take(t, m, "r")
	outside := t.TempDir()
	put(t, filepath.Join(outside, "f"), "theirs")
	if err := os.RemoveAll(filepath.Join(dir, "d")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "d")); err != nil {
		t.Fatal(err)
	}
	_ = m.Go(context.Background(), back(t, m))
	if got := read(t, filepath.Join(outside, "f")); got != "theirs" {
		t.Errorf("outside the folder: %q", got)
	}
}

// An agent puts a link to the repository's own folders where a folder of its was: what
// comes back must not land there (PO-34, PO-35).
func TestNothingComesBackIntoTheGitFolder(t *testing.T) {
	for name, inTheWay := range map[string]string{"the link is new": "", "the link is not looked at by git": "sub\nhk\n"} {
		dir, m := checkout(t, map[string]string{"sub/config": "[core]\n\tfsmonitor = evil\n", "hk/post-commit": "evil\n", "deep/er/f": "evil\n"})
		before := read(t, filepath.Join(dir, ".git", "config"))
		take(t, m, "r1")
		for _, d := range []string{"sub", "hk", "deep"} {
			if err := os.RemoveAll(filepath.Join(dir, d)); err != nil {
				t.Fatal(err)
			}
		}
		put(t, filepath.Join(dir, "real", "er", "g"), "")
		for link, to := range map[string]string{"sub": ".git", "hk": ".git/hooks", "deep": "real"} {
			if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
				t.Fatal(err)
			}
		}
		if inTheWay != "" {
			put(t, filepath.Join(dir, ".git", "info", "exclude"), inTheWay)
		}
		err := m.Go(context.Background(), back(t, m))
		if err == nil && inTheWay != "" {
			t.Errorf("%s: nothing was refused", name)
		}
		if got := read(t, filepath.Join(dir, ".git", "config")); got != before {
			t.Errorf("%s: .git/config is now %q", name, got)
		}
		for _, planted := range []string{".git/hooks/post-commit", "real/er/f"} {
			if _, err := os.Lstat(filepath.Join(dir, planted)); err == nil {
				t.Errorf("%s: %s is there", name, planted)
			}
		}
	}
}

func TestOnlyTheFolderIsKept(t *testing.T) {
	dir, top := checkout(t, map[string]string{"a/f": "one", "b/f": "one"})
	m, err := top.store.In(top.repo, filepath.Join(dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	take(t, m, "r")
	put(t, filepath.Join(dir, "a/f"), "two")
	put(t, filepath.Join(dir, "b/f"), "two")
	s := back(t, m)
	if len(s.Changes) != 1 || s.Changes[0].Path != "a/f" || s.Changes[0].Op != 'M' {
		t.Errorf("%+v", s.Changes)
	}
}

func TestTooManyFiles(t *testing.T) {
	dir, m := checkout(t, nil)
	for i := range MaxFiles + 1 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	err := m.Take(context.Background(), 1, "r", time.Now(), nil)
	if protocol.CodeOf(err) != Skipped || !strings.Contains(err.Error(), "20,000") && !strings.Contains(err.Error(), "2 s") {
		t.Error(err)
	}
	if marks, err := m.Marks(1); err != nil || len(marks) != 0 {
		t.Error(marks, err)
	}
}

func TestOldStatesGo(t *testing.T) {
	dir, m := checkout(t, map[string]string{"f": "one"})
	old := time.Now().Add(-15 * 24 * time.Hour)
	if err := m.Take(context.Background(), 1, "old", old, nil); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "f"), "two")
	take(t, m, "new")
	marks, err := m.Marks(1)
	if err != nil || len(marks) != 1 || marks[0].Request != "new" {
		t.Errorf("%+v %v", marks, err)
	}
	refs, err := os.ReadDir(filepath.Join(m.dir, "refs", "states"))
	if err != nil || len(refs) != 1 {
		t.Error(refs, err)
	}
}

func TestDiffSinceAState(t *testing.T) {
	dir, m := checkout(t, map[string]string{"f": "one\n"})
	take(t, m, "r")
	put(t, filepath.Join(dir, "f"), "two\n")
	put(t, filepath.Join(dir, "new"), "untracked\n")
	marks, _ := m.Marks(1)
	text, cut, err := m.Diff(context.Background(), marks[0].Tree, 1<<20)
	if err != nil || cut || !strings.Contains(text, "-one") || !strings.Contains(text, "+untracked") {
		t.Error(text, cut, err)
	}
}

// What git ignored when a state was kept was there, though the state has it not: it stays
// when the state comes back, whatever an agent has git ignore by then.
// Not parallel: the umask is the process's.
func TestWhatIsKeptIsClosedToOthers(t *testing.T) {
	old := unix.Umask(0)
	defer unix.Umask(old)
	dir, m := checkout(t, map[string]string{"a": "one\n", "sub/b": "two\n"})
	take(t, m, "first")
	put(t, filepath.Join(dir, "a"), "other\n")
	take(t, m, "second")
	if err := m.Go(context.Background(), back(t, m)); err != nil {
		t.Fatal(err)
	}
	seen := 0
	if err := filepath.WalkDir(m.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		seen++
		if info, err := d.Info(); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
		return nil
	}); err != nil || seen < 20 {
		t.Errorf("%d files, %v", seen, err)
	}
}

func TestWhatWasIgnoredStays(t *testing.T) {
	dir, m := checkout(t, map[string]string{"a": "one", ".gitignore": ".env\ndata/\n.agents/\n"})
	for name, text := range map[string]string{".env": "key", "data/db": "rows", ".agents/setup": "true"} {
		put(t, filepath.Join(dir, name), text)
	}
	take(t, m, "first")
	put(t, filepath.Join(dir, ".gitignore"), "")
	put(t, filepath.Join(dir, "new"), "x")
	s := back(t, m)
	var ops []string
	for _, c := range s.Changes {
		ops = append(ops, string(c.Op)+" "+c.Path)
	}
	if got := strings.Join(ops, ", "); got != "M .gitignore, D new" {
		t.Errorf("the step is %s", got)
	}
	if err := m.Go(context.Background(), s); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".env", "data/db", ".agents/setup"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	again, err := m.Forth(context.Background(), 1)
	if err != nil || again == nil {
		t.Fatal(again, err)
	}
	if err := m.Go(context.Background(), again); err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(filepath.Join(dir, "new")); string(text) != "x" {
		t.Errorf("redone it is %q", text)
	}
	for _, name := range []string{".env", "data/db", ".agents/setup"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}
