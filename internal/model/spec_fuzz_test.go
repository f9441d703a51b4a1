package model

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// Whatever a spec says: it is refused by a code whose detail quotes no more of
// it than its name, or it is one that a request can be made of; and no key or
// sign-in is implied for an address that is not the preset's own.
func FuzzParseSpecs(f *testing.F) {
	for _, seed := range []string{
		"anthropic", "openai=responses-ws", "openai=responses,http://127.0.0.1:9/v1", "gw=chat,https://gw.test/a//,GW_KEY", "chatgpt=,https://other.test/v1",
		"bedrock", "bedrock-openai=responses-ws", "s=scripted,~/a.json", "a=chat,https://u:p@x/v1", "a=chat,https://x/v1?a=b#c", "a=chat,http://[::1", "=,,", "a=b,c,d,e",
		"b=anthropic,https://bedrock-runtime.us-east-1.amazonaws.com.attacker.test/v1", "openai=responses,https://api.openai.com/v1/", "a=chat,http://$REGION/v1",
	} {
		f.Add(seed)
	}
	codes := []string{"invalid_provider_spec", "invalid_provider_url", "invalid_provider_transport"}
	f.Fuzz(func(t *testing.T, text string) {
		specs, err := ParseSpecs([]string{text})
		if err != nil {
			var refused *Error
			if !errors.As(err, &refused) || !slices.Contains(codes, refused.Code) {
				t.Fatalf("%q: %v", text, err)
			}
			if _, rest, _ := strings.Cut(text, "="); len(rest) > 64 && strings.Contains(refused.Detail, rest) {
				t.Fatalf("%q is quoted whole: %s", text, refused.Detail)
			}
			return
		}
		s := specs[0]
		if !nameRule.MatchString(s.Name) || s.Transport == TransportLocal != (s.Family == FamilyScripted) || (s.KeyEnv != "") != (s.Auth == AuthKey) {
			t.Fatalf("%q is %+v", text, s)
		}
		if s.Transport == TransportLocal {
			return
		}
		u, err := url.Parse(strings.Replace(s.URL, regionMark, "region", 1))
		if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			t.Fatalf("%q has the URL %q: %v", text, s.URL, err)
		}
		stated := strings.Count(text, ",") == 2 && !strings.HasSuffix(text, ",")
		implied := s.Auth == AuthChatGPT || s.Auth == AuthKey && !stated
		if implied && s.URL != presets[s.Name].url {
			t.Fatalf("%q implies a credential for %s", text, s.URL)
		}
		if s.Auth == AuthSigV4 && !IsBedrockHost(u.Hostname()) && !strings.Contains(s.URL, regionMark) {
			t.Fatalf("%q is signed for %s", text, s.URL)
		}
	})
}
