package diff

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"agent/client/termsafe"
	"agent/internal/sonny/screen/text"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the golden files anew")

func fixture(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(strings.Split(fixture(t, name), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func shown(lines []text.Line) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(strings.TrimRight(l.String(), " ") + "\n")
	}
	return b.String()
}

func TestGolden(t *testing.T) {
	t.Parallel()
	files := Parse(fixture(t, "git.diff"))
	all := func(draw func(*File) []text.Line) string {
		var b strings.Builder
		for _, f := range files {
			fmt.Fprintf(&b, "%s  %s\n%s\n", f.Path(), text.Join(f.Counts(false)...).String(), shown(draw(f)))
		}
		return b.String()
	}
	for _, width := range []int{40, 76, 100} {
		t.Run("unified at "+strconv.Itoa(width), func(t *testing.T) {
			golden(t, fmt.Sprintf("unified-%d.golden", width), all(func(f *File) []text.Line { return Unified(f, width, Options{}).Lines }))
		})
	}
	t.Run("split at 123", func(t *testing.T) {
		golden(t, "split-123.golden", all(func(f *File) []text.Line { return Split(f, 123, Options{}).Lines }))
	})
	t.Run("cut, in ASCII", func(t *testing.T) {
		golden(t, "cut-ascii-76.golden", all(func(f *File) []text.Line { return Unified(f, 76, Options{Cut: true, ASCII: true}).Lines }))
	})
	t.Run("folded", func(t *testing.T) {
		golden(t, "preview-76.golden", all(func(f *File) []text.Line { return Preview(f, 76, 3, Options{}) }))
	})
	t.Run("with changed words", func(t *testing.T) {
		golden(t, "words-100.golden", all(func(f *File) []text.Line {
			lines := Unified(f, 100, Options{Words: true}).Lines
			for i, l := range lines {
				for j, s := range l.Spans {
					if s.Attr == text.Bold {
						lines[i].Spans[j].Text = "{" + s.Text + "}"
					}
				}
			}
			return lines
		}))
	})
}

func TestParse(t *testing.T) {
	t.Parallel()
	type facts struct {
		Old, New       string
		Added, Removed int
		Hunks          int
		Binary         bool
	}
	var got []facts
	for _, f := range Parse(fixture(t, "git.diff")) {
		got = append(got, facts{f.Old, f.New, f.Added, f.Removed, len(f.Hunks), f.Binary})
	}
	want := []facts{
		{"bare.txt", "bare.txt", 1, 1, 1, false},
		{"gone.txt", "", 0, 1, 1, false},
		{"h ä.txt", "h ä.txt", 1, 1, 1, false},
		{"old.txt", "new.txt", 1, 1, 1, false},
		{"pic.png", "pic.png", 0, 0, 0, true},
		{"session.go", "session.go", 4, 2, 2, false},
		{"", "sign/sign.go", 3, 0, 1, false},
		{"sp ace.txt", "sp ace.txt", 1, 1, 1, false},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestParseOddities(t *testing.T) {
	t.Parallel()
	t.Run("a removed line that looks like a header", func(t *testing.T) {
		f := Parse("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- y\n+++ z\n same\n--- a/v\n+++ b/v\n@@ -1 +1 @@\n-a\n+b\n")
		if len(f) != 2 || f[0].Hunks[0].Rows[0].Text != "-- y" || f[0].Hunks[0].Rows[1].Text != "++ z" || f[1].New != "v" {
			t.Errorf("%+v", f)
		}
	})
	t.Run("renamed without a change", func(t *testing.T) {
		f := Parse("diff --git a/x y b/z\nsimilarity index 100%\nrename from x y\nrename to z\n")
		if len(f) != 1 || f[0].Old != "x y" || f[0].New != "z" || len(f[0].Hunks) != 0 {
			t.Errorf("%+v", f)
		}
	})
	t.Run("an empty file made", func(t *testing.T) {
		f := Parse("diff --git a/x b/x\nnew file mode 100644\nindex 0000000..e69de29\n")
		if len(f) != 1 || f[0].Old != "" || f[0].New != "x" {
			t.Errorf("%+v", f)
		}
	})
	t.Run("a hunk that ends early", func(t *testing.T) {
		f := Parse("--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n a\ndiff --git a/y b/y\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-c\n+d\n")
		if len(f) != 2 || f[0].Added != 0 || f[1].Added != 1 {
			t.Errorf("%+v", f)
		}
	})
	t.Run("what is no diff has no files", func(t *testing.T) {
		if f := Parse("hello\n@@ x @@\n+++\n"); f != nil {
			t.Errorf("%+v", f)
		}
	})
}

// What two texts differ in, put back into the first, gives the second; and the
// numbers are those of the lines.
func TestCompare(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.SampledFrom([]string{"a\n", "b\n", "c\n", "\n", "d e\n"})
		draw := func(name string) string {
			s := strings.Join(rapid.SliceOfN(line, 0, 40).Draw(t, name), "")
			if rapid.Bool().Draw(t, name+" bare") {
				s = strings.TrimSuffix(s, "\n")
			}
			return s
		}
		before, after := draw("before"), draw("after")
		f := Compare("x", before, after)
		var got strings.Builder
		old, new := linesOf(before), linesOf(after)
		at := 0
		for _, h := range f.Hunks {
			for _, n := range numbers(h) {
				s := n.Text + "\n"
				if n.Bare {
					s = n.Text
				}
				if n.Op != Added {
					for ; at < n.old-1; at++ {
						got.WriteString(old[at])
					}
					at++
					if old[n.old-1] != s {
						t.Fatalf("%d was %q, not %q", n.old, old[n.old-1], s)
					}
				}
				if n.Op != Removed {
					got.WriteString(s)
					if new[n.new-1] != s {
						t.Fatalf("%d is %q, not %q", n.new, new[n.new-1], s)
					}
				}
			}
		}
		for ; at < len(old); at++ {
			got.WriteString(old[at])
		}
		if got.String() != after {
			t.Fatalf("%q with the diff is %q, not %q", before, got.String(), after)
		}
		read := Parse(f.unified())
		if len(f.Hunks) == 0 {
			return
		}
		if diff := cmp.Diff([]*File{f}, read, cmp.AllowUnexported(File{}), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("written and read again (-was +is):\n%s", diff)
		}
	})
}

// unified writes a file as diff does.
func (f *File) unified() string {
	var b strings.Builder
	fmt.Fprintf(&b, "--- a/%s\n+++ b/%s\n", f.Old, f.New)
	for _, h := range f.Hunks {
		old, new := 0, 0
		for _, r := range h.Rows {
			if r.Op != Added {
				old++
			}
			if r.Op != Removed {
				new++
			}
		}
		fmt.Fprintf(&b, "@@ -%d,%d +%d,%d @@\n", h.Old, old, h.New, new)
		for _, r := range h.Rows {
			fmt.Fprintf(&b, "%c%s\n", r.Op, r.Text)
			if r.Bare {
				b.WriteString("\\ No newline at end of file\n")
			}
		}
	}
	return b.String()
}

func TestRecords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		files []*File
		want  string
	}{
		{
			"an edit shows no numbers that nobody knows",
			[]*File{Edit("a.go", "x\n\ty := 1\nz", "x\n\ty := 2\nz", 0)},
			"a.go +1 −1\n  x\n-     y := 1\n+     y := 2\n  z\n",
		},
		{
			"an edit shows those that somebody does",
			[]*File{Edit("a.go", "x\ny\n", "x\nY\nz\n", 41)},
			"a.go +2 −1\n 41   x\n 42 - y\n 42 + Y\n 43 + z\n",
		},
		{
			"a file that was made",
			[]*File{Write("a.go", nil, "x\r\ny")},
			"a.go +2\n  1 + x\n  2 + y (no newline at the end)\n",
		},
		{
			"a file that was replaced",
			[]*File{Write("a.go", new("x\r\ny\n"), "x\nz\n")},
			"a.go +1 −1\n  1   x\n  2 - y\n  2 + z\n",
		},
		{
			"a patch",
			Patch("*** Begin Patch\n*** Add File: n.txt\n+one\n+two\n*** Delete File: old.txt\n*** Update File: src/a.go\n*** Move to: src/b.go\n@@ type T struct {\n@@ func Read() {\n stays\n-goes\n+comes\n\n@@\n+more\n*** End of File\n*** End Patch\n"),
			"n.txt +2\n  1 + one\n  2 + two\nold.txt \nsrc/b.go +2 −1\n⋯ func Read() {\n  stays\n- goes\n+ comes\n\n⋯\n+ more\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b strings.Builder
			for _, f := range c.files {
				fmt.Fprintf(&b, "%s %s\n%s", f.Path(), text.Join(f.Counts(false)...).String(), shown(Unified(f, 60, Options{}).Lines))
			}
			if diff := cmp.Diff(c.want, b.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestBinaries(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, want string
		file       *File
	}{
		{"sizes before and after", "binary  3 B → 2.0 KiB", Compare("x", "a\x00b", "a\x00"+strings.Repeat("b", 2046))},
		{"made", "binary  1.5 MiB", &File{New: "x", Binary: true, OldSize: -1, NewSize: 3 << 19}},
		{"deleted", "binary  7 B → gone", &File{Old: "x", Binary: true, OldSize: 7, NewSize: -1}},
		{"sizes that nobody knows", "binary", Parse("diff --git a/x b/x\nBinary files a/x and b/x differ\n")[0]},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, lines := range [][]text.Line{Unified(c.file, 60, Options{}).Lines, Split(c.file, 123, Options{}).Lines, Preview(c.file, 60, 3, Options{})} {
				if got := shown(lines); got != c.want+"\n" {
					t.Errorf("%q, want %q", got, c.want)
				}
			}
		})
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	last := func(f *File) string {
		lines := Unified(f, 80, Options{}).Lines
		return lines[len(lines)-1].String()
	}
	t.Run("5,000 lines are shown, of more the count", func(t *testing.T) {
		f := Write("x", nil, strings.Repeat("a\n", MaxRows))
		if f.Cut != 0 || last(f) != "5000 + a" {
			t.Errorf("%d are cut, the last is %q", f.Cut, last(f))
		}
		f = Write("x", nil, strings.Repeat("a\n", MaxRows+12))
		if f.Added != MaxRows+12 || last(f) != "+12 lines of the diff; e opens the file" {
			t.Errorf("%d came, the last is %q", f.Added, last(f))
		}
		var diff strings.Builder
		fmt.Fprintf(&diff, "--- a/x\n+++ b/x\n@@ -0,0 +1,%d @@\n%s@@ -1 +1 @@\n-a\n+b\n", MaxRows, strings.Repeat("+a\n", MaxRows))
		if f := Parse(diff.String())[0]; last(f) != "+2 lines of the diff; e opens the file" || f.Removed != 1 {
			t.Errorf("the last is %q", last(f))
		}
	})
	t.Run("files are compared up to 1 MiB", func(t *testing.T) {
		same := strings.Repeat("0123456\n", MaxBytes/8)
		if f := Compare("x", same, same+"b\n"); last(f) != "+1 line of the file past 1 MiB; e opens the file" {
			t.Errorf("the last is %q", last(f))
		}
	})
	t.Run("1 MiB of text is shown", func(t *testing.T) {
		f := Write("x", nil, strings.Repeat(strings.Repeat("a", MaxBytes/4-1)+"\n", 4))
		if f.Cut != 0 {
			t.Errorf("%d are cut", f.Cut)
		}
		f = Parse("--- a/x\n+++ b/x\n@@ -0,0 +1,6 @@\n" + strings.Repeat("+"+strings.Repeat("a", MaxBytes/4)+"\n", 6))[0]
		if f.Cut != 2 || f.Added != 6 {
			t.Errorf("%d of %d are cut", f.Cut, f.Added)
		}
	})
}

func TestPreview(t *testing.T) {
	t.Parallel()
	f := Compare("x", "1\n2\n3\n4\n5\n", "1\na\nb\nc\n4\n5\n")
	for rows, want := range map[int]string{
		3: "  2 - 2\n  3 - 3\n+3 lines\n",
		5: "  2 - 2\n  3 - 3\n  2 + a\n  3 + b\n  4 + c\n",
	} {
		if got := shown(Preview(f, 40, rows, Options{})); got != want {
			t.Errorf("%d rows: %q, want %q", rows, got, want)
		}
	}
	if got := shown(Preview(Compare("x", "a\n", "a\n"), 40, 3, Options{})); got != "" {
		t.Errorf("nothing changed, and it shows %q", got)
	}
}

// The panel goes from hunk to hunk, and a note names a line and its side.
func TestNavigation(t *testing.T) {
	t.Parallel()
	f := Parse(fixture(t, "git.diff"))[5]
	for name, v := range map[string]View{
		"unified": Unified(f, 76, Options{}), "narrow": Unified(f, 40, Options{}), "split": Split(f, 130, Options{}),
	} {
		t.Run(name, func(t *testing.T) {
			if len(v.Hunks) != 2 || len(v.At) != len(v.Lines) {
				t.Fatalf("%d hunks, %d places of %d rows", len(v.Hunks), len(v.At), len(v.Lines))
			}
			for i, want := range []Place{{Old: 6, New: 6, Hunk: 0}, {Old: 17, New: 19, Hunk: 1}} {
				if got := v.At[v.Hunks[i]]; got != want {
					t.Errorf("hunk %d begins at %+v, want %+v", i, got, want)
				}
			}
			for i, p := range v.At {
				row := v.Lines[i].String()
				if p.Hunk < 0 && !strings.Contains(row, "⋯") {
					t.Errorf("%q is in no hunk", row)
				}
			}
		})
	}
	v := Unified(f, 130, Options{})
	for _, want := range []Place{{Old: 9, Hunk: 0}, {New: 9, Hunk: 0}, {New: 11, Hunk: 0}} {
		found := false
		for _, p := range v.At {
			found = found || p == want
		}
		if !found {
			t.Errorf("no row is %+v", want)
		}
	}
}

func TestSplitNeedsSixtyCellsASide(t *testing.T) {
	t.Parallel()
	if CanSplit(122) || !CanSplit(123) {
		t.Error("two columns of 60 and what parts them are 123")
	}
}

func TestChangedWords(t *testing.T) {
	t.Parallel()
	mark := func(s string, parts []stretch) string {
		var b strings.Builder
		from := 0
		for _, p := range parts {
			if p.changed {
				b.WriteString("{" + s[from:p.end] + "}")
			} else {
				b.WriteString(s[from:p.end])
			}
			from = p.end
		}
		return b.String()
	}
	for _, c := range []struct{ name, old, new, was, is string }{
		{"something added", "c.Expires = now", "c.Expires = now.Add(ttl)", "c.Expires = now", "c.Expires = now{.Add(ttl)}"},
		{"a word", "return nil, err", "return nil, fail", "return nil, {err}", "return nil, {fail}"},
		{"a phrase is one mark", "keep a b c d keep", "keep x y c d keep", "keep {a b} c d keep", "keep {x y} c d keep"},
		{"in two places", "f(one, two, three)", "f(ONE, two, THREE)", "f({one}, two, {three})", "f({ONE}, two, {THREE})"},
		{"an emoji is whole", "a 👩‍💻 bcd", "a 👩‍🚀 bcd", "a {👩‍💻} bcd", "a {👩‍🚀} bcd"},
		{"lines without much in common have no marks", "one two", "three four", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			was, is := changedWords(c.old, c.new)
			if diff := cmp.Diff([]string{c.was, c.is}, []string{mark(c.old, was), mark(c.new, is)}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A copy of a diff is the code, without numbers, signs and wrap marks.
func TestCopies(t *testing.T) {
	t.Parallel()
	f := Compare("x", "a long line of words\n", "a longer line of words\n")
	want := "a long line of words\na longer line of words"
	if got := text.Copied(Unified(f, 16, Options{Words: true}).Lines); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	// Of two columns the right one, and what stands at the left alone.
	f = Compare("x", "a\nsome words that are longer\nc\nd\n", "a\nsome words, shorter\nd\n")
	want = "a\nsome words, shorter\nc\nd"
	if got := text.Copied(Split(f, 40, Options{}).Lines); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(fixture(f, "git.diff"), uint8(40))
	f.Add("--- a\n+++ b\n@@ -1,2 +3 @@ x\x1b[2J\n-\u202e\t\n+\xff\n\\ No\n", uint8(3))
	f.Add("*** Update File: a\n@@ x\n-b\n+c\n*** Add File: \x07\n+\x00", uint8(80))
	f.Add("diff --git \"a/\\30\" \"b/\\\"\\\\\" c\nrename to \"\\\n@@ -9999999999 +1,99999999999999999999 @@\n", uint8(0))
	f.Fuzz(func(t *testing.T, diff string, w uint8) {
		width := 8 + int(w)
		files := append(Parse(diff), Patch(diff)...)
		files = append(files, Compare("x", diff, diff[len(diff)/2:]), Edit("x", diff[len(diff)/2:], diff, 7))
		for _, f := range files {
			rows := 0
			for _, h := range f.Hunks {
				rows += len(h.Rows)
			}
			if rows > MaxRows {
				t.Fatalf("%d rows", rows)
			}
			for _, o := range []Options{{Words: true}, {Cut: true, ASCII: true}} {
				for _, v := range []View{Unified(f, width, o), Split(f, width+20, o)} {
					checkView(t, v, width+20)
				}
				checkView(t, Unified(f, width, o), width)
				checkView(t, View{Lines: Preview(f, width, 3, o), At: make([]Place, len(Preview(f, width, 3, o)))}, width)
			}
		}
	})
}

func checkView(t *testing.T, v View, width int) {
	t.Helper()
	if len(v.At) != len(v.Lines) {
		t.Fatalf("%d places of %d rows", len(v.At), len(v.Lines))
	}
	for _, l := range v.Lines {
		if l.Width() > width {
			t.Fatalf("%q is %d cells wide, not %d", l.String(), l.Width(), width)
		}
		for _, s := range l.Spans {
			if strings.ContainsFunc(s.Text, func(r rune) bool { return termsafe.Acts(r) || unicode.IsControl(r) }) {
				t.Fatalf("%q holds a control", s.Text)
			}
		}
	}
}

func BenchmarkUnified(b *testing.B) {
	var before, after strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&before, "\tline %d of a file, with some words\n", i)
		if i%20 == 0 {
			fmt.Fprintf(&after, "\tline %d of the file, with other words\n", i)
		} else {
			fmt.Fprintf(&after, "\tline %d of a file, with some words\n", i)
		}
	}
	b.Run("compare", func(b *testing.B) {
		for b.Loop() {
			Compare("x", before.String(), after.String())
		}
	})
	f := Compare("x", before.String(), after.String())
	b.Run("lay out", func(b *testing.B) {
		for b.Loop() {
			Unified(f, 100, Options{Words: true})
		}
	})
}
