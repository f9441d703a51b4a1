package cells

import (
	"fmt"
	"strings"
	"testing"
	"unicode"

	"agent/internal/sonny/screen/text"
)

func TestColoursOfOutput(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, in, want string }{
		{"a word", "\x1b[31mred\x1b[0m plain", "fail:red text: plain"},
		{"it goes on in the next line", "\x1b[32mone\ntwo\x1b[mthree", "run:one|run:two text:three"},
		{"bold, and not any more", "\x1b[1;33mloud\x1b[22;39msoft", "wait!:loud text:soft"},
		{"the bright ones", "\x1b[90mdim\x1b[91mred", "dim:dim fail:red"},
		{"a colour of the 256 is left", "\x1b[31m\x1b[38;5;196mred", "fail:red"},
		{"nothing else of a sequence counts", "\x1b[2Jx\x1b]0;t\x07y", `text:\u{1b}[2Jx\u{1b}]0;t\u{7}y`},
		{"no sequence is made of two", "\x1b\x1b[31m[2J", `text:\u{1b} fail:[2J`},
		{"an unfinished one is text", "a\x1b[31", `text:a\u{1b}[31`},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			var lines []string
			for _, l := range shellLines(row.in, text.Plain, Look{Width: 80, Colours: true}) {
				var spans []string
				for _, s := range l.Spans {
					if s.Chrome {
						continue
					}
					bold := ""
					if s.Attr&text.Bold != 0 {
						bold = "!"
					}
					spans = append(spans, s.Role.String()+bold+":"+s.Text)
				}
				lines = append(lines, strings.Join(spans, " "))
			}
			if got := strings.Join(lines, "|"); got != row.want {
				t.Errorf("%q, want %q", got, row.want)
			}
		})
	}
	if got := shellLines("\x1b[31mred", text.Plain, Look{Width: 80})[0].String(); !strings.Contains(got, `\u{1b}[31mred`) {
		t.Errorf("without colours it is %q", got)
	}
}

// FuzzColours holds that no control character comes through, whatever a command writes.
func FuzzColours(f *testing.F) {
	f.Add("\x1b[31m\x1b[1mx\x1b[0")
	f.Add("\x1b\x1b[31m[2J\u009b31m")
	f.Fuzz(func(t *testing.T, s string) {
		for _, l := range shellLines(s, text.Plain, Look{Width: 40, Colours: true}) {
			if i := strings.IndexFunc(l.String(), unicode.IsControl); i >= 0 {
				t.Errorf("%q of %q", l.String(), fmt.Sprintf("%q", s))
			}
		}
	})
}
