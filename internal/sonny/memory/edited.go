package memory

import (
	"fmt"

	"agent/client/instructions"
	"agent/protocol"
)

// Editable is the fact as a person edits it: its file without the fields that a save
// sets.
func (f *Fact) Editable() string {
	return "---\ndescription: " + scalar(f.Description) + "\ntype: " + scalar(f.Type) + "\nsource: " + scalar(f.Source) + "\n---\n\n" + f.Text + "\n"
}

// ParseEdited reads what Editable gave after a person has changed it. The draft is
// checked when it is saved. invalid_text, invalid_name where its form is wrong.
func ParseEdited(name, text string) (*Draft, error) {
	m, body, closed := instructions.ParseFrontMatter(text)
	if !closed {
		return nil, protocol.Fail(codeInvalidText, "the fields between two lines --- are gone: description, type and source")
	}
	if other := m.Text("name"); other != "" && other != name {
		return nil, protocol.Fail(protocol.InvalidName, fmt.Sprintf("a fact keeps its name; save another as %q, and remove this one", other))
	}
	return &Draft{Name: name, Description: m.Text("description"), Type: m.Text("type"), Source: m.Text("source"), Text: body}, nil
}
