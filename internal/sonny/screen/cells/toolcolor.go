package cells

import (
	"strconv"
	"strings"

	"agent/internal/sonny/screen/text"
)

// tint is what the colours of a command's output have come to, as it is read along.
type tint struct {
	role text.Role // where none is set
	now  text.Role
	bold bool
}

// spans are a line with the colours that its SGR sequences set, which go on into the next
// line. A colour is the theme's own: the role that has it by custom. Nothing else of an
// escape sequence counts; it is shown as what it is (sonny.md 8.4).
func (t *tint) spans(line string) (out []text.Span) {
	put := func(s string) {
		if s == "" {
			return
		}
		span := text.Span{Text: clean(s), Role: t.now}
		if t.bold {
			span.Attr = text.Bold
		}
		out = append(out, span)
	}
	from := 0
	for at := 0; at < len(line); at++ {
		if line[at] != 0x1b {
			continue
		}
		params, length, ok := sgr(line[at:])
		if !ok {
			continue
		}
		put(line[from:at])
		t.set(params)
		at += length - 1
		from = at + 1
	}
	put(line[from:])
	return out
}

// sgr reads the SGR sequence that a text begins with.
func sgr(s string) (params string, length int, ok bool) {
	rest, ok := strings.CutPrefix(s, "\x1b[")
	if !ok {
		return "", 0, false
	}
	end := strings.IndexFunc(rest, func(r rune) bool { return (r < '0' || r > '9') && r != ';' && r != ':' })
	if end < 0 || rest[end] != 'm' {
		return "", 0, false
	}
	return rest[:end], len("\x1b[") + end + 1, true
}

// colours are the roles of the eight colours by custom: black is the background's, and
// white the text's.
var colours = [8]text.Role{text.Dim, text.Fail, text.Run, text.Wait, text.Link, text.Pace, text.Accent, text.Plain}

// set takes the parameters of a sequence. Colours beyond the sixteen are left alone, and
// backgrounds are none of a transcript's.
func (t *tint) set(params string) {
	list := strings.FieldsFunc(params, func(r rune) bool { return r == ';' || r == ':' })
	if len(list) == 0 {
		list = []string{"0"}
	}
	for i := 0; i < len(list); i++ {
		n, err := strconv.Atoi(list[i])
		switch {
		case err != nil:
		case n == 0:
			t.now, t.bold = t.role, false
		case n == 1:
			t.bold = true
		case n == 2:
			t.now = text.Dim
		case n == 22:
			t.bold = false
		case n >= 30 && n <= 37:
			t.now = colours[n-30]
		case n == 90:
			t.now = text.Dim
		case n >= 91 && n <= 97:
			t.now = colours[n-90]
		case n == 39:
			t.now = t.role
		case n == 38 || n == 48 || n == 58:
			return // another colour's parameters follow
		}
	}
}
