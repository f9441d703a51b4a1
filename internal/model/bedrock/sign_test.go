package bedrock

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"agent/internal/model"
	"agent/internal/secret"
)

var keysOfB1 = &pair{id: secret.NewValue("AKIDEXAMPLE"), key: secret.NewValue("SECRETEXAMPLEKEY0123456789")}

// fixed are keys that are there, at a fixed time.
func fixed(p *pair) *Keys {
	return &Keys{static: true, held: p, know: func(...secret.Named) {}, now: func() time.Time {
		return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	}}
}

func credentialFor(t *testing.T, base string, keys *Keys) *Credential {
	t.Helper()
	c, err := New(model.Spec{Name: "b", URL: base, Auth: model.AuthSigV4}, keys)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestSignatures(t *testing.T) {
	t.Parallel()
	t.Run("PV-48 the vectors", func(t *testing.T) {
		withToken := *keysOfB1
		withToken.token = secret.NewValue("TOKENEXAMPLE")
		const hash = "548f58d1c36c715b44f0863472074a97c448d5b8d18164b92adf55592b127f86"
		for _, row := range []struct {
			name, method, url, body string
			keys                    *pair
			hash, signature, scope  string
		}{
			{
				"a call at Mantle", "POST", "https://bedrock-mantle.us-east-1.api.aws/anthropic/v1/messages", `{"model":"m"}`, keysOfB1,
				"UNSIGNED-PAYLOAD", "5e11ecec8723421f64128c2ba1ef0e1d0be8e9b893f8696422560332e0e8976c", "us-east-1/bedrock-mantle",
			},
			{
				"Mantle's list", "GET", "https://bedrock-mantle.us-east-1.api.aws/v1/models", "", keysOfB1,
				"UNSIGNED-PAYLOAD", "a26bf71da2fcf2916fe135adddd620c6c7bcb57d074ea020180480899ab6d6af", "us-east-1/bedrock-mantle",
			},
			{
				"temporary keys at the runtime", "POST", "https://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1/responses", `{"model":"m"}`, &withToken,
				hash, "40bc9e21c7fdb38923608e1666cc6ec5b660dca9a47e0bf8d696b6515256caaa", "eu-west-1/bedrock",
			},
			{
				"an escaped path", "POST", "https://bedrock-runtime.us-west-2.amazonaws.com/model/us.anthropic.claude-x-v1%3A0/invoke-with-response-stream", `{"model":"m"}`, keysOfB1,
				hash, "ebec0f6033acdb5afd22d898c0c687cc4d945643ce0acfa53c85f1c054882ce4", "us-west-2/bedrock",
			},
		} {
			t.Run(row.name, func(t *testing.T) {
				t.Parallel()
				req, err := http.NewRequest(row.method, row.url, strings.NewReader(row.body))
				if err != nil {
					t.Fatal(err)
				}
				// What is not signed must not change the signature.
				req.Header.Set("content-type", "application/json")
				req.Header.Set("anthropic-version", "2023-06-01")
				at := *req.URL
				at.Path, at.RawPath = "", ""
				c := credentialFor(t, at.String(), fixed(row.keys))
				if err := c.Authorize(t.Context(), req); err != nil {
					t.Fatal(err)
				}
				signed := "host;x-amz-content-sha256;x-amz-date"
				if row.keys == &withToken {
					signed += ";x-amz-security-token"
					if req.Header.Get("x-amz-security-token") != "TOKENEXAMPLE" {
						t.Error("the token is not sent")
					}
				}
				want := "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260102/" + row.scope + "/aws4_request, SignedHeaders=" + signed + ", Signature=" + row.signature
				if got := req.Header.Get("authorization"); got != want {
					t.Errorf("got  %s\nwant %s", got, want)
				}
				if req.Header.Get("x-amz-content-sha256") != row.hash || req.Header.Get("x-amz-date") != "20260102T030405Z" || req.Header.Get("content-type") == "" {
					t.Errorf("headers %v", req.Header)
				}
				if body, err := io.ReadAll(req.Body); err != nil || string(body) != row.body {
					t.Errorf("the body is %q then: %v", body, err)
				}
			})
		}
	})
}

func TestOtherHosts(t *testing.T) {
	t.Parallel()
	t.Run("PV-50 nothing else is signed", func(t *testing.T) {
		for _, base := range []string{
			"https://bedrock-runtime.us-east-1.amazonaws.com.attacker.test/v1", "https://xbedrock-runtime.us-east-1.amazonaws.com/v1",
			"https://bedrock-mantle.us-east-1.api.aws.attacker.test/v1", "http://bedrock-mantle.us-east-1.api.aws/v1",
			"https://bedrock-mantle.us-east-1.api.aws:8443/v1", "https://bedrock-mantle.us_east.api.aws/v1", "https://127.0.0.1/v1",
		} {
			_, err := New(model.Spec{Name: "b", URL: base, Auth: model.AuthSigV4}, fixed(keysOfB1))
			var e *model.Error
			if !errors.As(err, &e) || e.Code != "invalid_provider_url" {
				t.Errorf("%s: got %v", base, err)
			}
		}
		c := credentialFor(t, "https://bedrock-mantle.us-east-1.api.aws/anthropic/v1", fixed(keysOfB1))
		for _, other := range []string{"https://attacker.test/v1/models", "http://bedrock-mantle.us-east-1.api.aws/v1/models", "https://bedrock-mantle.eu-west-1.api.aws/v1/models"} {
			req, _ := http.NewRequest(http.MethodGet, other, nil)
			if err := c.Authorize(t.Context(), req); err == nil || len(req.Header) != 0 {
				t.Errorf("%s: got %v and %v", other, err, req.Header)
			}
		}
	})
}

func TestRefusedKeysOfTheEnvironment(t *testing.T) {
	t.Parallel()
	t.Run("PV-51 the keys of the environment are not asked for again", func(t *testing.T) {
		c := credentialFor(t, "https://bedrock-mantle.us-east-1.api.aws/anthropic/v1", fixed(keysOfB1))
		req := &http.Request{Method: "POST", URL: mustURL(t, "https://bedrock-mantle.us-east-1.api.aws/anthropic/v1/messages"), Header: http.Header{}}
		if err := c.Authorize(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		if e := c.Refused(t.Context(), req, http.StatusForbidden); e != nil {
			t.Errorf("got %v", e)
		}
	})
}

func TestNoPrintShowsAKey(t *testing.T) {
	t.Parallel()
	keys := fixed(keysOfB1)
	c := credentialFor(t, "https://bedrock-mantle.us-east-1.api.aws/anthropic/v1", keys)
	for name, v := range map[string]any{"pair": *keysOfB1, "*pair": keysOfB1, "*Keys": keys, "*Credential": c, "a slice": []*pair{keysOfB1}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x"} {
			if got := fmt.Sprintf(verb, v); strings.Contains(got, "EXAMPLE") {
				t.Errorf("%s as %s: %s", name, verb, got)
			}
		}
		encoded, err := json.Marshal(v)
		if err != nil || !strings.Contains(string(encoded), "REDACTED") || strings.Contains(string(encoded), "EXAMPLE") {
			t.Errorf("%s as JSON: %s, %v", name, encoded, err)
		}
	}
	if c.LogValue().String() != secret.Mark || keys.LogValue().String() != secret.Mark {
		t.Error("a log shows more than the mark")
	}
}

func mustURL(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
