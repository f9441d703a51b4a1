package md

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
	"pgregory.net/rapid"
)

// split gives the pieces of a text that comes in pieces of size bytes.
func split(src string, size int) (out []piece) {
	s := splitter{out: func(p piece) { out = append(out, p) }}
	for rest := src; rest != ""; rest = rest[min(size, len(rest)):] {
		s.append(rest[:min(size, len(rest))])
	}
	s.finish()
	return out
}

// outline is the blocks of a tree with the text of their lines, a list's items as
// if each were a list of its own.
func outline(src string) (out []string) {
	root := tree([]byte(src))
	for c := root.FirstChild(); c != nil; c = c.NextSibling() {
		out = append(out, outlineOf(c, []byte(src), ""))
		if list, ok := c.(*ast.List); ok {
			out = out[:len(out)-1]
			for i := list.FirstChild(); i != nil; i = i.NextSibling() {
				out = append(out, fmt.Sprintf("List %c\n", list.Marker)+outlineOf(i, []byte(src), "  "))
			}
		}
	}
	return out
}

func outlineOf(n ast.Node, src []byte, indent string) string {
	var b strings.Builder
	kind := n.Kind()
	if kind == ast.KindTextBlock {
		kind = ast.KindParagraph // a tight list's, and of its own an item is always tight
	}
	fmt.Fprintf(&b, "%s%s", indent, kind)
	if l, ok := n.(*ast.List); ok {
		fmt.Fprintf(&b, " %c %d", l.Marker, l.Start)
	}
	b.WriteByte('\n')
	if n.Type() == ast.TypeBlock {
		var lines []string
		for i := range n.Lines().Len() {
			seg := n.Lines().At(i)
			lines = append(lines, strings.TrimRight(string(seg.Value(src)), "\n"))
		}
		// Blank lines at the end of a fence that nothing closes belong to nobody.
		for len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1]) == "" {
			lines = lines[:len(lines)-1]
		}
		for _, l := range lines {
			fmt.Fprintf(&b, "%s  %q\n", indent, l)
		}
	}
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if c.Type() == ast.TypeBlock || c.Kind() == east.KindTableCell {
			b.WriteString(outlineOf(c, src, indent+"  "))
		}
	}
	return b.String()
}

// agrees fails a test when the splitter and goldmark see other blocks in a text.
func agrees(t interface{ Fatalf(string, ...any) }, src string) {
	var got []string
	for _, p := range split(src, 1<<20) {
		if p.raw {
			return // goldmark would not see it so
		}
		got = append(got, outline(p.src)...)
	}
	if diff := cmp.Diff(outline(src), got); diff != "" {
		t.Fatalf("of %q (-goldmark +split):\n%s", src, diff)
	}
}

// fragments are beginnings and ends of lines that are hard to tell apart.
var fragments = []string{
	"foo", "bar baz", "- ", "* ", "+ ", "1. ", "2. ", "10) ", "-", "*", "1.", "> ", ">", "# ", "#", "##x", "---", "===", "***", "- - -",
	"```", "```go", "~~~", "`x`", "    ", "  ", " ", "   ", "\t", "<div>", "<b>", "</b>", "<!-- c", "-->", "<script>", "</script>", "<?x", "?>",
	"a | b", "-|-", "|", "--|:-:", "[x]: /u", "[x]", "[^1]: n", "[^1]", "\\", "**b**", "*i", "[ ] t", "[x] t", "-x", "1.x", "<A ", "`",
}

func document(t *rapid.T) string {
	var b strings.Builder
	for range rapid.IntRange(1, 14).Draw(t, "lines") {
		for range rapid.IntRange(0, 4).Draw(t, "fragments") {
			b.WriteString(rapid.SampledFrom(fragments).Draw(t, "fragment"))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestSplitAgreesWithGoldmark(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) { agrees(t, document(t)) })
}

func TestSplitDoesNotMindThePieces(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		src := document(t)
		size := rapid.IntRange(1, 9).Draw(t, "size")
		if diff := cmp.Diff(split(src, len(src)), split(src, size), cmp.AllowUnexported(piece{}, start{})); diff != "" {
			t.Fatalf("of %q in pieces of %d (-whole +pieces):\n%s", src, size, diff)
		}
	})
}
