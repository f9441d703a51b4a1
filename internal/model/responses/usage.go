package responses

import "agent/internal/model"

// usage is a response's usage object.
type usage struct {
	Input        int64 `json:"input_tokens"`
	InputDetails struct {
		Cached     int64  `json:"cached_tokens"`
		CacheWrite *int64 `json:"cache_write_tokens"`
	} `json:"input_tokens_details"`
	Output        int64 `json:"output_tokens"`
	OutputDetails struct {
		Reasoning *int64 `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
}

// total is the call's usage in our terms; nil when none was reported.
func (u *usage) total() *model.Usage {
	if u == nil {
		return nil
	}
	t := &model.Usage{
		Input:  max(u.Input, 0),
		Output: max(u.Output, 0),
		Cached: max(u.InputDetails.Cached, 0),
	}
	if w := u.InputDetails.CacheWrite; w != nil {
		t.CacheWrite, t.HasCacheWrite = max(*w, 0), true
	}
	if r := u.OutputDetails.Reasoning; r != nil {
		t.Reasoning, t.HasReasoning = max(*r, 0), true
	}
	return t
}
