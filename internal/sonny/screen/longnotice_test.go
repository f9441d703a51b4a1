package screen_test

import (
	"strings"
	"testing"
)

// A notice that is longer than a row keeps its end, which says what to do, and moves nothing
// else: the composer stays at its row.
func TestALongNoticeKeepsItsRemedy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		w, h int
	}{{"on a narrow screen", 80, 24}, {"on a wider one", 100, 30}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h, dir := demo(t)
			s := openAt(h, dir, c.w, c.h)
			s.WaitFor("1 AGENTS.md")
			send(s, "say: hi")
			s.WaitFor("✔ done")
			before := rowBegun(s.Capture(), "›")
			book := h.Path(".agent", "sonny", "sessions.json")
			h.Write(".agent/sonny/sessions.json", strings.Replace(readFile(t, book), `"v": 1`, `"v": 99`, 1))
			send(s, "/rename other")
			s.Until("the whole notice", func(screen string) bool {
				words := strings.Join(strings.Fields(screen), " ")
				return strings.Contains(words, "run the newer one, or move the file away") && rowBegun(screen, "›") == before
			})
			s.WaitFor("? keys") // which has its row again
		})
	}
}

// rowBegun is the number of the row that begins with a text; -1 for none.
func rowBegun(screen, begins string) int {
	for i, line := range strings.Split(screen, "\n") {
		if strings.HasPrefix(line, begins) {
			return i
		}
	}
	return -1
}
