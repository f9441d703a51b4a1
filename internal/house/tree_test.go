package house

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestGuideNamesEveryFolder holds the list in CONTRIBUTING.md against the
// folders that are there.
func TestGuideNamesEveryFolder(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := listedFolders(string(text))
	if len(listed) == 0 {
		t.Fatal("CONTRIBUTING.md has no list under \"## The tree\"")
	}
	there, err := foldersOf("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range there {
		if _, ok := listed[folder]; !ok {
			t.Errorf("CONTRIBUTING.md does not list %s: add a line that says what is in it", folder)
		}
	}
	for folder, what := range listed {
		if !slices.Contains(there, folder) {
			t.Errorf("CONTRIBUTING.md lists %s, which holds no file", folder)
		}
		if what == "" {
			t.Errorf("CONTRIBUTING.md does not say what %s is", folder)
		}
	}
}

// listedFolders reads the first fenced block after the heading: a folder, then
// what it is.
func listedFolders(text string) map[string]string {
	_, after, _ := strings.Cut(text, "\n## The tree\n")
	_, after, _ = strings.Cut(after, "\n```text\n")
	block, _, _ := strings.Cut(after, "\n```\n")
	listed := map[string]string{}
	for _, line := range strings.Split(block, "\n") {
		if folder, what, _ := strings.Cut(strings.TrimSpace(line), " "); folder != "" {
			listed[folder] = strings.TrimSpace(what)
		}
	}
	return listed
}

// foldersOf lists the folders below top that hold files of their own. What
// tests keep, what builds leave, and what git and editors keep are no part of
// the tree.
func foldersOf(top string) ([]string, error) {
	var folders []string
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(top, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			hidden := strings.HasPrefix(d.Name(), ".") && rel != "." && rel != ".ci"
			if hidden || d.Name() == "testdata" || rel == "bin" || rel == "bench/out" {
				return fs.SkipDir
			}
			return nil
		}
		folder := filepath.ToSlash(filepath.Dir(rel))
		if folder != "." && !strings.HasPrefix(d.Name(), ".") && !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
		return nil
	})
	return folders, err
}

func TestFoldersOfATree(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	for _, file := range []string{"top.go", "a/x.go", "a/b/c/y.go", "a/testdata/z", ".git/config", "bin/agent", ".ci/run"} {
		full := filepath.Join(top, file)
		if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := foldersOf(top)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	if want := []string{".ci", "a", "a/b/c"}; !slices.Equal(got, want) {
		t.Errorf("folders %q, want %q", got, want)
	}
}
