package instructions

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestFrontMatter(t *testing.T) {
	t.Parallel()
	text := "---\n" +
		"# a comment\n" +
		"plain: some text: with a colon # and a comment\n" +
		"hash: C#sharp\n" +
		"double: \"it's # \\\"so\\\"\" # comment\n" +
		"single: 'it''s'\n" +
		"block: |\n  one\n\n  two\n" +
		"folded: >-\n  three\n  four\n" +
		"commas: shell, 'read' ,,\n" +
		"brackets: [shell, \"read\"] # both\n" +
		"none: []\n" +
		"dashes:\n- shell\n  - 'read' # the second\n" +
		"nested:\n  plain: not this\n  tools: [x]\n" +
		"yes: TRUE\n" +
		"empty:\n" +
		"plain: the second\r\n" +
		"no field\n" +
		"---\nBody: 1\n"
	m, body, closed := ParseFrontMatter(text)
	if body != "Body: 1\n" || !closed {
		t.Fatalf("the body is %q", body)
	}
	for key, want := range map[string]string{
		"plain": "some text: with a colon", "hash": "C#sharp", "double": `it's # "so"`, "single": "it's",
		"block": "one two", "folded": "three four", "brackets": "shell, read", "dashes": "shell, read",
		"nested": "", "empty": "", "absent": "", "Body": "", "none": "",
	} {
		if got := m.Text(key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	for key, want := range map[string][]string{
		"commas": {"shell", "read"}, "brackets": {"shell", "read"}, "dashes": {"shell", "read"}, "empty": nil, "plain": {"some text: with a colon"},
	} {
		if got := m.List(key); !slices.Equal(got, want) {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if m.List("none") == nil || m.List("absent") != nil || !m.True("yes") || m.True("plain") {
		t.Error("an empty list, no list, true and false are told apart wrongly")
	}
}

func TestFrontMatterThatIsNone(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, text, body, model string
		closed                  bool
	}{
		{"no text", "", "", "", true},
		{"a text alone", "Hello\n---\nmodel: x\n---\n", "Hello\n---\nmodel: x\n---\n", "", true},
		{"lines ended by CR LF", "---\r\nmodel: x\r\n---\r\nBody\r\n", "Body\r\n", "x", true},
		{"nothing between", "---\n---\nBody", "Body", "", true},
		{"no end", "---\nmodel: x\nBody", "", "x", false},
		{"the first line alone", "---", "", "", false},
		{"an end without a newline", "---\nmodel: x\n---", "", "x", true},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			m, body, closed := ParseFrontMatter(row.text)
			if body != row.body || closed != row.closed || m.Text("model") != row.model {
				t.Errorf("body %q, closed %v, model %q", body, closed, m.Text("model"))
			}
		})
	}
}

func FuzzFrontMatter(f *testing.F) {
	for _, seed := range []string{
		"", "---\n", "---\na: b\n---\nx", "---\na: [b, 'c', \"d\\\"\"]\n---\n", "---\na:\n- b\n---\n", "---\na: |\n b\n c\n---\n", "---\na: \"\\", "---\na: '''\n---\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, body, closed := ParseFrontMatter(text)
		if !strings.HasSuffix(text, body) || !closed && body != "" {
			t.Errorf("the body %q is not the end of %q", body, text)
		}
		for key, value := range m.text {
			if strings.Contains(key+value, "\n") || utf8.ValidString(text) && !utf8.ValidString(key+value) {
				t.Errorf("the field %q: %q of %q", key, value, text)
			}
		}
		for key, list := range m.lists {
			for _, item := range list {
				if item == "" || strings.Contains(item, "\n") {
					t.Errorf("the list %q has %q", key, item)
				}
			}
		}
	})
}
