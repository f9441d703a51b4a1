package anthropic

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"

	"agent/internal/model"
	"agent/internal/model/pace"
	"agent/internal/model/wire"
)

// Provider is one binding of the family. It is safe for concurrent use.
type Provider struct {
	client  *wire.Client
	info    model.Info
	bedrock bool
	listing wire.Listing
}

var _ model.Provider = (*Provider)(nil)

// New makes a provider of a resolved spec.
func New(name string, spec model.Spec, env wire.Env) (*Provider, error) {
	spec.Name = name
	client, err := wire.NewClient(spec, env, wire.Family{
		HeaderWait: wire.HeaderWait,
		Authorize:  func(h http.Header, key string) { h.Set("x-api-key", key) },
		Limits:     limits,
		Code:       httpCode,
		RequestID:  "request-id",
	})
	if err != nil {
		return nil, err
	}
	return &Provider{client: client, info: spec.Info(), bedrock: model.IsBedrockHost(spec.Host())}, nil
}

// Info is how the provider appears in the ready line.
func (p *Provider) Info() model.Info { return p.info }

// Status is the provider's part of stats.
func (p *Provider) Status() json.RawMessage { return p.client.Status() }

// ServesWebSearch reports whether a request with this web_search setting
// carries the tool (providers.md 15).
func (p *Provider) ServesWebSearch(mode string) bool { return mode == "live" && !p.bedrock }

const (
	version      = "2023-06-01"
	bindingBeta  = "thinking-binding-controls-2026-08-01"
	fallbackBeta = "server-side-fallback-2026-07-01"
)

// Complete makes one attempt; see model.Provider.
func (p *Provider) Complete(ctx context.Context, req *model.Request, sink func(model.Event), rep *model.Report) (*model.Completion, error) {
	d := newDecoder(req, rep)
	call := p.call(req)
	call.Prefix = prefix(req, p.bedrock)
	if err := p.client.Stream(ctx, call, d, sink, rep); err != nil {
		return nil, err
	}
	c, err := d.finish()
	return c, p.client.Clean(err)
}

// Models lists what the provider serves, kept for five minutes.
func (p *Provider) Models(ctx context.Context) ([]model.Model, error) {
	return p.listing.Get(ctx, func(ctx context.Context) ([]model.Model, error) {
		return p.client.ListModels(ctx, wire.List{
			Header: http.Header{"Anthropic-Version": {version}},
			Query:  "limit=1000",
			Paged:  true,
		})
	})
}

var dated = regexp.MustCompile(`-[0-9]{8}$`)

// poolKey is the model without a date stamp, since a snapshot shares its
// alias's allowance. On Bedrock it is the whole id.
func poolKey(id string, bedrock bool) string {
	if bedrock {
		return id
	}
	return dated.ReplaceAllString(id, "")
}

func httpCode(status int, f wire.Failure) string {
	switch {
	case status == http.StatusBadRequest && strings.HasPrefix(f.Message, "prompt is too long"):
		return "provider_context_exceeded"
	case status == http.StatusPaymentRequired:
		return "provider_quota_exhausted"
	}
	return ""
}

// limits reads the rate-limit headers; resets are ignored, the pool refills
// continuously.
func limits(h http.Header) (l pace.Limits) {
	for d, name := range [...]string{
		pace.Requests: "requests", pace.Tokens: "tokens",
		pace.Input: "input-tokens", pace.Output: "output-tokens",
	} {
		limit, ok := wire.Figure(h.Get("anthropic-ratelimit-" + name + "-limit"))
		if !ok || limit == 0 {
			continue
		}
		l[d].Limit = limit
		l[d].Remaining, l[d].HasRemaining = wire.Figure(h.Get("anthropic-ratelimit-" + name + "-remaining"))
	}
	return l
}
