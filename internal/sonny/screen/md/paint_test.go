package md

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"agent/internal/sonny/screen/text"
	"github.com/google/go-cmp/cmp"
)

func TestLanguages(t *testing.T) {
	t.Parallel()
	d := whole(fixture(t, "languages.md"), Options{Colour: true})
	var b strings.Builder
	for _, l := range d.Slice(120, 0, d.Lines(120)) {
		b.WriteString(looks(l) + "\n")
	}
	golden(t, "languages.golden", b.String())
}

func TestEveryDefinitionIsUsedAndLoads(t *testing.T) {
	t.Parallel()
	files, err := lexerFiles.ReadDir("lexers")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for lang, name := range languages {
		named[name+".xml"] = true
		if _, ok := tokenise(lang, "a b\n"); !ok {
			t.Errorf("%s is not read", lang)
		}
	}
	for _, f := range files {
		if !named[f.Name()] {
			t.Errorf("%s belongs to no language", f.Name())
		}
	}
	if len(files) != len(named) {
		t.Errorf("%d files, %d definitions are named", len(files), len(named))
	}
}

// roles are the roles of a message's code, by row.
func codeRoles(d *Doc, width int) (out []text.Role) {
	for _, l := range d.Slice(width, 0, d.Lines(width)) {
		role := text.Plain
		for _, s := range l.Spans {
			if !s.Chrome && s.Role != text.Code {
				role = s.Role
			}
		}
		out = append(out, role)
	}
	return out
}

func TestColours(t *testing.T) {
	t.Parallel()
	t.Run("an open fence has each line that has ended coloured by itself", func(t *testing.T) {
		d := New(Options{Colour: true})
		d.Append("```go\n/* a\nreturn\nreturn")
		want := []text.Role{text.Plain, text.Dim, text.Accent, text.Plain}
		if diff := cmp.Diff(want, codeRoles(d, 40)); diff != "" {
			t.Error(diff)
		}
		d.Append("\n*/\n```\n")
		want = []text.Role{text.Plain, text.Dim, text.Dim, text.Dim, text.Dim}
		if diff := cmp.Diff(want, codeRoles(d, 40)); diff != "" {
			t.Errorf("closed, it is coloured as a whole: %s", diff)
		}
	})
	t.Run("no language is guessed", func(t *testing.T) {
		d := whole("```\nreturn\n```\n", Options{Colour: true})
		if diff := cmp.Diff([]text.Role{text.Plain}, codeRoles(d, 40)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("without colours there are none", func(t *testing.T) {
		d := whole("```go\nreturn\n```\n", Options{})
		if diff := cmp.Diff([]text.Role{text.Plain, text.Plain}, codeRoles(d, 40)); diff != "" {
			t.Error(diff)
		}
	})
	const line = "return 12345678\n" // 16 bytes
	t.Run("a block of 64 KiB is coloured, a longer one is not", func(t *testing.T) {
		for n, want := range map[int]text.Role{maxColoured / len(line): text.Pace, maxColoured/len(line) + 1: text.Plain} {
			for _, end := range []string{"", "```\n"} {
				d := New(Options{Colour: true})
				d.Append("```go\n" + strings.Repeat(line, n) + end)
				if got := codeRoles(d, 40)[1]; got != want {
					t.Errorf("%d lines, end %q: %v, want %v", n, end, got, want)
				}
			}
		}
	})
	t.Run("past 256 KiB of a message's code nothing is coloured", func(t *testing.T) {
		n := 3 * maxColoured / 4 / len(line)
		d := whole(strings.Repeat("```go\n"+strings.Repeat(line, n)+"```\n", 6), Options{Colour: true})
		got := codeRoles(d, 40)
		left := (maxColouredAll - 5*n*len(line)) / len(line) // lines of the sixth block
		start := 5*(n+1) + 1
		if got[start+left-1] != text.Pace || got[start+left] != text.Plain {
			t.Errorf("the last coloured line is not number %d: %v", left, got[start+left-3:start+left+3])
		}
	})
}

// Whatever stands in a fence, colours change neither its text nor its rows.
func FuzzPaint(f *testing.F) {
	for _, s := range []string{"func a() { return \"x\u0301\" }", "a/*", "\"\"\"\\", "'\xff\xfe", "${a", "<a b=", "👩\u200d💻 = `", "\x1b[0m # \u202e"} {
		f.Add(s, uint8(0))
	}
	langs := slices.Sorted(maps.Keys(languages))
	f.Fuzz(func(t *testing.T, code string, lang uint8) {
		if len(code) > 4<<10 || strings.Contains(code, "```") {
			return
		}
		src := "```" + langs[int(lang)%len(langs)] + "\n" + code + "\n```\n"
		plain, coloured := whole(src, Options{}), whole(src, Options{Colour: true})
		if diff := cmp.Diff(rows(plain, 30), rows(coloured, 30)); diff != "" {
			t.Fatalf("of %q (-plain +coloured):\n%s", src, diff)
		}
		if plain.Lines(30) != coloured.Lines(30) {
			t.Fatal("the rows are other ones")
		}
	})
}
