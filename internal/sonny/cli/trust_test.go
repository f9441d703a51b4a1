package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The question is about what a folder brings; ~/.agents is the person's own.
func TestWhatThePersonIsAskedAbout(t *testing.T) {
	t.Parallel()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".agents/memory/MEMORY.md", ".agents/skills/plan/SKILL.md", "src/demo/.agents/setup", "src/demo/sub/AGENTS.md"} {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	demo := filepath.Join(home, "src", "demo")
	for _, row := range []struct {
		name, folder, top, home string
		want                    []string
	}{
		{"the home folder", home, "", home, nil},
		{"the home folder as a checkout", home, home, home, nil},
		{"a folder of it", demo, demo, home, []string{".agents/setup"}},
		{"a folder below that, of a checkout that is the home folder", filepath.Join(demo, "sub"), home, home, []string{"AGENTS.md", "../.agents/setup"}},
		{"the same folder, of somebody else", home, "", "/elsewhere", []string{".agents/memory/MEMORY.md", ".agents/skills/plan/SKILL.md"}},
	} {
		if got := folderFiles(row.folder, row.top, row.home); !slices.Equal(got.names, row.want) || got.count != len(row.want) || got.setup != slices.ContainsFunc(row.want, isSetup) {
			t.Errorf("%s: %+v", row.name, got)
		}
	}
}

func isSetup(name string) bool { return strings.HasSuffix(name, ".agents/setup") }

// However many files there are, those beyond the bound are counted, and what runs as the
// person is known.
func TestManyFilesAreCounted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const many = maxFolderFiles + 50
	agents := filepath.Join(dir, ".agents", "agents")
	if err := os.MkdirAll(filepath.Join(agents, "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range many {
		if err := os.WriteFile(filepath.Join(agents, fmt.Sprint(i, ".md")), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, ".agents", "setup"), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	f := folderFiles(dir, "", "/elsewhere")
	if f.names[0] != ".agents/setup" || !f.setup || len(f.names) != maxFolderFiles || f.count != many+1 {
		t.Errorf("%q, %d named, %d in all, setup %v", f.names[0], len(f.names), f.count, f.setup)
	}
}
