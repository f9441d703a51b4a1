package chat

import "agent/internal/model"

// usage is a usage object. Whatever in it is of another type counts as not
// reported.
type usage struct {
	Input         model.Count                `json:"prompt_tokens"`
	InputDetails  model.Loose[inputDetails]  `json:"prompt_tokens_details"`
	CacheHit      model.Count                `json:"prompt_cache_hit_tokens"`
	Output        model.Count                `json:"completion_tokens"`
	OutputDetails model.Loose[outputDetails] `json:"completion_tokens_details"`
}

type inputDetails struct {
	Cached     model.Count `json:"cached_tokens"`
	CacheWrite model.Count `json:"cache_write_tokens"`
}

type outputDetails struct {
	Reasoning model.Count `json:"reasoning_tokens"`
}

// usageOf is the call's usage in our terms; nil when none was reported: then
// it is estimated, so that budgets bind.
func usageOf(given model.Loose[usage]) *model.Usage {
	u := &given.Value
	if !u.Input.Known && !u.Output.Known {
		return nil
	}
	in, out := u.InputDetails.Value, u.OutputDetails.Value
	cached := in.Cached
	if !cached.Known {
		cached = u.CacheHit
	}
	t := &model.Usage{
		Input: u.Input.N, Output: u.Output.N, Cached: cached.N,
		CacheWrite: in.CacheWrite.N, HasCacheWrite: in.CacheWrite.Known,
		Reasoning: out.Reasoning.N, HasReasoning: out.Reasoning.Known,
	}
	t.Bound()
	return t
}
