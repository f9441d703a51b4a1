package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pages are the guides and the pages above them that link to them.
func pages(t *testing.T) []string {
	t.Helper()
	guides, err := filepath.Glob("*.md")
	if err != nil || len(guides) == 0 {
		t.Fatalf("no guide found: %v", err)
	}
	return append(guides, "../README.md", "../SECURITY.md", "../CONTRIBUTING.md")
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTheReadmeLinksEveryGuide(t *testing.T) {
	t.Parallel()
	readme := read(t, "../README.md")
	for _, page := range pages(t) {
		if name := filepath.Base(page); !strings.HasPrefix(page, "..") && !strings.Contains(readme, "](docs/"+name+")") {
			t.Errorf("README.md does not link docs/%s", name)
		}
	}
}

var (
	fenced = regexp.MustCompile("(?ms)^```.*?^```$")
	code   = regexp.MustCompile("`[^`\n]*`")
	link   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	title  = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	notID  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors are the places of a page that a link may name.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	for _, m := range title.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		id := notID.ReplaceAllString(strings.ToLower(m[1]), "")
		found[strings.ReplaceAll(id, " ", "-")] = true
	}
	return found
}

func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	for _, page := range pages(t) {
		text := fenced.ReplaceAllString(read(t, page), "")
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(text, "code"), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			target, anchor, _ := strings.Cut(m[1], "#")
			path := page
			if target != "" {
				path = filepath.Join(filepath.Dir(page), target)
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s links %s, which is not there", page, m[1])
			} else if anchor != "" && !anchors(read(t, path))[anchor] {
				t.Errorf("%s links %s, and the page has no such heading", page, m[1])
			}
		}
	}
}

func TestAnchors(t *testing.T) {
	t.Parallel()
	got := anchors("# A bot's own *socket*\n```sh\n# no heading\n```\n## `run` & co\n")
	for _, want := range []string{"a-bots-own-socket", "run--co"} {
		if !got[want] {
			t.Errorf("%s is missing of %v", want, got)
		}
	}
	if len(got) != 2 {
		t.Errorf("%v", got)
	}
}
