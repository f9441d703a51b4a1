package setup

import (
	"strings"
	"testing"
)

func TestWhoseAKeyIs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, typed, provider, key string }{
		{"SO-122 Anthropic's", " sk-ant-api03-abc\n", "anthropic", "sk-ant-api03-abc"},
		{"SO-122 OpenRouter's", "sk-or-v1-abc", "openrouter", "sk-or-v1-abc"},
		{"SO-122 OpenAI's", "sk-proj-abc", "openai", "sk-proj-abc"},
		{"SO-122 one that could be anybody's is asked about", "xyz", "", "xyz"},
	} {
		key, err := Clean(c.typed)
		if err != nil || key != c.key {
			t.Errorf("%s: %q, %v", c.name, key, err)
		}
		if p, ok := Whose(key); p.Name != c.provider || ok != (c.provider != "") {
			t.Errorf("%s: %q, %v", c.name, p.Name, ok)
		}
	}
	for _, bad := range []string{"", "  ", "two words", "two\nlines", "schlüssel", "a\x1b[2J"} {
		if key, err := Clean(bad); err == nil {
			t.Errorf("%q passes as %q", bad, key)
		}
	}
}

func TestSpec(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ spec, variable, wrong string }{
		{"mine=chat,http://127.0.0.1:1/v1,MINE_KEY", "MINE_KEY", ""},
		{"mine=responses-ws,https://h.example/v1", "", ""},
		{"ollama", "", ""},
		{"openai", "OPENAI_API_KEY", ""},
		{"openai=,https://h.example/v1", "", ""}, // a key never goes to another host unasked
		{"https://h.example/v1", "", "begins with a name"},
		{"mine=chat, http://h", "", "is one word"},
		{"", "", "begins with a name"},
		{"mine", "", "its family and its URL"},
		{"mine=chatty,http://h", "", "its family is one of anthropic, chat, responses, responses-ws"},
		{"mine=chat", "", "its URL begins"},
		{"mine=chat,h.example", "", "its URL begins"},
		{"mine=chat,http://u:p@h", "", "its URL begins"},
		{"mine=chat,http://h,sk-secret", "", "a variable, not a key"},
	} {
		variable, err := Spec(c.spec)
		if variable != c.variable || (err == nil) != (c.wrong == "") || err != nil && (!strings.Contains(err.Error(), c.wrong) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%q: %q, %v", c.spec, variable, err)
		}
	}
}

func TestBeginsKey(t *testing.T) {
	t.Parallel()
	for line, is := range map[string]bool{"sk": false, "sk-": true, "a=b,sk-": true, "task-": false, strings.Repeat("x", 100) + " sk-a": true} {
		if BeginsKey(line) != is {
			t.Errorf("%q: %v", line, !is)
		}
	}
}
