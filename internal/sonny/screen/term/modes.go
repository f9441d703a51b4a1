package term

import "strings"

// The DEC modes that are asked about.
const (
	modePaste   = 2004
	modeSync    = 2026
	modeUnicode = 2027
)

// MouseUse is which acts of the mouse are taken from the terminal (sonny.md 12).
type MouseUse struct{ Wheel, Click, Select bool }

// any reports whether the terminal is asked for the mouse at all.
func (m MouseUse) any() bool { return m.Wheel || m.Click || m.Select }

// on asks for reports: of drags where something is selected with them.
func (m MouseUse) on() string {
	switch {
	case m.Select:
		return "\x1b[?1002h\x1b[?1006h"
	case m.any():
		return "\x1b[?1000h\x1b[?1006h"
	}
	return ""
}

const mouseOff = "\x1b[?1006l\x1b[?1002l\x1b[?1000l"

// plainTerms know few sequences, and some print what they do not know.
func plainTerm(term string) bool {
	return term == "" || term == "dumb" || term == "linux" || strings.HasPrefix(term, "vt")
}

// enter is what opens the screen.
func (t *Terminal) enter() string {
	if t.o.Lines {
		return ""
	}
	var b strings.Builder
	if !t.plain {
		b.WriteString("\x1b[22;0t") // keep the title
	}
	if !t.o.Inline {
		b.WriteString("\x1b[?1049h\x1b[H\x1b[2J")
	}
	b.WriteString("\x1b[?7l\x1b[?2004h")
	if !t.plain {
		b.WriteString("\x1b[?1004h\x1b[?2031h")
	}
	if !t.o.Inline {
		b.WriteString(t.mouse.on())
	}
	return b.String()
}

// questions are asked once. What every terminal answers comes last, so that what has
// not been answered by then will not be.
const questions = "\x1b[?2026$p\x1b[?2027$p\x1b[?2004$p\x1b[?u" + askBackground + "\x1b[c"

const askBackground = "\x1b]11;?\x07"

// granted switches on what the terminal said it has.
func (f Features) granted() string {
	var b strings.Builder
	if f.Unicode {
		b.WriteString("\x1b[?2027h")
	}
	if f.Keyboard {
		// Keys apart from what they would type, and those of another layout by their place.
		b.WriteString("\x1b[>5u")
	}
	return b.String()
}

// leave is what gives the terminal back as it was. It may be written at any moment,
// within a frame too, and more than once.
func (t *Terminal) leave(f Features, up int) string {
	if t.o.Lines {
		return ""
	}
	var b strings.Builder
	b.WriteString("\x1b\\\x1b[m")
	if f.Sync {
		b.WriteString("\x1b[?2026l")
	}
	if f.Keyboard {
		b.WriteString("\x1b[<u")
	}
	if f.Unicode {
		b.WriteString("\x1b[?2027l")
	}
	b.WriteString(mouseOff)
	if !t.plain {
		b.WriteString("\x1b[?2031l\x1b[?1004l")
	}
	b.WriteString("\x1b[?2004l\x1b[?7h\x1b[?25h")
	if t.o.Inline {
		b.WriteString(upTo(up) + "\r\x1b[J")
	} else {
		b.WriteString("\x1b[?1049l")
	}
	if !t.plain {
		b.WriteString("\x1b[23;0t")
	}
	return b.String()
}
