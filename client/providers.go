package client

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"agent/client/envfile"
	"agent/internal/place"
	"agent/protocol"
)

// ImpliedProviders are the providers that a daemon is started with when none
// is stated (section 3): those of AGENT_PROVIDER, else one for each well-known
// key that env has, and chatgpt when ~/.agent/chatgpt.json can be read. A blank
// value is not set.
func ImpliedProviders(env []string) []string {
	if specs := strings.Fields(envfile.Get(env, "AGENT_PROVIDER")); len(specs) > 0 {
		return specs
	}
	var specs []string
	for _, known := range []struct{ name, key string }{
		{"anthropic", "ANTHROPIC_API_KEY"}, {"openai", "OPENAI_API_KEY"}, {"openrouter", "OPENROUTER_API_KEY"},
	} {
		if strings.TrimSpace(envfile.Get(env, known.key)) != "" {
			specs = append(specs, known.name)
		}
	}
	if home, err := place.Home(); err == nil {
		if readable(filepath.Join(home, ".agent", "chatgpt.json")) {
			specs = append(specs, "chatgpt")
		}
	}
	return specs
}

// KeyVariables are the variables that provider specs name to read a key from.
func KeyVariables(specs []string) (names []string) {
	for _, spec := range specs {
		_, rest, _ := strings.Cut(spec, "=")
		if fields := strings.SplitN(rest, ",", 3); len(fields) == 3 && fields[2] != "" {
			names = append(names, fields[2])
		}
	}
	return names
}

// providerSpec is what a stated spec comes to, for a comparison with a ready
// line. url is nil when it cannot be known here.
type providerSpec struct {
	name, family, transport, auth string
	url                           *string
}

// preset is what a bare name stands for (providers.md 2).
type preset struct{ family, url, auth string }

var presets = map[string]preset{
	"anthropic":      {"anthropic", "https://api.anthropic.com/v1", "key"},
	"openai":         {"responses", "https://api.openai.com/v1", "key"},
	"openrouter":     {"responses", "https://openrouter.ai/api/v1", "key"},
	"chatgpt":        {"responses", "https://chatgpt.com/backend-api/codex", "chatgpt"},
	"bedrock":        {"anthropic", "https://bedrock-mantle.$REGION.api.aws/anthropic/v1", "sigv4"},
	"bedrock-openai": {"responses", "https://bedrock-mantle.$REGION.api.aws/openai/v1", "sigv4"},
	"ollama":         {"chat", "http://127.0.0.1:11434/v1", "none"},
	"llamacpp":       {"chat", "http://127.0.0.1:8080/v1", "none"},
	"vllm":           {"chat", "http://127.0.0.1:8000/v1", "none"},
	"lmstudio":       {"chat", "http://127.0.0.1:1234/v1", "none"},
	"scripted":       {"scripted", "", "none"},
}

// IsPreset reports whether a provider's name alone says its family and its URL.
func IsPreset(name string) bool {
	_, known := presets[name]
	return known
}

// parseProvider reads NAME[=FAMILY[,URL[,KEY-ENV]]]. It checks nothing: a
// daemon that is started does, and a running one has only good ones.
func parseProvider(spec string, env []string) providerSpec {
	name, rest, _ := strings.Cut(spec, "=")
	fields := append(strings.SplitN(rest, ",", 3), "", "")
	family, url, key := fields[0], fields[1], fields[2]
	base := presets[name]
	p := providerSpec{name: name, family: family, transport: "http", auth: "none"}
	switch family {
	case "":
		p.family = base.family
	case "responses-ws":
		p.family, p.transport = "responses", "websocket"
	}
	switch {
	case key != "":
		p.auth = "key"
	case base.auth != "" && (url == "" || sameURL(url, base.url)):
		p.auth = base.auth
	case bedrockURL.MatchString(url):
		p.auth = "sigv4"
	}
	if url == "" {
		url = withRegion(base.url, env)
	}
	if p.family == "scripted" {
		p.transport, p.auth = "local", "none"
		return p // the daemon may spell the file's path in another way
	}
	if !strings.Contains(url, "$REGION") {
		p.url = &url
	}
	return p
}

// bedrockURL is the base URL of a Bedrock host, whose requests are signed
// whatever the provider's name.
var bedrockURL = regexp.MustCompile(`^https://(bedrock-mantle\.[a-z0-9-]+\.api\.aws|bedrock-runtime\.[a-z0-9-]+\.amazonaws\.com)(/|$)`)

func withRegion(url string, env []string) string {
	region := envfile.Get(env, "AWS_REGION")
	if region == "" {
		region = envfile.Get(env, "AWS_DEFAULT_REGION")
	}
	if region == "" {
		return url
	}
	return strings.Replace(url, "$REGION", region, 1)
}

func sameURL(a, b string) bool { return strings.TrimRight(a, "/") == strings.TrimRight(b, "/") }

// differences compares a stated provider with the one of that name.
func (p providerSpec) differences(has protocol.ProviderInfo) []string {
	var out []string
	note := func(what, requested, daemon string) {
		if requested != daemon {
			out = append(out, "--provider "+p.name+": requested "+what+" "+requested+" but daemon has "+daemon)
		}
	}
	note("family", p.family, has.Family)
	if p.url != nil && !sameURL(*p.url, has.URL) {
		note("url", *p.url, has.URL)
	}
	note("transport", p.transport, has.Transport)
	if p.name == "chatgpt" && p.auth == "none" && has.Auth == "chatgpt" {
		return out // the daemon's sign-in is of that URL's own issuer
	}
	note("auth", p.auth, has.Auth)
	return out
}

// readable reports whether path is a regular file that can be opened. What is in
// it, and whether its mode is private, is for the daemon to judge.
func readable(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	f.Close()
	return true
}
