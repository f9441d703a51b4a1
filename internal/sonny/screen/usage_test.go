package screen_test

import (
	"regexp"
	"strings"
	"testing"

	"agent/internal/sonny/screen/text"
	"agent/internal/sonny/sonnytest"

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
				return HasAll(row, words)
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
		if left := s.Capture(); !strings.Contains(left, "used this time: 110k in, 1.0k out, cost ?") {
			t.Errorf("on leaving it says\n%s", left)
		}

		// Opened again it is the newest call's, though no event of it comes.
		s = open(h, dir)
		reach("ctx 20%", "110k in")
		if len(shown) != 2 {
			t.Errorf("the meter showed %v", shown)
		}
	})
}

func HasAll(s string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(s, w) {
			return false
		}
	}
	return true
}

// priced is the settings of a home whose model has a price: a million tokens in cost one
// dollar, cached ones a tenth, out ten.
const priced = "[pricing.\"scripted/sonny\"]\ninput = 1.0\ncached = 0.1\ncache_write = 1.0\noutput = 10.0\n"

func TestUsagePanel(t *testing.T) {
	t.Parallel()
	for _, at := range []struct {
		name string
		w, h int
	}{{"80x24", 80, 24}, {"160x48", 160, 48}} {
		t.Run("the panels of usage and of the context show the daemon's figures "+at.name, func(t *testing.T) {
			t.Parallel()
			h, dir := demo(t, settings("row = \"full\"\n"+priced))
			s := h.In(dir).Screen(sonnytest.Terminal{Width: at.w, Height: at.h}, "sonny", "--no-motion", "--theme", "none")
			s.WaitFor("1 AGENTS.md")
			send(s, "usage: high")
			// 10,000 fresh, 80,000 cached, 1,000 out
			reached(s, "✔ done", "90k in", "$0.03")
			turnOf(s, func() { send(s, "usage: low") })
			reached(s, "ctx 20%", "110k in", "$0.05")
			if at.w > 120 {
				reached(s, "scripted/sonny", "110k in (72% cached)", "today $0.05")
			}
			s.Keys("C-x", "u")
			wants(t, s, "── usage of demo.lead", "prices of", "this turn", "today, every bot", "scripted/sonny")
			for _, row := range []string{
				`this turn +1 +20.0k +0 +10  \$0.0201  1 round`, `this session +2 +110k +80.0k +1.0k  \$0.0481`,
				`today, every bot +2 +110k +80.0k +1.0k  \$0.0481`, `scripted/sonny +2 +110k +80.0k +1.0k  \$0.0481`,
			} {
				s.Until(row, func(screen string) bool { return regexp.MustCompile(row).MatchString(screen) })
			}
			sonnytest.Golden(t, "usage-"+at.name, pricesOf.ReplaceAllString(s.Capture(), "prices of 2000-01-01"))
			s.Keys("Escape")
			s.WaitGone("── usage of")
			send(s, "/context")
			wants(t, s, "── context of demo.lead", "20.0k of 100k tokens · 0 from the cache", "messages", "other tools")
			sonnytest.Golden(t, "context-"+at.name, instructed.ReplaceAllString(s.Capture(), "$1 ....."))
		})
	}
}

// What changes with the texts that Sonny ships, and with the day.
var (
	pricesOf   = regexp.MustCompile(`prices of \d{4}-\d\d-\d\d`)
	instructed = regexp.MustCompile(`(instructions|skills index|tools of Sonny|not told) +[0-9.k]+`)
)

// reached waits until the screen's first row holds all words.
func reached(s screen, words ...string) {
	s.Until("the header "+strings.Join(words, ", "), func(screen string) bool { return HasAll(headerOf(screen), words) })
}

// inFull is a header of which nothing is missing that comes later than the turn's end.
var inFull = regexp.MustCompile(`ctx \d+%.*cost \?`)

// countedUp waits until the header of a bot without prices tells all that it will.
func countedUp(s screen) {
	s.Until("the header's sums", func(screen string) bool {
		row := headerOf(screen)
		return inFull.MatchString(row) && (text.Width(row) <= 120 || strings.Contains(row, "today cost ?"))
	})
}
