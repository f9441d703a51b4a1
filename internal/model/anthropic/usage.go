package anthropic

import "agent/internal/model"

// usage is a usage object of the stream, and what was gathered from several.
type usage struct {
	Input         *int64 `json:"input_tokens"`
	CacheRead     *int64 `json:"cache_read_input_tokens"`
	CacheCreation *int64 `json:"cache_creation_input_tokens"`
	Creation      *struct {
		OneHour *int64 `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"`
	Output     *int64 `json:"output_tokens"`
	ServerTool *struct {
		WebSearches int64 `json:"web_search_requests"`
	} `json:"server_tool_use"`
	Iterations []iteration `json:"iterations"`

	seen bool
}

// iteration is one attempt of a response that the server made in several.
type iteration struct {
	Type          string `json:"type"`
	Model         string `json:"model"`
	Input         int64  `json:"input_tokens"`
	CacheRead     int64  `json:"cache_read_input_tokens"`
	CacheCreation int64  `json:"cache_creation_input_tokens"`
	Output        int64  `json:"output_tokens"`
}

func (u *usage) start(from *usage) {
	if from == nil {
		return
	}
	*u = *from
	u.seen = true
}

// delta takes message_delta's figures, which are cumulative. Input comes from
// message_start; gateways that only know it at the end give it here.
func (u *usage) delta(from *usage) {
	if from == nil {
		return
	}
	u.seen = true
	if value(u.Input) == 0 && from.Input != nil {
		u.Input, u.CacheRead, u.CacheCreation = from.Input, from.CacheRead, from.CacheCreation
	}
	if from.Output != nil {
		u.Output = from.Output
	}
	if from.ServerTool != nil {
		u.ServerTool = from.ServerTool
	}
	if from.Iterations != nil {
		u.Iterations = from.Iterations
	}
}

// total is the call's usage in our terms (providers.md 6, "Usage"); nil when
// nothing was reported.
func (u *usage) total(req *model.Request) *model.Usage {
	if !u.seen {
		return nil
	}
	written := value(u.CacheCreation)
	t := &model.Usage{
		Input:         value(u.Input) + value(u.CacheRead) + written,
		Output:        value(u.Output),
		Cached:        value(u.CacheRead),
		CacheWrite:    written,
		CacheWrite1h:  u.oneHour(req, written),
		HasCacheWrite: u.CacheCreation != nil,
	}
	if u.ServerTool != nil {
		t.WebSearches = max(u.ServerTool.WebSearches, 0)
	}
	u.split(req, t)
	return t
}

func (u *usage) oneHour(req *model.Request, written int64) int64 {
	if u.Creation != nil && u.Creation.OneHour != nil {
		return min(value(u.Creation.OneHour), written)
	}
	if req.CacheTTL == "1h" {
		return written
	}
	return 0
}

// split replaces the totals by those of the billed attempts when a fallback
// made several. An attempt without output that is not the last is not billed.
func (u *usage) split(req *model.Request, t *model.Usage) {
	several := len(u.Iterations) > 1
	for _, it := range u.Iterations {
		several = several || it.Type == "fallback_message"
	}
	if !several {
		return
	}
	t.Input, t.Output, t.Cached, t.CacheWrite = 0, 0, 0, 0
	for i, it := range u.Iterations {
		if it.Output <= 0 && i < len(u.Iterations)-1 {
			continue
		}
		part := model.ModelUsage{
			Model:  it.Model,
			Input:  max(it.Input, 0) + max(it.CacheRead, 0) + max(it.CacheCreation, 0),
			Output: max(it.Output, 0), Cached: max(it.CacheRead, 0), CacheWrite: max(it.CacheCreation, 0),
		}
		if part.Model == "" {
			part.Model = req.Model
		}
		t.Models = append(t.Models, part)
		t.Input += part.Input
		t.Output += part.Output
		t.Cached += part.Cached
		t.CacheWrite += part.CacheWrite
	}
	t.CacheWrite1h = min(t.CacheWrite1h, t.CacheWrite)
	t.HasCacheWrite = t.HasCacheWrite || t.CacheWrite > 0
}

// value is a reported count; a provider's negative one counts as none.
func value(n *int64) int64 {
	if n == nil {
		return 0
	}
	return max(*n, 0)
}
