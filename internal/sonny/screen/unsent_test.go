package screen_test

import (
	"strings"
	"testing"
)

// A command that is refused stays in the composer as it was typed, also where that turns
// out after its line was taken (sonny.md 10.2).
func TestARefusedCommandStays(t *testing.T) {
	t.Parallel()
	h, dir := demo(t)
	s := openAt(h, dir, 110, 24)
	s.WaitFor("1 AGENTS.md")
	turnOf(s, func() { send(s, "say: hello") })
	for _, row := range []struct{ typed, says string }{
		{"/task bad/name do it", "invalid_name"},
		{"/image /nonexist", "/nonexist"},
		{"/export /nonexist/dir/f", "/nonexist/dir"},
		{"/model foo/bar", "foo"},
		{"/writable /", "invalid_writable_root"},
		{"/writable /absent", "/absent is not there"},
		{"/rename", "/rename TITLE"},
		{"/merge", "/merge NAME"},
		{"/effort", "/effort LEVEL"},
		{"/sandbox", "/sandbox MODE"},
		{"/goal be done", "/goal: no such command in this version"},
	} {
		s.Type(row.typed)
		s.WaitFor("› " + row.typed)
		s.Keys("Enter")
		s.Until("a refusal of "+row.typed+", and its text", func(screen string) bool {
			return strings.Contains(screen, "› "+row.typed) && strings.Contains(screen[strings.Index(screen, "› "+row.typed)+len(row.typed):], row.says)
		})
		s.Keys("C-u")
		s.WaitGone("› " + row.typed)
	}
	if list := bots(t, h); len(list) != 1 {
		t.Errorf("%+v", list)
	}
}
