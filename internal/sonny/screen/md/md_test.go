package md

import (
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"agent/internal/sonny/screen/text"
	"github.com/google/go-cmp/cmp"
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

// drawn is a message that came in one piece, its rows without looks.
func drawn(src string, width int, o Options) []string {
	return rows(whole(src, o), width)
}

func whole(src string, o Options) *Doc {
	d := New(o)
	d.Append(src)
	d.Finish()
	return d
}

func rows(d *Doc, width int) (out []string) {
	for _, l := range d.Slice(width, 0, d.Lines(width)) {
		out = append(out, strings.TrimRight(l.String(), " "))
	}
	return out
}

func TestGolden(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"everything", "wide"} {
		for _, width := range []int{40, 76, 100} {
			t.Run(name+" at "+strconv.Itoa(width), func(t *testing.T) {
				got := strings.Join(drawn(fixture(t, name+".md"), width, Options{Links: true, Colour: true}), "\n") + "\n"
				golden(t, name+"-"+strconv.Itoa(width)+".golden", got)
			})
		}
	}
	t.Run("in ASCII and without links", func(t *testing.T) {
		got := strings.Join(drawn(fixture(t, "everything.md"), 76, Options{ASCII: true}), "\n") + "\n"
		golden(t, "everything-ascii.golden", got)
	})
	t.Run("with looks", func(t *testing.T) {
		d := whole(fixture(t, "everything.md"), Options{Links: true, Colour: true})
		var b strings.Builder
		for _, l := range d.Slice(76, 0, d.Lines(76)) {
			b.WriteString(looks(l) + "\n")
		}
		golden(t, "everything-looks.golden", b.String())
	})
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

// looks is a line with the looks of its spans written out.
func looks(l text.Line) string {
	var b strings.Builder
	for _, s := range l.Spans {
		if s.Role == text.Plain && s.Attr == 0 && s.URL == "" {
			b.WriteString(s.Text)
			continue
		}
		b.WriteString("{" + s.Role.String())
		for i, name := range []string{" bold", " italic", " underline", " strike", " reverse"} {
			if s.Attr&(1<<i) != 0 {
				b.WriteString(name)
			}
		}
		if s.URL != "" {
			b.WriteString(" " + s.URL)
		}
		b.WriteString("|" + s.Text + "}")
	}
	return strings.TrimRight(b.String(), " ")
}
