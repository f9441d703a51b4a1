package screen_test

import (
	"os"
	"strings"
	"testing"
)

// What the book did not take is not shown: not a title, not that a session is archived. A
// newer Sonny's book is one that is not written.
func TestWhatTheBookDidNotTakeIsNotShown(t *testing.T) {
	t.Parallel()
	h, dir := demo(t)
	s := resting(t, h, dir)
	send(s, "/rename kept")
	s.Until("the title", func(screen string) bool { return strings.HasPrefix(screen, " kept  ") })
	book := h.Path(".agent", "sonny", "sessions.json")
	before := readFile(t, book)
	h.Write(".agent/sonny/sessions.json", strings.Replace(before, `"v": 1`, `"v": 99`, 1))
	refused := func(line string) {
		t.Helper()
		send(s, line)
		s.WaitFor("io_error: ")
		holds(s, line)
		s.Keys("C-u")
		holds(s, "")
	}
	refused("/rename not kept")
	if head := headOf(s.Capture()); !strings.HasPrefix(head, " kept  ") {
		t.Errorf("the header shows what was not kept: %s", head)
	}
	refused("/archive")
	send(s, "/notices")
	s.WaitFor("── notices")
	if screen := s.Capture(); strings.Contains(screen, "archived:") {
		t.Errorf("it says that it did:\n%s", screen)
	}
	s.Keys("Escape")
	s.WaitGone("── notices")
	if err := os.WriteFile(book, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	send(s, "/rename now it is")
	s.Until("the title that was kept", func(screen string) bool { return strings.HasPrefix(screen, " now it is  ") })
	send(s, "/archive")
	s.WaitFor("archived: it goes on")
}
