// Package decide is what a person is shown before they decide (sonny.md 9): calls that
// wait, calls that were denied, questions of bots, and what stopped a turn. What is known
// of each comes in, lines go out. It takes no keys, and what is decided is not its.
package decide

import (
	"fmt"
	"slices"

	"agent/internal/sonny/allow"
	"agent/internal/sonny/screen/text"
)

// Sheet is a question as it is shown.
type Sheet struct {
	Title   string // text of others is still in it as it came
	Body    []text.Line
	Choices []Choice
	Hints   []string // the keys that do something, for the key line
}

// Choice is a row that is taken by its number or by Enter.
type Choice struct {
	N     int // from 1
	Label text.Line
	Words string // what is asked for before it is taken; "" for nothing
	Safe  bool   // it lets nothing happen, so that it may be taken unread
}

// Plain is a choice that needs no words.
func Plain(n int, label string) Choice { return Choice{N: n, Label: text.Of(text.Plain, label)} }

// offer adds the choice that would write a rule, where one is offered.
func (s *Sheet) offer(n int, does string, rule *allow.Offered) {
	if !rule.There() {
		return
	}
	s.Choices = append(s.Choices, Choice{N: n, Label: text.Join(
		text.Span{Text: does},
		text.Span{Text: rule.Text() + " …", Role: text.Accent},
		text.Span{Text: "  in " + rule.Reach.String()},
	)})
	s.Hints = append(s.Hints, "Tab reach", "e edit the rule")
}

// Rows are the rows of the choices for a width in cells; at is the number of the
// highlighted one, 0 for none. They are dim for as long as no key is taken. Where they do
// not wrap, each has one row.
func (s *Sheet) Rows(w, at int, deaf, wraps bool) (out []text.Line) {
	for _, c := range s.Choices {
		head := text.Span{Text: fmt.Sprintf("  %d  ", c.N), Role: text.Accent}
		if deaf {
			head.Role = text.Dim
		}
		label := slices.Clone(c.Label.Spans)
		if at == c.N {
			head.Text = fmt.Sprintf("▎ %d  ", c.N)
			for i := range label {
				label[i].Attr |= text.Bold
			}
		}
		if !wraps {
			out = append(out, oneRow(head, label, w))
			continue
		}
		out = append(out, text.Wrap(label, text.Frame{Width: max(10, w-1), First: []text.Span{head}, Rest: choiceGoesOn})...)
	}
	return out
}

// Row is all choices in one row, for where the question needs every other: each has a
// part of it.
func (s *Sheet) Row(w, at int, deaf bool) text.Line {
	whole := s.Rows(w, at, deaf, false)
	width := 0
	for _, row := range whole {
		width += row.Width()
	}
	var spans []text.Span
	for _, row := range whole {
		if width > w {
			row = row.Cut(w/len(whole) - 1)
			row.Spans = append(row.Spans, text.Span{Text: " "})
		}
		spans = append(spans, row.Spans...)
	}
	return text.Line{Spans: spans}
}

// choiceGoesOn begins the further rows of a choice: they can be taken for no other one.
var choiceGoesOn = []text.Span{{Text: "   │ ", Role: text.Dim, Chrome: true}}

// oneRow is a choice where there is no room for more: what it is about gives way, so that
// what it does stays to be read.
func oneRow(head text.Span, label []text.Span, w int) text.Line {
	line := text.Line{Spans: append([]text.Span{head}, label...)}
	over := line.Width() - w
	for i := range line.Spans {
		if s := &line.Spans[i]; over > 0 && s.Role == text.Accent && i > 0 {
			s.Text = text.Of(s.Role, s.Text).Cut(max(4, text.Width(s.Text)-over)).String()
		}
	}
	return line.Cut(w)
}
