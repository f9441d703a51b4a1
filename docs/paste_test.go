package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var fileFence = regexp.MustCompile("(?m)^([^\n]+)\n+```[a-z]+ file=(\\S+)$")

// TestGuidesCanBePasted is about what the tests give each guide and a reader
// has to make: the files, the programs, an empty home. A rendered page does not
// show what stands behind a fence.
func TestGuidesCanBePasted(t *testing.T) {
	t.Parallel()
	guides, err := filepath.Glob("*.md")
	if err != nil || len(guides) == 0 {
		t.Fatalf("no guide found: %v", err)
	}
	examples, err := os.ReadDir("../examples")
	if err != nil {
		t.Fatal(err)
	}
	for _, guide := range append(guides, "../README.md") {
		page, err := os.ReadFile(guide)
		if err != nil {
			t.Fatal(err)
		}
		text := string(page)
		named := fileFence.FindAllStringSubmatch(text, -1)
		if len(named) != strings.Count(text, " file=") {
			t.Errorf("%s: a file's fence has no line above it", guide)
		}
		for _, m := range named {
			if !strings.Contains(m[1], m[2]+"`") {
				t.Errorf("%s: the line above the file %s does not name it", guide, m[2])
			}
		}
		for _, e := range examples {
			if strings.Contains(text, "\n$ "+e.Name()+" ") && !regexp.MustCompile(`(?m)^go build .*\./examples/`+e.Name()+`\b`).MatchString(text) {
				t.Errorf("%s: %s is run, and nothing says how it is built", guide, e.Name())
			}
		}
		own := []string{"QUICKSTART.md", "SANDBOX.md"} // the one is what is linked to, the other has a store of its own
		if strings.Contains(text, "--new --bot ") && strings.Contains(text, "```console") && !slices.Contains(own, guide) && !strings.Contains(text, "QUICKSTART.md#an-empty-home)") {
			t.Errorf("%s: its sessions begin with an empty home, and it does not say so", guide)
		}
	}
}
