package memory

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"agent/client/instructions"
	"agent/protocol"
)

// The kinds of facts.
var types = []string{"user", "feedback", "project", "reference"}

// maxLine bounds a description and a source, in bytes.
const maxLine = 300

// maxName bounds a fact's name, in bytes.
const maxName = 64

// dateForm is how a date is written.
const dateForm = time.DateOnly

// A Fact is one file of a folder.
type Fact struct {
	Name        string   `json:"name"`
	Type        string   `json:"type"`
	Description string   `json:"description"`
	Source      string   `json:"source"`
	Verified    string   `json:"verified"`           // when it was last saved, YYYY-MM-DD
	By          string   `json:"by,omitempty"`       // turn:BOT/N that saved it; "" for the person
	External    []string `json:"external,omitempty"` // what the saving turns had read of outside content, sorted
	Text        string   `json:"text"`               // without blank lines around it
}

// Line is the fact's line of the index, with its newline.
func (f *Fact) Line() string {
	return instructions.FactLine(f.Name, f.Type, f.Verified, len(f.External) > 0, f.Description) + "\n"
}

// encode is the fact as a file.
func (f *Fact) encode() string {
	var b strings.Builder
	b.WriteString("---\n")
	field := func(key, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s: %s\n", key, scalar(value))
		}
	}
	field("name", f.Name)
	field("description", f.Description)
	field("type", f.Type)
	field("source", f.Source)
	field("verified", f.Verified)
	field("by", f.By)
	field("external", strings.Join(f.External, ", "))
	b.WriteString("---\n\n" + f.Text + "\n")
	return b.String()
}

// scalar is a value as front matter has it: plain where that reads back as it is,
// else in quotes.
func scalar(value string) string {
	m, _, _ := instructions.ParseFrontMatter("---\nv: " + value + "\n---\n")
	if m.Text("v") == value {
		return value
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
}

// parseFact reads the file of a fact of that name. The error says what is wrong
// with it.
func parseFact(name string, data []byte) (*Fact, error) {
	if len(data) > MaxFact {
		return nil, fmt.Errorf("it is longer than %d bytes", MaxFact)
	}
	if !utf8.Valid(data) {
		return nil, errors.New("it is not UTF-8")
	}
	text := string(data)
	if !strings.HasPrefix(text, "---") {
		return nil, errors.New("it has no front matter: its first line is not ---")
	}
	m, body, closed := instructions.ParseFrontMatter(text)
	if !closed {
		return nil, errors.New("its front matter has no end: a line --- is missing")
	}
	f := &Fact{
		Name: m.Text("name"), Description: m.Text("description"), Type: m.Text("type"), Source: m.Text("source"),
		Verified: m.Text("verified"), By: m.Text("by"), External: m.List("external"), Text: trimmed(body),
	}
	if f.Name != name {
		return nil, fmt.Errorf("its name is %q and not that of the file", f.Name)
	}
	if err := f.check(); err != nil {
		return nil, err
	}
	slices.Sort(f.External)
	f.External = slices.Compact(f.External)
	return f, nil
}

// check says what is wrong with a fact's fields.
func (f *Fact) check() error {
	for _, err := range []error{
		checkName(f.Name), checkLine("description", f.Description), checkType(f.Type),
		checkLine("source", f.Source), checkText(f.Text), checkMarks(f.External),
	} {
		if err != nil {
			return err
		}
	}
	if f.By != "" {
		if err := checkLine("by", f.By); err != nil {
			return err
		}
	}
	if _, err := time.Parse(dateForm, f.Verified); err != nil {
		return fmt.Errorf("its date verified is %q and not YYYY-MM-DD", f.Verified)
	}
	return nil
}

func checkName(name string) error {
	odd := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' }
	if name != "" && len(name) <= maxName && name[0] != '-' && name != "memory" && !strings.ContainsFunc(name, odd) {
		return nil
	}
	return protocol.Fail(protocol.InvalidName, fmt.Sprintf("%q is no fact's name: 1 to %d of a-z 0-9 -, not beginning with -, and not memory", name, maxName))
}

func checkType(kind string) error {
	if slices.Contains(types, kind) {
		return nil
	}
	return protocol.Fail(codeInvalidType, fmt.Sprintf("%q is no type of a fact; it is one of %s", kind, strings.Join(types, ", ")))
}

// checkLine looks at a field that is one line.
func checkLine(field, value string) error {
	reason := ""
	switch {
	case strings.TrimSpace(value) == "":
		reason = "is empty"
	case len(value) > maxLine:
		reason = fmt.Sprintf("has %d bytes, more than %d", len(value), maxLine)
	case !utf8.ValidString(value):
		reason = "is not UTF-8"
	case value != strings.TrimSpace(value):
		reason = "begins or ends with a space"
	case strings.ContainsFunc(value, breaksLine):
		reason = "is not one line of plain text"
	default:
		return nil
	}
	return protocol.Fail(codeInvalidText, "the "+field+" "+reason)
}

func checkText(text string) error {
	reason := ""
	switch {
	case strings.TrimSpace(text) == "":
		reason = "is empty"
	case !utf8.ValidString(text):
		reason = "is not UTF-8"
	case strings.ContainsFunc(text, func(r rune) bool { return breaksLine(r) && r != '\n' && r != '\t' }):
		reason = "has characters that no text has; leave them out"
	default:
		return nil
	}
	return protocol.Fail(codeInvalidText, "the text "+reason)
}

// breaksLine reports whether a character ends a line, acts on a terminal or turns
// the writing around, so that a reader sees something else than is there.
func breaksLine(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069'
}

// marks are what a turn can have read of outside content, beside a server's mcp:NAME.
var marks = []string{"web_search", "web_fetch", "browser", "desktop"}

func checkMarks(list []string) error {
	for _, mark := range list {
		server, mcp := strings.CutPrefix(mark, "mcp:")
		if slices.Contains(marks, mark) || mcp && server != "" && !strings.ContainsFunc(server, func(r rune) bool { return r <= ' ' || r == ',' || r > '~' }) {
			continue
		}
		return protocol.Fail(codeInvalidText, fmt.Sprintf("%q is no mark of outside content; these are %s and mcp:SERVER", mark, strings.Join(marks, ", ")))
	}
	return nil
}

// trimmed is a text without blank lines around it, its lines ended by newlines
// alone.
func trimmed(text string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	for {
		line, rest, more := strings.Cut(text, "\n")
		if !more || strings.TrimSpace(line) != "" {
			return strings.TrimRight(text, " \t\n")
		}
		text = rest
	}
}
