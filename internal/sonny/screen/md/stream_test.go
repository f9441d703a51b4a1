package md

import (
	"fmt"
	"strings"
	"testing"
	"unicode"

	"agent/client/termsafe"
	"agent/internal/sonny/screen/text"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// streamed is a message that came in pieces and was looked at after each.
func streamed(src string, width int, o Options, sizes ...int) *Doc {
	d := New(o)
	for i, rest := 0, src; rest != ""; i++ {
		n := min(sizes[i%len(sizes)], len(rest))
		d.Append(rest[:n])
		rest = rest[n:]
		d.Slice(width, 0, d.Lines(width))
	}
	d.Finish()
	return d
}

// check fails a test when a message breaks what is promised of every one.
func check(t interface {
	Helper()
	Fatalf(string, ...any)
}, src string, width int, o Options, sizes ...int,
) {
	t.Helper()
	want := whole(src, o)
	n := want.Lines(width)
	lines := want.Slice(width, 0, n)
	if len(lines) != n {
		t.Fatalf("%d rows announced, %d given, of %q", n, len(lines), src)
	}
	for _, l := range lines {
		if l.Width() > width {
			t.Fatalf("%q is %d cells wide, not %d, of %q", l.String(), l.Width(), width, src)
		}
		for _, s := range l.Spans {
			if bad := strings.IndexFunc(s.Text+s.URL, acts); bad >= 0 {
				t.Fatalf("%q holds a control, of %q", s.Text+s.URL, src)
			}
		}
	}
	// A link reference may be defined after what was laid out.
	if strings.Contains(src, "]:") {
		return
	}
	got := streamed(src, width, o, sizes...)
	if diff := cmp.Diff(lines, got.Slice(width, 0, got.Lines(width))); diff != "" {
		t.Fatalf("of %q in pieces of %v (-whole +streamed):\n%s", src, sizes, diff)
	}
	for from := 0; from < n; from += 3 {
		if diff := cmp.Diff(lines[from:min(from+5, n)], want.Slice(width, from, from+5)); diff != "" {
			t.Fatalf("rows from %d of %q (-all +slice):\n%s", from, src, diff)
		}
	}
}

func acts(r rune) bool { return termsafe.Acts(r) || unicode.IsControl(r) }

func TestStreamedIsWhole(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		src := document(t)
		width := rapid.IntRange(8, 60).Draw(t, "width")
		sizes := rapid.SliceOfN(rapid.IntRange(1, 12), 1, 4).Draw(t, "sizes")
		check(t, src, width, Options{Links: rapid.Bool().Draw(t, "links"), Colour: true}, sizes...)
	})
}

func FuzzDoc(f *testing.F) {
	for _, seed := range []string{
		"# a\n\n- b\n  - [x] c\n\n```go\nfunc x() {}\n```\n", "a|b\n-|-\n1|2\n", "> q\nlazy\n\n***\n",
		"\x1b[2J\u202e `\x07` [a](http://x/\u202e) \xff\xc2", "<!-- c\n\n-->\n<b>\n", "![i](p.png) <http://a.b> x\u0301\n",
		"[a](main.go:12) [b](javascript:x) `a/b.go:3:4`\n", "\t\tcode\t1\n\n1. a\n\n   b\n10. c", "~~~\n漢字👩‍💻\r\n\tx\r\n~~~",
		"|漢|字|\n|:-:|-:|\n|👩‍💻|a\x00b|c|\n", "- a\n-\n  - b\n\nc", "```diff\n+a\n-b\n@@ x\n", "**a _b ~~c `d` e~~ f_ g**\\\nh  \ni",
	} {
		f.Add(seed, uint8(20), uint8(3), uint8(7))
	}
	f.Fuzz(func(t *testing.T, src string, width, one, two uint8) {
		if len(src) > 4<<10 {
			return
		}
		o := Options{Links: one%2 == 0, Colour: two%2 == 0, ASCII: width%2 == 0}
		check(t, src, 8+int(width)%90, o, 1+int(one), 1+int(two))
	})
}

// A row that has ended stays where and as it is.
func TestEndedRowsStay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		src := document(t)
		d := New(Options{Links: true})
		ended := []text.Line{}
		for rest := src; rest != ""; {
			n := min(rapid.IntRange(1, 9).Draw(t, "size"), len(rest))
			d.Append(rest[:n])
			rest = rest[n:]
			got := append([]text.Line{}, d.Slice(30, 0, d.Ended(30))...)
			if len(got) < len(ended) {
				t.Fatalf("%d rows had ended, %d have now, of %q", len(ended), len(got), src)
			}
			if diff := cmp.Diff(ended, got[:len(ended)]); diff != "" {
				t.Fatalf("a row changed after its end (-was +is), of %q:\n%s", src, diff)
			}
			ended = got
		}
	})
}

// A resize there and back changes nothing.
func TestWidthsAreIndependent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := whole(document(t), Options{})
		before := rows(d, 40)
		for _, w := range []int{20, 8, 90} {
			d.Lines(w)
		}
		if diff := cmp.Diff(before, rows(d, 40)); diff != "" {
			t.Fatal(diff)
		}
	})
}

// No screen is too narrow to be drawn: below 8 cells rows may be wider than asked.
func TestAnyWidthIsDrawn(t *testing.T) {
	t.Parallel()
	d := whole(fixture(t, "everything.md"), Options{Colour: true})
	for width := range 8 {
		if n := d.Lines(width); len(d.Slice(width, 0, n)) != n {
			t.Errorf("%d cells: not all of %d rows are given", width, n)
		}
	}
}

func TestBlocksEndAsTheyShould(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, src, want string }{
		{"a paragraph ends at its blank line", "a\nb\n\n", "a\nb"},
		{"and not before it", "a\nb\n", ""},
		{"a fence ends at its closing", "```\na\n```\n", "    a"},
		{"and not at a blank line", "```\na\n\n", ""},
		{"an item ends where the next one begins", "- a\n- b\n", "• a"},
		{"an item does not end at a blank line", "- a\n\n", ""},
		{"a heading is a line", "# a\n", "a"},
		{"a table ends at its blank line", "a|b\n-|-\n\n", "a  b\n─  ─"},
		{"a quote too", "> a\n\n", "│ a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := New(Options{})
			d.Append(c.src)
			got := strings.Join(rows(d, 20)[:d.Ended(20)], "\n")
			if got != c.want {
				t.Errorf("%q has ended, want %q", got, c.want)
			}
		})
	}
}

func TestReferencesStandBeforeTheirUse(t *testing.T) {
	t.Parallel()
	d := New(Options{Links: true})
	src := "[a] one\n\n[a]: http://x.y\n\n[a] two\n"
	for _, r := range src {
		d.Append(string(r))
		d.Lines(40)
	}
	d.Finish()
	want := []string{"[a] one", "", "{link http://x.y|a} two"}
	for _, width := range []int{40, 30, 40} {
		var got []string
		for _, l := range d.Slice(width, 0, d.Lines(width)) {
			got = append(got, looks(l))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("at %d: %s", width, diff)
		}
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	t.Run("50,000 lines are Markdown", func(t *testing.T) {
		if d := whole(strings.Repeat("*a*\n\n", maxMessageLines/2), Options{}); d.Plain() || rows(d, 20)[0] != "a" {
			t.Error("shown as plain text")
		}
	})
	t.Run("more are plain text", func(t *testing.T) {
		d := whole(strings.Repeat("*a*\n\n", maxMessageLines/2)+"b\n", Options{})
		got := rows(d, 20)
		if !d.Plain() || len(got) != maxMessageLines+1 || got[0] != "*a*" || got[maxMessageLines] != "b" {
			t.Errorf("plain %v, %d rows, the first %q", d.Plain(), len(got), got[0])
		}
	})
	t.Run("100,000 marks are Markdown, more are plain text", func(t *testing.T) {
		line := strings.Repeat("*a* ", 50) + "\n\n" // 100 marks
		if d := whole(strings.Repeat(line, maxMarks/100), Options{}); d.Plain() {
			t.Error("shown as plain text")
		}
		if d := whole(strings.Repeat(line, maxMarks/100)+"*a*", Options{}); !d.Plain() {
			t.Error("shown as Markdown")
		}
	})
	t.Run("a table of 10,000 cells is one, a bigger one its source", func(t *testing.T) {
		row := strings.Repeat("|a", 10) + "|\n"
		head := row + strings.Repeat("|-", 10) + "|\n"
		if got := drawn(head+strings.Repeat(row, 999), 40, Options{}); got[2] != strings.TrimSpace(strings.Repeat("a  ", 10)) {
			t.Errorf("drawn as %q", got[2])
		}
		got := drawn(head+strings.Repeat(row, 1000)+"\n# b\n", 40, Options{})
		if len(got) != 1004 || got[2] != strings.TrimSpace(row) || got[1003] != "b" {
			t.Errorf("%d rows, %q", len(got), got[:4])
		}
	})
	t.Run("a table of 257 columns is its source", func(t *testing.T) {
		src := strings.Repeat("|a", 257) + "|\n" + strings.Repeat("|-", 257) + "|\n"
		if got := drawn(src, 600, Options{}); got[0] != strings.Repeat("|a", 257)+"|" {
			t.Errorf("drawn as %q", got[0])
		}
	})
	t.Run("a line of over 64 KiB is plain text", func(t *testing.T) {
		got := drawn("a\n*b*"+strings.Repeat("c", maxBytes)+"\n*d*\n", 100, Options{})
		if got[0] != "a" || !strings.HasPrefix(got[1], "*b*c") || got[len(got)-1] != "d" {
			t.Errorf("%q … %q", got[:2], got[len(got)-1])
		}
	})
	t.Run("a line of over 2,000 marks is plain text", func(t *testing.T) {
		src := strings.Repeat("*a* ", maxRuns/2)
		if got := drawn(src, 8, Options{}); got[0] != "a a a a" {
			t.Errorf("2,000 marks are drawn as %q", got[0])
		}
		if got := drawn(src+"[", 8, Options{}); got[0] != "*a* *a*" {
			t.Errorf("2,001 marks are drawn as %q", got[0])
		}
	})
	t.Run("containers nest to 100 in a line", func(t *testing.T) {
		src := strings.Repeat("> ", 101) + "a"
		if got := strings.Join(drawn(src, 100, Options{}), " "); strings.ReplaceAll(got, " ", "") != strings.ReplaceAll(src, " ", "") {
			t.Errorf("drawn as %q", got)
		}
	})
}

func TestLinks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, src, with, without string }{
		{"an address behind words", "[a](https://x.y)", "{link https://x.y|a}", "{link|a}{dim| (https://x.y)}"},
		{"is spelled out once a message", "[a](https://x.y) [b](https://x.y)\n\n[c](https://x.y)", "{link https://x.y|a} {link https://x.y|b}\n\n{link https://x.y|c}", "{link|a}{dim| (https://x.y)} {link|b}\n\n{link|c}"},
		{"mail", "<a@b.c>", "{link mailto:a@b.c|a@b.c}", "{link|a@b.c}"},
		{"a bare address", "see https://x.y/z.", "see {link https://x.y/z|https://x.y/z}.", "see {link|https://x.y/z}."},
		{"a file", "[a](b/c.go)", "{link file:b/c.go|a}", "{link file:b/c.go|a}{dim| (b/c.go)}"},
		{"a file's line", "[c.go:1](c.go:1)", "{link file:c.go:1|c.go:1}", "{link file:c.go:1|c.go:1}"},
		{"a place in code", "`a/b.go:12`", "{code file:a/b.go:12|a/b.go:12}", "{code file:a/b.go:12|a/b.go:12}"},
		{"escaped blanks of a path", "[a](b%20c.go)", "{link file:b c.go|a}", "{link file:b c.go|a}{dim| (b%20c.go)}"},
		{"another scheme is text", "[a](javascript:x)", "a{dim| (javascript:x)}", "a{dim| (javascript:x)}"},
		{"a file's scheme too", "[a](file:///etc/passwd)", "a{dim| (file:///etc/passwd)}", "a{dim| (file:///etc/passwd)}"},
		{"an anchor is text", "[a](#b)", "a{dim| (#b)}", "a{dim| (#b)}"},
		{"a control in an address", "[a](https://x.y/\u202e)", `a{dim| (https://x.y/}{dim|\u{202e})}`, `a{dim| (https://x.y/}{dim|\u{202e})}`},
		{"an escaped control in a path", "[a](b%1b.go)", "{link file:b%1b.go|a}", "{link file:b%1b.go|a}{dim| (b%1b.go)}"},
		{"a picture", "![a](b.png)", "{link file:b.png|a}{dim| (b.png)}", "{link file:b.png|a}{dim| (b.png)}"},
		{"a picture without words", "![](b.png)", "picture{dim| (b.png)}", "picture{dim| (b.png)}"},
		{"a footnote", "a[^1]\n\n[^1]: b", "a[^1]\n\n[^1]: b", "a[^1]\n\n[^1]: b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for links, want := range map[bool]string{true: c.with, false: c.without} {
				var got []string
				d := whole(c.src, Options{Links: links})
				for _, l := range d.Slice(80, 0, d.Lines(80)) {
					got = append(got, looks(l))
				}
				if diff := cmp.Diff(want, strings.Join(got, "\n")); diff != "" {
					t.Errorf("links %v: %s", links, diff)
				}
			}
		})
	}
}

func TestCode(t *testing.T) {
	t.Parallel()
	d := New(Options{Colour: true})
	d.Append("```go\nfunc a() {\n\treturn\n}\n```\n\n- x\n\n  ```\n  b\n  ```\n\n    c\n     d\n\ne\n\n~~~ sh\nf\n")
	for n, want := range []string{"func a() {\n\treturn\n}\n", "b\n", "f\n"} {
		if got, ok := d.Code(n + 1); !ok || got != want {
			t.Errorf("block %d is %q, %v; want %q", n+1, got, ok, want)
		}
	}
	for _, n := range []int{-1, 0, 4} {
		if got, ok := d.Code(n); ok {
			t.Errorf("block %d is %q", n, got)
		}
	}
	if n := d.Codes(); n != 3 {
		t.Errorf("%d blocks", n)
	}
}

// What is dragged over is what the model wrote: no indentation, no wrap marks, no
// language, no gutters.
func TestCopies(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, src, want string }{
		{"code", "```go\nfunc reissue(w http.ResponseWriter, id string) {\n\n    return\n}\n```", "\nfunc reissue(w http.ResponseWriter, id string) {\n\n    return\n}"},
		{"a quote", "> words that are wrapped at twenty\n> cells", "words that are wrapped at twenty\ncells"},
		{"an item", "- words that are wrapped at twenty\n  cells", "• words that are wrapped at twenty\ncells"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := whole(c.src, Options{})
			if diff := cmp.Diff(c.want, text.Copied(d.Slice(20, 0, d.Lines(20)))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestUnwrappedCodeIsOneRow(t *testing.T) {
	t.Parallel()
	line := strings.Repeat("word ", 40) + "漢"
	got := drawn("```\n"+line+"\n```\n", 20, Options{Unwrapped: true})
	if diff := cmp.Diff([]string{"    " + line}, got); diff != "" {
		t.Error(diff)
	}
}

// Every list item's number is right though each item is a block of its own.
func TestNumbersGoOn(t *testing.T) {
	t.Parallel()
	got := drawn("3. a\n3. b\n\n   x\n1. c\n\n---\n\n1) d\n1) e\n\nf\n\n7) g", 20, Options{})
	want := []string{"3. a", "4. b", "", "   x", "5. c", "", strings.Repeat("─", 20), "", "1) d", "2) e", "", "f", "", "7) g"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func ExampleDoc() {
	d := New(Options{})
	d.Append("Two **par")
	d.Append("agraphs**.\n\nThe second")
	for _, l := range d.Slice(40, 0, d.Lines(40)) {
		fmt.Println(l.String())
	}
	fmt.Println(d.Ended(40), "ended")
	// Output:
	// Two paragraphs.
	//
	// The second
	// 1 ended
}
