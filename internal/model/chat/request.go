package chat

import (
	"strconv"
	"strings"

	"agent/internal/model"
)

const suffix = `]}`

// server is what a request has to know of the host it goes to.
type server int

const (
	other server = iota // local servers and gateways
	openAI
	openRouter
)

func serverOf(host string) server {
	switch {
	case strings.EqualFold(host, "api.openai.com"):
		return openAI
	case strings.EqualFold(host, "openrouter.ai"):
		return openRouter
	}
	return other
}

// servesSearch reports whether the server runs a web search for a request with
// this web_search setting (providers.md 15).
func (s server) servesSearch(mode string) bool { return s == openRouter && mode == "live" }

// prefix is the body up to the first item.
func prefix(req *model.Request, to server) []byte {
	b := append([]byte(nil), `{"model":`...)
	b = model.AppendString(b, req.Model)
	b = append(b, `,"stream":true,"stream_options":{"include_usage":true}`...)
	if req.MaxOutput > 0 {
		name := `,"max_tokens":`
		if to == openAI {
			name = `,"max_completion_tokens":`
		}
		b = strconv.AppendInt(append(b, name...), req.MaxOutput, 10)
	}
	if tools := string(req.Tools); tools != "" && tools != "[]" {
		b = append(b, `,"tools":`...)
		b = append(b, tools...)
		if !req.AllowTools {
			b = append(b, `,"tool_choice":"none"`...)
		}
	}
	b = appendEffort(b, req.Reasoning, to)
	if to == openAI && req.CacheKey != "" {
		b = append(b, `,"prompt_cache_key":`...)
		b = model.AppendString(b, req.CacheKey)
	}
	if to.servesSearch(req.WebSearch) {
		b = append(b, `,"plugins":[{"id":"web"}]`...)
	}
	b = append(b, `,"messages":[`...)
	if !model.Blank(req.Instructions) {
		b = append(b, `{"role":"system","content":`...)
		b = model.AppendString(b, req.Instructions)
		b = append(b, '}')
		if req.Items.Bytes > 0 {
			b = append(b, ',')
		}
	}
	return b
}

// appendEffort encodes the reasoning level (providers.md 16). Unset leaves the
// server's default; servers other than the two know no level above high.
func appendEffort(b []byte, level string, to server) []byte {
	if level == "" {
		return b
	}
	if to == other && (level == "xhigh" || level == "max") {
		level = "high"
	}
	if to == openRouter {
		b = append(b, `,"reasoning":{"effort":`...)
		b = model.AppendString(b, level)
		return append(b, '}')
	}
	b = append(b, `,"reasoning_effort":`...)
	return model.AppendString(b, level)
}
