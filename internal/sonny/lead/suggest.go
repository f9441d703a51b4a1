package lead

import "strings"

// suggested are patterns of models that suit a lead, the best first.
var suggested = []string{
	"claude-opus", "claude-sonnet", "gpt-5", "o4", "gpt-4", "gemini", "grok", "deepseek", "qwen", "mistral",
}

// Suggest is the model that is proposed where none is set (sonny.md 3.3): of the first
// provider in the list that is connected, the first id that the table of patterns
// names, else its first. The models are PROVIDER/MODEL. connected tells which providers
// there are; nil: all. "" for none.
func Suggest(models []string, connected func(provider string) bool) string {
	provider := ""
	var ids []string
	for _, m := range models {
		p, _, _ := strings.Cut(m, "/")
		if provider == "" && (connected == nil || connected(p)) {
			provider = p
		}
		if p == provider {
			ids = append(ids, m)
		}
	}
	for _, pattern := range suggested {
		for _, m := range ids {
			if strings.Contains(m, pattern) {
				return m
			}
		}
	}
	if len(ids) == 0 {
		return ""
	}
	return ids[0]
}
