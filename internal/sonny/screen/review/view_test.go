package review

import (
	"strings"
	"testing"

	"agent/internal/sonny/screen/diff"
	"agent/internal/sonny/screen/keys"
	"agent/internal/sonny/screen/term"
)

const patch = `diff --git a/a.txt b/a.txt
--- a/a.txt
+++ b/a.txt
@@ -1,3 +1,3 @@
 one
-two
+zwei
 three
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-last
`

// shown is a view of the patch, and what it looks like.
func shown(t *testing.T, diffs string) (*View, func() string) {
	t.Helper()
	v := New(diffs)
	v.Scopes = []Scope{{Label: "this turn", Bot: "demo.lead", Top: "/src"}}
	v.Set = &Set{Against: "against HEAD", Files: diff.Parse(patch)}
	return &v, func() string {
		f := term.NewFrame(120, 20)
		v.Draw(f.All(), true, "demo.lead", "demo", "main*")
		var rows []string
		for y := range 20 {
			rows = append(rows, f.Row(y))
		}
		return strings.Join(rows, "\n")
	}
}

func TestTheViewOfChanges(t *testing.T) {
	t.Parallel()
	v, draw := shown(t, "auto")
	screen := draw()
	for _, want := range []string{"review of demo", "main*", "against HEAD  2 files +1 −2", "M a.txt", "D gone.txt", "▸ this turn", "file 1 of 2", "hunk 1 of 1"} {
		if !strings.Contains(screen, want) {
			t.Errorf("%q is not in\n%s", want, screen)
		}
	}
	if path, _ := v.Here(); path != "/src/a.txt" {
		t.Errorf("at hand is %q", path)
	}
	if hunk := v.Hunk(); !strings.Contains(hunk, "-two\n+zwei\n") {
		t.Errorf("the hunk is %q", hunk)
	}
	v.Act("review_next_file")
	if path, _ := v.Here(); path != "" {
		t.Errorf("a file that is gone is opened: %q", path)
	}
	if screen := draw(); !strings.Contains(screen, "file 2 of 2") {
		t.Errorf("the second file is not at hand\n%s", screen)
	}
	if v.Act("review_next_file"); v.file != 1 {
		t.Errorf("past the last file is %d", v.file)
	}
}

func TestANoteQuotesItsLine(t *testing.T) {
	t.Parallel()
	v, draw := shown(t, "auto")
	draw()
	m := keys.Default()
	note := func(row int, words string) {
		v.row = row
		v.Act("review_note")
		if !v.Writing() {
			t.Fatalf("no note can be written on row %d", row)
		}
		for _, r := range words {
			v.Write(m, term.Key{Name: string(r), Text: string(r)})
		}
		v.Write(m, term.Key{Name: "enter"})
	}
	for row, at := range v.laid.view.At {
		switch {
		case at.New == 2:
			note(row, "why")
		case at.Old == 2:
			note(row, "keep")
		}
	}
	got := v.Message()
	for _, want := range []string{"a.txt:2 (after)\n> zwei\nwhy", "a.txt:2 (before)\n> two\nkeep"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	v.Act("review_note")
	v.Write(m, term.Key{Name: "x", Text: "x"})
	v.Write(m, term.Key{Name: "esc"})
	if v.Writing() || len(v.Notes) != 2 {
		t.Errorf("Esc keeps a note: %d notes", len(v.Notes))
	}
}

func TestHowDiffsAreLaidOut(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string]string{
		"auto": "unified (u split)", "unified": "unified (u split)", "split": "split (u unified)", // 84 cells: two narrow columns
	} {
		t.Run("tui.diff = "+setting, func(t *testing.T) {
			t.Parallel()
			v, draw := shown(t, setting)
			if screen := draw(); !strings.Contains(screen, want) {
				t.Errorf("it is not %s:\n%s", want, screen)
			}
			if setting != "split" {
				return
			}
			if v.Act("review_split"); !strings.Contains(draw(), "unified (u split)") {
				t.Errorf("by hand:\n%s", draw())
			}
		})
	}
}
