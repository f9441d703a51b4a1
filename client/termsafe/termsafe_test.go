package termsafe

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

func TestFilter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, want string
		pieces     []string
	}{
		{"CL-56 a delta that ends within U+009B prints it once, escaped", `a\u{9b}b`, []string{"a\xc2", "\x9bb"}},
		{"a character in three pieces stays one", "😀", []string{"\xf0", "\x9f\x98", "\x80"}},
		{"an escape sequence across deltas", `\u{1b}[2J`, []string{"\x1b", "[2J"}},
		{"a beginning without its rest is U+FFFD", "a\uFFFD", []string{"a\xe2\x80"}},
		{"a broken byte in the middle", "a\uFFFDb", []string{"a\xffb"}},
		{"a beginning followed by something else", "\uFFFDx", []string{"\xe2", "x"}},
		{"newline, tab and zero-width stay in flowing text", "a\n\tb\u200bc", []string{"a\n\tb\u200bc"}},
		{"what reorders or tags does not", `\u{202e}\u{61c}\u{2028}\u{e0041}\r`, []string{"\u202e\u061c\u2028\U000e0041\r"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			f := NewWriter(&out)
			for _, piece := range c.pieces {
				if n, err := f.Write([]byte(piece)); err != nil || n != len(piece) {
					t.Fatalf("Write = %d, %v", n, err)
				}
			}
			if err := f.Flush(); err != nil {
				t.Fatal(err)
			}
			if out.String() != c.want {
				t.Errorf("got %q, want %q", out.String(), c.want)
			}
		})
	}
}

func FuzzFilter(f *testing.F) {
	f.Add([]byte("a\xc2\x9bb\x1b[2J\r\u202e"), uint8(2))
	f.Add([]byte("\xf0\x9f\x98\x80\xe2\x80"), uint8(1))
	f.Fuzz(func(t *testing.T, text []byte, cut uint8) {
		var whole, pieces bytes.Buffer
		one, many := NewWriter(&whole), NewWriter(&pieces)
		one.Write(text)
		one.Flush()
		size := int(cut)%7 + 1
		for rest := text; len(rest) > 0; rest = rest[min(size, len(rest)):] {
			many.Write(rest[:min(size, len(rest))])
		}
		many.Flush()
		if whole.String() != pieces.String() {
			t.Errorf("in one piece %q, in pieces of %d %q", whole.String(), size, pieces.String())
		}
		for _, r := range whole.String() {
			if Prose.Escapes(r) {
				t.Errorf("%q came through", r)
			}
		}
	})
}

func TestShellWord(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, value, want string }{
		{"a plain word is bare", "a-b_c.d/e:f@g%h+i=j,k", "a-b_c.d/e:f@g%h+i=j,k"},
		{"an empty one is two quotes", "", "''"},
		{"a blank needs quotes", "a b", "'a b'"},
		{"a quote is stepped out of", "it's", `'it'\''s'`},
		{"CL-58 a call id that begins with dashes", "--x y'z", `'--x y'\''z'`},
		{"a newline is written as bytes", "a\nb", `$'a\x0ab'`},
		{"what acts is written as bytes", "a\u202eb'c\\", `$'a\xe2\x80\xaeb\'c\\'`},
		{"what is no UTF-8 too", "a\xffb", `$'a\xffb'`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ShellWord(c.value)
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			shell := "sh"
			if strings.HasPrefix(got, "$") {
				shell = "bash"
			}
			if _, err := exec.LookPath(shell); err != nil {
				return // $'…' is not every sh's
			}
			out, err := exec.Command(shell, "-c", "printf '%s|' "+got).Output()
			if err != nil || string(out) != c.value+"|" {
				t.Errorf("%s reads it as %q, %v", shell, out, err)
			}
		})
	}
}

func TestWhatCannotBeSeen(t *testing.T) {
	t.Parallel()
	for _, r := range []rune{0xad, 0x34f, 0x115f, 0x1160, 0x180e, 0x200b, 0x200d, 0x2060, 0x2063, 0x3164, 0xfeff, 0xffa0} {
		want := fmt.Sprintf(`a\u{%x}b`, r)
		if got := OneLine("a" + string(r) + "b"); got != want {
			t.Errorf("got %q, want %s", got, want)
		}
		if got := Prose.Text("a" + string(r) + "b"); got != "a"+string(r)+"b" {
			t.Errorf("flowing: %q", got)
		}
	}
	for _, text := range []string{"e\u0301", "한국", "👩\ufe0f", "naïve"} {
		if got := OneLine(text); got != text {
			t.Errorf("%q is shown as %q", text, got)
		}
	}
}
