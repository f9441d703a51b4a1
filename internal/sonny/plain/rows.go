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

// rules are the lines that titles stand in.
var rules = regexp.MustCompile("─{3,}")

// Row is a row of columns as a sentence.
func Row(row string) string {
	var parts []string
	for part := range strings.SplitSeq(rules.ReplaceAllString(row, "  "), "  ") {
		part = strings.Trim(part, " ─▎│")
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.ReplaceAll(strings.Join(parts, ", "), " · ", ", ")
}
