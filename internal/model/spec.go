package model

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// Spec is one parsed provider spec (providers.md 2). It never holds a key,
// only the name of the variable that has it.
type Spec struct {
	Name      string
	Family    Family
	Transport string // http, websocket, local
	// URL is the base URL without a trailing slash; for the scripted family
	// the path of the script, or BuiltinScript.
	URL    string
	Auth   string // key, none, chatgpt, sigv4
	KeyEnv string // the variable to read the key from; "" unless Auth is key
	Region string // of a Bedrock host that requests are signed for, set by Resolve
}

// The ways a provider is reached, as Spec.Transport and Info.Transport.
const (
	TransportHTTP      = "http"
	TransportWebSocket = "websocket"
	TransportLocal     = "local"
)

// Where a provider's credential comes from, as Spec.Auth and Info.Auth.
const (
	AuthKey     = "key"
	AuthNone    = "none"
	AuthChatGPT = "chatgpt"
	AuthSigV4   = "sigv4"
)

// BuiltinScript is the URL of the scripted provider's own script.
const BuiltinScript = "builtin"

// regionMark stands in a preset's URL until Resolve knows the region.
const regionMark = "$REGION"

type preset struct {
	family Family
	url    string
	auth   string
	keyEnv string
}

var presets = map[string]preset{
	"anthropic":      {FamilyAnthropic, "https://api.anthropic.com/v1", AuthKey, "ANTHROPIC_API_KEY"},
	"openai":         {FamilyResponses, "https://api.openai.com/v1", AuthKey, "OPENAI_API_KEY"},
	"openrouter":     {FamilyResponses, "https://openrouter.ai/api/v1", AuthKey, "OPENROUTER_API_KEY"},
	"chatgpt":        {FamilyResponses, "https://chatgpt.com/backend-api/codex", AuthChatGPT, ""},
	"bedrock":        {FamilyAnthropic, "https://bedrock-mantle.$REGION.api.aws/anthropic/v1", AuthSigV4, ""},
	"bedrock-openai": {FamilyResponses, "https://bedrock-mantle.$REGION.api.aws/openai/v1", AuthSigV4, ""},
	"ollama":         {FamilyChat, "http://127.0.0.1:11434/v1", AuthNone, ""},
	"llamacpp":       {FamilyChat, "http://127.0.0.1:8080/v1", AuthNone, ""},
	"vllm":           {FamilyChat, "http://127.0.0.1:8000/v1", AuthNone, ""},
	"lmstudio":       {FamilyChat, "http://127.0.0.1:1234/v1", AuthNone, ""},
	"scripted":       {FamilyScripted, BuiltinScript, AuthNone, ""},
}

// impliedKeys are the variables that make a provider of themselves, with it.
var impliedKeys = []struct{ env, name string }{
	{"ANTHROPIC_API_KEY", "anthropic"},
	{"OPENAI_API_KEY", "openai"},
	{"OPENROUTER_API_KEY", "openrouter"},
}

// ParseSpecs parses the specs of one daemon. It reads no environment and no
// file. Errors are *Error: invalid_provider_spec, invalid_provider_url,
// invalid_provider_transport, duplicate_provider.
func ParseSpecs(specs []string) ([]Spec, error) {
	seen := map[string]bool{}
	parsed := make([]Spec, 0, len(specs))
	for _, text := range specs {
		s, err := parseSpec(text)
		if err != nil {
			return nil, err
		}
		if seen[s.Name] {
			return nil, Errorf("duplicate_provider",
				"two specs name the provider %q; give one of them another name", s.Name)
		}
		seen[s.Name] = true
		parsed = append(parsed, s)
	}
	return parsed, nil
}

// ImpliedSpecs is what a daemon gets when no --provider is stated: the specs
// in AGENT_PROVIDER, else one for each well-known key variable that is set,
// and chatgpt when the person signed in for it. None at all: no_providers.
func ImpliedSpecs(getenv func(string) string, signedIn bool) ([]string, error) {
	if stated := strings.Fields(getenv("AGENT_PROVIDER")); len(stated) > 0 {
		return stated, nil
	}
	var specs []string
	for _, k := range impliedKeys {
		if getenv(k.env) != "" {
			specs = append(specs, k.name)
		}
	}
	if signedIn {
		specs = append(specs, "chatgpt")
	}
	if len(specs) == 0 {
		return nil, Errorf("no_providers", "no model provider is set up: set ANTHROPIC_API_KEY, "+
			"OPENAI_API_KEY or OPENROUTER_API_KEY, sign in with `agent login chatgpt`, or state one, "+
			"such as --provider ollama for a local server or --provider scripted for the offline tour")
	}
	return specs, nil
}

var (
	nameRule   = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	keyEnvRule = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// parseSpec reads name[=family[,url[,key-env]]], filling what is left out from
// the preset of that name.
func parseSpec(text string) (Spec, error) {
	name, rest, _ := strings.Cut(text, "=")
	if len(name) > 64 || !nameRule.MatchString(name) {
		return Spec{}, badSpec(text, "the name must be 1 to 64 letters, digits, - or _")
	}
	fields := strings.SplitN(rest, ",", 3)
	for len(fields) < 3 {
		fields = append(fields, "")
	}
	p, known := presets[name]
	s := Spec{Name: name, Family: p.family, Transport: TransportHTTP}
	if err := s.setFamily(text, fields[0]); err != nil {
		return Spec{}, err
	}
	if s.Family == "" {
		return Spec{}, badSpec(text, "no preset has this name, so state its family and URL: NAME=FAMILY,URL")
	}
	sameKind := (s.Family == FamilyScripted) == (p.family == FamilyScripted)
	given := fields[1]
	if given == "" && known && sameKind {
		given = p.url
	}
	if given == "" {
		return Spec{}, badSpec(text, "the spec names no URL")
	}
	if s.Family == FamilyScripted {
		return s.local(text, given, fields[2])
	}
	return s.remote(text, given, fields[2], p)
}

func (s *Spec) setFamily(text, family string) error {
	switch Family(family) {
	case "":
	case FamilyAnthropic, FamilyResponses, FamilyChat, FamilyScripted:
		s.Family = Family(family)
	case "responses-ws":
		s.Family, s.Transport = FamilyResponses, TransportWebSocket
	default:
		return badSpec(text, "the family must be responses, responses-ws, anthropic, chat or scripted")
	}
	return nil
}

// local completes a scripted spec, whose URL is the path of a script.
func (s Spec) local(text, path, keyEnv string) (Spec, error) {
	if path != BuiltinScript && !strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "~/") {
		return Spec{}, badSpec(text, "the script's path must be absolute or begin with ~/")
	}
	if keyEnv != "" {
		return Spec{}, badSpec(text, "a scripted provider has no key")
	}
	s.URL, s.Transport, s.Auth = path, TransportLocal, AuthNone
	return s, nil
}

// remote completes a spec that is reached by URL. A credential is implied only
// by a preset at its own URL, so that a key never goes to another host.
func (s Spec) remote(text, rawURL, keyEnv string, p preset) (Spec, error) {
	if keyEnv != "" && !keyEnvRule.MatchString(keyEnv) {
		return Spec{}, badSpec(text, "the key field must be the name of an environment variable")
	}
	base, host, err := checkURL(text, rawURL)
	if err != nil {
		return Spec{}, err
	}
	s.URL, s.Auth = base, AuthNone
	switch {
	case keyEnv != "":
		s.Auth, s.KeyEnv = AuthKey, keyEnv
	case base == p.url:
		s.Auth, s.KeyEnv = p.auth, p.keyEnv
	case IsBedrockHost(host):
		s.Auth = AuthSigV4
	}
	if s.Auth == AuthChatGPT && s.Family != FamilyResponses {
		return Spec{}, badSpec(text, "the ChatGPT backend speaks the family responses alone")
	}
	bedrock := s.Bedrock()
	if bedrock && !strings.HasPrefix(base, "https://") {
		return Spec{}, Errorf("invalid_provider_url", "provider %s: a Bedrock host must be reached by https", s.Name)
	}
	if bedrock && s.Transport == TransportWebSocket {
		return Spec{}, Errorf("invalid_provider_transport",
			"provider %s: Bedrock serves no WebSocket; use the family responses", s.Name)
	}
	return s, nil
}

// checkURL applies the URL rule and gives the URL without trailing slashes,
// and its host. What it quotes holds no user information and no query.
func checkURL(text, raw string) (base, host string, err error) {
	name, _, _ := strings.Cut(text, "=")
	bad := func(why string) (string, string, error) {
		return "", "", Errorf("invalid_provider_url", "provider %s: %s", name, why)
	}
	// The mark is no valid host, so a stand-in is parsed in its place.
	u, perr := url.Parse(strings.Replace(raw, regionMark, "region", 1))
	if perr != nil {
		return bad("the base URL cannot be parsed")
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return bad("the base URL must begin with http:// or https://")
	case u.Hostname() == "" || u.Opaque != "":
		return bad("the base URL names no host")
	case !isPort(u.Port()):
		return bad("the base URL's port is none of 1 to 65535")
	case u.User != nil:
		return bad("the base URL must hold no user information; name a key variable instead")
	case u.RawQuery != "" || u.ForceQuery || strings.Contains(raw, "#"):
		return bad("the base URL must hold no query and no fragment")
	}
	return strings.TrimRight(raw, "/"), u.Hostname(), nil
}

// isPort reports whether a server can listen there; "" is the scheme's port.
func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return text == "" || err == nil && n > 0
}

var (
	mantleRule  = regexp.MustCompile(`^bedrock-mantle\.([a-z0-9-]+)\.api\.aws$`)
	runtimeRule = regexp.MustCompile(`^bedrock-runtime\.([a-z0-9-]+)\.amazonaws\.com$`)
)

// BedrockHost is what is known of a Bedrock host by its name (providers.md 11).
type BedrockHost struct {
	Region string
	Mantle bool // bedrock-mantle; else bedrock-runtime
}

// ParseBedrockHost reads a host's name, without a port. ok is false for what is
// neither of Bedrock's two, exactly: a look-alike is not.
func ParseBedrockHost(host string) (h BedrockHost, ok bool) {
	if m := mantleRule.FindStringSubmatch(host); m != nil {
		return BedrockHost{Region: m[1], Mantle: true}, true
	}
	if m := runtimeRule.FindStringSubmatch(host); m != nil {
		return BedrockHost{Region: m[1]}, true
	}
	return BedrockHost{}, false
}

// IsBedrockHost reports whether host is one of Bedrock's two, exactly.
func IsBedrockHost(host string) bool {
	_, ok := ParseBedrockHost(host)
	return ok
}

// Bedrock reports whether the spec is of a Bedrock host, its region known or
// not yet.
func (s Spec) Bedrock() bool {
	return IsBedrockHost(s.Host()) || strings.Contains(s.URL, regionMark)
}

// ModelsURL is where the provider lists its models: beside the completion
// route, but for Mantle, which has one list for all families (providers.md 14).
func (s Spec) ModelsURL() string {
	if h, ok := ParseBedrockHost(s.Host()); ok && h.Mantle {
		return "https://" + s.Host() + "/v1/models"
	}
	return s.URL + "/models"
}

// Resolve completes a spec from the daemon's environment: the region of a
// Bedrock preset (provider_region_unavailable), and that the key variable is
// set (provider_key_unavailable).
func (s Spec) Resolve(getenv func(string) string) (Spec, error) {
	if strings.Contains(s.URL, regionMark) {
		region := getenv("AWS_REGION")
		if region == "" {
			region = getenv("AWS_DEFAULT_REGION")
		}
		s.URL = strings.Replace(s.URL, regionMark, region, 1)
		if u, err := url.Parse(s.URL); region == "" || err != nil || !IsBedrockHost(u.Hostname()) {
			return s, Errorf("provider_region_unavailable",
				"provider %s needs a region: set AWS_REGION or AWS_DEFAULT_REGION", s.Name)
		}
	}
	if h, ok := ParseBedrockHost(s.Host()); ok && s.Auth == AuthSigV4 {
		s.Region = h.Region
	}
	if s.Auth == AuthKey && strings.TrimSpace(getenv(s.KeyEnv)) == "" {
		return s, Errorf("provider_key_unavailable",
			"provider %s: the variable %s is unset or empty", s.Name, s.KeyEnv)
	}
	return s, nil
}

// Host is the host of the base URL without its port; "" for a local provider.
func (s Spec) Host() string {
	u, err := url.Parse(s.URL)
	if err != nil || s.Transport == TransportLocal {
		return ""
	}
	return u.Hostname()
}

// Info is the spec as the ready line shows it.
func (s Spec) Info() Info {
	return Info{
		Family: s.Family, URL: s.URL, Transport: s.Transport,
		Plaintext: strings.HasPrefix(s.URL, "http://"),
		Auth:      s.Auth, KeyEnv: s.KeyEnv, Region: s.Region,
	}
}

func badSpec(text, why string) *Error {
	name, _, _ := strings.Cut(text, "=")
	if len(name) > 64 {
		name = name[:64]
	}
	return Errorf("invalid_provider_spec", "provider %q: %s", name, why)
}
