package setup

import "testing"

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
