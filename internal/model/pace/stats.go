package pace

import (
	"math"
	"time"
)

// Stats is one pool in the daemon's stats; nil means not yet learned.
type Stats struct {
	RequestsPerMinute     *int64 `json:"requests_per_minute"`
	RequestsAvailable     *int64 `json:"requests_available"`
	TokensPerMinute       *int64 `json:"tokens_per_minute"`
	TokensAvailable       *int64 `json:"tokens_available"`
	InputTokensPerMinute  *int64 `json:"input_tokens_per_minute"`
	InputTokensAvailable  *int64 `json:"input_tokens_available"`
	OutputTokensPerMinute *int64 `json:"output_tokens_per_minute"`
	OutputTokensAvailable *int64 `json:"output_tokens_available"`
	ReservedTokens        int64  `json:"reserved_tokens"`
	ReservedRequests      int64  `json:"reserved_requests"`
	BlockedMS             int64  `json:"blocked_ms"`
}

// Stats are all pools by their keys.
func (p *Pools) Stats() map[string]Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	all := make(map[string]Stats, len(p.pools))
	for key, o := range p.pools {
		var s Stats
		s.RequestsPerMinute, s.RequestsAvailable = o.buckets[Requests].figures(now)
		s.TokensPerMinute, s.TokensAvailable = o.buckets[Tokens].figures(now)
		s.InputTokensPerMinute, s.InputTokensAvailable = o.buckets[Input].figures(now)
		s.OutputTokensPerMinute, s.OutputTokensAvailable = o.buckets[Output].figures(now)
		s.ReservedTokens = int64(o.buckets[Tokens].reserved)
		s.ReservedRequests = int64(o.buckets[Requests].reserved)
		s.BlockedMS = max(o.closedUntil.Sub(now).Milliseconds(), 0)
		all[key] = s
	}
	return all
}

func (b *bucket) figures(now time.Time) (limit, available *int64) {
	if !b.known {
		return nil, nil
	}
	b.refill(now)
	l, a := int64(b.limit), max(int64(math.Floor(b.level+slack)), 0)
	return &l, &a
}
