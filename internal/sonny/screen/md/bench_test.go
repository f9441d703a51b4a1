package md

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
)

// longDocument is the fixture again and again, up to so many lines.
func longDocument(t testing.TB, lines int) string {
	all := fixture(t, "everything.md") + "\n"
	return strings.Repeat(all, 1+lines/strings.Count(all, "\n"))
}

// BenchmarkDelta is a word that comes to a message of nearly 50,000 lines, and the
// rows in view after it.
func BenchmarkDelta(b *testing.B) {
	for name, src := range map[string]string{
		"paragraphs": strings.Repeat("a line of *words* that is not long\n\n", 24_000),
		"paragraph":  strings.Repeat("a line of *words* that is not long\n", 48_000),
		"code":       "```go\n" + strings.Repeat("\treturn a, nil // and so on\n", 48_000),
		"list":       strings.Repeat("- an item of *words*\n", 48_000),
		"table":      "a|b\n-|-\n" + strings.Repeat("one | two\n", 4_000),
		"plain":      strings.Repeat("a line of *words* that is not long\n", 60_000),
	} {
		b.Run(name, func(b *testing.B) {
			d := New(Options{Colour: true})
			d.Append(src)
			d.Lines(80)
			for i := 1; b.Loop(); i++ {
				d.Append("word ")
				if i%16 == 0 {
					d.Append("\n")
				}
				n := d.Lines(80)
				d.Slice(80, n-40, n)
			}
		})
	}
}

func BenchmarkAppend(b *testing.B) {
	d := New(Options{})
	d.Append("```\n" + strings.Repeat("a line of code\n", 48_000))
	for b.Loop() {
		d.Append("word ")
	}
}

// BenchmarkLayout is a document of 5,000 lines, and as a ratio to that what goldmark
// needs to write it as HTML.
func BenchmarkLayout(b *testing.B) {
	src := longDocument(b, 5000)
	md := goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.TaskList))
	b.Run("rows", func(b *testing.B) {
		var theirs time.Duration
		for b.Loop() {
			b.StopTimer()
			start := time.Now()
			if err := md.Convert([]byte(src), new(bytes.Buffer)); err != nil {
				b.Fatal(err)
			}
			theirs += time.Since(start)
			b.StartTimer()
			whole(src, Options{Links: true}).Lines(100)
		}
		b.ReportMetric(float64(b.Elapsed())/float64(theirs), "×html")
	})
	b.Run("another width", func(b *testing.B) {
		d := whole(src, Options{Links: true})
		for width := 100; b.Loop(); width ^= 3 {
			d.Lines(width)
		}
	})
	b.Run("colours of 1,000 lines", func(b *testing.B) {
		code := "```go\n" + strings.Repeat("\tif err := f(a, \"b\"); err != nil { return nil, err } // c\n", 1000) + "```\n"
		for b.Loop() {
			d := whole(code, Options{Colour: true})
			d.Slice(100, 0, d.Lines(100))
		}
	})
}

// A delta into a message of 48,000 lines allocates next to nothing, and drawing it
// what the open block and the rows in view need. It is not parallel: it counts.
func TestADeltaCostsItsOwnLength(t *testing.T) {
	for name, src := range map[string]string{
		"paragraphs": strings.Repeat("a line of *words*\n\n", 24_000),
		"code":       "```go\n" + strings.Repeat("\treturn a, nil\n", 48_000),
		"list":       strings.Repeat("- an item of *words*\n", 48_000),
	} {
		d := New(Options{Colour: true})
		d.Append(src)
		d.Lines(80)
		if n := testing.AllocsPerRun(100, func() { d.Append("word ") }); n > 2 {
			t.Errorf("%s: a delta makes %v allocations", name, n)
		}
		draw := func() {
			d.Append("w ")
			n := d.Lines(80)
			d.Slice(80, n-20, n)
		}
		if n := testing.AllocsPerRun(100, draw); n > 1000 {
			t.Errorf("%s: drawing it makes %v", name, n)
		}
	}
}
