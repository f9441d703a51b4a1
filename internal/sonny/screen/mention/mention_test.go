package mention

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agent/internal/sonny/screen/edit"
)

func TestWhatIsMeant(t *testing.T) {
	t.Parallel()
	picks := func(names ...string) (out []Pick) {
		for _, name := range names {
			out = append(out, Pick{Name: name, Insert: "@" + name})
		}
		return out
	}
	agents, paths := picks("demo.lead", "demo.tests"), picks("internal/tests/main.go", "docs/attests.md", "tests/", "a/testsuite/b.go")
	for _, row := range []struct {
		typed string
		want  []string
	}{
		{"tests", []string{"tests/", "demo.tests", "docs/attests.md", "a/testsuite/b.go", "internal/tests/main.go"}},
		{"MAIN", []string{"internal/tests/main.go"}},
		{"demo", []string{"demo.lead", "demo.tests"}},
		{"nowhere", nil},
	} {
		var got []string
		for _, p := range Ranked(row.typed, agents, paths) {
			got = append(got, p.Name)
		}
		if !slices.Equal(got, row.want) {
			t.Errorf("%q means %q, want %q", row.typed, got, row.want)
		}
	}
	var many []string
	for range 200 {
		many = append(many, "same")
	}
	if got := len(Ranked("", picks(many...))); got != Most {
		t.Errorf("%d are found", got)
	}
}

func TestFilesThatAMessageTakesIn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"a.txt": "one\ntwo\n", "nul": "a\x00b", "big": strings.Repeat("x", maxInline+1)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	draft := func(s string) edit.Draft { return edit.Draft{Parts: []edit.Part{{Text: s}}} }
	got, err := Inlined(dir, draft("see @a.txt! now"), "see @a.txt! now")
	if want := "see @a.txt now\n\na.txt:\n\n````\none\ntwo\n````"; got != want || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := Inlined(dir, draft("see @a.txt, me@a.txt!"), "as it is"); got != "as it is" || err != nil {
		t.Errorf("what asks for no file: %q, %v", got, err)
	}
	chip := edit.Draft{Parts: []edit.Part{{Chip: &edit.Chip{Kind: edit.PasteChip, Text: "@a.txt!"}}}}
	if got, err := Inlined(dir, chip, "@a.txt!"); got != "@a.txt!" || err != nil {
		t.Errorf("what was pasted: %q, %v", got, err)
	}
	for _, name := range []string{"nul", "big", "gone", "../" + filepath.Base(dir) + "/a.txt", "."} {
		if _, err := Inlined(dir, draft("@"+name+"!"), "@"+name+"!"); err == nil || !strings.Contains(err.Error(), "@"+name+"!") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
