package tool

import (
	"bytes"
	"io"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf8"
)

var pageBase = &url.URL{Scheme: "http", Host: "h", Path: "/d/p"}

func htmlText(t testing.TB, r io.Reader) string {
	t.Helper()
	var out bytes.Buffer
	if err := htmlToText(r, &out, pageBase); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestHTMLToText(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, page, text string }{
		{"nothing", "", ""},
		{"nothing to see", "<!doctype html><head><meta charset=x><link rel=a></head><body> \n </body>", ""},
		{"text alone", "a", "a\n"},
		{"blanks are one", " a \n\t b<b> c</b>d ", "a b cd\n"},
		{"paragraphs stand apart", "<p>a</p>\n<p>b<p>c", "a\n\nb\n\nc\n"},
		{"blocks have lines of their own", "a<div>b<div>c</div></div>d", "a\nb\nc\nd\n"},
		{"line breaks", "a<br>b<br/><br><br>c", "a\nb\n\nc\n"},
		{"the title comes first", "<head><title> A &lt; B\n</title></head><body>c", "A < B\n\nc\n"},
		{"headings", "<h1>a</h1>b<h3>c <i>d</i></h3>e<h6></h6>f", "# a\n\nb\n\n### c d\n\ne\n\nf\n"},
		{"a line across", "a<hr>b", "a\n\n---\n\nb\n"},
		{"characters by name", "&eacute;&#233;&nbsp;&amp;amp;", "éé\u00a0&amp;\n"},
		{"links are absolute", `<a href="x?a=1&amp;b=2">a b</a> <a href=/y>c</a>, <a href="//o/z"> d </a>e`, "[a b](http://h/d/x?a=1&b=2) [c](http://h/y), [d](http://o/z) e\n"},
		{"the base of links", `<base href="https://b/c/"><a href=d>e</a>`, "[e](https://b/c/d)\n"},
		{"the first base is the one", `<base target=x><base href="https://b/c/"><base href="https://d/"><a href=d>e</a>`, "[e](https://b/c/d)\n"},
		{"links that lead nowhere", `<a href="#x">a</a> <a href="javascript:b()">b</a> <a>c</a> <a href="data:text/plain,d">d</a> <a href="http://[">e</a>`, "a b c d e\n"},
		{"a link's blanks", `<a href="a b">c</a>`, "[c](http://h/d/a%20b)\n"},
		{"a link around blocks", `<a href=x><div>a</div></a><p>b`, "[a](http://h/d/x)\n\nb\n"},
		{"a link within a link", `<a href=x>a<a href=y>b</a>c`, "[a](http://h/d/x)[b](http://h/d/y)c\n"},
		{"a link without text", `a <a href=x><img src=y></a>`, "a [](http://h/d/x)\n"},
		{"a link that is not closed", `<a href=x>a`, "[a](http://h/d/x)\n"},
		{"a picture by its text", `<img alt=" a  b "><img alt=""><img>`, "[image: a b]\n"},
		{"a list", "a<ul><li>b<li><p>c</p></ul>d", "a\n\n- b\n- c\n\nd\n"},
		{"a numbered list, with one in it", "<ol><li>a<ul><li>b</li></ul><li>c</ol>", "1. a\n  - b\n2. c\n"},
		{"a table", "<table><tr><th>a<th>b<tr><td>c<td></td><td>d</table>e", "a | b\nc | | d\n\ne\n"},
		{"preformatted text", "a<pre>\n b\n\n\n  c\t<b>d</b>\n</pre>e", "a\n\n```\n b\n\n\n  c\td\n```\n\ne\n"},
		{"preformatted text that is not closed", "<pre>a\n", "```\na\n```\n"},
		{"what is not shown", "a<script>b<p></script><style>c</style><template><p>d</template><svg><g><svg></svg>e<title>f</title></g></svg><iframe><p>g</iframe>h", "ah\n"},
		{"what is shown without scripts", "<noscript><p>a</noscript>", "a\n"},
		{"comments", "a<!-- <p>b -->c<!x>d<?e>f</>g", "acdfg\n"},
		{"a form", "<select><option>a<option>b</select><textarea><p>c</textarea>", "a\nb\n<p>c\n"},
		{"a page that breaks off in a tag", "a<p title=\"b", "a\n"},
		{"a page that breaks off in a script", "a<script>b", "a\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if got := htmlText(t, strings.NewReader(row.page)); got != row.text {
				t.Errorf("got %q, want %q", got, row.text)
			}
		})
	}
}

// TestHTMLTokensOfAnySize puts each kind of token at many places around the
// bound of what is held of one.
func TestHTMLTokensOfAnySize(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, begin, fill, end string
		text                   func(filled string) string
	}{
		{"a text", "<p>", "ab", "&amp;é<b>c</b>", func(s string) string { return s + "&éc\n" }},
		{"a text with names of characters", "<p>", "&lt;", "d", func(s string) string { return strings.ReplaceAll(s, "&lt;", "<") + "d\n" }},
		{"a script", "a<script>", "x</", "</script>b", func(string) string { return "ab\n" }},
		{"a script in a picture", "a<svg><script>", "x<b", "</script></svg>b", func(string) string { return "ab\n" }},
		{"a text area", "a<textarea>", "<p", "&lt;</textarea>b", func(s string) string { return "a\n" + s + "<\nb\n" }},
		{"a comment", "a<!--", "a>-", "-->b", func(string) string { return "ab\n" }},
		{"a declaration", "a<!x", "yz", ">b", func(string) string { return "ab\n" }},
		{"an attribute", "a<p title=\"", "> ", "\">b", func(string) string { return "a\n\nb\n" }},
		{"attributes without end", "a<p", " b=c", ">b", func(string) string { return "a\n\nb\n" }},
		{"an end tag", "a<p>b</p ", "xy", ">c", func(string) string { return "a\n\nb\n\nc\n" }},
		{"a link", "<a href=\"", "xy", "\">b</a>", func(string) string { return "b\n" }},
		{"a script's tag", "a<script src='", "xy", "'><p></script>b", func(string) string { return "ab\n" }},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			for _, size := range []int{maxToken - 40, maxToken + 40, 3*maxToken + 7} {
				for off := range 40 {
					if size > 2*maxToken && off > 2 {
						break
					}
					filled := strings.Repeat(row.fill, (size+off)/len(row.fill)+1)
					if got, want := htmlText(t, strings.NewReader(row.begin+filled+row.end)), row.text(filled); got != want {
						t.Fatalf("size %d: got %d bytes %.100q … %q, want %d bytes", size+off, len(got), got, got[max(0, len(got)-60):], len(want))
					}
				}
			}
		})
	}
}

func TestLinksOfALongBaseAreQuick(t *testing.T) {
	t.Parallel()
	links := strings.Repeat("<a href=x>y</a>", 20_000)
	for _, row := range []struct{ name, page string }{
		{"one long base", `<base href="/` + strings.Repeat("a/", 30_000) + `">` + links},
		{"a base that grows", strings.Repeat("<base href=b/>", 20_000) + links},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			got := htmlText(t, strings.NewReader(row.page))
			if took := time.Since(began); took > 2*time.Second { // they took minutes
				t.Errorf("it took %v", took)
			}
			if !strings.HasPrefix(got, "[y](http://h/d/") {
				t.Errorf("got %.200q", got)
			}
		})
	}
}

func TestHTMLToTextReportsErrors(t *testing.T) {
	t.Parallel()
	broken := iotest.ErrReader(io.ErrUnexpectedEOF)
	var out bytes.Buffer
	err := htmlToText(io.MultiReader(strings.NewReader("<p>a"), broken), &out, pageBase)
	if err != io.ErrUnexpectedEOF || !strings.HasPrefix(out.String(), "a") {
		t.Errorf("got %v, %q", err, out.String())
	}
}

func FuzzHTMLToText(f *testing.F) {
	for _, seed := range []string{
		"<h1>a</h1><p>b <a href=x>c</a><ul><li>d</ul><pre>e\n</pre>", "<table><tr><td>a<td>b</table>", "<script>a</script><svg><svg/></svg>b",
		"<a href='#'>a<img alt=b>", "<!-- a --><!b><?c></d e=f>", "<ol><li><ol></ol></ol></ol>", "<textarea>&lt;", "<plaintext><b>", "<base href=//x><a href=y>", "\x00<\xff",
	} {
		f.Add(seed, 3)
	}
	f.Fuzz(func(t *testing.T, page string, size int) {
		whole := htmlText(t, strings.NewReader(page))
		if got := htmlText(t, iotest.OneByteReader(strings.NewReader(page))); got != whole {
			t.Fatalf("%q a byte at a time gave %q, whole %q", page, got, whole)
		}
		if whole != "" && !strings.HasSuffix(whole, "\n") {
			t.Fatalf("%q gave %q", page, whole)
		}
		if utf8.ValidString(page) && !utf8.ValidString(whole) {
			t.Fatalf("%q gave %q", page, whole)
		}
		// A page that is too large in one place goes on like any other.
		filler := "<!--" + strings.Repeat("-x", maxToken) + "-->"
		if got := htmlText(t, strings.NewReader(filler+page)); got != whole {
			t.Fatalf("%q after a long comment gave %q, else %q", page, got, whole)
		}
	})
}

func FuzzFetchBody(f *testing.F) {
	for _, seed := range []string{"a", "é", "\xff\xfea\x00", byteOrderMark + "a", "<meta charset=shift_jis>\x93\xfa", "\xe9", "\xe9\xa0"} {
		f.Add([]byte(seed), "text/html", true)
		f.Add([]byte(seed), "text/plain; charset=iso-2022-jp", false)
	}
	f.Fuzz(func(t *testing.T, body []byte, contentType string, isHTML bool) {
		r, _ := decoded(bytes.NewReader(body), body[:min(len(body), sniffSize)], contentType, isHTML)
		got, err := io.ReadAll(withoutMark(r))
		if err != nil {
			t.Fatal(err)
		}
		again, _ := decoded(iotest.OneByteReader(bytes.NewReader(body)), body[:min(len(body), sniffSize)], contentType, isHTML)
		slow, err := io.ReadAll(withoutMark(again))
		if err != nil || !bytes.Equal(got, slow) {
			t.Fatalf("%q: %q at once, %q a byte at a time, %v", body, got, slow, err)
		}
		if _, loose := r.(*looseReader); loose && utf8.Valid(body) && !bytes.Equal(got, bytes.TrimPrefix(body, []byte(byteOrderMark))) {
			t.Fatalf("%q became %q", body, got)
		}
	})
}
