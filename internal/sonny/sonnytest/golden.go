package sonnytest

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write the golden screens anew")

// Golden compares a screen with testdata/golden/NAME.txt of the calling package;
// go test -update writes it. A screen is steady with FrozenClock, --no-motion and a
// fixed size.
func Golden(t testing.TB, name, screen string) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name+".txt")
	screen += "\n"
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(screen), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; go test -update writes it", err)
	}
	if string(want) != screen {
		t.Errorf("the screen is not %s; go test -update writes it anew, for you to look at.\nwanted:\n%s\ncame:\n%s", path, want, screen)
	}
}
