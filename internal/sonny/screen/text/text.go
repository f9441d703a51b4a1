// Package text is what Sonny's screen is made of before a terminal sees it: lines
// of spans, each with a role that a theme gives a style to (sonny.md 13). Whatever
// renders (Markdown, diffs, tool calls, lists) gives lines; whatever draws takes them.
//
// Text here has passed the filter of client/termsafe: no span holds a control
// character, a tab or a newline. Widths are cells of a terminal, measured by grapheme
// cluster.
package text

import (
	"iter"
	"strings"

	"github.com/clipperhouse/displaywidth"
)

// Role says what a span is. Themes give each a colour (sonny.md 13).
type Role uint8

// The roles, in the order of the theme files' documentation.
const (
	Plain Role = iota
	Dim
	Accent
	Run
	Wait
	Need
	Pace
	Fail
	Add
	Del
	User
	Bot
	Code
	Panel
	Select
	Rule
	Link
	Warn
	roles
)

var roleNames = [roles]string{
	"text", "dim", "accent", "run", "wait", "need", "pace", "fail", "add", "del",
	"user", "bot", "code", "panel", "select", "rule", "link", "warn",
}

// Roles are all of them.
func Roles() iter.Seq[Role] {
	return func(yield func(Role) bool) {
		for r := Plain; r < roles && yield(r); r++ {
		}
	}
}

// String is the role's name in a theme file.
func (r Role) String() string { return roleNames[r] }

// Attr is a set of weights and lines.
type Attr uint8

// The attributes.
const (
	Bold Attr = 1 << iota
	Italic
	Underline
	Strike
	Reverse
)

// Span is a run of text that looks the same.
type Span struct {
	Text string
	URL  string // the target of a link, "" for none
	Role Role
	Attr Attr

	// Chrome is drawn and never copied: gutters, borders, line numbers, wrap marks.
	Chrome bool
}

// Break says how a line ends.
type Break uint8

// The ends of a line. A copy joins what was wrapped (sonny.md 12).
const (
	Hard  Break = iota // the line ends here
	Space              // wrapped where one or more spaces stood
	Glue               // wrapped within a word
)

// Line is a row of the screen.
type Line struct {
	Spans []Span
	End   Break
}

// Of is a line of one span.
func Of(role Role, s string) Line { return Line{Spans: []Span{{Text: s, Role: role}}} }

// Join is a line of spans.
func Join(spans ...Span) Line { return Line{Spans: spans} }

// Ambiguous makes characters of ambiguous East Asian width two cells wide. It is set
// while no screen is open, before anything is measured (tui.ambiguous_wide).
var Ambiguous bool

func options() displaywidth.Options { return displaywidth.Options{EastAsianWidth: Ambiguous} }

// Width is how many cells a text takes.
func Width(s string) int { return options().String(s) }

// Clusters yields the grapheme clusters of a text with their widths.
func Clusters(s string) iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		g := options().StringGraphemes(s)
		for g.Next() {
			if !yield(g.Value(), g.Width()) {
				return
			}
		}
	}
}

// Cut is a text of at most width cells: one that is longer ends in tail.
func Cut(s string, width int, tail string) string {
	if width <= 0 {
		return ""
	}
	return options().TruncateString(s, width, tail)
}

// Pad is a text of exactly width cells: cut with an ellipsis, or filled with spaces.
func Pad(s string, width int) string {
	s = Cut(s, width, "…")
	return s + strings.Repeat(" ", max(0, width-Width(s)))
}

// Width is how many cells a line takes.
func (l Line) Width() int {
	w := 0
	for _, s := range l.Spans {
		w += Width(s.Text)
	}
	return w
}

// String is the line without its looks.
func (l Line) String() string {
	var b strings.Builder
	for _, s := range l.Spans {
		b.WriteString(s.Text)
	}
	return b.String()
}

// Cut is a line of at most width cells, an ellipsis at its end where it was longer.
func (l Line) Cut(width int) Line {
	if l.Width() <= width {
		return l
	}
	out := Line{End: l.End}
	room := max(0, width-1)
	for _, s := range l.Spans {
		w := Width(s.Text)
		if w > room {
			s.Text = Cut(s.Text, room, "")
			out.Spans = append(out.Spans, s)
			break
		}
		room -= w
		out.Spans = append(out.Spans, s)
	}
	if width > 0 {
		out.Spans = append(out.Spans, Span{Text: "…", Role: Dim, Chrome: true})
	}
	return out
}

// Right is a line of exactly width cells with l at the left and right at the right.
// What does not fit is cut from the left part.
func (l Line) Right(right Line, width int) Line {
	rw := right.Width()
	if rw > width {
		return right.Cut(width)
	}
	left := l.Cut(max(0, width-rw-1))
	gap := width - rw - left.Width()
	spans := append([]Span{}, left.Spans...)
	spans = append(spans, Span{Text: strings.Repeat(" ", max(0, gap)), Chrome: true})
	return Line{Spans: append(spans, right.Spans...)}
}

// Copied is the text of lines as a person takes it along: without chrome, and with
// what was wrapped joined again.
func Copied(lines []Line) string {
	var b strings.Builder
	for i, l := range lines {
		for _, s := range l.Spans {
			if !s.Chrome {
				b.WriteString(s.Text)
			}
		}
		if i == len(lines)-1 {
			break
		}
		switch l.End {
		case Hard:
			b.WriteByte('\n')
		case Space:
			b.WriteByte(' ')
		}
	}
	return b.String()
}
