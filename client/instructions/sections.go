package instructions

import "strings"

// EndLine ends the AGENTS.md texts in composed instructions. What follows it has
// been written by agents (skills, memory, the commons), and no judge of a bot's
// calls trusts it.
const EndLine = "--- end of AGENTS.md files ---"

// HeadingPrefix and the path of a file are the line that its text stands under.
const HeadingPrefix = "# AGENTS.md of "

// Section is the text of one AGENTS.md, and the path that it was read from.
type Section struct{ Path, Text string }

// AgentsSections reads the AGENTS.md texts back out of composed instructions, in
// their order, without blank lines around them. Only what stands before the
// first end line counts: text without one has none, for it was not composed, and
// what looks like a section in it may be anybody's. What precedes the first
// heading is the preamble and no section.
func AgentsSections(text string) []Section {
	before, ended := untilEnd(text)
	if !ended {
		return nil
	}
	var list []Section
	var body strings.Builder
	for line := range strings.SplitAfterSeq(before, "\n") {
		path, heading := strings.CutPrefix(strings.TrimSuffix(line, "\n"), HeadingPrefix)
		switch {
		case heading && path != "":
			list = closed(list, &body)
			list = append(list, Section{Path: path})
		case len(list) > 0:
			body.WriteString(line)
		}
	}
	return closed(list, &body)
}

// closed is the list with the last section's text put in.
func closed(list []Section, body *strings.Builder) []Section {
	if len(list) > 0 {
		list[len(list)-1].Text = strings.Trim(body.String(), "\n")
	}
	body.Reset()
	return list
}

// untilEnd is what precedes the first line that equals EndLine.
func untilEnd(text string) (before string, ended bool) {
	at := 0
	for line := range strings.SplitAfterSeq(text, "\n") {
		if strings.TrimSuffix(line, "\n") == EndLine {
			return text[:at], true
		}
		at += len(line)
	}
	return "", false
}

// headingOf is the heading of the section that holds the AGENTS.md at path.
func headingOf(path string) string { return HeadingPrefix + escaped(path) }
