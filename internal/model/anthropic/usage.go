package anthropic

import "agent/internal/model"

// usage is a usage object of the stream, and what was gathered from several.
// Whatever in it is of another type counts as not reported.
type usage struct {
	Input         model.Count              `json:"input_tokens"`
	CacheRead     model.Count              `json:"cache_read_input_tokens"`
	CacheCreation model.Count              `json:"cache_creation_input_tokens"`
	Creation      model.Loose[creation]    `json:"cache_creation"`
	Output        model.Count              `json:"output_tokens"`
	ServerTool    model.Loose[serverTool]  `json:"server_tool_use"`
	Iterations    model.Loose[[]iteration] `json:"iterations"`

	seen bool
}

type creation struct {
	OneHour model.Count `json:"ephemeral_1h_input_tokens"`
}

type serverTool struct {
	WebSearches model.Count `json:"web_search_requests"`
}

// iteration is one attempt of a response that the server made in several.
type iteration struct {
	Type          model.Loose[string] `json:"type"`
	Model         model.Loose[string] `json:"model"`
	Input         model.Count         `json:"input_tokens"`
	CacheRead     model.Count         `json:"cache_read_input_tokens"`
	CacheCreation model.Count         `json:"cache_creation_input_tokens"`
	Output        model.Count         `json:"output_tokens"`
}

// maxIterations bounds the attempts of one response that are billed apart.
const maxIterations = 64

func (u *usage) start(from model.Loose[usage]) {
	if !from.Given {
		return
	}
	*u = from.Value
	u.seen = u.says()
}

// says reports whether a usage object holds any figure of ours. One that does
// not is no report: the call's use is then estimated, so that budgets bind.
func (u *usage) says() bool {
	return u.Input.Known || u.Output.Known || u.CacheRead.Known || u.CacheCreation.Known || u.Iterations.Given
}

// delta takes message_delta's figures, which are cumulative. Input comes from
// message_start; gateways that only know it at the end give it here.
func (u *usage) delta(given model.Loose[usage]) {
	if !given.Given {
		return
	}
	from := &given.Value
	u.seen = u.seen || from.says()
	if u.Input.N == 0 && from.Input.Known {
		u.Input, u.CacheRead, u.CacheCreation = from.Input, from.CacheRead, from.CacheCreation
	}
	if from.Output.Known {
		u.Output = from.Output
	}
	if from.ServerTool.Given {
		u.ServerTool = from.ServerTool
	}
	if from.Iterations.Given {
		u.Iterations = from.Iterations
	}
}

// total is the call's usage in our terms (providers.md 6, "Usage"); nil when
// nothing was reported.
func (u *usage) total(req *model.Request) *model.Usage {
	if !u.seen {
		return nil
	}
	written := u.CacheCreation.N
	t := &model.Usage{
		Input:         u.Input.N + u.CacheRead.N + written,
		Output:        u.Output.N,
		Cached:        u.CacheRead.N,
		CacheWrite:    written,
		CacheWrite1h:  u.oneHour(req, written),
		HasCacheWrite: u.CacheCreation.Known,
		WebSearches:   u.ServerTool.Value.WebSearches.N,
	}
	u.split(req, t)
	t.Bound()
	return t
}

func (u *usage) oneHour(req *model.Request, written int64) int64 {
	if hour := u.Creation.Value.OneHour; hour.Known {
		return min(hour.N, written)
	}
	if req.CacheTTL == "1h" {
		return written
	}
	return 0
}

// split replaces the totals by those of the billed attempts when a fallback
// made several. An attempt without output that is not the last is not billed.
func (u *usage) split(req *model.Request, t *model.Usage) {
	attempts := u.Iterations.Value
	if len(attempts) > maxIterations {
		attempts = attempts[len(attempts)-maxIterations:]
	}
	several := len(attempts) > 1
	for _, it := range attempts {
		several = several || it.Type.Value == "fallback_message"
	}
	if !several {
		return
	}
	t.Input, t.Output, t.Cached, t.CacheWrite = 0, 0, 0, 0
	for i, it := range attempts {
		if it.Output.N == 0 && i < len(attempts)-1 {
			continue
		}
		part := model.ModelUsage{
			Model:  it.Model.Value,
			Input:  it.Input.N + it.CacheRead.N + it.CacheCreation.N,
			Output: it.Output.N, Cached: it.CacheRead.N, CacheWrite: it.CacheCreation.N,
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
	t.HasCacheWrite = t.HasCacheWrite || t.CacheWrite > 0
}
