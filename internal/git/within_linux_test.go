package git

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agent/internal/place"
)

// A launcher that is there and does not run keeps git from running, each time anew; where
// there is none git runs as ever.
func TestALauncherThatDoesNotRun(t *testing.T) {
	saved := place.Bubblewraps
	t.Cleanup(func() { place.Bubblewraps, works.path = saved, "" })
	dir := t.TempDir()
	fake := filepath.Join(dir, "bwrap")
	if err := os.WriteFile(fake, []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	g, err := Find()
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Within: &Within{Writable: []string{dir}}}
	place.Bubblewraps, works.path = []string{fake}, ""
	for range 2 {
		if _, err := g.With(t.Context(), o, dir, "init", "--quiet", "repo"); err == nil || !strings.Contains(err.Error(), "does not run") {
			t.Errorf("got %v", err)
		}
		if _, err := os.Lstat(filepath.Join(dir, "repo")); err == nil {
			t.Fatal("git ran")
		}
	}
	place.Bubblewraps = []string{filepath.Join(dir, "none")}
	if _, err := g.With(t.Context(), o, dir, "init", "--quiet", "repo"); err != nil {
		t.Error(err)
	}
}
