package plain

import (
	"fmt"
	"strings"

	"agent/client/termsafe"
	"agent/internal/sonny/screen/text"
)

// The head of the line that is typed.
const head = "you: "

// part is one thing that Backspace rubs out: a character, or a paste.
type part struct {
	text  string
	shown string
	width int
}

// line is the line that is being typed, echoed as it is typed.
type line struct {
	secret func(line string) bool // says that what is typed so far is one; nil: nothing is
	hidden bool                   // it was said of this line, and stars stand for the rest of it
	above  string                 // what was typed before, of a message of several lines
	parts  []part
}

// begun reports whether there is something that Enter would send.
func (l *line) begun() bool { return l.above != "" || len(l.parts) > 0 }

// text is all of the message so far.
func (l *line) text() string {
	var b strings.Builder
	b.WriteString(l.above)
	for _, p := range l.parts {
		b.WriteString(p.text)
	}
	return b.String()
}

// shown is the line as it stands on the screen, with its head.
func (l *line) shown() string {
	if !l.begun() {
		return ""
	}
	var b strings.Builder
	b.WriteString(head)
	for _, p := range l.parts {
		b.WriteString(p.shown)
	}
	return b.String()
}

// typed adds characters, and returns their echo.
func (l *line) typed(s string) (echo string) {
	if !l.begun() {
		echo = head
	}
	var b strings.Builder
	b.WriteString(l.text())
	for cluster := range text.Clusters(strings.ReplaceAll(s, "\t", " ")) {
		b.WriteString(cluster)
		l.hidden = l.hidden || l.secret != nil && l.secret(b.String())
		shown := termsafe.OneLine(cluster)
		if l.hidden {
			shown = "*"
		}
		l.parts = append(l.parts, part{cluster, shown, text.Width(shown)})
		echo += shown
	}
	return echo
}

// pasted adds a text as one, and returns its echo.
func (l *line) pasted(s string) (echo string) {
	n := strings.Count(s, "\n")
	if n == 0 {
		return l.typed(s)
	}
	if !l.begun() {
		echo = head
	}
	shown := fmt.Sprintf("[pasted %d lines]", n+1)
	l.parts = append(l.parts, part{s, shown, len(shown)})
	return echo + shown
}

// rubbed takes the last thing away, and returns what takes it off the screen: a space
// over each cell of it.
func (l *line) rubbed() (echo string) {
	if len(l.parts) == 0 {
		return ""
	}
	width := l.parts[len(l.parts)-1].width
	l.parts = l.parts[:len(l.parts)-1]
	if !l.begun() {
		width += len(head)
		l.hidden = false
	}
	return rub(width)
}

// cleared takes all of the message away.
func (l *line) cleared() (echo string) {
	if !l.begun() {
		return ""
	}
	width := len(head)
	for _, p := range l.parts {
		width += p.width
	}
	*l = line{secret: l.secret}
	return rub(width)
}

func rub(width int) string {
	back := strings.Repeat("\b", width)
	return back + strings.Repeat(" ", width) + back
}

// ended takes the line as it was finished by Enter. With a backslash at its end the
// message goes on, and ok is false.
func (l *line) ended() (message string, ok bool) {
	message = l.text()
	if n := len(l.parts); n > 0 && l.parts[n-1].text == `\` {
		l.above, l.parts = strings.TrimSuffix(message, `\`)+"\n", nil
		return "", false
	}
	*l = line{secret: l.secret}
	return message, true
}
