package screen_test

import (
	"regexp"
	"testing"

	"agent/internal/sonny/sonnytest"

	"github.com/charmbracelet/x/ansi"
)

// colour is a sequence that sets one; 39 and 49 are the terminal's own.
var colour = regexp.MustCompile(`\x1b\[([0-9]+;)*(3[0-8]|4[0-8]|9[0-7]|10[0-7])[;m]`)

// SO-57, SO-58, SO-59: what the terminal says decides the looks.
func TestLooks(t *testing.T) {
	t.Parallel()

	t.Run("SO-57 NO_COLOR leaves no colour", func(t *testing.T) {
		h, dir := demo(t)
		m := h.With("NO_COLOR=1").In(dir).Tmux(80, 24, "sonny", "--no-motion")
		m.WaitFor("1 AGENTS.md")
		send(m, "md: everything")
		m.WaitFor("✔ done")
		if found := colour.FindString(m.CaptureEsc()); found != "" {
			t.Errorf("there is colour: %q", found)
		}
	})

	t.Run("SO-59 a locale that is not UTF-8 gets ASCII", func(t *testing.T) {
		h, dir := demo(t)
		s := h.With("LANG=C", "LC_ALL=C", "LC_CTYPE=C").In(dir).Screen(size, "sonny", "--no-motion", "--theme", "none")
		s.WaitFor("1 AGENTS.md")
		send(s, "md: everything")
		s.WaitFor("+ done")
		s.Keys("C-o", "S-Up")
		s.WaitFor("more")
		for i, b := range s.Raw() {
			if b >= 0x80 {
				t.Fatalf("byte %x at %d: %q", b, i, s.Raw()[max(0, i-20):i+20])
			}
		}
	})
}

func TestThemeByBackground(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, background, want string }{
		{"SO-58 a white background is a light theme", "#ffffff", "light"},
		{"SO-58 a black one a dark theme", "#000000", "dark"},
		{"SO-58 a terminal that does not say gets its own colours", "", "ansi"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h, dir := demo(t)
			like := sonnytest.Terminal{Width: 80, Height: 24, Background: c.background}
			s := h.With("COLORTERM=truecolor").In(dir).Screen(like, "sonny", "--no-motion")
			s.WaitFor("1 AGENTS.md")
			cell := s.Cell(2, 5) // of "model", which is dim
			got := "ansi"
			if _, palette := cell.Style.Fg.(ansi.BasicColor); !palette && cell.Style.Fg != nil {
				r, _, _, _ := cell.Style.Fg.RGBA()
				if got = "light"; r > 0x8000 {
					got = "dark"
				}
			}
			if got != c.want {
				t.Errorf("%s, of %+v", got, cell)
			}
		})
	}
}
