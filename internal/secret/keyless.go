package secret

import (
	"slices"
	"strings"
)

// providerKeys are the variables from which model providers' programs take their
// keys, whether or not a provider of this daemon does (companions.md 4.6).
var providerKeys = []string{
	"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY",
	"XAI_API_KEY", "DEEPSEEK_API_KEY", "MISTRAL_API_KEY", "GROQ_API_KEY", "COHERE_API_KEY", "TOGETHER_API_KEY",
	"FIREWORKS_API_KEY", "CEREBRAS_API_KEY", "PERPLEXITY_API_KEY", "AZURE_OPENAI_API_KEY",
	"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK",
}

// WithoutKeys is an environment for a program that runs as the person and is no
// bot's command, such as a setup: env without the variables of model providers'
// keys, without those that keys names, and without any other that holds one of
// their values, or one of values. env is not changed.
func WithoutKeys(env, keys, values []string) []string {
	ring := keyring{names: append(slices.Clone(providerKeys), keys...)}
	for _, value := range values {
		ring.hold(value)
	}
	for _, entry := range env {
		if name, value, ok := strings.Cut(entry, "="); ok && slices.Contains(ring.names, name) {
			ring.hold(value)
		}
	}
	return slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, value, _ := strings.Cut(entry, "=")
		return slices.Contains(ring.names, name) || ring.holds(value)
	})
}
