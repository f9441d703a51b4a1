package lists

import (
	"strings"

	"agent/internal/sonny/screen/text"
)

// Row is one row. A row without an id is a heading and is never at hand.
type Row struct {
	ID    string
	Line  text.Line
	Match string // what the filter looks in; "": the line's text
	Shown func() // called whenever the row is drawn; nil for nothing
	// Whole are the row's columns uncut, for who reads it as a sentence; nil: Line says all.
	Whole []string
}

// Column is a part of a row below which others of its kind stand.
type Column struct {
	Text  string
	Width int // in cells, without the blank after it; 0: as wide as the text is
	Role  text.Role
}

// InColumns is a row of columns. The filter looks in all of their texts.
func InColumns(id string, columns ...Column) Row {
	r := Row{ID: id}
	for _, c := range columns {
		shown := c.Text
		if c.Width > 0 {
			shown = text.Pad(shown, c.Width) + " "
		}
		r.Line.Spans = append(r.Line.Spans, text.Span{Text: shown, Role: c.Role})
		if whole := strings.TrimSpace(c.Text); whole != "" {
			r.Whole = append(r.Whole, whole)
		}
	}
	r.Match = strings.Join(r.Whole, " ")
	return r
}

// HasAll reports whether a text has all words of a filter.
func HasAll(s string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(s, w) {
			return false
		}
	}
	return true
}

func sign(n int) int {
	if n < 0 {
		return -1
	}
	return 1
}
