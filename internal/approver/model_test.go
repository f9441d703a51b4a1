package approver

import "testing"

func TestSmallModels(t *testing.T) {
	t.Parallel()
	rows := []struct {
		name, model string
		listed      []string
		want        string
	}{
		{"the newest small one of the maker", "claude-opus-4-5", []string{"claude-3-haiku-20240307", "claude-haiku-4-5-20251001", "claude-opus-4-5", "claude-haiku-3-5"}, "claude-haiku-4-5-20251001"},
		{"by number, not by letters", "gpt-5.2", []string{"gpt-5.9-mini", "gpt-5.10-mini", "gpt-5-nano"}, "gpt-5.10-mini"},
		{"a coding one", "gpt-5.1-codex", []string{"gpt-5.1-codex-mini"}, "gpt-5.1-codex-mini"},
		{"with the provider's own prefix", "anthropic/claude-sonnet-4-6", []string{"other/claude-haiku-9", "anthropic/claude-haiku-4-5", "openai/gpt-9-mini"}, "anthropic/claude-haiku-4-5"},
		{"with a region before it", "us.anthropic.claude-opus-4-1-v1:0", []string{"us.anthropic.claude-haiku-4-5-20251001-v1:0", "eu.anthropic.claude-haiku-5-v1:0"}, "us.anthropic.claude-haiku-4-5-20251001-v1:0"},
		{"another's", "gemini-3-pro", []string{"gemini-2.5-flash", "gemini-3-flash", "gemini-3-flash-image"}, "gemini-3-flash"},
		{"none is listed", "claude-opus-4-5", []string{"claude-opus-4-5"}, ""},
		{"a maker that is not known", "qwen3:8b", []string{"claude-haiku-4-5"}, ""},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if got := smallOf(row.model, row.listed); got != row.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestEffort(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ family, model, want string }{
		{"anthropic", "claude-haiku-4-5", "low"},
		{"responses", "gpt-5-mini", "low"},
		{"responses", "gpt-4.1-mini", ""},
		{"responses", "openai/gpt-5.1-mini", "low"},
		{"responses", "o4-mini", "low"},
		{"chat", "gpt-oss:20b", "low"},
		{"chat", "qwen3:8b", ""},
	} {
		if got := effortFor(row.family, row.model); got != row.want {
			t.Errorf("%s %s: %q", row.family, row.model, got)
		}
	}
}
