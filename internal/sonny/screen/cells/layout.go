package cells

import (
	"fmt"
	"strings"
	"time"

	"agent/internal/sonny/screen/text"
)

// How much of a cell stands folded, in lines.
const (
	foldedMessage = 12
	foldedDiff    = 3 // of a preview
)

// layout gives the cell its lines.
func (c *Cell) layout(l Look) []text.Line {
	switch c.Kind {
	case User:
		return c.message(l)
	case Thought:
		return c.thinking(l)
	case Call:
		return c.Calls[0].layout(l, c.open(l))
	case Reads:
		return c.reads(l)
	case Notice:
		return c.notice(l, text.Dim)
	case Error:
		return c.notice(l, text.Fail)
	case Fault:
		return c.notice(l, text.Wait)
	case Shell:
		return c.shell(l)
	}
	return nil
}

// message is what somebody sent: the person after ›, another bot after », a service
// in brackets.
func (c *Cell) message(l Look) []text.Line {
	role, head := text.User, text.Span{Text: "› ", Role: text.User, Chrome: true}
	body := []text.Span{{Text: c.Text, Role: role}}
	switch {
	case c.From != "":
		head = text.Span{Text: "» ", Role: text.Accent, Chrome: true}
		body[0] = text.Span{Text: clean(c.From) + ": " + c.Text}
	case c.Origin != "":
		head = text.Span{Text: "[" + clean(c.Origin) + "] ", Role: text.Accent, Chrome: true}
		body[0].Role = text.Plain
	}
	if c.Steer {
		body = append([]text.Span{{Text: "steered in  ", Role: text.Dim, Chrome: true}}, body...)
	}
	lines := paragraphs(body, head, text.Span{Text: strings.Repeat(" ", text.Width(head.Text)), Chrome: true}, l.Width)
	keep := foldedMessage
	if c.Origin != "" {
		keep = 1
	}
	lines = folded(lines, keep, c.unfolded != nil && *c.unfolded || l.All)
	if l.All && c.Used != "" {
		lines = append(lines, text.Of(text.Dim, "  "+c.Used).Cut(l.Width))
	}
	return lines
}

// paragraphs lays out text that has lines of its own.
func paragraphs(spans []text.Span, first, rest text.Span, width int) []text.Line {
	var out []text.Line
	var line []text.Span
	flush := func() {
		head := rest
		if len(out) == 0 {
			head = first
		}
		out = append(out, text.Wrap(line, text.Frame{Width: width, First: []text.Span{head}, Rest: []text.Span{rest}})...)
		line = nil
	}
	for _, s := range spans {
		for i, part := range strings.Split(s.Text, "\n") {
			if i > 0 {
				flush()
			}
			s.Text = part
			line = append(line, s)
		}
	}
	flush()
	return out
}

// folded is the first lines and a count of the others.
func folded(lines []text.Line, keep int, open bool) []text.Line {
	if open || len(lines) <= keep+1 {
		return lines
	}
	return append(lines[:keep:keep], more(len(lines)-keep))
}

func more(n int) text.Line {
	return text.Join(text.Span{Text: fmt.Sprintf("  +%d lines", n), Role: text.Dim, Chrome: true})
}

// thinking is one dim line: while it streams the last sentence, afterwards how long
// it took.
func (c *Cell) thinking(l Look) []text.Line {
	if !c.open(l) {
		line := "thought"
		if c.Took > 0 {
			line += " " + Span(c.Took)
		}
		if c.Live && c.Took == 0 {
			line = "thinking  " + lastSentence(c.Text)
		}
		return []text.Line{text.Of(text.Dim, line).Cut(l.Width)}
	}
	var out []text.Line
	for _, line := range strings.Split(strings.TrimRight(c.Text, "\n"), "\n") {
		out = append(out, text.Wrap([]text.Span{{Text: line, Role: text.Dim, Attr: text.Italic}}, text.Frame{Width: l.Width})...)
	}
	return out
}

func lastSentence(s string) string {
	s = strings.TrimSpace(s)
	if i := strings.LastIndexAny(s, ".!?\n"); i >= 0 && i < len(s)-1 {
		s = s[i+1:]
	} else if i == len(s)-1 && i > 0 {
		if j := strings.LastIndexAny(s[:i], ".!?\n"); j >= 0 {
			s = s[j+1:]
		}
	}
	return strings.TrimSpace(strings.ReplaceAll(s, "\n", " "))
}

// notice is a dim line, or an error with what to do.
func (c *Cell) notice(l Look, role text.Role) []text.Line {
	lines := paragraphs([]text.Span{{Text: c.Text, Role: role}}, text.Span{}, text.Span{}, l.Width)
	if c.Detail == "" {
		return lines
	}
	detail := paragraphs([]text.Span{{Text: c.Detail, Role: text.Plain}}, text.Span{Text: "  ", Chrome: true}, text.Span{Text: "  ", Chrome: true}, l.Width)
	if c.Kind == Notice {
		return append(lines, folded(detail, 0, c.open(l))...)
	}
	return append(lines, detail...)
}

// reads is a run of calls that only look.
func (c *Cell) reads(l Look) []text.Line {
	if len(c.Calls) == 1 || l.Fold.Apart || c.open(l) {
		var out []text.Line
		for _, call := range c.Calls {
			out = append(out, call.layout(l, c.open(l))...)
		}
		return out
	}
	names := make([]string, 0, len(c.Calls))
	for _, call := range c.Calls {
		name := call.Subject()
		if i := strings.LastIndexByte(name, '/'); i >= 0 {
			name = name[i+1:]
		}
		if name == "" {
			name = call.Name
		}
		names = append(names, name)
	}
	return []text.Line{text.Join(
		text.Span{Text: "▸ ", Role: text.Dim, Chrome: true},
		text.Span{Text: fmt.Sprintf("read %d files", len(names)), Role: text.Accent},
		text.Span{Text: "  " + strings.Join(names, ", "), Role: text.Plain},
	).Cut(l.Width)}
}

// Span is a duration as the screen says it: 0.2s, 6s, 1:12, 2:03:04.
func Span(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < 2*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d:%02d", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60)
}
