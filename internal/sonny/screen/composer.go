package screen

import (
	"strings"

	"agent/internal/sonny/screen/text"
)

// composer is the text that is being written.
type composer struct {
	buf []rune
	at  int
}

func (c *composer) text() string { return string(c.buf) }
func (c *composer) empty() bool  { return len(c.buf) == 0 }
func (c *composer) set(s string) { c.buf = []rune(s); c.at = len(c.buf) }
func (c *composer) clear()       { c.buf, c.at = nil, 0 }
func (c *composer) insert(s string) {
	ins := []rune(s)
	c.buf = append(c.buf[:c.at:c.at], append(ins, c.buf[c.at:]...)...)
	c.at += len(ins)
}

// key edits. It reports whether the key was one that edits.
func (c *composer) key(name, typed string) bool {
	switch name {
	case "backspace":
		if c.at > 0 {
			c.buf = append(c.buf[:c.at-1:c.at-1], c.buf[c.at:]...)
			c.at--
		}
	case "left":
		c.at = max(0, c.at-1)
	case "right":
		c.at = min(len(c.buf), c.at+1)
	case "home", "ctrl+a":
		c.at = 0
	case "end", "ctrl+e":
		c.at = len(c.buf)
	case "ctrl+u":
		c.buf, c.at = c.buf[c.at:], 0
	case "shift+enter", "alt+enter", "ctrl+j":
		c.insert("\n")
	default:
		if typed == "" {
			return false
		}
		c.insert(typed)
	}
	return true
}

// rows lays the text out: its lines, and where the caret stands.
func (c *composer) rows(width int) (lines []text.Line, x, y int) {
	lines = wrapPlain(string(c.buf), width)
	before := wrapPlain(string(c.buf[:c.at]), width)
	y = len(before) - 1
	x = before[y].Width()
	if x >= width {
		x, y = 0, y+1
		if y >= len(lines) {
			lines = append(lines, text.Line{})
		}
	}
	return lines, x, y
}

func wrapPlain(s string, width int) []text.Line {
	var out []text.Line
	for _, line := range strings.Split(s, "\n") {
		out = append(out, text.Wrap([]text.Span{{Text: line, Role: text.User}}, text.Frame{Width: width})...)
	}
	return out
}
