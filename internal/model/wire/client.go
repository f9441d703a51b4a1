package wire

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"agent/internal/model"
	"agent/internal/model/pace"
)

// HeaderWait is how long a provider may take to answer with headers; a local
// chat server may load a model first and gets ChatHeaderWait.
const (
	HeaderWait     = 120 * time.Second
	ChatHeaderWait = 600 * time.Second
)

// Env is what all providers of a daemon share.
type Env struct {
	Transports *Transports
	Getenv     func(string) string
	// Redact masks credentials in a text; nil masks nothing. It must know the
	// keys of all providers.
	Redact  func(string) string
	Version string // for the User-Agent
	// Credential makes what authorises the requests of a spec whose credential
	// is no key (model.AuthChatGPT, model.AuthSigV4); nil refuses such a spec.
	Credential func(model.Spec) (Credential, error)
}

// Family is what distinguishes one family's HTTP from another's.
type Family struct {
	HeaderWait time.Duration
	// Authorize puts the key, which is not empty, into a request's headers.
	Authorize func(h http.Header, key string)
	// Limits reads the rate-limit headers.
	Limits func(http.Header) pace.Limits
	// Code is the error code of an HTTP failure, or "" for provider_http_N.
	Code func(status int, f Failure) string
	// RequestID is the header that names the request in the provider's log.
	RequestID string
	// Plan reads what the headers say of a subscription, nil when they say
	// nothing; what they said last is in stats. Plan may be nil.
	Plan func(http.Header) json.RawMessage
}

// Client is one provider's HTTP. It is safe for concurrent use.
type Client struct {
	Pools *pace.Pools

	env        Env
	family     Family
	base       string
	models     string // the URL of the model list
	proxy      string
	credential Credential
	plan       atomic.Pointer[json.RawMessage] // nil until one was told
}

// NewClient makes a provider's client and reads its key. It fails with
// provider_key_unavailable or invalid_provider_url.
func NewClient(spec model.Spec, env Env, family Family) (*Client, error) {
	u, err := url.Parse(spec.URL)
	if err != nil {
		return nil, model.Errorf("invalid_provider_url", "provider %s: the base URL cannot be parsed", spec.Name)
	}
	credential, err := credentialOf(spec, env, family)
	if err != nil {
		return nil, err
	}
	return &Client{
		Pools: pace.New(), env: env, family: family, base: spec.URL, models: spec.ModelsURL(),
		proxy: env.Transports.ProxyInUse(u), credential: credential,
	}, nil
}

// credentialOf is what the spec says that requests carry.
func credentialOf(spec model.Spec, env Env, family Family) (Credential, error) {
	switch spec.Auth {
	case model.AuthKey:
	case model.AuthNone:
		return noCredential, nil
	default:
		if env.Credential == nil {
			return nil, model.Errorf("invalid_provider_spec", "provider %s: there is no credential of the kind %s here", spec.Name, spec.Auth)
		}
		return env.Credential(spec)
	}
	value := strings.TrimSpace(env.Getenv(spec.KeyEnv))
	if value == "" || !printable(value) {
		return nil, model.Errorf("provider_key_unavailable",
			"provider %s: the variable %s is unset, empty or holds what no key can", spec.Name, spec.KeyEnv)
	}
	return key{put: func(h http.Header) { family.Authorize(h, value) }}, nil
}

// authorize completes a request with what every request has.
func (c *Client) authorize(ctx context.Context, req *http.Request) error {
	req.Header.Set("user-agent", "agent/"+c.env.Version)
	return c.credential.Authorize(ctx, req)
}

// learn takes from a response's headers what outlives the call.
func (c *Client) learn(h http.Header) {
	if c.family.Plan == nil {
		return
	}
	if plan := c.family.Plan(h); plan != nil {
		c.plan.Store(&plan)
	}
}

func printable(key string) bool {
	for _, b := range []byte(key) {
		if b < '!' || b > '~' {
			return false
		}
	}
	return true
}

// Status is the provider's part of stats.
func (c *Client) Status() json.RawMessage {
	raw, err := json.Marshal(struct {
		Pools map[string]pace.Stats `json:"pools"`
		Plan  *json.RawMessage      `json:"plan,omitempty"`
	}{c.Pools.Stats(), c.plan.Load()})
	if err != nil {
		panic("wire: pool figures do not encode: " + err.Error())
	}
	return raw
}

// Clean redacts and cuts the detail of an *model.Error; other errors stay.
func (c *Client) Clean(err error) error {
	e, ok := err.(*model.Error)
	if !ok {
		return err
	}
	clean := *e
	clean.Detail = cutDetail(c.env.Redact, e.Detail)
	return &clean
}

// withProxy adds the proxy that was in the way to a connection's failure.
func (c *Client) withProxy(e *model.Error) *model.Error {
	if c.proxy != "" && strings.HasPrefix(e.Code, "provider_connection_") {
		e.Detail += " (through the proxy " + c.proxy + ")"
	}
	return e
}

// refusal is the error of a response to a request of ctx that is no success.
func (c *Client) refusal(ctx context.Context, resp *http.Response) *model.Error {
	f := readFailure(resp.Body, resp.Header.Get("content-type"))
	if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
		if e := c.credential.Refused(ctx, resp.Request, resp.StatusCode); e != nil {
			return e
		}
	}
	e := &model.Error{Code: c.family.Code(resp.StatusCode, f), Detail: f.Message}
	if e.Code == "" {
		e.Code = fmt.Sprintf("provider_http_%d", resp.StatusCode)
	}
	if kind, _, _ := strings.Cut(resp.Header.Get("x-amzn-errortype"), ":"); kind != "" {
		explainAWS(e, kind)
	}
	if e.Code == "provider_quota_exhausted" && f.ResetsAt > 0 {
		e.Detail = strings.TrimPrefix(strings.TrimSuffix(e.Detail, ".")+"; ", "; ") + "the limit resets at " + time.Unix(f.ResetsAt, 0).UTC().Format(time.RFC3339)
	}
	e.Retry = RetryAfter(resp.Header, time.Now())
	if e.Retry == 0 && resp.StatusCode == http.StatusTooManyRequests {
		e.Retry = NamedDelay(f.Message)
	}
	return e
}

// explainAWS adds what Bedrock's error type says where status and body do not
// (providers.md 11).
func explainAWS(e *model.Error, kind string) {
	if kind == "ExpiredTokenException" && e.Code == "provider_http_403" {
		e.Code = "provider_aws_credentials_expired"
	}
	if e.Detail == "" {
		e.Detail = strings.ToValidUTF8(kind[:min(len(kind), 100)], "")
	}
}

// refusedForPace reports whether an error closes the pool (providers.md 17).
func refusedForPace(e *model.Error) bool {
	switch e.Code {
	case "provider_http_502", "provider_http_503":
		return e.Retry > 0
	}
	return e.Pace() || e.Code == "provider_http_529"
}
