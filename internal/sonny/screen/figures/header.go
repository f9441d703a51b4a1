// Package figures is what bots used in the rows that tell it (sonny.md 7.1, 11, 27): the
// header's fields, the panels of usage and of the context, and a turn's line. Sums come
// in, lines go out.
package figures

import (
	"fmt"
	"slices"

	"agent/internal/sonny/live"
	"agent/internal/sonny/screen/human"
	"agent/internal/sonny/screen/text"
	"agent/internal/sonny/usage"
)

// The widths at which the header tells more (sonny.md 7.1, 17).
const (
	Narrow = 60  // below: the context alone
	Wide   = 120 // above: model and effort, the cached share, today's cost
)

// Field is one of what the header tells at its right.
type Field struct {
	Span text.Span
	Stay int // the higher the longer it stays
}

// Used is what a bot used, for the header.
type Used struct {
	Meter   usage.Meter // of its newest call; without tokens: none is known
	Total   live.Tokens
	NoCost  bool       // costs are not shown
	Session *usage.Sum // nil: it is not known yet
	Today   *usage.Sum // of every bot; nil: it is not known yet
}

// Fields are those of a header of a width in cells, in their order on screen.
func (u *Used) Fields(w int) []Field {
	var out []Field
	add := func(stay int, role text.Role, words string) {
		out = append(out, Field{text.Span{Text: words, Role: role}, stay})
	}
	if u.Meter.Tokens > 0 {
		add(5, levelRole(u.Meter), "ctx "+meterWords(u.Meter))
	}
	if w < Narrow || u.Total.Input+u.Total.Output == 0 {
		return out
	}
	in := human.Tokens(u.Total.Input) + " in"
	if w > Wide && u.Total.Cached > 0 {
		in += fmt.Sprintf(" (%d%% cached)", u.Total.Cached*100/max(1, u.Total.Input))
	}
	add(3, text.Dim, in)
	add(2, text.Dim, human.Tokens(u.Total.Output)+" out")
	if u.NoCost {
		return out
	}
	if u.Session != nil {
		add(4, text.Dim, u.Session.CostBrief())
	}
	if w > Wide && u.Today != nil {
		add(1, text.Dim, "today "+u.Today.CostBrief())
	}
	return out
}

// Fit puts as many of the fields as there is room for after what stands at the left, in a
// width in cells.
func Fit(left text.Line, fields []Field, w int) text.Line {
	for len(fields) > 0 {
		if right := Line(fields); left.Width()+right.Width() < w {
			return left.Right(right, w)
		}
		fields = withoutLast(fields)
	}
	return left.Cut(w)
}

// withoutLast is fields without the one that goes first.
func withoutLast(fields []Field) []Field {
	goes := 0
	for i, f := range fields {
		if f.Stay < fields[goes].Stay {
			goes = i
		}
	}
	return slices.Delete(slices.Clone(fields), goes, goes+1)
}

// Line is fields as they stand in the header.
func Line(fields []Field) (line text.Line) {
	for i, f := range fields {
		if i > 0 {
			line.Spans = append(line.Spans, text.Span{Text: "  "})
		}
		line.Spans = append(line.Spans, f.Span)
	}
	line.Spans = append(line.Spans, text.Span{Text: " "})
	return line
}
