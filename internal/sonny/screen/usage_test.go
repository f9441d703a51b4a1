package screen_test

import (
	"regexp"
	"strings"
	"testing"

	"agent/internal/sonny/screen/text"

	"github.com/charmbracelet/x/ansi"
)

// headerOf is the screen's first row.
func headerOf(screen string) string {
	line, _, _ := strings.Cut(screen, "\n")
	return line
}

var percent = regexp.MustCompile(`ctx (\d+%)`)

func TestTheContextMeter(t *testing.T) {
	t.Parallel()

	t.Run("SO-95 the meter is the newest call's share of the window, red at 90 %, and never a sum", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t)
		s := h.In(dir).Screen(size, "sonny", "--no-motion", "--theme", "ansi")
		s.WaitFor("1 AGENTS.md")
		shown := map[string]bool{}
		reach := func(words ...string) {
			s.Until("the header "+strings.Join(words, ", "), func(screen string) bool {
				row := headerOf(screen)
				if m := percent.FindStringSubmatch(row); m != nil {
					shown[m[1]] = true
				}
				return containsAll(row, words)
			})
		}
		red := func(word string) bool {
			before, _, _ := strings.Cut(headerOf(s.Capture()), word)
			return s.Cell(text.Width(before), 0).Style.Fg == ansi.Red
		}
		send(s, "usage: high")
		reach("✔ done", "ctx 90%", "90k in", "1k out")
		if !red("ctx") {
			t.Error("at 90 % the meter is not red")
		}
		send(s, "usage: low")
		reach("✔ done", "ctx 20%", "110k in", "1k out")
		if red("ctx") {
			t.Error("at 20 % the meter is red")
		}
		if len(shown) != 2 || !shown["90%"] || !shown["20%"] {
			t.Errorf("the meter showed %v", shown)
		}
		s.Keys("C-d")
		s.Exit()

		// Opened again it is the newest call's, though no event of it comes.
		s = open(h, dir)
		reach("ctx 20%", "110k in")
		if len(shown) != 2 {
			t.Errorf("the meter showed %v", shown)
		}
	})
}

func containsAll(s string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(s, w) {
			return false
		}
	}
	return true
}
