package text

import "strings"

// Across is a rule over a width, in cells.
func Across(width int) Line {
	return Line{Spans: []Span{{Text: dashes(width), Role: Rule, Chrome: true}}}
}

// dashes fill a width, but for a cell where each takes two.
func dashes(width int) string { return strings.Repeat("─", width/Width("─")) }

// Titled is a rule over a width that carries a panel's title, and a word at its right; ""
// for none. Where both are too long the title is cut.
func Titled(title, right string, width int) Line {
	left := Join(Span{Text: "── ", Role: Rule, Chrome: true}, Span{Text: title, Attr: Bold}, Span{Text: " ", Chrome: true})
	end := Line{}
	if right != "" {
		end = Join(Span{Text: " " + right + " ─", Role: Rule, Chrome: true})
	}
	left = left.Cut(max(0, width-end.Width()))
	fill := max(0, width-left.Width()-end.Width())
	left.Spans = append(left.Spans, Span{Text: dashes(fill), Role: Rule, Chrome: true})
	return Line{Spans: append(left.Spans, end.Spans...)}
}

// Indent is the blank before a row, for a Frame: so many cells, which are not copied.
func Indent(cells int) []Span { return []Span{{Text: strings.Repeat(" ", cells), Chrome: true}} }
