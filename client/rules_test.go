package client

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"agent/protocol"
)

// rulesFolder is a folder with files of these texts.
func rulesFolder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestReadRules(t *testing.T) {
	t.Parallel()
	t.Run("a folder's files come in byte order, and nothing else of it", func(t *testing.T) {
		t.Parallel()
		dir := rulesFolder(t, map[string]string{"b.rules": "b", "B.rules": "B", "a.rules": "", "é.rules": "e", "notes.txt": "x", "rules": "y"})
		if err := os.MkdirAll(filepath.Join(dir, "below.rules", "deeper"), 0o700); err != nil {
			t.Fatal(err)
		}
		r, err := ReadRules(dir)
		if err != nil || r.Unreadable {
			t.Fatalf("%+v, %v", r, err)
		}
		var names, texts []string
		for _, f := range r.Files {
			names, texts = append(names, f.Name), append(texts, f.Text)
		}
		if got := strings.Join(names, " ") + ": " + strings.Join(texts, ","); got != "B.rules a.rules b.rules é.rules: B,,b,e" {
			t.Errorf("got %s", got)
		}
	})
	t.Run("one file, whatever its name, also by a link", func(t *testing.T) {
		t.Parallel()
		dir := rulesFolder(t, map[string]string{"mine": "text"})
		if err := os.Symlink("mine", filepath.Join(dir, "l.rules")); err != nil {
			t.Fatal(err)
		}
		for path, name := range map[string]string{"mine": "mine", "l.rules": "l.rules", "": "l.rules"} {
			r, err := ReadRules(filepath.Join(dir, path))
			if err != nil || len(r.Files) != 1 || r.Files[0].Name != name || r.Files[0].Text != "text" {
				t.Errorf("%q: %+v, %v", path, r, err)
			}
		}
	})
	t.Run("nothing there is an empty set, sent as such", func(t *testing.T) {
		t.Parallel()
		for _, path := range []string{t.TempDir(), filepath.Join(t.TempDir(), "none")} {
			r, err := ReadRules(path)
			if err != nil {
				t.Fatal(err)
			}
			if text, err := protocol.Append(nil, r); err != nil || string(text) != `{"files":[]}` {
				t.Errorf("%s: %s, %v", path, text, err)
			}
		}
	})
	t.Run("as much as may be, and one more", func(t *testing.T) {
		t.Parallel()
		half := strings.Repeat("#", protocol.MaxRuleText/2)
		dir := rulesFolder(t, map[string]string{"a.rules": half, "b.rules": half})
		if r, err := ReadRules(dir); err != nil || len(r.Files) != 2 {
			t.Errorf("%v", err)
		}
		files := map[string]string{}
		for i := range protocol.MaxRuleFiles {
			files[strings.Repeat("x", i%100)+string(rune('a'+i/100))+".rules"] = ""
		}
		dir = rulesFolder(t, files)
		if r, err := ReadRules(dir); err != nil || len(r.Files) != protocol.MaxRuleFiles {
			t.Errorf("%v", err)
		}
		if err := os.WriteFile(filepath.Join(dir, "zz.rules"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		unreadable(t, dir, "zz.rules", "256 files")
	})
}

// unreadable checks that the rules at path are refused, with the file's name and
// why, and that the mark says so.
func unreadable(t *testing.T, path, file, why string) {
	t.Helper()
	r, err := ReadRules(path)
	if r != nil || !errors.Is(err, protocol.RulesUnreadable) || !strings.Contains(err.Error(), file+" cannot be read: ") || !strings.Contains(err.Error(), why) {
		t.Errorf("%s: got %v, %v; want %s and %s", path, r, err, file, why)
		return
	}
	mark := UnreadableRules(err)
	if !mark.Unreadable || mark.Files != nil || !strings.Contains(mark.Reason, file) || strings.Contains(mark.Reason, "rules_unreadable") {
		t.Errorf("%s: the mark is %+v", path, mark)
	}
}

func TestUnreadableRules(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, file, why string
		make            func(t *testing.T, path string) error
	}{
		{"text that is not UTF-8", "b.rules", "not UTF-8", func(t *testing.T, path string) error {
			return os.WriteFile(path, []byte("# \xff\n"), 0o600)
		}},
		{"a link that leads nowhere", "b.rules", "no such file", func(t *testing.T, path string) error { return os.Symlink("gone", path) }},
		{"a FIFO, which is not waited for", "b.rules", "not a regular file", func(t *testing.T, path string) error { return syscall.Mkfifo(path, 0o600) }},
		{"more text than may be", "b.rules", "over 262144 bytes", func(t *testing.T, path string) error {
			return os.WriteFile(path, make([]byte, protocol.MaxRuleText), 0o600)
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			dir := rulesFolder(t, map[string]string{"a.rules": "#"})
			if err := row.make(t, filepath.Join(dir, "b.rules")); err != nil {
				t.Fatal(err)
			}
			unreadable(t, dir, row.file, row.why)
		})
	}
	t.Run("a folder that is a link to nothing is not an absent one", func(t *testing.T) {
		t.Parallel()
		link := filepath.Join(t.TempDir(), "rules")
		if err := os.Symlink("gone", link); err != nil {
			t.Fatal(err)
		}
		unreadable(t, link, "/rules", "no such file")
	})
	t.Run("a path below a file", func(t *testing.T) {
		t.Parallel()
		unreadable(t, filepath.Join(rulesFolder(t, map[string]string{"f": ""}), "f", "rules"), "/rules", "not a directory")
	})
	t.Run("the mark keeps what the wire takes", func(t *testing.T) {
		t.Parallel()
		mark := UnreadableRules(errors.New(strings.Repeat("é", protocol.MaxReason)))
		if len(mark.Reason) != protocol.MaxReason {
			t.Errorf("%d bytes", len(mark.Reason))
		}
		mark = UnreadableRules(errors.New("x" + strings.Repeat("é", protocol.MaxReason)))
		if len(mark.Reason) != protocol.MaxReason-1 {
			t.Errorf("%d bytes, a character cut in two among them", len(mark.Reason))
		}
	})
}

func TestRulesOfNoPath(t *testing.T) {
	t.Parallel()
	if r, err := ReadRules(""); !errors.Is(err, protocol.RulesUnreadable) {
		t.Errorf("got %v, %v", r, err)
	}
}
