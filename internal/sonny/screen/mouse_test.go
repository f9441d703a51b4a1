package screen_test

import (
	"encoding/base64"
	"os"
	"strings"
	"testing"
)

// rowOf is the row of the screen, from 0, that holds a text first; and its column.
func rowOf(screen, text string) (x, y int) {
	for y, line := range strings.Split(screen, "\n") {
		if at := strings.Index(line, text); at >= 0 {
			return len([]rune(line[:at])), y
		}
	}
	return -1, -1
}

func TestClicksAndThemes(t *testing.T) {
	t.Parallel()
	h, dir := demo(t)
	s := open(h, dir)
	s.WaitFor("1 AGENTS.md")
	send(s, "sh: seq 1 9; echo hellotheword")
	s.WaitFor("✔ done")

	t.Run("a click unfolds a cell, and another folds it", func(t *testing.T) {
		s.WaitFor("+8 lines")
		x, y := rowOf(s.Capture(), "+8 lines")
		s.Click(x, y)
		s.WaitGone("+8 lines")
		x, y = rowOf(s.Capture(), "▸ shell")
		s.Click(x, y)
		s.WaitFor("+8 lines")
	})
	t.Run("a double click selects a word, which y copies", func(t *testing.T) {
		from := len(s.Raw())
		x, y := rowOf(s.Capture(), "hellotheword")
		s.Click(x+2, y)
		s.Click(x+2, y)
		s.Type("y")
		s.WaitRaw(from, base64.StdEncoding.EncodeToString([]byte("hellotheword")))
	})
	t.Run("themes are tried as they come to hand, and Esc gives the one there was back", func(t *testing.T) {
		plain := func() bool {
			return s.Cell(1, 2).Style.Fg == nil && s.Cell(2, 22).Style.Fg == nil && s.Cell(1, 23).Style.Fg == nil
		}
		if !plain() {
			t.Fatal("there is colour before")
		}
		send(s, "/theme")
		s.WaitFor("── themes")
		s.Keys("Home")
		from := len(s.Raw())
		s.Keys("Down")
		s.WaitRaw(from, "\x1b[")
		h.Until("colour", func() bool { return colour.Match(s.Raw()[from:]) })
		from = len(s.Raw())
		s.Keys("Escape")
		s.WaitGone("── themes")
		if config, err := os.ReadFile(h.Path(".agent", "config.toml")); err != nil || strings.Contains(string(config), "theme") {
			t.Errorf("it is kept: %s, %v", config, err)
		}
		h.Until("no colour", plain)
		send(s, "/theme")
		s.WaitFor("── themes")
		s.Keys("Home", "Down", "Enter")
		s.WaitGone("── themes")
		h.Until("it is kept", func() bool {
			config, err := os.ReadFile(h.Path(".agent", "config.toml"))
			return err == nil && strings.Contains(string(config), "theme = ")
		})
	})
}
