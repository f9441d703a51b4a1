package memory

import (
	"testing"
	"time"

	"agent/protocol"
)

func TestAFactIsEdited(t *testing.T) {
	t.Parallel()
	m := Open(t.TempDir(), func() time.Time { return time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC) })
	if _, err := m.Save(Scope{}, Draft{
		Name: "port", Type: "project", Description: `the "port": 80`, Source: "turn:demo.lead/3", Text: "It is 80.\n\n---\n\nAlways.", By: "turn:demo.lead/3", External: []string{"web_fetch"},
	}); err != nil {
		t.Fatal(err)
	}
	list, _, err := m.List(Scope{})
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	f := list[0]
	same, err := ParseEdited("port", f.Editable())
	if err != nil || same.Description != f.Description || same.Type != f.Type || same.Source != f.Source || trimmed(same.Text) != f.Text {
		t.Errorf("unchanged it is %+v, %v", same, err)
	}
	for _, c := range []struct {
		name, text string
		code       protocol.Code // of the parsing or the save; "": it is saved
	}{
		{"another text is saved, and the mark stays", "---\ndescription: the port\ntype: project\nsource: the person\n---\n\nIt is 81.\n", ""},
		{"without the fields", "It is 82.\n", codeInvalidText},
		{"with the fields left open", "---\ndescription: the port\n", codeInvalidText},
		{"a type that is none", "---\ndescription: the port\ntype: rumour\nsource: the person\n---\n\nIt is 83.\n", codeInvalidType},
		{"without a description", "---\ntype: project\nsource: the person\n---\n\nIt is 84.\n", codeInvalidText},
		{"without a text", "---\ndescription: the port\ntype: project\nsource: the person\n---\n", codeInvalidText},
		{"under another name", "---\nname: other\ndescription: the port\ntype: project\nsource: the person\n---\n\nIt is 85.\n", protocol.InvalidName},
	} {
		d, err := ParseEdited("port", c.text)
		if err == nil {
			_, err = m.Save(Scope{}, *d)
		}
		if protocol.CodeOf(err) != c.code {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	list, _, err = m.List(Scope{})
	if err != nil || len(list) != 1 || list[0].Text != "It is 81." || list[0].By != "" || len(list[0].External) != 1 {
		t.Errorf("it is %+v, %v", list, err)
	}
}
