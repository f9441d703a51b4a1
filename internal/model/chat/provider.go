package chat

import (
	"context"
	"encoding/json"
	"net/http"

	"agent/internal/model"
	"agent/internal/model/pace"
	"agent/internal/model/wire"
)

// Provider is one binding of the family. It is safe for concurrent use.
type Provider struct {
	client  *wire.Client
	info    model.Info
	server  server
	listing wire.Listing
}

var _ model.Provider = (*Provider)(nil)

// New makes a provider of a resolved spec.
func New(name string, spec model.Spec, env wire.Env) (*Provider, error) {
	spec.Name = name
	client, err := wire.NewClient(spec, env, wire.Family{
		HeaderWait: wire.ChatHeaderWait,
		Authorize:  func(h http.Header, key string) { h.Set("authorization", "Bearer "+key) },
		Limits:     limits,
		Code:       httpCode,
		RequestID:  "x-request-id",
	})
	if err != nil {
		return nil, err
	}
	return &Provider{client: client, info: spec.Info(), server: serverOf(spec.Host())}, nil
}

// Info is how the provider appears in the ready line.
func (p *Provider) Info() model.Info { return p.info }

// Status is the provider's part of stats.
func (p *Provider) Status() json.RawMessage { return p.client.Status() }

// ServesWebSearch reports whether a request with this web_search setting has
// the server search (providers.md 15).
func (p *Provider) ServesWebSearch(mode string) bool { return p.server.servesSearch(mode) }

// Complete makes one attempt; see model.Provider.
func (p *Provider) Complete(ctx context.Context, req *model.Request, sink func(model.Event), rep *model.Report) (*model.Completion, error) {
	d := newDecoder(req, rep)
	call := &wire.Call{
		Path:      "/chat/completions",
		Pool:      poolKey(req.Model),
		MaxOutput: req.MaxOutput,
		Prefix:    prefix(req, p.server),
		Items:     req.Items,
		Suffix:    []byte(suffix),
		Stall:     req.Stall,
	}
	if err := p.client.Stream(ctx, call, d, sink, rep); err != nil {
		return nil, err
	}
	c, err := d.finish()
	if c != nil {
		// The plugin searches for every request that carries it.
		c.External = p.server.servesSearch(req.WebSearch)
	}
	return c, p.client.Clean(err)
}

// Models lists what the provider serves, kept for five minutes.
func (p *Provider) Models(ctx context.Context) ([]model.Model, error) {
	return p.listing.Get(ctx, func(ctx context.Context) ([]model.Model, error) {
		return p.client.ListModels(ctx, wire.List{})
	})
}

// poolKey is the model without a date stamp (-YYYY-MM-DD), since a snapshot
// shares its alias's allowance.
func poolKey(id string) string {
	const stamp = "-0000-00-00"
	at := len(id) - len(stamp)
	if at <= 0 {
		return id
	}
	for i := range len(stamp) {
		c := id[at+i]
		if stamp[i] == '-' && c != '-' || stamp[i] == '0' && (c < '0' || c > '9') {
			return id
		}
	}
	return id[:at]
}

// limits reads the rate-limit headers, where a server has them, in OpenAI's
// spelling; resets are ignored, the pool refills continuously.
func limits(h http.Header) (l pace.Limits) {
	for _, d := range []struct {
		at   int
		name string
	}{{pace.Requests, "requests"}, {pace.Tokens, "tokens"}} {
		limit, ok := wire.Figure(h.Get("x-ratelimit-limit-" + d.name))
		if !ok || limit == 0 {
			continue
		}
		l[d.at].Limit = limit
		l[d.at].Remaining, l[d.at].HasRemaining = wire.Figure(h.Get("x-ratelimit-remaining-" + d.name))
	}
	return l
}
