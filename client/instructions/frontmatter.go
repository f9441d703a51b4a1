package instructions

import (
	"strings"
)

// A FrontMatter is the fields at the head of a Markdown file, between two lines
// of three dashes: a small part of YAML. A value is one line, quoted or not, a
// block after | or >, whose lines are joined by spaces, or a list: a, b or [a, b],
// or a line "- a" for each. Comments and what is nested are passed over, so that
// files written for other programs load.
type FrontMatter struct {
	text  map[string]string
	lists map[string][]string
}

// Text is a field's value on one line, "" for none.
func (m *FrontMatter) Text(key string) string {
	if list, ok := m.lists[key]; ok {
		return strings.Join(list, ", ")
	}
	return m.text[key]
}

// List is a field's values, nil where it has none.
func (m *FrontMatter) List(key string) []string {
	if list, ok := m.lists[key]; ok {
		return list
	}
	return listed(m.text[key])
}

// True reports whether a field says true.
func (m *FrontMatter) True(key string) bool { return strings.EqualFold(m.Text(key), "true") }

// ParseFrontMatter takes a file's text apart. Without front matter the body is
// all of it. closed is false where the line that ends the front matter is missing:
// the body is then empty, and the fields are those that were read.
func ParseFrontMatter(text string) (m *FrontMatter, body string, closed bool) {
	m = &FrontMatter{text: map[string]string{}, lists: map[string][]string{}}
	first, rest, more := strings.Cut(text, "\n")
	if strings.TrimRight(first, " \t\r") != "---" {
		return m, text, true
	}
	var lines []string
	for more {
		var line string
		line, rest, more = strings.Cut(rest, "\n")
		if line = strings.TrimRight(line, " \t\r"); line == "---" {
			m.read(lines)
			return m, rest, true
		}
		lines = append(lines, line)
	}
	m.read(lines)
	return m, "", false
}

// read takes the fields of lines. The first one of a name counts.
func (m *FrontMatter) read(lines []string) {
	for len(lines) > 0 {
		line := lines[0]
		lines = lines[1:]
		key, value, ok := strings.Cut(line, ":")
		if !ok || key == "" || strings.ContainsAny(key, " \t#\"'") || key[0] == '-' {
			continue
		}
		nested := 0
		for nested < len(lines) && belongs(lines[nested]) {
			nested++
		}
		if !m.has(key) {
			m.set(key, strings.TrimSpace(value), lines[:nested])
		}
		lines = lines[nested:]
	}
}

// belongs reports whether a line goes on with the field above it.
func belongs(line string) bool {
	return line == "" || line[0] == ' ' || line[0] == '\t' || line == "-" || strings.HasPrefix(line, "- ")
}

func (m *FrontMatter) has(key string) bool {
	_, text := m.text[key]
	_, list := m.lists[key]
	return text || list
}

// set gives a field the value behind its colon, and the lines below it.
func (m *FrontMatter) set(key, value string, below []string) {
	value = withoutComment(value)
	switch {
	case strings.HasPrefix(value, "|") || strings.HasPrefix(value, ">"):
		m.text[key] = strings.Join(strings.Fields(strings.Join(below, " ")), " ")
	case value != "":
		m.scalar(key, value)
	default:
		for _, line := range below {
			if item, ok := strings.CutPrefix(strings.TrimSpace(line), "-"); ok {
				if item = unquoted(withoutComment(strings.TrimSpace(item))); item != "" {
					m.lists[key] = append(m.lists[key], item)
				}
			}
		}
		if _, ok := m.lists[key]; !ok {
			m.text[key] = ""
		}
	}
}

func (m *FrontMatter) scalar(key, value string) {
	if inner, ok := strings.CutPrefix(value, "["); ok {
		if inner, ok = strings.CutSuffix(inner, "]"); ok {
			m.lists[key] = append([]string{}, listed(inner)...) // [] is an empty list, not none
			return
		}
	}
	m.text[key] = unquoted(value)
}

// listed is a, b as its parts.
func listed(text string) (list []string) {
	for part := range strings.SplitSeq(text, ",") {
		if part = unquoted(strings.TrimSpace(part)); part != "" {
			list = append(list, part)
		}
	}
	return list
}

// withoutComment is a value without what follows a # behind a space, unless that
// lies in quotes.
func withoutComment(value string) string {
	if value != "" && (value[0] == '"' || value[0] == '\'') {
		if end := closing(value); end > 0 {
			return value[:end+1]
		}
		return value
	}
	if strings.HasPrefix(value, "#") {
		return ""
	}
	for i := 1; i < len(value); i++ {
		if value[i] == '#' && (value[i-1] == ' ' || value[i-1] == '\t') {
			return strings.TrimSpace(value[:i])
		}
	}
	return value
}

// closing is where the quote that begins a value ends, 0 for nowhere.
func closing(value string) int {
	quote := value[0]
	for i := 1; i < len(value); i++ {
		switch {
		case quote == '"' && value[i] == '\\':
			i++
		case value[i] != quote:
		case quote == '\'' && i+1 < len(value) && value[i+1] == '\'':
			i++
		default:
			return i
		}
	}
	return 0
}

// unquoted is a value without one pair of quotes around it, on one line.
func unquoted(value string) string {
	if value == "" || closing(value) != len(value)-1 || len(value) < 2 {
		return value
	}
	inner := value[1 : len(value)-1]
	switch value[0] {
	case '\'':
		return strings.ReplaceAll(inner, "''", "'")
	case '"':
		return strings.NewReplacer(`\"`, `"`, `\\`, `\`, `\n`, " ", `\t`, " ", `\/`, "/").Replace(inner)
	}
	return value
}
