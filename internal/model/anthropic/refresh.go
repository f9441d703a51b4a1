package anthropic

import (
	"context"
	"net/http"

	"github.com/go-json-experiment/json"

	"agent/internal/model"
	"agent/internal/model/wire"
)

// refreshBytes bounds the answer to a refresh.
const refreshBytes = 64 << 10

// Refreshes reports whether a call's prompt cache lives five minutes and can be
// kept by asking for it again (providers.md 6, "Cache refresh"): not on
// Bedrock, not with a thinking budget, which no empty output can hold, and not
// where it lives an hour.
func (p *Provider) Refreshes(req *model.Request) bool {
	budgets := req.Reasoning != "" && thinkingOf(req.Model) == budgeted
	return !p.bedrock && req.CacheTTL != "1h" && !budgets
}

// Refresh sends a call again with no output asked for, so that its prompt cache
// is read. It makes one attempt, like Complete; rep.Usage is what it cost.
func (p *Provider) Refresh(ctx context.Context, req *model.Request, rep *model.Report) error {
	call := p.call(req)
	call.Prefix, call.MaxOutput = prefixFor(req, p.bedrock, 0, false), 1
	call.Header.Set("Accept", "application/json")
	return p.client.Ask(ctx, call, refreshBytes, func(body []byte) (*model.Usage, error) {
		var answer struct {
			Usage model.Loose[usage] `json:"usage"`
		}
		if err := json.Unmarshal(body, &answer, wire.Lenient); err != nil {
			return nil, model.Errorf("invalid_provider_response", "the answer to a cache refresh cannot be read")
		}
		var u usage
		u.start(answer.Usage)
		return u.total(req), nil
	}, rep)
}

// call is a request's parts that the stream and the refresh share.
func (p *Provider) call(req *model.Request) *wire.Call {
	beta := bindingBeta
	if req.Fallbacks && !p.bedrock {
		beta += "," + fallbackBeta
	}
	return &wire.Call{
		Path:      "/messages",
		Header:    http.Header{"Anthropic-Version": {version}, "Anthropic-Beta": {beta}},
		Pool:      poolKey(req.Model, p.bedrock),
		MaxOutput: req.MaxOutput,
		Items:     req.Items,
		Suffix:    []byte(suffix),
		Stall:     req.Stall,
	}
}
