package plain

import (
	"regexp"
	"strings"

	"agent/internal/sonny/screen/term"
)

// Wide is for how many cells a row of the screen is laid out to be read as a sentence.
const Wide = 400

// Because begins the first line of the plain mode.
const Because = "plain mode, because "

// Rows are the rows of a frame that hold something, for lines: columns are set apart
// by a comma rather than by blanks.
func Rows(f *term.Frame) (out []string) {
	_, h := f.Size()
	for y := range h {
		if row := Row(f.Row(y)); row != "" {
			out = append(out, row)
		}
	}
	return out
}

// ended is a text that ends as a sentence does, or a part of one.
var ended = regexp.MustCompile(`\S[.,;:?!]$`)

// rule is the line that a title stands in.
var rule = regexp.MustCompile("─{2,}")

// Row is a row of columns as a sentence.
func Row(row string) string {
	var parts []string
	for part := range strings.SplitSeq(rule.ReplaceAllString(row, "  "), "  ") {
		part = strings.Trim(part, " ─▎│")
		if part != "" {
			parts = append(parts, part)
		}
	}
	var b strings.Builder
	for i, part := range parts {
		switch {
		case i == 0:
		case ended.MatchString(parts[i-1]):
			b.WriteString(" ")
		default:
			b.WriteString(", ")
		}
		b.WriteString(part)
	}
	return strings.ReplaceAll(b.String(), " · ", ", ")
}
