package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFolderThatCannotBeMade(t *testing.T) {
	t.Parallel()
	// A dangling link is not there, and no folder can be made in its place.
	gone := filepath.Join(t.TempDir(), "gone")
	if err := os.Symlink("nowhere", gone); err != nil {
		t.Fatal(err)
	}
	_, err := madeDirs([]string{filepath.Join(gone, "run")})
	if err == nil || !strings.Contains(err.Error(), gone) || !strings.Contains(err.Error(), "set HOME") {
		t.Errorf("got %v", err)
	}
}
