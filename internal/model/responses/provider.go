package responses

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"

	"agent/internal/model"
	"agent/internal/model/pace"
	"agent/internal/model/wire"
)

// Provider is one binding of the family. It is safe for concurrent use.
type Provider struct {
	client  *wire.Client
	sockets *wire.Sockets // nil: HTTP
	info    model.Info
	bedrock bool
	chatgpt bool
	version string
	listing wire.Listing
}

var (
	_ model.Provider   = (*Provider)(nil)
	_ model.Rememberer = (*Provider)(nil)
)

// New makes a provider of a resolved spec.
func New(name string, spec model.Spec, env wire.Env) (*Provider, error) {
	spec.Name = name
	chatgpt := spec.Auth == model.AuthChatGPT
	family := wire.Family{
		HeaderWait: wire.HeaderWait,
		Authorize:  func(h http.Header, key string) { h.Set("authorization", "Bearer "+key) },
		Limits:     limits,
		Code:       httpCode,
		RequestID:  "x-request-id",
	}
	if chatgpt {
		family.Plan = plan
	}
	client, err := wire.NewClient(spec, env, family)
	if err != nil {
		return nil, err
	}
	p := &Provider{
		client: client, info: spec.Info(), bedrock: model.IsBedrockHost(spec.Host()), chatgpt: chatgpt, version: env.Version,
	}
	if spec.Transport == model.TransportWebSocket {
		p.sockets = client.Sockets(outOfStep)
	}
	return p, nil
}

// Info is how the provider appears in the ready line.
func (p *Provider) Info() model.Info { return p.info }

// Status is the provider's part of stats.
func (p *Provider) Status() json.RawMessage {
	if p.sockets != nil {
		return p.sockets.Status()
	}
	return p.client.Status()
}

// ServesWebSearch reports whether a request with this web_search setting
// carries the tool (providers.md 15).
func (p *Provider) ServesWebSearch(mode string) bool {
	return !p.bedrock && (mode == "live" || mode == "cached")
}

// Complete makes one attempt; see model.Provider.
func (p *Provider) Complete(ctx context.Context, req *model.Request, sink func(model.Event), rep *model.Report) (*model.Completion, error) {
	if p.chatgpt {
		req = forChatGPT(req)
	}
	if p.sockets != nil {
		return p.overSocket(ctx, req, sink, rep)
	}
	d := newDecoder(req, rep)
	call := &wire.Call{
		Path:      "/responses",
		Pool:      poolKey(req.Model, p.bedrock),
		MaxOutput: req.MaxOutput,
		Prefix:    prefix(req, p.bedrock),
		Items:     req.Items,
		Suffix:    []byte(suffix),
		Stall:     req.Stall,
	}
	if req.CacheKey != "" {
		call.Header = http.Header{"Session-Id": {req.CacheKey}}
	}
	if p.chatgpt {
		keepTurn(call, req.TurnState)
	}
	if err := p.client.Stream(ctx, call, d, sink, rep); err != nil {
		return nil, err
	}
	c, err := d.finish(sink)
	return c, p.client.Clean(err)
}

// Models lists what the provider serves, kept for five minutes.
func (p *Provider) Models(ctx context.Context) ([]model.Model, error) {
	return p.listing.Get(ctx, func(ctx context.Context) ([]model.Model, error) {
		how := wire.List{}
		if p.chatgpt {
			how.Query = listQuery(p.version)
		}
		return p.client.ListModels(ctx, how)
	})
}

var dated = regexp.MustCompile(`-[0-9]{4}-[0-9]{2}-[0-9]{2}$`)

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
	case status == http.StatusTooManyRequests && f.Says("insufficient_quota", "usage_limit_reached"):
		return "provider_quota_exhausted"
	case status == http.StatusBadRequest && f.Says("context_length_exceeded"):
		return "provider_context_exceeded"
	}
	return ""
}

// limits reads the rate-limit headers; resets are ignored, the pool refills
// continuously.
func limits(h http.Header) (l pace.Limits) {
	for d, name := range map[int]string{pace.Requests: "requests", pace.Tokens: "tokens"} {
		limit, ok := wire.Figure(h.Get("x-ratelimit-limit-" + name))
		if !ok || limit == 0 {
			continue
		}
		l[d].Limit = limit
		l[d].Remaining, l[d].HasRemaining = wire.Figure(h.Get("x-ratelimit-remaining-" + name))
	}
	return l
}
