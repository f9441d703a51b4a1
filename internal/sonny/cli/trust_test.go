package cli

import (
	"os"
	"path/filepath"
	"slices"
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
		{"the same folder, of somebody else", home, "", "/elsewhere", []string{".agents/memory", ".agents/skills"}},
	} {
		if got := folderFiles(row.folder, row.top, row.home); !slices.Equal(got, row.want) {
			t.Errorf("%s: %q", row.name, got)
		}
	}
}
