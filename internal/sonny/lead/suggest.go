package lead

import (
	"context"
	"errors"
	"strings"

	"agent/client"
	"agent/client/modelsfile"
	"agent/protocol"
)

// NoModel is the code where no model is set and none can be suggested.
const NoModel protocol.Code = "no_model"

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

// SuggestFrom is Suggest of the models file's models, or, where it names none of the
// connected providers', of those that the providers list themselves. no_model.
func SuggestFrom(ctx context.Context, c *client.Client, providers map[string]protocol.ProviderInfo, models []string) (string, error) {
	connected := func(name string) bool { _, ok := providers[name]; return ok }
	if model := Suggest(models, connected); model != "" {
		return model, nil
	}
	listed, err := listed(ctx, c)
	if err != nil {
		return "", err
	}
	if model := Suggest(listed, connected); model != "" {
		return model, nil
	}
	return "", protocol.Fail(NoModel, "no model is set and no provider names one: give --model PROVIDER/MODEL, or set one with sonny config set model")
}

// listed are the models that the providers list.
func listed(ctx context.Context, c *client.Client) (out []string, err error) {
	lists, err := c.ProviderModels(ctx)
	if err != nil {
		return nil, err
	}
	text, _, err := modelsfile.Discover(nil, lists.Providers)
	if errors.Is(err, protocol.ModelsNoneListed) {
		return nil, protocol.Fail(NoModel, err.Error())
	}
	if err != nil {
		return nil, err
	}
	models, err := modelsfile.Parse("the providers' lists", text)
	for _, m := range models {
		out = append(out, m.ID)
	}
	return out, err
}
