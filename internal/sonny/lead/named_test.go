package lead

import (
	"strings"
	"testing"

	"agent/protocol"
)

func TestTitleOf(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		"fix the login":             "fix the login",
		"fix\n  the\tlogin ":        "fix the login",
		strings.Repeat("a", 60):     strings.Repeat("a", 48) + "…",
		strings.Repeat("word ", 20): strings.TrimSpace(strings.Repeat("word ", 9)) + "…",
		"":                          "",
	} {
		if got := TitleOf(message); got != want {
			t.Errorf("%q: %q, wanted %q", message, got, want)
		}
	}
}

func TestNamed(t *testing.T) {
	t.Parallel()
	b := bot(1, "x", "/w")
	session := func(id int64, bot, title string) Found {
		return Found{Session: Session{BotID: id, Bot: bot, Title: title}, Record: &b}
	}
	all := []Found{
		session(12, "demo.lead", "parser work"), session(1234567, "demo.lead-2", ""), session(13, "other.lead", "parser work"),
		session(14, "last.lead", "demo.lead"),
	}
	gone := session(15, "gone.lead", "")
	gone.Record = nil
	all = append(all, gone)
	title := func(f *Found) string { return f.Title }
	for word, want := range map[string]string{
		"parser work": "demo.lead other.lead", "demo.lead": "last.lead", "demo.lead-2": "demo.lead-2", "12": "demo.lead",
		"123456": "demo.lead-2", "12345": "", "none": "",
	} {
		var names []string
		for _, f := range Named(word, all, title) {
			names = append(names, f.Bot)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%q names %q, wanted %q", word, got, want)
		}
	}
	for word, code := range map[string]protocol.Code{"parser work": protocol.UsageError, "none": protocol.BotNotFound, "gone.lead": SessionGone, "12": ""} {
		if _, err := OneNamed(word, all, title); protocol.CodeOf(err) != code {
			t.Errorf("%q: %v", word, err)
		}
	}
}

func TestSuggest(t *testing.T) {
	t.Parallel()
	models := []string{"gone/gpt-5", "a/small", "a/claude-sonnet-9", "a/claude-opus-9", "b/gpt-5"}
	for _, c := range []struct {
		name, want string
		models     []string
		connected  string
	}{
		{"the first connected provider's best", "a/claude-opus-9", models, "a b"},
		{"another's", "b/gpt-5", models, "b"},
		{"its first where the table names none", "c/one", []string{"c/one", "c/two"}, "c"},
		{"none without a provider", "", models, ""},
		{"none without models", "", nil, "a"},
	} {
		got := Suggest(c.models, func(p string) bool { return strings.Contains(c.connected, p) && c.connected != "" })
		if got != c.want {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}
