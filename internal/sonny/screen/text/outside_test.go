package text

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOutside(t *testing.T) {
	t.Parallel()
	like := Span{Role: Code, Attr: Bold}
	for _, c := range []struct {
		name, text string
		want       []Span
	}{
		{"nothing is no span", "", nil},
		{"a plain text is one", "a b", []Span{{Text: "a b", Role: Code, Attr: Bold}}},
		{"a tab is four cells", "a\tb", []Span{{Text: "a    b", Role: Code, Attr: Bold}}},
		{"a newline is a space", "a\nb", []Span{{Text: "a b", Role: Code, Attr: Bold}}},
		{"an escape is dim", "a\x1b[2Jb", []Span{
			{Text: "a", Role: Code, Attr: Bold},
			{Text: `\u{1b}`, Role: Dim, Attr: Bold},
			{Text: "[2Jb", Role: Code, Attr: Bold},
		}},
		{"zero-width characters stay", "👩\u200d💻", []Span{{Text: "👩\u200d💻", Role: Code, Attr: Bold}}},
		{"a broken byte is replaced", "a\xffb", []Span{{Text: "a\uFFFDb", Role: Code, Attr: Bold}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Outside(c.text, like)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if w := Columns(c.text); w != (Line{Spans: got}).Width() {
				t.Errorf("Columns gives %d, the spans take %d", w, (Line{Spans: got}).Width())
			}
		})
	}
}
