package text

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func rows(lines []Line) (out []string) {
	for _, l := range lines {
		out = append(out, l.String())
	}
	return out
}

func TestWrap(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		frame      Frame
		want       []string
	}{
		{"nothing is one empty line", "", Frame{Width: 5}, []string{""}},
		{"what fits stays", "ab cd", Frame{Width: 5}, []string{"ab cd"}},
		{"it breaks at the last space that fits", "ab cd ef", Frame{Width: 6}, []string{"ab cd", "ef"}},
		{"a space at the edge is taken by the break", "abcde fg", Frame{Width: 5}, []string{"abcde", "fg"}},
		{"a long word is cut", "abcdefgh", Frame{Width: 3}, []string{"abc", "def", "gh"}},
		{"a wide character does not straddle the edge", "a漢字", Frame{Width: 4}, []string{"a漢", "字"}},
		{"a joined emoji stays whole", "ab👩‍💻", Frame{Width: 3}, []string{"ab", "👩‍💻"}},
		{"leading spaces stay", "  ab cd", Frame{Width: 5}, []string{"  ab", "cd"}},
		{"prefixes are part of the width", "ab cd", Frame{Width: 4, First: []Span{{Text: "- "}}, Rest: []Span{{Text: "  "}}}, []string{"- ab", "  cd"}},
		{"no room at all is a cluster a line", "ab", Frame{Width: 1, First: []Span{{Text: "> "}}, Rest: []Span{{Text: "> "}}}, []string{"> a", "> b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := rows(Wrap([]Span{{Text: c.text}}, c.frame))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Whatever is wrapped, no line is too wide and a copy gives the text back, but for
// the spaces where it was broken.
func TestWrapKeepsEverything(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOfN(rapid.StringOfN(rapid.SampledFrom([]rune("ab 漢é👩\u200d💻-")), 0, 9, -1), 1, 5).Draw(t, "spans")
		width := rapid.IntRange(2, 12).Draw(t, "width")
		var spans []Span
		for i, p := range pieces {
			spans = append(spans, Span{Text: p, Role: Role(i % 2)})
		}
		lines := Wrap(spans, Frame{Width: width})
		for _, l := range lines {
			if l.Width() > width {
				t.Fatalf("%q is %d cells wide, the frame %d", l.String(), l.Width(), width)
			}
		}
		squeeze := func(s string) string { return strings.ReplaceAll(s, " ", "") }
		if got, want := squeeze(Copied(lines)), squeeze(strings.Join(pieces, "")); got != want {
			t.Fatalf("a copy gives %q of %q", got, want)
		}
	})
}

func TestCopied(t *testing.T) {
	t.Parallel()
	gutter := Span{Text: " 12 │ ", Chrome: true}
	lines := []Line{
		{Spans: []Span{gutter, {Text: "one two"}}, End: Space},
		{Spans: []Span{{Text: "three"}}, End: Glue},
		{Spans: []Span{{Text: "four"}}},
		{Spans: []Span{gutter, {Text: "five"}}},
	}
	if got, want := Copied(lines), "one two threefour\nfive"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, got, want string }{
		{"a short text is filled", Pad("ab", 4), "ab  "},
		{"a long one is cut", Pad("abcdef", 4), "abc…"},
		{"a wide cluster is not split", Pad("漢字漢", 4), "漢… "},
		{"a line is cut with its ellipsis", Join(Span{Text: "abc"}, Span{Text: "def"}).Cut(4).String(), "abc…"},
		{"left and right share the width", Of(Plain, "ab").Right(Of(Plain, "z"), 5).String(), "ab  z"},
		{"the left gives way", Of(Plain, "abcdef").Right(Of(Plain, "yz"), 6).String(), "ab… yz"},
		{"no room for the right even", Of(Plain, "ab").Right(Of(Plain, "vwxyz"), 3).String(), "vw…"},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, c.got, c.want)
		}
	}
}
