package decide

import (
	"fmt"
	"strings"

	"agent/client/termsafe"
	"agent/internal/sonny/screen/text"
)

// What a model or a file says stands beside what Sonny says, and may be written so as to
// look like it. So each row of such a text begins with a bar, also where a row goes on
// only because the window is narrow: a row without one is Sonny's.
var barred = []text.Span{{Text: "  │ ", Role: text.Dim, Chrome: true}}

// plainBar is the bar of the plain mode, which has no boxes.
const plainBar = "| "

// Barred are the rows of a text of somebody else's, for a width in cells.
func Barred(s string, w int) (out []text.Line) {
	for _, row := range rowsIn(s) {
		out = append(out, text.Wrap([]text.Span{{Text: termsafe.OneLine(row)}}, text.Frame{Width: max(10, w-2), First: barred, Rest: barred})...)
	}
	return out
}

// quoted is a text of somebody else's after Sonny's word for it.
func quoted(label, s string, role text.Role, w int) []text.Line {
	return text.Wrap([]text.Span{{Text: label + termsafe.OneLine(s), Role: role}}, text.Frame{Width: w - 2, First: text.Indent(2), Rest: barred})
}

// Said is a text of Sonny's own, for a width in cells.
func Said(s string, role text.Role, w int) []text.Line {
	return text.Wrap([]text.Span{{Text: s, Role: role}}, text.Frame{Width: w - 2, First: text.Indent(2), Rest: text.Indent(2)})
}

// textRows is how many rows of a text are shown, unless all is asked for.
const textRows = 12

// clipped are the first rows, unless all is asked for.
func clipped(lines []text.Line, whole bool) []text.Line {
	if whole || len(lines) <= textRows {
		return lines
	}
	n := len(lines) - textRows
	return append(lines[:textRows:textRows], text.Of(text.Dim, fmt.Sprintf("    +%d lines, v shows all", n)))
}

func rowsIn(s string) []string { return strings.Split(strings.TrimRight(s, "\n"), "\n") }
