package screen_test

import (
	"encoding/base64"
	"regexp"
	"strings"
	"testing"

	"agent/internal/sonny/sonnytest"
)

// clipboard is what a program put into the terminal's clipboard, in order.
func clipboard(t *testing.T, s *sonnytest.Screen) (out []string) {
	t.Helper()
	for _, m := range regexp.MustCompile("\x1b\\]52;c;([A-Za-z0-9+/=]+)\a").FindAllSubmatch(s.Raw(), -1) {
		text, err := base64.StdEncoding.DecodeString(string(m[1]))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(text))
	}
	return out
}

func TestCopying(t *testing.T) {
	t.Parallel()
	code := "for i := range 10 { fmt.Println(\"a line that is longer than the screen is wide, so that it must wrap\", i) }"
	start := func(t *testing.T) (*sonnytest.Home, *sonnytest.Screen) {
		h, dir := demo(t)
		s := openAt(h, dir, 80, 24)
		s.WaitFor("1 AGENTS.md")
		s.Paste("say: ```go\n" + code + "\nnext()\n```")
		s.Keys("Enter")
		s.WaitFor("✔ done")
		return h, s
	}
	row := func(s *sonnytest.Screen, has string, last bool) int {
		at := -1
		for i, line := range strings.Split(s.Capture(), "\n") {
			if strings.Contains(line, has) && (at < 0 || last) {
				at = i
			}
		}
		return at
	}

	t.Run("SO-62 what a drag selects is copied by text, and only when asked", func(t *testing.T) {
		t.Parallel()
		_, s := start(t)
		from, to := row(s, "for i := range", true), row(s, "next()", true)
		s.Drag(4, from, 40, to)
		if got := clipboard(t, s); len(got) != 0 {
			t.Errorf("copied without being asked: %q", got)
		}
		s.Type("y")
		s.WaitFor("copied")
		if got := clipboard(t, s); len(got) != 1 || got[0] != code+"\nnext()" {
			t.Errorf("copied %q", got)
		}
		s.Type("y")
		s.WaitFor("› y")
	})

	t.Run("a reply, a block, and a line in copy mode", func(t *testing.T) {
		t.Parallel()
		h, s := start(t)
		s.Keys("C-x", "y")
		s.WaitFor("copied")
		s.Keys("C-x", "c")
		s.WaitFor("copies that block")
		s.Type("1")
		h.Until("two copies", func() bool { return len(clipboard(t, s)) == 2 })
		s.Keys("M-v")
		s.WaitFor("v mark")
		s.Type("0v$")
		s.Type("y")
		s.WaitGone("v mark")
		h.Until("three copies", func() bool { return len(clipboard(t, s)) == 3 })
		got := clipboard(t, s)
		if len(got) != 3 || got[0] != "```go\n"+code+"\nnext()\n```" || strings.TrimSpace(got[1]) != code+"\nnext()" || got[2] != "next()" {
			t.Errorf("copied %q", got)
		}
	})
}
