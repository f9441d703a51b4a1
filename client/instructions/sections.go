package instructions

import (
	"fmt"
	"strings"
	"unicode"
)

// EndLine follows the last AGENTS.md section of a composed text, or the preamble
// where there is none. What stands below it may have been written by agents, so
// the judge of a bot's calls takes nothing there for the person's orders
// (approvals.md 11).
const EndLine = "--- end of AGENTS.md files ---"

// headingStart begins the heading of an AGENTS.md section; the path follows.
const headingStart = "# AGENTS.md of "

// headingOf is the heading of the section that holds the AGENTS.md at path.
func headingOf(path string) string { return headingStart + escaped(path) }

// escaped is text on one line: characters that end a line, or act on a terminal,
// are written out.
func escaped(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case unicode.IsControl(r), r == '\u2028', r == '\u2029':
			fmt.Fprintf(&b, `\u{%x}`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
