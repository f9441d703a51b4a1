package usage

import "agent/protocol"

// Tokens are counts. Input holds what was read from the cache and written to it, Output
// the reasoning.
type Tokens struct {
	Input      int64 `json:"input"`
	Cached     int64 `json:"cached"`
	CacheWrite int64 `json:"cache_write"`
	Output     int64 `json:"output"`
	Reasoning  int64 `json:"reasoning"`
}

// Add adds another count.
func (t *Tokens) Add(o Tokens) {
	t.Input, t.Cached, t.CacheWrite = t.Input+o.Input, t.Cached+o.Cached, t.CacheWrite+o.CacheWrite
	t.Output, t.Reasoning = t.Output+o.Output, t.Reasoning+o.Reasoning
}

// All is how many tokens went in and came out: what a budget counts.
func (t Tokens) All() int64 { return t.Input + t.Output }

// Cost is what the tokens cost at a price, in USD.
func (p Price) Cost(t Tokens) float64 {
	fresh := max(t.Input-t.Cached-t.CacheWrite, 0)
	return (float64(fresh)*p.Input + float64(t.Cached)*p.Cached + float64(t.CacheWrite)*p.CacheWrite + float64(t.Output)*p.Output) / 1e6
}

// Sum is tokens and what they cost. The zero value counts nothing.
type Sum struct {
	Tokens
	USD float64 // of those calls that have a price

	// Unpriced is set where some of the tokens have no price, Plan where a plan pays for
	// some.
	Unpriced, Plan bool
}

// Add adds tokens that a model used.
func (s *Sum) Add(p Prices, model string, t Tokens) {
	s.Tokens.Add(t)
	if t.All() == 0 {
		return
	}
	price, ok := p.Of(model)
	switch {
	case ok:
		s.USD += price.Cost(t)
	case OnPlan(model):
		s.Plan = true
	default:
		s.Unpriced = true
	}
}

// Join adds another sum.
func (s *Sum) Join(o Sum) {
	s.Tokens.Add(o.Tokens)
	s.USD += o.USD
	s.Unpriced, s.Plan = s.Unpriced || o.Unpriced, s.Plan || o.Plan
}

// Call adds a model call as the daemon reports it. model is the one that the turn names;
// where several served the call, each counts for itself.
func (s *Sum) Call(p Prices, model string, u *protocol.Usage) {
	all := TokensOf(u)
	if len(u.Models) == 0 {
		s.Add(p, model, all)
		return
	}
	parts := Sum{}
	for _, m := range u.Models {
		parts.Add(p, served(model, m), Tokens{Input: m.InputTokens, Cached: m.CachedInputTokens, CacheWrite: m.CacheWriteTokens, Output: m.OutputTokens})
	}
	parts.Tokens = all // its parts do not tell of reasoning
	s.Join(parts)
}

// served is the reference of a model that served a part of a call.
func served(model string, m protocol.ModelUsage) string {
	if m.Provider != "" {
		return m.Provider + "/" + m.Model
	}
	provider, _, _ := protocol.ParseModelRef(model)
	return provider + "/" + m.Model
}

// TokensOf are the counts of one call.
func TokensOf(u *protocol.Usage) Tokens {
	return Tokens{
		Input: u.InputTokens, Cached: u.CachedInputTokens, CacheWrite: u.CacheWriteTokens,
		Output: u.OutputTokens, Reasoning: u.ReasoningTokens,
	}
}

// Priced reports the cost where all of it is known.
func (s *Sum) Priced() (usd float64, ok bool) { return s.USD, !s.Unpriced && !s.Plan }
