package text

import "testing"

func TestRules(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, want string
		line       Line
	}{
		{"a rule is as long as the width", "────", Across(4)},
		{"a title, and the rule goes on", "── usage ──────", Titled("usage", "", 15)},
		{"a word at the right", "── usage ─ all ─", Titled("usage", "all", 16)},
		{"the title gives way, the word stays", "── a lo… all ─", Titled("a long one", "all", 14)},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if got := row.line.String(); got != row.want {
				t.Errorf("%q, want %q", got, row.want)
			}
		})
	}
}
