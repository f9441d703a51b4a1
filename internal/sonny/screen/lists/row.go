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
